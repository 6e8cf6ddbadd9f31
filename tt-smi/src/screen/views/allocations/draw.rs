//! Layout and drawing of the view.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use tt_shm_reader::Class;

use super::{Allocations, ItemRow};
use crate::escape::{Foreign, escape, pad};
use crate::lists::groups::{Group, GroupBy};
use crate::lists::suspects::{AT_LEAST_NS, RISES, STEPS};
use crate::model::Word;
use crate::screen::page::Scene;
use crate::screen::theme::{Part, Theme};
use crate::screen::widgets::list::{RowStyle, draw_empty};
use crate::screen::widgets::text::{draw_lines, fitting, hex, split_top};
use crate::screen::widgets::{in_full, process};
use crate::segments::pid_text;
use crate::units::{age, bytes, count, plural};

/// The pane with the focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pane {
    /// Allocations or groups.
    #[default]
    List,
    /// The size histogram.
    Sizes,
    /// Leak suspects.
    Suspects,
}

impl Pane {
    /// The next pane, cyclically.
    pub(super) fn next(self) -> Pane {
        match self {
            Pane::List => Pane::Sizes,
            Pane::Sizes => Pane::Suspects,
            Pane::Suspects => Pane::List,
        }
    }
}

/// From this width on, panes are side by side.
const WIDE: u16 = 150;
/// Width of the panes beside the list.
const SIDE: u16 = 64;
/// From this height on, panes are stacked.
const TALL: u16 = 40;

/// The panes; one with an empty area is not shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct PaneLayout {
    pub head: Rect,
    pub doubts: Rect,
    pub list: Rect,
    /// The selected allocation in full.
    pub whole: Rect,
    pub sizes: Rect,
    pub suspects: Rect,
}

impl PaneLayout {
    /// Layout of an area with this many notes. Histogram and suspects get no more than they need.
    pub(super) fn of(area: Rect, pane: Pane, doubts: usize, bins: usize, suspects: usize) -> PaneLayout {
        let doubts = doubts.min(3).min(usize::from(area.height / 5)) as u16;
        let head = u16::from(area.height > 2);
        let rows = [Constraint::Length(head), Constraint::Length(doubts), Constraint::Min(0)];
        let [head, doubts, rest] = area.layout(&Layout::vertical(rows));
        let layout = PaneLayout {
            head,
            doubts,
            list: rest,
            whole: Rect::ZERO,
            sizes: Rect::ZERO,
            suspects: Rect::ZERO,
        };
        // A title and a heading each.
        let lines =
            |rows: usize, most: u16| Constraint::Length((rows as u16).saturating_add(2).clamp(3, most));
        if area.width >= WIDE && rest.height >= 12 {
            let [list, side] =
                rest.layout(&Layout::horizontal([Constraint::Min(0), Constraint::Length(SIDE)]).spacing(1));
            let [sizes, suspects] =
                side.layout(&Layout::vertical([lines(bins, rest.height * 3 / 5), Constraint::Min(0)]));
            return PaneLayout { list, sizes, suspects, ..layout };
        }
        if rest.height >= TALL {
            let parts = [Constraint::Min(0), lines(bins, rest.height / 3), lines(suspects, rest.height / 5)];
            let [list, sizes, suspects] = rest.layout(&Layout::vertical(parts));
            return PaneLayout { list, sizes, suspects, ..layout };
        }
        match pane {
            Pane::List => layout,
            Pane::Sizes => PaneLayout { list: Rect::ZERO, sizes: rest, ..layout },
            Pane::Suspects => PaneLayout { list: Rect::ZERO, suspects: rest, ..layout },
        }
    }
}

/// Age from which on a list is shown with its age.
const OLD_NS: u64 = 2_000_000_000;

/// Draws all parts that fit.
pub(super) fn draw(view: &Allocations, frame: &mut Frame<'_>, scene: &Scene<'_>) {
    let (layout, theme) = (view.layout(scene), scene.theme);
    frame.render_widget(head(view, &layout, scene), layout.head);
    draw_doubts(view, frame, layout.doubts, theme);
    draw_list(view, frame, layout.list, scene);
    if let Some(row) = view.opened() {
        in_full::draw(frame, layout.whole, &facts(view, row, scene), "Enter its process, Esc close", theme);
    }
    draw_sizes(view, frame, layout.sizes, theme);
    draw_suspects(view, frame, layout.suspects, theme);
}

/// Counts, filter, and what Tab shows next.
fn head(view: &Allocations, layout: &PaneLayout, scene: &Scene<'_>) -> Line<'static> {
    let theme = scene.theme;
    let Some(listing) = &view.listing else {
        return Line::styled(scene.unread("live allocations"), theme.dim());
    };
    let (all, shown) = (listing.items.len(), view.shown);
    let number = match view.query.is_empty() {
        true => format!(" {}, {}", plural(all as u64, "live allocation"), bytes(view.bytes)),
        false => format!(" {shown} of {}, {}", plural(all as u64, "live allocation"), bytes(view.bytes)),
    };
    let mut spans = vec![Span::styled(number, theme.heading())];
    if view.by.is_none() && (view.rows.len() as u64) < shown {
        let lines = plural(view.rows.len() as u64, "line");
        spans.push(Span::styled(format!("  folded to {lines}, x unfolds"), theme.dim()));
    }
    // Long lists are read less often.
    let old_ns = scene.data.model.clock.age_ns(view.listed_ns);
    if old_ns >= OLD_NS {
        spans.push(Span::styled(format!("  read {} ago", age(old_ns)), theme.dim()));
    }
    if !view.query.is_empty() {
        spans.push(Span::raw(format!("  {}", escape(&view.query.to_string()))));
    }
    if let Some(by) = view.by {
        spans.push(Span::raw(format!("  {} by {}", plural(view.groups.len() as u64, "group"), by_name(by))));
    }
    if !view.suspects.is_empty() && layout.suspects.is_empty() {
        let suspects = plural(view.suspects.len() as u64, "leak suspect");
        spans.push(Span::styled(format!("  ! {suspects}"), theme.warn()));
    }
    if layout.sizes.is_empty() || layout.suspects.is_empty() {
        let next = match view.pane {
            Pane::List => "sizes",
            Pane::Sizes => "leak suspects",
            Pane::Suspects => "list",
        };
        spans.push(Span::styled(format!("  Tab {next}"), theme.dim()));
    }
    fitting(spans, layout.head.width)
}

fn by_name(by: GroupBy) -> &'static str {
    match by {
        GroupBy::Name => "name",
        GroupBy::Class => "class",
        GroupBy::Size => "size",
        GroupBy::Pid => "process",
    }
}

/// Notes on what the list lacks.
fn draw_doubts(view: &Allocations, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let doubts = view.listing.as_ref().map_or(&[][..], |listing| &listing.doubts);
    let hidden = doubts.len().saturating_sub(usize::from(area.height));
    let line = |(place, doubt): (usize, &String)| {
        let is_last = place + 1 == usize::from(area.height);
        let more = if is_last && hidden > 0 { format!(" (and {hidden} more)") } else { String::new() };
        Line::styled(format!(" {}{more}", escape(doubt)), theme.warn())
    };
    draw_lines(frame, area, doubts.iter().enumerate().map(line));
}

/// What there is to know of an allocation.
pub(super) fn facts(view: &Allocations, row: &ItemRow, scene: &Scene<'_>) -> Vec<in_full::Fact> {
    let item = row.item();
    let each = format!("{} ({} B)", bytes(item.size), item.size);
    let size = match row.items().len() {
        1 => each,
        count => format!("{each} on each of {count} devices, {} in all", bytes(row.total())),
    };
    let holder = process::by_identity(&scene.data.model, item.identity);
    let holder = holder.map_or_else(|| pid_text(item.pid, item.claimed), process::described);
    let text = |text: &Option<Foreign>| text.as_ref().map(Foreign::to_string);
    let cores = item.cores.map(|cores| match item.core_type {
        Some(core_type) => format!("{cores} ({})", core_type.word()),
        None => cores.to_string(),
    });
    let facts = [
        ("name", text(&item.name)),
        ("class", Some(item.class.name().to_owned())),
        ("size", Some(size)),
        ("device", Some(row.devices())),
        ("process", Some(holder)),
        ("address", item.address.map(hex)),
        ("per bank", item.bank_bytes.map(|size| format!("{} ({size} B)", bytes(size)))),
        ("cores", cores),
        ("program", item.program.map(hex)),
        ("id", Some(hex(item.id))),
        ("age", Some(age(item.age_ns))),
        ("made at", text(&item.site)),
        (
            "leak",
            view.seen.is_suspect(item).then(|| "its group only grows: Tab shows the suspects".to_owned()),
        ),
        ("note", item.globally_allocated.then(|| "inside an L1 buffer, without bytes of its own".to_owned())),
    ];
    facts.into_iter().filter_map(|(what, value)| Some((what, value?))).collect()
}

fn draw_list(view: &Allocations, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
    let theme = scene.theme;
    match view.by {
        None => view.list.draw(frame, area, &view.rows, theme, |row| {
            let holder = || process::by_identity(&scene.data.model, row.item().identity);
            match view.seen.is_suspect(row.item()) {
                true => RowStyle::warn(theme),
                false => holder().and_then(|holder| process::state_style(holder, theme)).unwrap_or_default(),
            }
        }),
        Some(_) => view.group_list.draw(frame, area, &view.groups, theme, |_| RowStyle::default()),
    }
    if view.list.len() == 0 && view.listing.is_some() {
        let text = match view.query.is_empty() {
            true => " None yet. `tt-smi run -- COMMAND` makes a program report.",
            false => " No matching allocations. Press Esc to show all.",
        };
        draw_empty(frame, area, text, theme);
    }
}

/// A title line, highlighted if the part has the focus.
fn draw_title(frame: &mut Frame<'_>, area: Rect, text: &str, has_focus: bool, theme: &Theme) -> Rect {
    let (line, rest) = split_top(area, 1);
    let style = if has_focus { theme.selected() } else { theme.dim() };
    let rule = "─".repeat(usize::from(area.width).saturating_sub(text.len() + 4));
    let spans = vec![Span::styled("─", theme.dim()), Span::styled(format!(" {text} "), style)];
    frame.render_widget(Line::from_iter(spans.into_iter().chain([Span::styled(rule, theme.dim())])), line);
    rest
}

fn draw_sizes(view: &Allocations, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    if area.is_empty() {
        return;
    }
    let rest = draw_title(frame, area, "sizes", view.pane == Pane::Sizes, theme);
    draw_bars(frame, rest, &view.bins, theme);
}

fn draw_suspects(view: &Allocations, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    if area.is_empty() {
        return;
    }
    let rest = draw_title(frame, area, "leak suspects", view.pane == Pane::Suspects, theme);
    if !view.suspects.is_empty() {
        view.suspect_list.draw(frame, rest, &view.suspects, theme, |_| RowStyle::from(theme.warn()));
        return;
    }
    let lines = [
        " None.".to_owned(),
        format!(" A suspect's count rose {RISES} times or more, over {} or {STEPS}", age(AT_LEAST_NS)),
        " steps or more, never fell, and is still rising.".to_owned(),
    ];
    draw_lines(frame, rest, lines.map(|line| Line::styled(line, theme.dim())));
}

/// Columns of the histogram: a bin between two powers of two, and its contents.
const LABEL_WIDTH: usize = 19;
const FIGURE_WIDTH: usize = 9;

/// Draws the size histogram: two bars per bin, for count and bytes; the largest bins if there is no room for all.
fn draw_bars(frame: &mut Frame<'_>, area: Rect, bins: &[Group], theme: &Theme) {
    if area.is_empty() {
        return;
    }
    let bar = usize::from(area.width).saturating_sub(LABEL_WIDTH + 2 * FIGURE_WIDTH + 4) / 2;
    let head = format!(
        " {} {} {}  {} {}",
        pad("SIZE", LABEL_WIDTH - 1, false),
        pad("COUNT", FIGURE_WIDTH, true),
        " ".repeat(bar),
        pad("BYTES", FIGURE_WIDTH - 1, true),
        " ".repeat(bar)
    );
    frame.render_widget(Line::styled(head, theme.heading()), Rect { height: 1, ..area });
    let room = usize::from(area.height - 1);
    let most = |of: fn(&Group) -> u64| bins.iter().map(of).max().unwrap_or(0);
    let (most_count, most_bytes) = (most(|bin| bin.count), most(|bin| bin.bytes));
    let shown = bins_that_fit(bins, room);
    for (y, bin) in (area.y + 1..area.bottom()).zip(shown) {
        let mut spans = vec![Span::raw(format!(" {}", pad(&bin.key.to_string(), LABEL_WIDTH - 1, false)))];
        spans.push(Span::raw(format!(" {} ", pad(&count(bin.count as f64), FIGURE_WIDTH, true))));
        spans.push(filled(bin.count, most_count, bar, Part::Of(Class::L1), theme));
        spans.push(Span::raw(format!(" {} ", pad(&bytes(bin.bytes), FIGURE_WIDTH, true))));
        spans.push(filled(bin.bytes, most_bytes, bar, Part::Of(Class::Dram), theme));
        frame.render_widget(Line::from(spans), Rect { y, height: 1, ..area });
    }
}

/// As many bins as fit: empty ones are dropped first, then the smallest sizes.
fn bins_that_fit(bins: &[Group], room: usize) -> Vec<&Group> {
    if bins.len() <= room {
        return bins.iter().collect();
    }
    let used: Vec<&Group> = bins.iter().filter(|bin| bin.count > 0).collect();
    used[used.len().saturating_sub(room)..].to_vec()
}

/// A bar in proportion to the longest one, in eighths of a column. A value above zero is always visible.
fn filled(value: u64, most: u64, width: usize, part: Part, theme: &Theme) -> Span<'static> {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = match most {
        0 => 0,
        _ => (value as f64 / most as f64 * (width * 8) as f64).round() as usize,
    };
    let eighths = if value > 0 { eighths.max(1) } else { 0 };
    let bar = format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8]);
    let (_, style) = theme.part(part);
    Span::styled(pad(&bar, width, false), style)
}
