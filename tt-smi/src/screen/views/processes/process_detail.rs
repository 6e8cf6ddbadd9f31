//! One process: identity, problems, figures per device, and its largest allocations.

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::Line;

use super::rows::held;
use crate::lists::allocations::Listing;
use crate::model::{Clock, FIGURES, Figure, Interval, Model, Process, ProcessState, Rank, Usage};
use crate::screen::action::Action;
use crate::screen::data::{Data, More, Needs};
use crate::screen::page::{Page, ProcessKey, Reply, Scene};
use crate::screen::views::allocations::{ItemRow, item_list, item_rows};
use crate::screen::widgets::list::{Column, Hit, List, RowStyle};
use crate::screen::widgets::text::{draw_lines, or_unknown, split_top};
use crate::units::{age, bytes, count, plural};

/// The process, and what is known about it.
#[derive(Debug)]
pub(crate) struct ProcessDetail {
    pub key: ProcessKey,
    process: Option<Box<Process>>,
    held: Option<String>,
    figures: Vec<FigureRow>,
    figure_list: List<FigureRow>,
    listing: Option<Arc<Listing>>,
    /// Its allocations, folded over the devices of a mesh.
    items: Vec<ItemRow>,
    item_list: List<ItemRow>,
    is_in_items: bool,
}

struct ProcessLayout {
    head: Rect,
    figures: Rect,
    title: Rect,
    items: Rect,
}

impl ProcessDetail {
    pub(super) fn new(key: ProcessKey) -> ProcessDetail {
        let mut detail = ProcessDetail {
            key,
            process: None,
            held: None,
            figures: Vec::new(),
            figure_list: List::new(COLUMNS, 0, FigureRow::number),
            listing: None,
            items: Vec::new(),
            item_list: item_list(),
            is_in_items: true,
        };
        detail.focus(true);
        detail
    }

    fn focus(&mut self, is_in_items: bool) {
        self.is_in_items = is_in_items;
        self.item_list.focus(is_in_items);
        self.figure_list.focus(!is_in_items);
    }

    /// A process that is gone from the table stays as last seen.
    fn take_process(&mut self, found: Option<&Process>, model: &Model) {
        if let Some(process) = found {
            self.figures = figure_rows(process, model.clock);
            self.held = held(process, model);
            self.process = Some(Box::new(process.clone()));
        } else if let Some(process) = &mut self.process {
            process.state = ProcessState::Ended;
        }
    }

    fn arrange(&mut self) {
        self.figure_list.arrange(&self.figures, |_| true);
        self.item_list.arrange(&self.items, |_| true);
    }

    fn layout(&self, area: Rect) -> ProcessLayout {
        let head = self.head_lines().len().min(usize::from(area.height / 3).max(1)) as u16;
        let (head, rest) = split_top(area, head);
        let wanted = (self.figures.len() as u16).saturating_add(1).min(rest.height / 2);
        let rows = [Constraint::Length(wanted), Constraint::Length(1), Constraint::Min(0)];
        let [figures, title, items] = rest.layout(&Layout::vertical(rows));
        ProcessLayout { head, figures, title, items }
    }

    fn head_lines(&self) -> Vec<(String, bool)> {
        let Some(process) = &self.process else {
            let pid = self.key.pid.unwrap_or(self.key.namespace_pid);
            return vec![(format!(" Process {pid} does not report in this namespace."), true)];
        };
        let rate = or_unknown(process.events_per_second, count);
        let (pid, name, owner) = (process.pid_text(), &process.name, process.owner());
        let state = process.state_text();
        let mut lines = vec![(
            format!(" pid {pid}  {name}  of {owner}  {state}  {rate} events/s  {} old", age(process.age_ns)),
            false,
        )];
        let mut say = |text: String, is_warning| lines.push((text, is_warning));
        if let Some(command) = &process.command {
            say(format!(" {command}"), false);
        }
        if let Some(container) = &process.container {
            say(format!(" in {container}"), false);
        }
        if let Some(source) = told_by(process) {
            say(format!(" {source}"), process.self_checks_different > 0);
        }
        if let Some(held) = &self.held {
            say(format!(" {held} when it ended"), false);
        }
        if process.health.unlisted > 0 {
            say(
                format!(
                    " {} not listed: totals are exact",
                    plural(process.health.unlisted, "live allocation")
                ),
                true,
            );
        }
        if !process.flags().is_empty() {
            say(format!(" {}", process.flags().join(", ")), true);
        }
        lines
    }
}

/// Who writes its segment and how far that was checked, unless the process does so itself.
fn told_by(process: &Process) -> Option<String> {
    let (made, different) = (process.self_checks, process.self_checks_different);
    let source = (process.source != "ring").then(|| format!("reported by {}", process.source));
    let behalf = process.on_behalf_of.map(|pid| format!("on behalf of pid {pid}"));
    let checks = (made > 0).then(|| format!("{}, {different} mismatched", plural(made, "self-check")));
    let layout: Vec<String> = [source, behalf, checks].into_iter().flatten().collect();
    (!layout.is_empty()).then(|| layout.join(", "))
}

impl Page for ProcessDetail {
    fn needs(&self) -> Needs {
        Needs::Allocations
    }

    fn refresh(&mut self, data: &Data) {
        let key = self.key;
        let found = data.model.processes.iter().find(|process| ProcessKey::from(*process) == key);
        self.take_process(found, &data.model);
        if let More::Allocations(listing) = &data.more {
            let identity = key.identity;
            self.items = item_rows(listing, true, |item| item.identity == identity);
            self.listing = Some(listing.clone());
            self.item_list.arrange(&self.items, |_| true);
        }
        // The list of allocations may be long, and is not new each time.
        self.figure_list.arrange(&self.figures, |_| true);
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        let layout = self.layout(scene.area);
        match action {
            Action::NextPane => self.focus(!self.is_in_items),
            Action::Move(motion) if self.is_in_items => self.item_list.go(motion, &self.items, layout.items),
            Action::Move(motion) => self.figure_list.go(motion, &self.figures, layout.figures),
            Action::Reverse => {
                if self.is_in_items {
                    self.item_list.reverse()
                } else {
                    self.figure_list.reverse()
                }
                self.arrange();
            }
            // It is already open.
            Action::Open => {}
            _ => return Reply::Ignored,
        }
        Reply::Done
    }

    fn click(&mut self, at: Position, scene: &Scene<'_>) -> Reply {
        let layout = self.layout(scene.area);
        let hits = [
            self.figure_list.click(at, &self.figures, layout.figures),
            self.item_list.click(at, &self.items, layout.items),
        ];
        if hits.contains(&Hit::Heading) {
            self.arrange();
        }
        match hits.iter().position(|hit| *hit != Hit::Nothing) {
            Some(place) => self.focus(place == 1),
            None => return Reply::Ignored,
        }
        Reply::Done
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let (layout, theme) = (self.layout(scene.area), scene.theme);
        let line =
            |(text, is_warning)| Line::styled(text, if is_warning { theme.warn() } else { theme.heading() });
        draw_lines(frame, layout.head, self.head_lines().into_iter().map(line));
        self.figure_list.draw(frame, layout.figures, &self.figures, theme, |figure| {
            RowStyle::from(if figure.is_whole { theme.heading() } else { Default::default() })
        });
        let number: usize = self.items.iter().map(|row| row.items().len()).sum();
        let title = match &self.listing {
            None => scene.unread("live allocations"),
            Some(_) => format!(" {}, Tab switches", plural(number as u64, "live allocation")),
        };
        frame.render_widget(Line::styled(title, theme.dim()), layout.title);
        self.item_list.draw(frame, layout.items, &self.items, theme, |_| RowStyle::default());
    }

    fn sorts(&self) -> (Vec<&'static str>, Option<usize>) {
        if self.is_in_items { self.item_list.sorts() } else { self.figure_list.sorts() }
    }

    fn sort_by(&mut self, choice: usize, _data: &Data) {
        if self.is_in_items {
            self.item_list.sort_by(choice)
        } else {
            self.figure_list.sort_by(choice)
        }
        self.arrange();
    }

    fn target(&self, _scene: &Scene<'_>) -> Option<ProcessKey> {
        self.process.as_ref().filter(|process| process.is_alive()).map(|_| self.key)
    }

    fn summary(&self) -> Option<String> {
        Some("Esc all processes".to_owned())
    }
}

/// A row: a kind of memory, or a class, on a device.
#[derive(Clone, Debug)]
pub(super) struct FigureRow {
    device: usize,
    what: &'static str,
    /// Whether it is a memory, not a part of one.
    pub is_whole: bool,
    /// Whether it is a part of the memory before it.
    is_part: bool,
    live: u64,
    count: Option<u64>,
    peak: Option<Interval>,
    peak_age_ns: Option<u64>,
    place: u64,
}

pub(super) const COLUMNS: &[Column<FigureRow>] = &[
    Column::ids("DEV", 4, 1, |row| row.device.to_string(), |row| Some(row.place)),
    Column::new("WHAT", 20, 0, |row| match row.is_part {
        true => format!("  {}", row.what),
        false => row.what.to_owned(),
    }),
    Column::number("LIVE", 10, 2, |row| bytes(row.live), |row| Some(row.live)),
    Column::number("COUNT", 7, 4, |row| or_unknown(row.count, |count| count.to_string()), |row| row.count),
    Column::number("PEAK", 10, 3, |row| peak_text(row.peak), |row| row.peak.map(|peak| peak.low)),
    Column::number("PEAK WAS", 12, 5, |row| ago(row.peak_age_ns), |row| row.peak_age_ns),
];

fn peak_text(peak: Option<Interval>) -> String {
    or_unknown(peak, |peak| peak.short())
}

fn ago(age_ns: Option<u64>) -> String {
    or_unknown(age_ns, |age_ns| format!("{} ago", age(age_ns)))
}

impl FigureRow {
    pub(super) fn number(&self) -> u64 {
        self.place
    }
}

/// All figures of a process, by device; figures it never used are omitted.
fn figure_rows(process: &Process, clock: Clock) -> Vec<FigureRow> {
    let all =
        process.usages.iter().flat_map(|usage| (0..).zip(FIGURES.iter()).map(move |shown| (usage, shown)));
    all.filter_map(|(usage, (place, figure))| figure_row(usage, place, figure, clock)).collect()
}

fn figure_row(usage: &Usage, place: u64, figure: &Figure, clock: Clock) -> Option<FigureRow> {
    let memory = figure.of(&usage.held)?;
    let is_whole = figure.rank == Rank::Whole;
    if !is_whole && memory.used == 0 && memory.peak.range.low == 0 && memory.count.unwrap_or(0) == 0 {
        return None;
    }
    let peak = figure.has_peak().then_some(memory.peak);
    Some(FigureRow {
        device: usage.device,
        what: figure.label,
        is_whole,
        is_part: matches!(figure.rank, Rank::Part(_) | Rank::PartApart),
        live: memory.used,
        count: memory.count,
        peak: peak.map(|peak| peak.range),
        peak_age_ns: peak.and_then(|peak| peak.time).map(|time| clock.age_ns(time.monotonic_ns)),
        place: (usage.device as u64) << 8 | place,
    })
}
