//! Events as they happen, newest at the bottom; scrolling up stops following.

mod columns;
mod lines;
mod log;
mod rates;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::{Line, Span};

use crate::escape::{escape, fit};
use crate::model::Process;
use crate::query::{EVENT_FIELDS, Field, Query};
use crate::screen::action::{Action, Motion};
use crate::screen::data::{Data, More, Needs};
use crate::screen::page::{Page, ProcessKey, Reply, Scene};
use crate::screen::theme::Theme;
use crate::screen::widgets::list::{Hit, List, RowStyle, draw_empty};
use crate::screen::widgets::text::fitting;
use crate::screen::widgets::{in_full, process};
use crate::segments::pid_text;
use crate::units::{UNKNOWN, count};
use columns::{COLUMNS, LOG_COLUMNS};
use lines::Lines;
use log::{Log, LogEntry, Taken};
use rates::EventRates;

/// How often a filter by age is applied again to all events: what it wants changes without anything happening.
const AGED_EVERY_NS: u64 = 1_000_000_000;

/// How events are worded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Wording {
    /// In columns.
    #[default]
    Columns,
    /// As the proof of concept logs them: one line for each device.
    Log,
}

/// The log, and the part of it that is shown.
#[derive(Debug)]
pub(crate) struct Events {
    log: Log,
    rates: EventRates,
    wording: Wording,
    is_folded: bool,
    lines: Lines,
    list: List<LogEntry>,
    query: Query,
    /// When a filter by age was last applied to all events.
    arranged_ns: u64,
    is_following: bool,
    /// Whether the selected event is shown in full.
    is_open: bool,
}

impl Default for Events {
    fn default() -> Events {
        Events {
            log: Log::default(),
            rates: EventRates::default(),
            wording: Wording::default(),
            is_folded: true,
            lines: Lines::new(true),
            list: List::new(COLUMNS, 0, |entry| entry.number),
            query: Query::default(),
            arranged_ns: 0,
            is_following: true,
            is_open: false,
        }
    }
}

struct EventsLayout {
    rates: Rect,
    lost: Rect,
    list: Rect,
    whole: Rect,
}

impl Events {
    /// Looks at all events again.
    fn arrange(&mut self) {
        self.lines.clear();
        let order = self.new_lines(0);
        self.list.reorder(self.log.entries(), |_| order);
        self.follow();
    }

    fn new_lines(&mut self, from: usize) -> Vec<u32> {
        let query = &self.query;
        let wanted = |entry: &LogEntry| query.is_empty() || query.matches(&entry.seen.happened());
        self.lines.add(self.log.entries_mut(), from, wanted)
    }

    /// Adds the last events only: a log is long, and most of it is known.
    fn extend(&mut self, dropped: usize, count: usize) {
        self.lines.forget_first(dropped);
        self.list.forget_first(dropped as u32, self.log.entries());
        let from = self.log.entries().len() - count;
        let order = self.new_lines(from);
        self.list.extend(order);
        self.follow();
    }

    fn follow(&mut self) {
        if self.is_following {
            self.list.go_last(self.log.entries());
        }
    }

    /// Whether what the filter wants depends on the time.
    fn is_by_age(&self) -> bool {
        let timeless: Vec<Field> =
            EVENT_FIELDS.iter().copied().filter(|field| *field != Field::Age).collect();
        self.query.check(&timeless).is_err()
    }

    /// Changes wording or folding. The selected event stays selected.
    fn show(&mut self, wording: Wording, is_folded: bool) {
        let selected = self.list.selected(self.log.entries()).map(|entry| entry.number);
        (self.wording, self.is_folded) = (wording, is_folded);
        self.lines.is_folded = is_folded && wording == Wording::Columns;
        let columns = if wording == Wording::Columns { COLUMNS } else { LOG_COLUMNS };
        self.list = List::new(columns, 0, |entry| entry.number);
        self.arrange();
        if let Some(number) = selected.filter(|_| !self.is_following) {
            self.list.select_key(number, self.log.entries());
        }
    }

    fn layout(&self, scene: &Scene<'_>) -> EventsLayout {
        let area = scene.area;
        let line = |there: bool| Constraint::Length(u16::from(there));
        let rows =
            [line(area.height > 4), line(area.height > 6 && self.lost().is_some()), Constraint::Min(0)];
        let [rates, lost, list] = area.layout(&Layout::vertical(rows));
        let (list, whole) = match self.opened(scene) {
            Some(facts) => in_full::split(list, &facts),
            None => (list, Rect::ZERO),
        };
        EventsLayout { rates, lost, list, whole }
    }

    /// The selected event in full, if it is open.
    fn opened(&self, scene: &Scene<'_>) -> Option<Vec<in_full::Fact>> {
        let entry = self.list.selected(self.log.entries()).filter(|_| self.is_open)?;
        let pid = || format!("{} {}", pid_text(entry.seen.pid, entry.seen.claimed), entry.seen.process);
        Some(columns::facts(entry, process_of(entry, scene).map_or_else(pid, process::described)))
    }

    /// Shows an event in full, then its process.
    fn open(&mut self, scene: &Scene<'_>) -> Reply {
        let Some(entry) = self.list.selected(self.log.entries()) else { return Reply::Ignored };
        if !std::mem::replace(&mut self.is_open, true) {
            return Reply::Done;
        }
        match process_of(entry, scene) {
            Some(process) => Reply::Process(ProcessKey::from(process)),
            None => Reply::Say("its process is not listed any more".to_owned()),
        }
    }

    /// Counts of events that are not in the log.
    fn lost(&self) -> Option<String> {
        let kept = format!("older than the last {} kept here", count(log::KEPT as f64));
        let told = [
            (self.log.older, "older ones no longer in the rings"),
            (self.log.missed, "overwritten before they were read"),
            (self.log.dropped, &kept),
        ];
        let told: Vec<String> = told
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{} {what}", count(number as f64)))
            .collect();
        (!told.is_empty()).then(|| format!(" not shown: {}", told.join("; ")))
    }

    /// Whether the list follows, and rates by kind, as many as fit.
    fn rates_line(&self, width: u16, theme: &Theme) -> Line<'static> {
        let mut spans = Vec::new();
        let newer = self.list.len().saturating_sub(self.list.position() + 1);
        if !self.is_following {
            spans.push(Span::styled(
                format!(" PARKED, {} newer, G follows ", count(newer as f64)),
                theme.warn(),
            ));
        }
        spans.push(Span::styled(" per second  ", theme.dim()));
        match self.rates.per_second() {
            None => spans.push(Span::raw(UNKNOWN)),
            Some(rates) if rates.is_empty() => spans.push(Span::raw("0")),
            Some(rates) => {
                let all = rates.iter().map(|(_, rate)| rate).sum::<f64>();
                spans.push(Span::styled(format!("{} all", rate_text(all)), theme.heading()));
                for (kind, rate) in rates {
                    spans.push(Span::raw(format!("  {} {}", rate_text(rate), kind.to_ascii_lowercase())));
                }
            }
        }
        fitting(spans, width)
    }
}

/// The process of an event, if it is listed.
fn process_of<'a>(entry: &LogEntry, scene: &Scene<'a>) -> Option<&'a Process> {
    let pid = u64::from(entry.seen.pid);
    scene.data.model.processes.iter().find(|process| process.pid.unwrap_or(process.namespace_pid) == pid)
}

/// Low rates get a decimal, so that they do not show as 0.
fn rate_text(rate: f64) -> String {
    if rate < 9.95 { format!("{rate:.1}") } else { count(rate) }
}

impl Page for Events {
    fn needs(&self) -> Needs {
        Needs::Events
    }

    fn refresh(&mut self, data: &Data) {
        let More::Events(news) = &data.more else { return };
        let now_ns = data.model.clock.monotonic_ns;
        match self.log.take(news) {
            Taken::Nothing => return,
            Taken::First => {
                self.rates = EventRates::begin(now_ns);
                self.arrange();
            }
            Taken::More { dropped, count } => {
                self.rates.take(&news.events, now_ns);
                self.extend(dropped, count);
            }
        }
        if now_ns.saturating_sub(self.arranged_ns) >= AGED_EVERY_NS && self.is_by_age() {
            self.arranged_ns = now_ns;
            self.arrange();
        }
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        match action {
            Action::Move(motion) => {
                self.list.go(motion, self.log.entries(), self.layout(scene).list);
                // Moving up stops following; reaching the end resumes it.
                self.is_following = motion == Motion::Last || self.list.is_at_end();
            }
            Action::Open => return self.open(scene),
            Action::Fold if self.wording == Wording::Log => {
                return Reply::Say("log lines are of one device each; w shows columns".to_owned());
            }
            Action::Fold => self.show(self.wording, !self.is_folded),
            Action::Wording => self.show(
                match self.wording {
                    Wording::Columns => Wording::Log,
                    Wording::Log => Wording::Columns,
                },
                self.is_folded,
            ),
            Action::Back if self.is_open => self.is_open = false,
            Action::Back if !self.query.is_empty() => self.filter(Query::default(), scene.data),
            _ => return Reply::Ignored,
        }
        Reply::Done
    }

    fn click(&mut self, at: Position, scene: &Scene<'_>) -> Reply {
        match self.list.click(at, self.log.entries(), self.layout(scene).list) {
            Hit::Row { again } => {
                self.is_following = self.list.is_at_end();
                if again { self.open(scene) } else { Reply::Done }
            }
            _ => Reply::Ignored,
        }
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let (layout, theme) = (self.layout(scene), scene.theme);
        frame.render_widget(self.rates_line(layout.rates.width, theme), layout.rates);
        if let Some(lost) = self.lost() {
            let lost = fit(&lost, usize::from(layout.lost.width));
            frame.render_widget(Line::styled(lost, theme.warn()), layout.lost);
        }
        self.list.draw(frame, layout.list, self.log.entries(), theme, |entry| {
            let style = columns::style(entry, theme);
            let state = process_of(entry, scene).and_then(|process| process::state_style(process, theme));
            RowStyle { mark: style.mark.or(state.and_then(|state| state.mark)), ..style }
        });
        if self.list.len() == 0 {
            let text = match self.log.entries() {
                [] if scene.frozen => &scene.unread("events"),
                [] => " No events yet. `tt-smi demo` shows what they look like.",
                _ => " No matching events. Press Esc to show all.",
            };
            draw_empty(frame, layout.list, text, theme);
        }
        if let Some(facts) = self.opened(scene) {
            in_full::draw(frame, layout.whole, &facts, "Enter its process, Esc close", theme);
        }
    }

    fn columns(&self) -> Vec<(&'static str, bool)> {
        self.list.columns()
    }

    fn toggle_column(&mut self, place: usize) {
        self.list.toggle_column(place);
    }

    fn search(&mut self, text: &str, after: bool) -> Option<bool> {
        self.is_following = false;
        Some(self.list.find(text, after, self.log.entries()))
    }

    fn fields(&self) -> &'static [Field] {
        EVENT_FIELDS
    }

    fn query(&self) -> Query {
        self.query.clone()
    }

    fn filter(&mut self, query: Query, _data: &Data) {
        self.query = query;
        self.arrange();
    }

    fn summary(&self) -> Option<String> {
        let place = match self.is_following {
            true => "following".to_owned(),
            false => format!("{} of {}, G follows", self.list.position() + 1, self.list.len()),
        };
        Some(match self.query.is_empty() {
            true => place,
            false => format!("{place}, {}", escape(&self.query.to_string())),
        })
    }
}
