//! Events as they happen, newest at the bottom; scrolling up stops following.

mod log;
mod rates;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Padding, Paragraph, Wrap};
use tt_shm_reader::EventKind;

use crate::escape::{columns, escape};
use crate::query::{EVENT_FIELDS, Field, Query};
use crate::screen::action::{Action, Motion};
use crate::screen::data::{Data, More, Needs};
use crate::screen::page::{Page, Reply, Scene};
use crate::screen::theme::Theme;
use crate::screen::widgets::list::{Column, Hit, List, RowStyle, draw_empty};
use crate::units::{UNKNOWN, count};
use log::{Log, LogEntry};
use rates::EventRates;

/// Formatted only when visible.
const COLUMNS: &[Column<LogEntry>] =
    &[Column::new("TIME", 15, 1, |entry| split(entry).0), Column::new("EVENT", 0, 0, |entry| split(entry).1)];
/// Most lines for an event shown in full.
const WHOLE: u16 = 4;

/// The time, which stays in place when scrolling sideways, and the text.
fn split(entry: &LogEntry) -> (String, String) {
    let line = entry.event.to_string();
    let (time, what) = line.split_once(' ').unwrap_or(("", &line));
    (time.to_owned(), what.to_owned())
}

/// The log, and the part of it that is shown.
#[derive(Debug)]
pub(crate) struct Events {
    log: Log,
    rates: EventRates,
    list: List<LogEntry>,
    query: Query,
    is_following: bool,
    /// Whether the selected event is shown in full.
    is_open: bool,
}

impl Default for Events {
    fn default() -> Events {
        Events {
            log: Log::default(),
            rates: EventRates::default(),
            list: List::new(COLUMNS, 0, |entry| entry.number),
            query: Query::default(),
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
    fn arrange(&mut self) {
        let query = &self.query;
        self.list.arrange(self.log.entries(), |entry| query.is_empty() || query.matches(&entry.event));
        if self.is_following {
            self.list.go_last(self.log.entries());
        }
    }

    fn layout(&self, area: Rect) -> EventsLayout {
        let line = |there: bool| Constraint::Length(u16::from(there));
        let whole = if self.is_open { self.whole_height(area.width).min(area.height / 3) } else { 0 };
        let rows = [
            line(area.height > 4),
            line(area.height > 6 && self.lost().is_some()),
            Constraint::Min(0),
            Constraint::Length(whole),
        ];
        let [rates, lost, list, whole] = area.layout(&Layout::vertical(rows));
        EventsLayout { rates, lost, list, whole }
    }

    /// Lines for the selected event in full, and a rule above.
    fn whole_height(&self, width: u16) -> u16 {
        let selected = self.list.selected(self.log.entries());
        let needed = selected.map_or(0, |entry| columns(&entry.event.to_string()));
        // Word wrapping wastes some room.
        let lines = needed.div_ceil(usize::from(width).saturating_sub(8).max(1)) as u16;
        lines.min(WHOLE) + 1
    }

    /// Counts of events that are not in the log.
    fn lost(&self) -> Option<String> {
        let told = [
            (self.log.older, "older events are no longer in the ring"),
            (self.log.missed, "overwritten before they were read"),
            (self.log.dropped, "not shown"),
        ];
        let told: Vec<String> = told
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{} {what}", count(number as f64)))
            .collect();
        (!told.is_empty()).then(|| format!(" {}", told.join("; ")))
    }

    fn rates_line(&self, theme: &Theme) -> Line<'static> {
        let mut spans = vec![Span::styled(" per second  ", theme.dim())];
        match self.rates.per_second() {
            None => spans.push(Span::raw(UNKNOWN)),
            Some(rates) if rates.is_empty() => spans.push(Span::raw("0")),
            Some(rates) => {
                let all = rates.iter().map(|(_, rate)| rate).sum::<f64>();
                spans.push(Span::styled(format!("{} all", rate_text(all)), theme.heading()));
                for (kind, rate) in rates {
                    let text = format!("  {} {}", rate_text(rate), kind.to_ascii_lowercase());
                    spans.push(Span::raw(text));
                }
            }
        }
        Line::from(spans)
    }
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
        match self.log.take(news) {
            log::Taken::Nothing => return,
            log::Taken::First => self.rates = EventRates::begin(data.model.clock.monotonic_ns),
            log::Taken::More => self.rates.take(&news.events, data.model.clock.monotonic_ns),
        }
        self.arrange();
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        match action {
            Action::Move(motion) => {
                self.list.go(motion, self.log.entries(), self.layout(scene.area).list);
                // Moving up stops following; reaching the end resumes it.
                self.is_following = motion == Motion::Last || self.list.is_at_end();
            }
            Action::Open => self.is_open = !self.is_open,
            Action::Back if self.is_open => self.is_open = false,
            Action::Back if !self.query.is_empty() => self.filter(Query::default(), scene.data),
            _ => return Reply::Ignored,
        }
        Reply::Done
    }

    fn click(&mut self, at: Position, scene: &Scene<'_>) -> Reply {
        match self.list.click(at, self.log.entries(), self.layout(scene.area).list) {
            Hit::Row { again } => {
                self.is_following = self.list.is_at_end();
                self.is_open |= again;
                Reply::Done
            }
            _ => Reply::Ignored,
        }
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let (layout, theme) = (self.layout(scene.area), scene.theme);
        frame.render_widget(self.rates_line(theme), layout.rates);
        if let Some(lost) = self.lost() {
            frame.render_widget(Line::styled(lost, theme.warn()), layout.lost);
        }
        self.list.draw(frame, layout.list, self.log.entries(), theme, |entry| match entry.event.kind {
            Some(EventKind::AllocFailed) => RowStyle::warn(theme),
            _ => RowStyle::default(),
        });
        if self.list.len() == 0 {
            let text = match self.log.entries() {
                [] if scene.frozen => &scene.unread("events"),
                [] => " No events yet.",
                _ => " No matching events. Press Esc to show all.",
            };
            draw_empty(frame, layout.list, text, theme);
        }
        if let Some(entry) = self.list.selected(self.log.entries()) {
            let block = Block::new().borders(Borders::TOP).border_style(theme.dim());
            let block = block.padding(Padding::left(1));
            let whole = Paragraph::new(entry.event.to_string()).wrap(Wrap { trim: false }).block(block);
            frame.render_widget(whole, layout.whole);
        }
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
