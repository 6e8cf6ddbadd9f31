//! Layout of one graph with its axes and readout.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use tt_shm_reader::Bucket;

use super::curves::Scale;
use super::window::Window;
use super::{axes, curves, readout};
use crate::model::Device;
use crate::screen::data::History;
use crate::screen::page::Scene;

/// Least width with axes at the sides.
const WITH_SIDES: u16 = 40;
/// Width of an axis: `1023.9 MiB` and a gap.
const SIDE: u16 = 10;

/// The layout.
pub(super) struct Plan {
    pub left: Rect,
    pub graph: Rect,
    pub right: Rect,
    /// The line that says what is known of each time.
    pub axis: Rect,
    pub times: Rect,
    pub readout: Rect,
}

impl Plan {
    pub(super) fn of(area: Rect) -> Plan {
        let lines = |least: u16, lines: u16| Constraint::Length(if area.height >= least { lines } else { 0 });
        let rows = [lines(2, 1), Constraint::Min(1), lines(5, 1), lines(6, 1), lines(8, 2)];
        let [_, middle, axis, times, readout] = area.layout(&Layout::vertical(rows));
        let side = Constraint::Length(if area.width >= WITH_SIDES { SIDE } else { 0 });
        let columns = Layout::horizontal([side, Constraint::Fill(1), side]);
        let [left, graph, right] = middle.layout(&columns);
        let below = |row: Rect| Rect { x: graph.x, width: graph.width, ..row };
        Plan { left, graph, right, axis: below(axis), times: below(times), readout }
    }
}

/// The scales of both curves for the window.
pub(super) fn scales(device: &Device, buckets: &[Bucket], window: &Window) -> [Scale; 2] {
    let most = window.merge(buckets, &window.all());
    let [dram, l1] = most.map_or([0, 0], |both| [both.dram.max, both.l1.max]);
    [Scale::new(&device.held.dram, dram), Scale::new(&device.held.l1, l1)]
}

/// Draws everything below the headline.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    scene: &Scene<'_>,
    device: &Device,
    history: &History,
    window: &Window,
) {
    let plan = Plan::of(scene.area);
    let buckets = history.devices.get(scene.device).map_or(&[][..], Vec::as_slice);
    let scales = scales(device, buckets, window);
    curves::draw(frame, plan.graph, buckets, window, scales, scene.theme);
    axes::draw_sides(frame, &plan, scales, scene.theme);
    axes::draw_time(frame, &plan, scene, history, buckets, window);
    readout::draw(frame, plan.readout, scene, device, buckets, window);
}
