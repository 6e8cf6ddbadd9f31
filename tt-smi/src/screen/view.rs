//! Draws the state. Changes nothing.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use tt_shm_reader::Class;

use super::state::State;
use super::theme::Theme;
use super::{devices, processes};
use crate::model::{Model, ProcessState};
use crate::output::units::{UNKNOWN, age, bytes, count, plural};

/// Notes at the bottom, at most.
const NOTES: usize = 4;

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, state: &State, theme: &Theme) {
    let Some(model) = &state.model else { return };
    let area = frame.area();
    let notes = notes(model);
    let heights = Heights::plan(area, model, notes.len());
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(heights.devices),
        Constraint::Length(heights.legend),
        Constraint::Min(0),
        Constraint::Length(heights.notes),
        Constraint::Length(1),
    ]);
    let [title, facts, device_rows, legend, process_rows, note_rows, keys] = area.layout(&rows);
    frame.render_widget(Paragraph::new(title_line(state, model, area.width)).style(theme.title()), title);
    frame.render_widget(facts_line(state, model, theme), facts);
    let lines = devices::lines(model, area.width.into(), heights.devices.into(), theme);
    frame.render_widget(Paragraph::new(lines), device_rows);
    frame.render_widget(devices::legend(model, theme), legend);
    frame.render_widget(processes::table(model, area.width, theme), below_gap(process_rows));
    let lines: Vec<Line<'_>> = notes.into_iter().map(|note| Line::styled(note, theme.warn())).collect();
    frame.render_widget(Paragraph::new(lines), note_rows);
    frame.render_widget(Line::styled(" q quit   f freeze", theme.dim()), keys);
}

/// Lines that the parts get.
struct Heights {
    devices: u16,
    legend: u16,
    notes: u16,
}

impl Heights {
    fn plan(area: Rect, model: &Model, notes: usize) -> Heights {
        let notes = notes.min(NOTES) as u16;
        // Title, facts and keys; legend, gap, and processes: their heading and up to three.
        let processes = 1 + (model.processes.len() as u16).min(3);
        let room = area.height.saturating_sub(3 + 2 + processes + notes).max(1);
        let each = devices::lines_per_device(model.devices.len(), area.width.into(), room.into());
        let wanted = u16::try_from(model.devices.len().max(1) * each).unwrap_or(u16::MAX);
        Heights { devices: wanted.min(room), legend: u16::from(!model.devices.is_empty()), notes }
    }
}

fn below_gap(area: Rect) -> Rect {
    let gap = area.height.min(1);
    Rect { y: area.y + gap, height: area.height - gap, ..area }
}

fn title_line(state: &State, model: &Model, width: u16) -> String {
    let time = model.clock.timestamp();
    let time = time.split('.').next().unwrap_or(&time).replace('T', " ");
    let left =
        format!(" tt-smi {}  {}  namespace {}", env!("CARGO_PKG_VERSION"), model.host, state.namespace);
    let right = format!("{time} UTC ");
    match usize::from(width).checked_sub(left.chars().count() + right.chars().count()) {
        Some(gap @ 1..) => format!("{left}{}{right}", " ".repeat(gap)),
        // No room for both.
        _ => left,
    }
}

fn facts_line(state: &State, model: &Model, theme: &Theme) -> Line<'static> {
    let processes = plural(model.alive() as u64, "process");
    let rate = model.events_per_second().map_or_else(|| UNKNOWN.to_owned(), count);
    let facts = format!(
        " {}, {processes}, {rate} events/s ({})",
        plural(model.devices.len() as u64, "device"),
        model.origin.describe()
    );
    let mut spans = vec![Span::styled(facts, theme.dim())];
    if model.missed > 0 {
        spans.push(Span::styled(format!("  {} missed", model.missed), theme.warn()));
    }
    if state.frozen {
        spans.push(Span::styled("  FROZEN", theme.warn()));
    }
    Line::from(spans)
}

/// What an operator should know: problems, what is wrong with devices and processes, the last failure.
fn notes(model: &Model) -> Vec<String> {
    let problems = model.problems.iter().map(|problem| format!(" {}: {}", problem.kind, problem.message));
    let devices =
        model.devices.iter().map(|device| (format!("device {}", device.index), device.flags().join(", ")));
    let alive = model.processes.iter().filter(|process| process.state == ProcessState::Alive);
    let processes = alive.map(|process| (format!("pid {}", process.pid_text()), process.flags().join(", ")));
    let flagged = devices.chain(processes).filter(|(_, flags)| !flags.is_empty());
    let flagged = flagged.map(|(who, flags)| format!(" {who}: {flags}"));
    problems.chain(flagged).chain(last_failure(model)).take(NOTES).collect()
}

fn last_failure(model: &Model) -> Option<String> {
    let failures = model.devices.iter().filter_map(|device| Some((device.index, device.failure?)));
    let (index, failure) = failures.max_by_key(|(_, failure)| failure.time)?;
    Some(format!(
        " {} ago on device {index} pid {} got no {} of {}; {} free, largest {}",
        age(model.clock.age_ns(failure.time)),
        failure.pid,
        bytes(failure.request),
        failure.class.map_or(UNKNOWN, Class::name),
        bytes(failure.free),
        bytes(failure.largest_free),
    ))
}
