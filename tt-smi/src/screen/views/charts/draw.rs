//! Layout and drawing of one device.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};

use super::Shape;
use super::axis::{draw_marks, draw_time_axis};
use super::both::draw_both;
use super::readout::draw_readout;
use super::telemetry::{CURVES, WITH_TELEMETRY, draw_telemetry};
use crate::model::Device;
use crate::screen::data::History;
use crate::screen::page::Scene;
use crate::screen::widgets::panel::{Graphed, LEFT, Panel, RIGHT, WITH_SIDES};
use crate::screen::widgets::window::Window;

/// From this height on, there is room for the values at the cursor.
const WITH_READOUT: u16 = 13;

/// Where the parts are.
pub(super) struct ChartLayout {
    /// The panels of DRAM and L1, with titles and axes.
    pub panels: [Rect; 2],
    pub left: Rect,
    /// Everything between the axes.
    pub graph: Rect,
    pub right: Rect,
    /// What happened.
    pub marks: Rect,
    /// Curves of what the driver measures, one line each.
    pub telemetry: Rect,
    /// The line that says what is known of each time.
    pub axis: Rect,
    pub times: Rect,
    pub readout: Rect,
}

impl ChartLayout {
    pub(super) fn of(scene: &Scene<'_>) -> ChartLayout {
        let area = scene.area;
        let lines = |least: u16, lines: u16| Constraint::Length(if area.height >= least { lines } else { 0 });
        let measured = scene.device().is_some_and(|device| device.driver.is_some());
        let measured = lines(WITH_TELEMETRY, if measured { CURVES.len() as u16 } else { 0 });
        let rows = [
            lines(2, 1),
            Constraint::Min(1),
            lines(9, 1),
            measured,
            lines(5, 1),
            lines(6, 1),
            lines(WITH_READOUT, 2),
        ];
        let [_, middle, marks, telemetry, axis, times, readout] = area.layout(&Layout::vertical(rows));
        let (left, right) = if area.width >= WITH_SIDES { (LEFT, RIGHT) } else { (0, 0) };
        let columns = [Constraint::Length(left), Constraint::Fill(1), Constraint::Length(right)];
        let [left, graph, right] = middle.layout(&Layout::horizontal(columns));
        let halves = Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]);
        let below = |row: Rect| Rect { x: graph.x, width: graph.width, ..row };
        ChartLayout {
            panels: middle.layout(&halves),
            left,
            graph,
            right,
            marks: below(marks),
            telemetry,
            axis: below(axis),
            times: below(times),
            readout,
        }
    }
}

/// Draws a device's memory over time, below the headline.
pub(super) fn draw_device(
    frame: &mut Frame<'_>,
    scene: &Scene<'_>,
    device: &Device,
    history: &History,
    window: &Window,
    shape: Shape,
) {
    let layout = ChartLayout::of(scene);
    let buckets = history.devices.get(scene.device).map_or(&[][..], Vec::as_slice);
    match shape {
        Shape::Panels => {
            for (graphed, area) in Graphed::ALL.into_iter().zip(layout.panels) {
                let panel = Panel { graphed, memory: graphed.of(device), buckets, window };
                panel.draw(frame, area, scene.theme);
            }
        }
        Shape::Both => draw_both(frame, &layout, device, buckets, window, scene.theme),
    }
    draw_marks(frame, &layout, scene, device, buckets, window);
    let measured = history.telemetry.get(scene.device).map_or(&[][..], Vec::as_slice);
    draw_telemetry(frame, &layout, device, measured, window, scene.theme);
    draw_time_axis(frame, &layout, scene, device, history, buckets, window);
    draw_readout(frame, layout.readout, scene, device, buckets, window);
}
