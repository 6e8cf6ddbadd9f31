//! All devices, the largest processes, and notes.

mod devices;
mod processes;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use tt_shm_reader::Told;

use crate::driver::Measure;
use crate::escape::fit;
use crate::model::{Device, Memory, Model, Word};
use crate::screen::action::{Action, View};
use crate::screen::data::Data;
use crate::screen::page::{Page, Reply, Scene};
use crate::screen::theme::Theme;
use crate::screen::widgets::text::or_unknown;
use crate::units::{UNKNOWN, age, bytes, percent, share};
use devices::Width;

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
struct OverviewLayout {
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

impl OverviewLayout {
    fn of(area: Rect, model: &Model) -> OverviewLayout {
        let (devices, width) = (model.devices.len(), Width::of(area.width));
        let wide = area.width >= devices::WIDE && devices > 0;
        let notes = notes(model).len().min(NOTES) as u16;
        let processes = (model.processes.len() as u16 + 1).min(PROCESS_LINES);
        // With little room, devices take precedence.
        let fixed = 1 + u16::from(wide) + u16::from(devices > 0);
        let spare = area.height.saturating_sub(fixed + 1);
        let (notes, processes) = (notes.min(spare / 3), processes.min(spare / 3));
        let room = area.height.saturating_sub(fixed + notes + processes + 1).max(1);
        let lines_each = if wide { 1 } else { devices::lines_per_device(devices, width, room.into()) };
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
        OverviewLayout { totals, heading, devices, selected, legend, processes, notes, lines_each }
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
    fn draw_devices(&self, frame: &mut Frame<'_>, layout: &OverviewLayout, model: &Model, theme: &Theme) {
        if model.devices.is_empty() {
            let text = " No devices: no process reports here. Try `tt-smi demo`.";
            frame.render_widget(Line::styled(text, theme.dim()), layout.devices);
            return;
        }
        let width = usize::from(layout.devices.width);
        let shown = model.devices.iter().enumerate().skip(layout.first(self.selected)).take(layout.seen());
        let lines = shown.flat_map(|(place, device)| {
            let selected = place == self.selected;
            match layout.is_wide() {
                true => vec![devices::wide_line(device, width, selected, theme)],
                false => devices::lines(device, layout.lines_each, layout.devices.width, selected, theme),
            }
        });
        frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), layout.devices);
        if layout.is_wide() {
            frame.render_widget(devices::wide_heading(width, theme), layout.heading);
        }
        if let Some(device) = model.devices.get(self.selected) {
            frame
                .render_widget(devices::selected_line(device, layout.selected.width, theme), layout.selected);
        }
    }
}

impl Page for Overview {
    fn refresh(&mut self, data: &Data) {
        self.selected = self.selected.min(data.model.devices.len().saturating_sub(1));
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        let last = scene.data.model.devices.len().saturating_sub(1);
        let page = OverviewLayout::of(scene.area, &scene.data.model).seen();
        match action {
            Action::Move(motion) => match motion.target(self.selected, last, page) {
                Some(place) => self.selected = place,
                None => return Reply::Ignored,
            },
            Action::Open => return Reply::Device(self.selected, View::Detail),
            // There is nothing to go back to from the overview.
            Action::Back => {}
            _ => return Reply::Ignored,
        }
        Reply::Done
    }

    fn click(&mut self, at: Position, scene: &Scene<'_>) -> Reply {
        let model = &scene.data.model;
        let layout = OverviewLayout::of(scene.area, model);
        if layout.devices.contains(at) {
            let line = usize::from(at.y - layout.devices.y) / layout.lines_each;
            let place = layout.first(self.selected) + line;
            if place < model.devices.len() {
                let again = std::mem::replace(&mut self.selected, place) == place;
                return if again { Reply::Device(place, View::Detail) } else { Reply::Done };
            }
        }
        match processes::at(at, layout.processes, model) {
            Some(process) => Reply::Process(process.into()),
            None => Reply::Ignored,
        }
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let (model, theme) = (&scene.data.model, scene.theme);
        let layout = OverviewLayout::of(scene.area, model);
        frame.render_widget(totals_line(model, theme), layout.totals);
        self.draw_devices(frame, &layout, model, theme);
        frame.render_widget(devices::legend(model, theme), layout.legend);
        processes::draw(frame, layout.processes, model, theme);
        let notes = notes(model).into_iter().take(usize::from(layout.notes.height));
        let lines: Vec<Line<'_>> = notes.map(|note| Line::styled(note, theme.warn())).collect();
        frame.render_widget(Paragraph::new(lines), layout.notes);
    }
}

/// The whole host on one line: DRAM and L1 of all devices. If the capacity of one is unknown, so is the total.
fn totals_line(model: &Model, theme: &Theme) -> Line<'static> {
    let text = |name: &str, of: fn(&Device) -> &Memory| {
        if model.devices.is_empty() {
            return format!("{name} {UNKNOWN}");
        }
        let used = model.devices.iter().map(|device| of(device).used).fold(0, u64::saturating_add);
        let totals = model.devices.iter().map(|device| of(device).total);
        let total = totals.sum::<Option<u64>>();
        let incomplete = model.devices.iter().any(|device| device.incomplete);
        let mark = Memory { used, incomplete, ..Memory::default() }.used_range().mark().trim();
        format!("{name} {mark}{} {}", share(used, total), percent(used, total))
    };
    let memory = format!(" all devices  {}   {}", text("DRAM", |d| &d.held.dram), text("L1", |d| &d.held.l1));
    Line::from(vec![Span::styled(memory, theme.heading()), Span::styled(driver_totals(model), theme.dim())])
}

/// The hottest chip, and the power of all; unknown unless all that the driver has tell it.
fn driver_totals(model: &Model) -> String {
    let all = |told: Told, join: fn(f64, f64) -> f64| {
        let measure = Measure::of(told)?;
        let mut values =
            model.devices.iter().filter_map(|device| Some(measure.value(&device.driver.as_ref()?.stats)));
        let first = values.next()??;
        let joined = values.try_fold(first, |joined, value| Some(join(joined, value?)))?;
        Some(measure.text(joined))
    };
    let temperature = or_unknown(all(Told::Temperature, f64::max), |text| format!("max {text}"));
    let power = or_unknown(all(Told::Power, |one, other| one + other), |text| text);
    format!("   {temperature} °C   {power} W")
}

/// What an operator should know: problems, flags of devices and processes, the last failure.
fn notes(model: &Model) -> Vec<String> {
    let problems =
        model.problems.iter().map(|problem| format!(" {}: {}", problem.kind.word(), problem.message));
    let devices =
        model.devices.iter().map(|device| (format!("device {}", device.index), device.flags().join(", ")));
    let alive = model.processes.iter().filter(|process| process.is_alive());
    let processes = alive.map(|process| (format!("pid {}", process.pid_text()), process.flags().join(", ")));
    let flagged = devices.chain(processes).filter(|(_, flags)| !flags.is_empty());
    let flagged = flagged.map(|(who, flags)| format!(" {who}: {flags}"));
    problems.chain(flagged).chain(last_failure(model)).collect()
}

fn last_failure(model: &Model) -> Option<String> {
    let failures = model.devices.iter().filter_map(|device| Some((device.index, device.failure?)));
    let (index, failure) = failures.max_by_key(|(_, failure)| failure.time)?;
    // From its record: another process may have that pid now, or in another namespace.
    let record = model.failures.iter().find(|kept| kept.device == Some(index) && kept.time == failure.time);
    let who = record.map_or_else(
        || failure.pid.to_string(),
        |kept| format!("{}, {}", kept.who.pid_text(), fit(&kept.who.name, 16)),
    );
    Some(format!(
        " {} ago on device {index}: {} allocation of {} failed (pid {who}); {} free, largest block {}",
        age(model.clock.age_ns(failure.time.monotonic_ns)),
        or_unknown(failure.class, |class| class.name().to_uppercase()),
        bytes(failure.shortage.request_bytes),
        failure.shortage.free_text(),
        failure.shortage.largest_text(),
    ))
}
