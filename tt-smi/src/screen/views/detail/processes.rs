//! The processes on each device, as lists that keep their order and selection.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;
use tt_shm_reader::Class;

use super::Pane;
use crate::escape::fit;
use crate::model::{Device, Model, Process, Usage};
use crate::screen::action::Motion;
use crate::screen::page::{ProcessKey, Scene};
use crate::screen::theme::Theme;
use crate::screen::widgets::list::{Column, Hit, List};
use crate::screen::widgets::process;
use crate::units::{bytes, plural};

/// A process on a device.
#[derive(Debug)]
struct OnDevice {
    key: ProcessKey,
    pid: String,
    owner: String,
    name: String,
    usage: Usage,
    flags: String,
}

/// The columns; those with the highest rank are dropped first.
const COLUMNS: &[Column<OnDevice>] = &[
    Column::new("PID", 8, 0, |row| row.pid.clone()),
    Column::new("USER", 8, 7, |row| row.owner.clone()),
    Column::new("NAME", 16, 2, |row| row.name.clone()),
    figure("DRAM", 1, |row| bytes(row.usage.held.dram.used), |row| Some(row.usage.held.dram.used)),
    figure("L1", 1, |row| bytes(row.usage.held.l1.used), |row| Some(row.usage.held.l1.used)),
    figure(
        "CBS",
        5,
        |row| bytes(row.usage.held.cb_resident.used),
        |row| Some(row.usage.held.cb_resident.used),
    ),
    figure("CB ALLOC", 8, |row| bytes(allocated(&row.usage)), |row| Some(allocated(&row.usage))),
    figure("KERNELS", 4, |row| bytes(loaded(&row.usage)), |row| Some(loaded(&row.usage))),
    figure("ETH L1", 9, |row| bytes(row.usage.held.eth_l1.used), |row| Some(row.usage.held.eth_l1.used)),
    figure(
        "DRAM PEAK",
        10,
        |row| bytes(row.usage.held.dram.peak.range.low),
        |row| Some(row.usage.held.dram.peak.range.low),
    ),
    figure(
        "L1 PEAK",
        10,
        |row| bytes(row.usage.held.l1.peak.range.low),
        |row| Some(row.usage.held.l1.peak.range.low),
    ),
    figure(
        "DISPATCHES",
        6,
        |row| row.usage.held.dispatches.to_string(),
        |row| Some(row.usage.held.dispatches),
    ),
    Column::new("", 0, 3, |row| row.flags.clone()),
];

/// The initial sort column: DRAM.
const BY_DRAM: usize = 3;

const fn figure(
    head: &'static str,
    rank: u8,
    text: fn(&OnDevice) -> String,
    key: fn(&OnDevice) -> Option<u64>,
) -> Column<OnDevice> {
    Column::number(head, 10, rank, text, key)
}

fn allocated(usage: &Usage) -> u64 {
    usage.held.class(Class::Cb).used
}

fn loaded(usage: &Usage) -> u64 {
    usage.held.kernel_loaded.used
}

impl OnDevice {
    fn new(process: &Process, usage: &Usage) -> OnDevice {
        OnDevice {
            key: process.into(),
            pid: process.pid_text(),
            owner: process.owner(),
            name: process.name.to_string(),
            usage: usage.clone(),
            flags: process.flags().join(", "),
        }
    }
}

/// One list per device, so that each keeps its state.
#[derive(Debug, Default)]
pub(super) struct ProcessLists {
    devices: Vec<(List<OnDevice>, Vec<OnDevice>)>,
}

impl ProcessLists {
    pub(super) fn refresh(&mut self, model: &Model) {
        let empty = || (List::new(COLUMNS, BY_DRAM, |row: &OnDevice| row.key.identity), Vec::new());
        self.devices.resize_with(model.devices.len(), empty);
        for ((list, rows), device) in self.devices.iter_mut().zip(&model.devices) {
            *rows = rows_of(model, device);
            list.arrange(rows, |_| true);
        }
    }

    pub(super) fn count(&self, device: usize) -> usize {
        self.devices.get(device).map_or(0, |(_, rows)| rows.len())
    }

    pub(super) fn go(&mut self, device: usize, motion: Motion, area: Rect) {
        if let Some((list, rows)) = self.devices.get_mut(device) {
            list.go(motion, rows, area);
        }
    }

    pub(super) fn selected(&self, device: usize) -> Option<ProcessKey> {
        let (list, rows) = self.devices.get(device)?;
        list.selected(rows).map(|row| row.key)
    }

    /// Whether a click hit the row that was already selected.
    pub(super) fn click(&mut self, device: usize, at: Position, area: Rect) -> bool {
        let Some((list, rows)) = self.devices.get_mut(device) else { return false };
        match list.click(at, rows, area) {
            Hit::Heading => list.arrange(rows, |_| true),
            Hit::Row { again } => return again,
            Hit::Nothing => {}
        }
        false
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>, area: Rect) {
        let Some((list, rows)) = self.devices.get(scene.device) else { return };
        let theme = scene.theme;
        list.draw(frame, area, rows, theme, |row| {
            let process = process::by_identity(&scene.data.model, row.key.identity);
            process.and_then(|process| process::state_style(process, theme)).unwrap_or_default()
        });
    }
}

fn rows_of(model: &Model, device: &Device) -> Vec<OnDevice> {
    let on_it =
        |process: &'_ Process| process.usages.iter().find(|usage| usage.device == device.index).cloned();
    let rows = model.processes.iter().filter_map(|process| Some(OnDevice::new(process, &on_it(process)?)));
    rows.collect()
}

/// The rule between figures and processes.
pub(super) fn rule(count: usize, width: u16, pane: Pane, theme: &Theme) -> Line<'static> {
    let text = format!(" {} on this device, Enter opens one ", plural(count as u64, "process"));
    let text = fit(&text, usize::from(width));
    let line = format!("{text}{}", "─".repeat(usize::from(width).saturating_sub(text.chars().count())));
    Line::styled(line, if pane == Pane::Processes { theme.heading() } else { theme.dim() })
}
