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
    pub(crate) fn tab_at(&self, at: Position) -> Option<View> {
        if !self.tabs.contains(at) {
            return None;
        }
        let mut end = self.tabs.x;
        View::ALL.into_iter().find(|view| {
            end += tab(*view, self.tabs.width).chars().count() as u16;
            at.x < end
        })
    }
}

/// Draws everything, without changing any state.
pub fn draw(frame: &mut Frame<'_>, state: &State) {
    let (areas, theme) = (Areas::of(frame.area()), &state.theme);
    let Some(data) = &state.data else { return };
    frame.render_widget(title(state, data, areas.title.width, theme), areas.title);
    frame.render_widget(tabs(state.view, areas.tabs.width, theme), areas.tabs);
    let scene = super::page::Scene { area: areas.body, ..state.scene(data) };
    state.pages.get(state.view).draw(frame, &scene);
    frame.render_widget(facts(state, &data.model, theme), areas.facts);
    frame.render_widget(hints(state, theme), areas.keys);
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

/// ` 4 processes `; with less room, the digit and as much of the name as fits.
fn tab(view: View, width: u16) -> String {
    let full: usize = View::ALL.iter().map(|view| view.name().len() + 4).sum();
    let letters = match usize::from(width) {
        width if width >= full => usize::MAX,
        width => (width / View::ALL.len()).saturating_sub(3),
    };
    let name: String = view.name().chars().take(letters).collect();
    let gap = if usize::from(width) >= full { " " } else { "" };
    format!(" {} {name}{gap}", view.digit())
}

fn tabs(shown: View, width: u16, theme: &Theme) -> Line<'static> {
    let style = |view| if view == shown { theme.selected() } else { theme.dim() };
    Line::from_iter(View::ALL.map(|view| Span::styled(tab(view, width), style(view))))
}

/// The status line: the source of the data, their age, and problems.
fn facts(state: &State, model: &Model, theme: &Theme) -> Line<'static> {
    let rate = or_unknown(model.events_per_second(), count);
    let (devices, processes) =
        (plural(model.devices.len() as u64, "device"), plural(model.alive() as u64, "process"));
    let facts = format!(" {devices}, {processes}, {rate} events/s ({})", model.origin.describe());
    // Problems come first: the end of the line is cut when there is no room.
    let mut spans = Vec::new();
    let mut warn = |text: String| spans.push(Span::styled(format!(" {text} "), theme.warn()));
    if state.frozen {
        warn("FROZEN".to_owned());
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
    spans.push(Span::styled(facts, theme.dim()));
    Line::from(spans)
}

/// Anomalies reported by running processes.
fn anomalies(model: &Model) -> u64 {
    let alive = model.processes.iter().filter(|process| process.is_alive());
    alive.flat_map(|process| &process.health.anomalies).map(|(_, count)| *count).fold(0, u64::saturating_add)
}

/// Key hints, or a message.
fn hints(state: &State, theme: &Theme) -> Line<'static> {
    if let Some(message) = &state.message {
        return Line::styled(format!(" {message}"), theme.warn());
    }
    const HINTED: [Action; 9] = [
        Action::Quit,
        Action::Help,
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
    let mut text: String = hinted.map(hint).collect();
    text += &format!(" every {}", interval_text(state.interval));
    if let Some(summary) = state.pages.get(state.view).summary() {
        text = format!(" {summary}  {text}");
    }
    Line::styled(text, theme.dim())
}
