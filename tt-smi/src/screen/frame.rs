//! The parts of the screen around a view: title, tabs, status line, key hints.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::action::{Action, View};
use super::data::Data;
use super::keys::BINDINGS;
use super::state::{State, interval_text};
use super::theme::{Signs, Theme};
use super::widgets::text::{between, or_unknown};
use super::{ascii, modals};
use crate::escape::fit;
use crate::model::Model;
use crate::units::{count, plural};

/// An aggregator silent for this long is in trouble: even when idle it writes at least ten times a second.
const STALE_MS: u64 = 2000;

/// Where the parts are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Areas {
    title: Rect,
    tabs: Rect,
    /// The area of the view.
    pub body: Rect,
    facts: Rect,
    keys: Rect,
}

impl Areas {
    /// The layout for an area of this size. With little room, the view takes precedence.
    pub(crate) fn of(area: Rect) -> Areas {
        let one = |least: u16| Constraint::Length(u16::from(area.height >= least));
        let rows = [one(4), one(3), Constraint::Min(1), one(5), one(6)];
        let [title, tabs, body, facts, keys] = area.layout(&Layout::vertical(rows));
        Areas { title, tabs, body, facts, keys }
    }

    /// The tab under the mouse.
    pub(crate) fn tab_at(&self, at: Position, shown: View, has_telemetry: bool) -> Option<View> {
        if !self.tabs.contains(at) {
            return None;
        }
        let mut end = self.tabs.x;
        tabs(shown, has_telemetry, self.tabs.width).into_iter().find_map(|(view, text)| {
            end += text.chars().count() as u16;
            (at.x < end).then_some(view)
        })
    }
}

/// Draws everything, without changing any state.
pub fn draw(frame: &mut Frame<'_>, state: &State) {
    let (areas, theme) = (Areas::of(frame.area()), &state.theme);
    let Some(data) = &state.data else { return };
    frame.render_widget(title(state, data, areas.title.width, theme), areas.title);
    frame.render_widget(tab_line(state, data, areas.tabs.width, theme), areas.tabs);
    let scene = super::page::Scene { area: areas.body, ..state.scene(data) };
    state.pages.get(state.view).draw(frame, &scene);
    frame.render_widget(facts(state, &data.model, areas.facts.width, theme), areas.facts);
    frame.render_widget(hints(state, areas.keys.width, theme), areas.keys);
    if let Some(modal) = &state.modal {
        modals::draw(modal, frame, areas.body, theme);
    }
    if theme.signs == Signs::Ascii {
        ascii::transliterate(frame.buffer_mut());
    }
}

fn title(state: &State, data: &Data, width: u16, theme: &Theme) -> Paragraph<'static> {
    let time = data.model.clock.timestamp();
    let time = time.split('.').next().unwrap_or(&time).replace('T', " ");
    let (version, host) = (env!("CARGO_PKG_VERSION"), &data.model.host);
    let left = format!(" tt-smi {version}  {host}  namespace {}", state.namespace);
    Paragraph::new(between(&left, &format!("{time} UTC "), width)).style(theme.title())
}

/// The views that have a tab, and its text: ` 4 processes `; with less room a shorter word, and finally only the digit of
/// those that are not shown. Telemetry has a tab if a driver tells any; its key works anyway.
fn tabs(shown: View, has_telemetry: bool, width: u16) -> Vec<(View, String)> {
    let views: Vec<View> = View::ALL
        .into_iter()
        .filter(|view| *view != View::Telemetry || has_telemetry || shown == View::Telemetry)
        .collect();
    let all = |text: &dyn Fn(View) -> String| -> Vec<(View, String)> {
        views.iter().map(|view| (*view, text(*view))).collect()
    };
    let full = all(&|view| format!(" {} {} ", view.digit(), view.name()));
    let short = all(&|view| format!(" {} {}", view.digit(), view.short_name()));
    let digits = all(&|view| match view == shown {
        true => format!(" {} {} ", view.digit(), view.name()),
        false => format!(" {} ", view.digit()),
    });
    let fits = |tabs: &Vec<(View, String)>| {
        tabs.iter().map(|(_, text)| text.chars().count()).sum::<usize>() <= usize::from(width)
    };
    [full, short].into_iter().find(fits).unwrap_or(digits)
}

fn tab_line(state: &State, data: &Data, width: u16, theme: &Theme) -> Line<'static> {
    let style = |view| if view == state.view { theme.selected() } else { theme.dim() };
    let tabs = tabs(state.view, data.model.has_telemetry(), width);
    Line::from_iter(tabs.into_iter().map(|(view, text)| Span::styled(text, style(view))))
}

/// The status line: the source of the data, their age, and problems.
fn facts(state: &State, model: &Model, width: u16, theme: &Theme) -> Line<'static> {
    let rate = or_unknown(model.events_per_second(), count);
    let (devices, processes) =
        (plural(model.devices.len() as u64, "device"), plural(model.alive() as u64, "process"));
    let facts = format!(" {devices}, {processes}, {rate} events/s ({})", model.origin.describe());
    // Problems come first: the end of the line is cut when there is no room.
    let mut spans = Vec::new();
    let mut warn = |text: String| spans.push(Span::styled(format!(" {text} "), theme.warn()));
    if state.frozen {
        warn("FROZEN, f goes on".to_owned());
    }
    if model.origin.age_ms() >= STALE_MS {
        warn("STALE".to_owned());
    }
    for (number, what) in
        [(model.missed, "missed"), (anomalies(model), "anomalies"), (model.refused, "refused")]
    {
        if number > 0 {
            warn(format!("{number} {what}"));
        }
    }
    if !model.consistent {
        warn("mixed generations".to_owned());
    }
    let room = usize::from(width).saturating_sub(spans.iter().map(Span::width).sum());
    spans.push(Span::styled(fit(&facts, room), theme.dim()));
    Line::from(spans)
}

/// Anomalies reported by running processes.
fn anomalies(model: &Model) -> u64 {
    let alive = model.processes.iter().filter(|process| process.is_alive());
    alive.flat_map(|process| &process.health.anomalies).map(|(_, count)| *count).fold(0, u64::saturating_add)
}

/// Key hints, or a message.
fn hints(state: &State, width: u16, theme: &Theme) -> Line<'static> {
    if let Some(message) = &state.message {
        return Line::styled(format!(" {message}"), theme.warn());
    }
    const HINTED: [Action; 11] = [
        Action::Quit,
        Action::Help,
        Action::Alarm,
        Action::NextPane,
        Action::Filter,
        Action::SortMenu,
        Action::Group,
        Action::Signal,
        Action::NextDevice,
        Action::Span,
        Action::Freeze,
    ];
    let bindings = BINDINGS.iter().filter(|binding| binding.is_in(state.view));
    let hinted = bindings.filter(|binding| HINTED.contains(&binding.action));
    let hint = |binding: &super::keys::Binding| {
        let help = binding.help.split([',', ':']).next().unwrap_or_default();
        format!(" {} {help} ", binding.keys.first().map_or_else(String::new, |key| key.name()))
    };
    let mut spans = Vec::new();
    // The filter in force is always there.
    if let Some(summary) = state.pages.get(state.view).summary() {
        spans.push(Span::styled(format!(" {summary} "), theme.warn()));
    }
    let mut room = usize::from(width).saturating_sub(spans.iter().map(Span::width).sum());
    let interval = format!(" every {}", interval_text(state.interval));
    for text in hinted.map(hint).chain([interval]) {
        // A hint that is cut tells nothing.
        let Some(left) = room.checked_sub(text.chars().count()) else { break };
        room = left;
        spans.push(Span::styled(text, theme.dim()));
    }
    Line::from(spans)
}
