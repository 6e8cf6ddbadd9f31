//! All devices, the largest processes, and notes.

mod facts;
mod notes;
mod processes;
mod rows;
mod totals;
mod wide;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use crate::model::Model;
use crate::screen::action::{Action, Motion, View};
use crate::screen::data::Data;
use crate::screen::page::{Page, Reply, Scene};
use crate::screen::theme::Theme;
use rows::Width;

/// Least lines for processes, if there are that many: the heading and three rows.
const PROCESS_LINES: u16 = 4;
/// Most notes at the bottom.
const NOTES: usize = 4;

/// The selected device.
#[derive(Debug, Default)]
pub(crate) struct Overview {
    selected: usize,
}

/// The layout, and the number of lines per device.
struct Plan {
    totals: Rect,
    heading: Rect,
    devices: Rect,
    /// Details of the selected device that a single line omits.
    selected: Rect,
    legend: Rect,
    processes: Rect,
    notes: Rect,
    lines_each: usize,
}

impl Plan {
    fn of(area: Rect, model: &Model) -> Plan {
        let (devices, width) = (model.devices.len(), Width::of(area.width));
        let wide = area.width >= wide::LEAST_WIDTH && devices > 0;
        let notes = notes::all(model).len().min(NOTES) as u16;
        let processes = (model.processes.len() as u16 + 1).min(PROCESS_LINES);
        // With little room, devices take precedence.
        let fixed = 1 + u16::from(wide) + u16::from(devices > 0);
        let spare = area.height.saturating_sub(fixed + 1);
        let (notes, processes) = (notes.min(spare / 3), processes.min(spare / 3));
        let room = area.height.saturating_sub(fixed + notes + processes + 1).max(1);
        let lines_each = if wide { 1 } else { rows::lines_per_device(devices, width, room.into()) };
        let selected = !wide && lines_each == 1 && devices > 0;
        // Without bars no legend is needed.
        let legend = devices > 0 && !(selected && width == Width::Narrow);
        let room = room.saturating_sub(u16::from(selected && legend)).max(1);
        let wanted = u16::try_from(devices.max(1) * lines_each).unwrap_or(u16::MAX).min(room);
        let line = |there: bool| Constraint::Length(u16::from(there));
        let parts = Layout::vertical([
            line(true),
            line(wide),
            Constraint::Length(wanted),
            line(selected),
            line(legend),
            Constraint::Min(0),
            Constraint::Length(notes),
        ]);
        let [totals, heading, devices, selected, legend, processes, notes] = area.layout(&parts);
        Plan { totals, heading, devices, selected, legend, processes, notes, lines_each }
    }

    /// Number of devices visible at once.
    fn seen(&self) -> usize {
        (usize::from(self.devices.height) / self.lines_each).max(1)
    }

    /// The first visible device, so that the selected one is visible: pages do not move with every step.
    fn first(&self, selected: usize) -> usize {
        selected / self.seen() * self.seen()
    }

    fn is_wide(&self) -> bool {
        self.heading.height > 0
    }
}

impl Overview {
    fn draw_devices(&self, frame: &mut Frame<'_>, plan: &Plan, model: &Model, theme: &Theme) {
        if model.devices.is_empty() {
            let text = " No devices: no process reports here. Try `tt-smi demo`.";
            frame.render_widget(Line::styled(text, theme.dim()), plan.devices);
            return;
        }
        let width = usize::from(plan.devices.width);
        let shown = model.devices.iter().enumerate().skip(plan.first(self.selected)).take(plan.seen());
        let lines = shown.flat_map(|(place, device)| {
            let selected = place == self.selected;
            match plan.is_wide() {
                true => vec![wide::line(device, width, selected, theme)],
                false => rows::lines(device, plan.lines_each, plan.devices.width, selected, theme),
            }
        });
        frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), plan.devices);
        if plan.is_wide() {
            frame.render_widget(wide::heading(width, theme), plan.heading);
        }
        if let Some(device) = model.devices.get(self.selected) {
            frame.render_widget(facts::selected(device, plan.selected.width, theme), plan.selected);
        }
    }
}

impl Page for Overview {
    fn refresh(&mut self, data: &Data) {
        self.selected = self.selected.min(data.model.devices.len().saturating_sub(1));
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        let last = scene.data.model.devices.len().saturating_sub(1);
        let page = Plan::of(scene.area, &scene.data.model).seen() as isize;
        let by = |steps: isize| self.selected.saturating_add_signed(steps).min(last);
        self.selected = match action {
            Action::Move(Motion::Lines(lines)) => by(lines as isize),
            Action::Move(Motion::Pages(pages)) => by(pages as isize * page),
            Action::Move(Motion::First) => 0,
            Action::Move(Motion::Last) => last,
            Action::Open => return Reply::Device(self.selected, View::Detail),
            // There is nothing to go back to from the overview.
            Action::Back => return Reply::Done,
            _ => return Reply::Ignored,
        };
        Reply::Done
    }

    fn click(&mut self, at: Position, scene: &Scene<'_>) -> Reply {
        let model = &scene.data.model;
        let plan = Plan::of(scene.area, model);
        if plan.devices.contains(at) {
            let line = usize::from(at.y - plan.devices.y) / plan.lines_each;
            let place = plan.first(self.selected) + line;
            if place < model.devices.len() {
                let again = std::mem::replace(&mut self.selected, place) == place;
                return if again { Reply::Device(place, View::Detail) } else { Reply::Done };
            }
        }
        match processes::at(at, plan.processes, model) {
            Some(process) => Reply::Process(process.into()),
            None => Reply::Ignored,
        }
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let (model, theme) = (&scene.data.model, scene.theme);
        let plan = Plan::of(scene.area, model);
        frame.render_widget(totals::line(model, theme), plan.totals);
        self.draw_devices(frame, &plan, model, theme);
        frame.render_widget(rows::legend(model, theme), plan.legend);
        processes::draw(frame, plan.processes, model, theme);
        let notes = notes::all(model).into_iter().take(usize::from(plan.notes.height));
        let lines: Vec<Line<'_>> = notes.map(|note| Line::styled(note, theme.warn())).collect();
        frame.render_widget(Paragraph::new(lines), plan.notes);
    }

    fn summary(&self) -> Option<String> {
        None
    }
}
