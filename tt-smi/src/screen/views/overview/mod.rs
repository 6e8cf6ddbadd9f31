//! Is something wrong, who holds most, does it grow: all devices and processes, and what an operator should know.

mod alarms;
mod devices;
mod fold;
mod names;
mod side;
mod zones;

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use tt_shm_reader::{Bucket, Told};

use super::processes::ProcessList;
use crate::driver::Measure;
use crate::lists::suspects::Suspect;
use crate::model::{Device, Memory, Model};
use crate::query::{Field, Query};
use crate::screen::action::{Action, Motion, View};
use crate::screen::data::{Data, History, More, Needs};
use crate::screen::page::{Page, ProcessKey, Reply, Scene};
use crate::screen::theme::Theme;
use crate::screen::widgets::panel::{Graphed, Panel};
use crate::screen::widgets::text::draw_lines;
use crate::screen::widgets::trend::used_trend;
use crate::units::{UNKNOWN, bytes, percent, share};
use alarms::{Alarm, Leads, alarms};
use devices::Columns;
use fold::{Folding, Group};
use names::Names;
use side::Side;
use zones::{Content, Zones};

/// Which list the keys go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Focus {
    #[default]
    Devices,
    Processes,
}

/// Devices, processes, and which of them is selected.
#[derive(Debug)]
pub(crate) struct Overview {
    folding: Folding,
    /// The chip of the selected row.
    chip: Option<u64>,
    focus: Focus,
    processes: ProcessList,
    /// The last minute of all devices; `None` until it has been read.
    history: Option<Arc<History>>,
    suspects: Vec<Suspect>,
    alarms: Vec<Alarm>,
    names: Names,
}

impl Default for Overview {
    fn default() -> Overview {
        Overview {
            folding: Folding::default(),
            chip: None,
            focus: Focus::default(),
            processes: ProcessList::plain(),
            history: None,
            suspects: Vec::new(),
            alarms: Vec::new(),
            names: Names::default(),
        }
    }
}

impl Overview {
    /// Takes in what looks like a leak, and what memory is used for, whether or not this view is shown.
    pub(crate) fn watch(&mut self, data: &Data, suspects: &[Suspect]) {
        let Some(live) = &data.live else { return };
        self.suspects = suspects.to_vec();
        self.names.take_in(&live.listing);
    }

    fn groups(&self) -> &[Group] {
        self.folding.groups()
    }

    /// The place of the selected row.
    fn selected(&self, model: &Model) -> usize {
        let has = |group: &Group| {
            group.members.iter().any(|place| {
                model.devices.get(*place).is_some_and(|device| Some(device.id.chip_id) == self.chip)
            })
        };
        self.groups().iter().position(has).unwrap_or(0)
    }

    fn zones(&self, scene: &Scene<'_>) -> Zones {
        let content = Content {
            alarms: self.alarms.len(),
            devices: self.groups().len(),
            processes: self.processes.len(),
        };
        Zones::of(scene.area, content)
    }

    /// The scene of the list of processes.
    fn within<'a>(&self, scene: &Scene<'a>) -> Scene<'a> {
        Scene { area: self.zones(scene).processes, ..*scene }
    }

    fn set_focus(&mut self, focus: Focus) {
        self.focus = focus;
        self.processes.focus(focus == Focus::Processes);
    }

    fn select(&mut self, place: usize, model: &Model) -> Reply {
        let Some(first) = self.groups().get(place).map(Group::first) else { return Reply::Ignored };
        self.chip = model.devices.get(first).map(|device| device.id.chip_id);
        Reply::Choose(first)
    }

    /// Opens the selected row: its devices if it stands for several, else the device.
    fn open(&mut self, model: &Model) -> Reply {
        let Some(group) = self.groups().get(self.selected(model)).cloned() else { return Reply::Ignored };
        if !group.is_folded() {
            return Reply::Device(group.first(), View::Detail);
        }
        self.folding.open(&group, model);
        self.folding.refresh(model);
        Reply::Done
    }

    fn back(&mut self, scene: &Scene<'_>) -> Reply {
        if self.processes.act(Action::Back, &self.within(scene)) == Reply::Done {
            return Reply::Done;
        }
        if self.folding.close() {
            self.folding.refresh(&scene.data.model);
        }
        // There is nothing to go back to from the overview.
        Reply::Done
    }

    /// Shows what the first alarm is about.
    fn follow_alarm(&self) -> Reply {
        match self.alarms.first().map(|alarm| alarm.leads) {
            Some(Leads::Device(place)) => Reply::Device(place, View::Detail),
            Some(Leads::Process(key)) => Reply::Process(key),
            Some(Leads::Suspects) => Reply::Suspects,
            Some(Leads::Nowhere) => {
                Reply::Say("there is no more about it: `tt-smi doctor` may help".to_owned())
            }
            None => Reply::Say("nothing is wrong".to_owned()),
        }
    }

    fn buckets(&self, place: usize) -> &[Bucket] {
        let history = self.history.as_ref().and_then(|history| history.devices.get(place));
        history.map_or(&[], Vec::as_slice)
    }

    /// The first row shown, so that the selected one is: pages do not move with every step.
    fn first_shown(selected: usize, height: u16) -> usize {
        let seen = usize::from(height).max(1);
        selected / seen * seen
    }

    fn draw_devices(&self, frame: &mut Frame<'_>, zones: &Zones, scene: &Scene<'_>) {
        let (model, theme) = (&scene.data.model, scene.theme);
        if model.devices.is_empty() {
            let text = " No process reports here. `tt-smi run -- COMMAND` observes one, `tt-smi demo` shows how it looks.";
            let text = crate::escape::fit(text, zones.devices.width.into());
            frame.render_widget(Line::styled(text, theme.dim()), zones.devices);
            return;
        }
        let columns = Columns::of(zones.devices.width.into(), self.groups(), model);
        let selected = self.selected(model);
        let first = Overview::first_shown(selected, zones.devices.height);
        let rows = self.groups().iter().enumerate().skip(first).take(zones.devices.height.into());
        let window = side::last_minute(scene);
        let rows = rows.map(|(place, group)| {
            let style = (place == selected).then(|| match self.focus {
                Focus::Devices => theme.selected(),
                Focus::Processes => theme.chosen(),
            });
            let buckets = self.buckets(group.first());
            let used = |column: usize| {
                let covered = window.covered(column, columns.trend);
                window.merge(buckets, &covered).map(|both| both.dram.max)
            };
            let values: Vec<Option<u64>> = (0..columns.trend).map(used).collect();
            columns.row(group, model, &used_trend(&values), style, theme)
        });
        draw_lines(frame, zones.devices, rows);
        let shown = usize::from(zones.devices.height).min(self.groups().len() - first);
        let more = self.groups().len() - shown;
        frame.render_widget(columns.heading(theme), zones.heading);
        if more > 0 {
            // Whatever is headed there: that something is missing is more important.
            let text = format!("{:>13}", format!("{more} more ↓"));
            let width = (text.chars().count() as u16).min(zones.heading.width);
            let end = Rect { x: zones.heading.right() - width, width, ..zones.heading };
            frame.render_widget(Span::styled(text, theme.warn()), end);
        }
        frame.render_widget(devices::legend(model, zones.legend.width, theme), zones.legend);
        let device = self.groups().get(selected).and_then(|group| model.devices.get(group.first()));
        if let Some(device) = device {
            frame.render_widget(devices::about(device, zones.about.width, theme), zones.about);
        }
    }

    /// The worst, and how many there are besides.
    fn draw_alarms(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let shown = usize::from(area.height).min(self.alarms.len());
        let more = match self.alarms.len() - shown {
            0 => String::new(),
            count => format!(" +{count} more"),
        };
        let lines = self.alarms.iter().take(shown).enumerate().map(|(place, alarm)| {
            let is_last = place + 1 == shown;
            let kept = if is_last { more.chars().count() } else { 0 };
            let mut line = alarm.line(usize::from(area.width).saturating_sub(kept), theme);
            if is_last {
                line.push_span(Span::styled(more.clone(), theme.warn()));
            }
            line
        });
        draw_lines(frame, area, lines);
    }

    fn draw_chart(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let Some(group) = self.groups().get(self.selected(&scene.data.model)) else { return };
        let Some(device) = scene.data.model.devices.get(group.first()) else { return };
        let (buckets, window) = (self.buckets(group.first()), side::last_minute(scene));
        let graphed = Graphed::Dram;
        Panel { graphed, memory: graphed.of(device), buckets, window: &window }.draw(
            frame,
            area,
            scene.theme,
        );
    }
}

impl Page for Overview {
    fn needs(&self) -> Needs {
        Needs::LastMinute
    }

    fn refresh(&mut self, data: &Data) {
        if let More::History(history) = &data.more {
            self.history = Some(history.clone()).filter(|history| history.resolution == 0);
        }
        self.folding.refresh(&data.model);
        self.processes.refresh(data);
        self.alarms = alarms(&data.model, &self.suspects);
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        let model = &scene.data.model;
        match action {
            Action::NextPane => {
                self.set_focus(match self.focus {
                    Focus::Devices => Focus::Processes,
                    Focus::Processes => Focus::Devices,
                });
                Reply::Done
            }
            Action::Alarm => self.follow_alarm(),
            Action::Back => self.back(scene),
            // Devices have no further columns: a step to the side is always one in the list of processes.
            Action::Move(motion) if self.focus == Focus::Devices && !matches!(motion, Motion::Aside(_)) => {
                let (last, page) = (self.groups().len().saturating_sub(1), self.zones(scene).devices.height);
                match motion.target(self.selected(model), last, page.into()) {
                    Some(place) => self.select(place, model),
                    None => Reply::Ignored,
                }
            }
            Action::Open if self.focus == Focus::Devices => self.open(model),
            _ => match self.processes.act(action, &self.within(scene)) {
                Reply::OpenRow => self.processes.selected().map_or(Reply::Ignored, Reply::Process),
                reply => reply,
            },
        }
    }

    fn click(&mut self, at: Position, scene: &Scene<'_>) -> Reply {
        let (zones, model) = (self.zones(scene), &scene.data.model);
        if zones.alarms.contains(at) {
            return self.follow_alarm();
        }
        if zones.devices.contains(at) {
            let first = Overview::first_shown(self.selected(model), zones.devices.height);
            let place = first + usize::from(at.y - zones.devices.y);
            if place >= self.groups().len() {
                return Reply::Ignored;
            }
            let again = self.focus == Focus::Devices && self.selected(model) == place;
            self.set_focus(Focus::Devices);
            return if again { self.open(model) } else { self.select(place, model) };
        }
        if !zones.processes.contains(at) {
            return Reply::Ignored;
        }
        // As it was drawn: the focus may scroll it.
        let reply = self.processes.click(at, &self.within(scene));
        self.set_focus(Focus::Processes);
        match reply {
            Reply::OpenRow => self.processes.selected().map_or(Reply::Ignored, Reply::Process),
            reply => reply,
        }
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let (model, theme, zones) = (&scene.data.model, scene.theme, self.zones(scene));
        frame.render_widget(totals_line(model, zones.totals.width, theme), zones.totals);
        self.draw_alarms(frame, zones.alarms, theme);
        self.draw_devices(frame, &zones, scene);
        if zones.chart.height > 0 {
            self.draw_chart(frame, zones.chart, scene);
        }
        if !model.devices.is_empty() {
            self.processes.draw(frame, &self.within(scene));
        }
        let group = self.groups().get(self.selected(model));
        let Some((group, device)) = group.and_then(|group| Some((group, model.devices.get(group.first())?)))
        else {
            return;
        };
        self.names.draw(frame, zones.names, device, theme);
        if zones.side.width > 0 {
            let buckets = self.buckets(group.first());
            Side { group, device, buckets, alarms: &self.alarms }.draw(frame, zones.side, scene);
        }
    }

    fn sorts(&self) -> (Vec<&'static str>, Option<usize>) {
        self.processes.sorts()
    }

    fn sort_by(&mut self, choice: usize, data: &Data) {
        self.processes.sort_by(choice, data);
    }

    fn fields(&self) -> &'static [Field] {
        self.processes.fields()
    }

    fn query(&self) -> Query {
        self.processes.query()
    }

    fn filter(&mut self, query: Query, data: &Data) {
        self.processes.filter(query, data);
        self.set_focus(Focus::Processes);
    }

    fn columns(&self) -> Vec<(&'static str, bool)> {
        self.processes.columns()
    }

    fn toggle_column(&mut self, place: usize) {
        self.processes.toggle_column(place);
    }

    fn search(&mut self, text: &str, after: bool) -> Option<bool> {
        self.set_focus(Focus::Processes);
        self.processes.search(text, after)
    }

    fn target(&self, scene: &Scene<'_>) -> Option<ProcessKey> {
        self.processes.target(scene).filter(|_| self.focus == Focus::Processes)
    }

    fn summary(&self) -> Option<String> {
        self.processes.summary()
    }
}

/// The whole host on one line: DRAM and L1 of all devices. If the capacity of one is unknown, only what is used is there.
fn totals_line(model: &Model, width: u16, theme: &Theme) -> Line<'static> {
    let memory = |name: &str, of: fn(&Device) -> &Memory| {
        if model.devices.is_empty() {
            return vec![Span::styled(format!("{name} {UNKNOWN}"), theme.heading())];
        }
        let used = model.devices.iter().map(|device| of(device).used).fold(0, u64::saturating_add);
        let totals = model.devices.iter().map(|device| of(device).total);
        let total = totals.sum::<Option<u64>>();
        let incomplete = model.devices.iter().any(|device| device.incomplete);
        let mark = Memory { used, incomplete, ..Memory::default() }.used_range().mark().trim();
        if total.is_none() {
            return vec![Span::styled(format!("{name} {mark}{}", bytes(used)), theme.heading())];
        }
        vec![
            Span::styled(format!("{name} {mark}{} ", share(used, total)), theme.heading()),
            Span::styled(percent(used, total), theme.level(used, total).patch(theme.heading())),
        ]
    };
    let all = vec![Span::styled(" all devices", theme.dim())];
    let gap = |style: Style| Span::styled("   ", style);
    let mut parts = vec![all, memory("DRAM", |d| &d.held.dram), memory("L1", |d| &d.held.l1)];
    parts.extend(driver_totals(model).map(|text| vec![Span::styled(text, theme.dim())]));
    let mut room = usize::from(width);
    let mut spans = Vec::new();
    for part in parts {
        let needed = 3 + part.iter().map(|span| span.content.chars().count()).sum::<usize>();
        let Some(left) = room.checked_sub(needed) else { break };
        room = left;
        spans.extend(part.into_iter().chain([gap(Style::new())]));
    }
    Line::from(spans)
}

/// The hottest chip, and the power of all; nothing unless all that the driver has tell it.
fn driver_totals(model: &Model) -> Option<String> {
    let all = |told: Told, join: fn(f64, f64) -> f64| {
        let measure = Measure::of(told)?;
        let mut values =
            model.devices.iter().filter_map(|device| Some(measure.value(&device.driver.as_ref()?.stats)));
        let first = values.next()??;
        let joined = values.try_fold(first, |joined, value| Some(join(joined, value?)))?;
        Some(measure.text(joined))
    };
    let temperature = all(Told::Temperature, f64::max).map(|text| format!("max {text} °C"));
    let power = all(Told::Power, |one, other| one + other).map(|text| format!("{text} W"));
    let told: Vec<String> = [temperature, power].into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join("   "))
}
