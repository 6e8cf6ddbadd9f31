//! The L1 of each core of a device: a heat map, and what is on the core under the cursor.

mod grid;
mod words;

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::Line;

use crate::escape::fit;
use crate::lists::cores::{Core, DeviceCores};
use crate::screen::action::{Action, Motion};
use crate::screen::data::{Cores, Data, More, Needs};
use crate::screen::page::{Page, Reply, Scene};
use crate::screen::widgets::device::{draw_headline, draw_none};
use crate::screen::widgets::text::{draw_lines, split_top};
use grid::Cells;

/// The latest list, and the cursor.
#[derive(Debug, Default)]
pub(crate) struct CoresPage {
    cores: Option<Arc<Cores>>,
    /// Column and row; until it is moved, the core that runs out first.
    cursor: Option<(u32, u32)>,
}

impl CoresPage {
    fn device(&self, scene: &Scene<'_>) -> Option<&DeviceCores> {
        let index = scene.device()?.index;
        self.cores.as_ref()?.devices.iter().find(|device| device.device == index)
    }

    /// The core that the readout is about.
    fn shown(&self, device: &DeviceCores) -> Option<(u32, u32)> {
        let (columns, rows) = device.grid_columns.zip(device.grid_rows)?;
        let first = device.runs_out_first.as_ref().and_then(|core| core.x.zip(core.y));
        let (x, y) = self.cursor.or(first)?;
        Some((x.min(columns - 1), y.min(rows - 1)))
    }

    fn go(&mut self, motion: Motion, device: &DeviceCores) {
        let Some((columns, rows)) = device.grid_columns.zip(device.grid_rows) else { return };
        let (x, y) = self.shown(device).unwrap_or((0, 0));
        let step = |at: u32, by: i32, count: u32| at.saturating_add_signed(by).min(count - 1);
        self.cursor = Some(match motion {
            Motion::Lines(lines) => (x, step(y, lines, rows)),
            Motion::Pages(pages) => (x, if pages < 0 { 0 } else { rows - 1 }),
            Motion::Aside(cores) => (step(x, cores, columns), y),
            Motion::First => (0, 0),
            Motion::Last => (columns - 1, rows - 1),
        });
    }
}

impl Page for CoresPage {
    fn needs(&self) -> Needs {
        Needs::Cores
    }

    fn refresh(&mut self, data: &Data) {
        if let More::Cores(cores) = &data.more {
            self.cores = Some(Arc::clone(cores));
        }
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        match action {
            Action::Back if self.cursor.take().is_some() => Reply::Done,
            Action::Open => Reply::MapOfL1,
            Action::Move(motion) => {
                // The borrow of the list ends before the cursor moves.
                let Some(cores) = self.cores.clone() else { return Reply::Done };
                let index = scene.device().map(|device| device.index);
                if let Some(device) = cores.devices.iter().find(|device| Some(device.device) == index) {
                    self.go(motion, device);
                }
                Reply::Done
            }
            _ => Reply::Ignored,
        }
    }

    fn click(&mut self, at: Position, scene: &Scene<'_>) -> Reply {
        let clicked = self.device(scene).and_then(|device| {
            let cells = Cells::new(device, CoresLayout::of(scene.area, device).grid)?;
            cells.core_at(at)
        });
        match clicked {
            Some(core) => {
                self.cursor = Some(core);
                Reply::Done
            }
            None => Reply::Ignored,
        }
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let Some(device) = scene.device() else { return draw_none(frame, scene) };
        let (_, rest) = split_top(scene.area, 1);
        let width = usize::from(scene.area.width);
        let Some(cores) = &self.cores else {
            draw_headline(frame, scene, device, "");
            return frame
                .render_widget(Line::styled(scene.unread("the L1 of its cores"), scene.theme.dim()), rest);
        };
        let Some(of) = self.device(scene) else {
            draw_headline(frame, scene, device, "");
            let lines = words::unreported(&cores.doubts);
            return draw_lines(
                frame,
                rest,
                lines.iter().map(|line| Line::styled(fit(line, width), scene.theme.dim())),
            );
        };
        draw_headline(frame, scene, device, &words::note(of));
        let layout = CoresLayout::of(scene.area, of);
        let Some(cells) = Cells::new(of, layout.grid) else {
            let facts = words::facts(of, width, scene.theme);
            let lines = facts.into_iter().chain(words::no_grid(of, width, scene.theme));
            return draw_lines(frame, rest, lines);
        };
        let shown = self.shown(of);
        let core = of.cores.iter().find(|core| core.x.zip(core.y) == shown);
        let readout = core.map_or_else(Vec::new, |core| words::readout(core, of, width, scene.theme));
        cells.draw(frame, of, self.cursor.and(shown), scene.theme);
        frame.render_widget(words::legend(width, scene.theme), layout.legend);
        // Without room for both, who has chosen a core wants to know of that one.
        if layout.readout.height == 0 && self.cursor.is_some() {
            return draw_lines(frame, layout.facts, readout);
        }
        draw_lines(frame, layout.facts, words::facts(of, width, scene.theme));
        draw_lines(frame, layout.readout, readout);
    }
}

/// Lines of facts that there are at most: a ring for each of many processes is not worth the room of the grid.
const MOST_FACTS: u16 = 6;
/// Lines of the readout: figures, and what is there.
const READOUT: u16 = 3;

/// Where the parts are.
struct CoresLayout {
    facts: Rect,
    grid: Rect,
    legend: Rect,
    readout: Rect,
}

impl CoresLayout {
    /// The grid first: facts, legend and readout share what it leaves.
    fn of(area: Rect, device: &DeviceCores) -> CoresLayout {
        let grid = device.grid_rows.map_or(1, |rows| rows.min(200) as u16 + 1);
        let spare = area.height.saturating_sub(1 + grid);
        let readout = READOUT.min(spare / 2);
        let facts = spare.saturating_sub(readout).min(MOST_FACTS).min(words::fact_count(device));
        let legend = u16::from(spare > readout + facts);
        let rows = [1, facts].map(Constraint::Length);
        let below = [legend, readout].map(Constraint::Length);
        let rows = [rows[0], rows[1], Constraint::Min(1), below[0], below[1]];
        let [_, facts, grid, legend, readout] = area.layout(&Layout::vertical(rows));
        CoresLayout { facts, grid, legend, readout }
    }
}

/// Bytes of a core that are taken, and how many there are.
fn taken(core: &Core, device: &DeviceCores) -> Option<(u64, u64)> {
    let (free, total) = core.held.free_bytes.zip(device.l1_core_bytes)?;
    Some((total.saturating_sub(free), total))
}

#[cfg(test)]
mod tests;
