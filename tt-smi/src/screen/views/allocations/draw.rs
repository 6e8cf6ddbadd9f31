//! Draws the view.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::plan::{Pane, Plan};
use super::{Allocations, bars, items_of};
use crate::escape::escape;
use crate::lists::groups::GroupBy;
use crate::lists::suspects::{AT_LEAST_NS, RISES, STEPS};
use crate::output::units::{age, bytes, plural};
use crate::screen::page::Scene;
use crate::screen::theme::Theme;
use crate::screen::widgets::list::Look;
use crate::screen::widgets::text::split_top;

/// Age from which on a list is shown with its age.
const OLD_NS: u64 = 2_000_000_000;

/// Draws all parts that fit.
pub(super) fn draw(view: &Allocations, frame: &mut Frame<'_>, scene: &Scene<'_>) {
    let (plan, theme) = (view.plan(scene.area), scene.theme);
    frame.render_widget(head(view, &plan, scene), plan.head);
    draw_doubts(view, frame, plan.doubts, theme);
    draw_list(view, frame, plan.list, theme);
    draw_sizes(view, frame, plan.sizes, theme);
    draw_suspects(view, frame, plan.suspects, theme);
}

/// Counts, filter, and what Tab shows next.
fn head(view: &Allocations, plan: &Plan, scene: &Scene<'_>) -> Line<'static> {
    let theme = scene.theme;
    let Some(listing) = &view.listing else {
        return Line::styled(scene.unread("live allocations"), theme.dim());
    };
    let (all, shown) = (listing.items.len(), view.list.len());
    let number = match view.query.is_empty() {
        true => format!(" {}, {}", plural(all as u64, "live allocation"), bytes(view.bytes)),
        false => format!(" {shown} of {}, {}", plural(all as u64, "live allocation"), bytes(view.bytes)),
    };
    let mut spans = vec![Span::styled(number, theme.heading())];
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
    if !view.suspects.is_empty() && plan.suspects.is_empty() {
        let suspects = plural(view.suspects.len() as u64, "leak suspect");
        spans.push(Span::styled(format!("  ! {suspects}"), theme.warn()));
    }
    if plan.sizes.is_empty() || plan.suspects.is_empty() {
        let next = match view.pane {
            Pane::List => "sizes",
            Pane::Sizes => "leak suspects",
            Pane::Suspects => "list",
        };
        spans.push(Span::styled(format!("  Tab {next}"), theme.dim()));
    }
    Line::from(spans)
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
    for ((place, y), doubt) in (area.y..area.bottom()).enumerate().zip(doubts) {
        let is_last = place + 1 == usize::from(area.height);
        let more = if is_last && hidden > 0 { format!(" (and {hidden} more)") } else { String::new() };
        let text = format!(" {}{more}", escape(doubt));
        frame.render_widget(Line::styled(text, theme.warn()), Rect { y, height: 1, ..area });
    }
}

fn draw_list(view: &Allocations, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    match view.by {
        None => view.list.draw(frame, area, items_of(&view.listing), theme, |item| {
            if view.seen.is_suspect(item) { Look::warn(theme) } else { Look::default() }
        }),
        Some(_) => view.group_list.draw(frame, area, &view.groups, theme, |_| Look::default()),
    }
    if view.list.len() == 0 && view.listing.is_some() && area.height > 1 {
        let text = match view.query.is_empty() {
            true => " No live allocations.",
            false => " No matching allocations. Press Esc to show all.",
        };
        frame.render_widget(Line::styled(text, theme.dim()), Rect { y: area.y + 1, height: 1, ..area });
    }
}

/// A title line, highlighted if the part has the focus.
fn title(frame: &mut Frame<'_>, area: Rect, text: &str, has_focus: bool, theme: &Theme) -> Rect {
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
    let rest = title(frame, area, "sizes", view.pane == Pane::Sizes, theme);
    bars::draw(frame, rest, &view.bins, theme);
}

fn draw_suspects(view: &Allocations, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    if area.is_empty() {
        return;
    }
    let rest = title(frame, area, "leak suspects", view.pane == Pane::Suspects, theme);
    if !view.suspects.is_empty() {
        view.suspect_list.draw(frame, rest, &view.suspects, theme, |_| Look::from(theme.warn()));
        return;
    }
    let lines = [
        " None.".to_owned(),
        format!(" A suspect's count rose {RISES} times or more, over {} or {STEPS}", age(AT_LEAST_NS)),
        " steps or more, never fell, and is still rising.".to_owned(),
    ];
    for (y, line) in (rest.y..rest.bottom()).zip(lines) {
        frame.render_widget(Line::styled(line, theme.dim()), Rect { y, height: 1, ..rest });
    }
}
