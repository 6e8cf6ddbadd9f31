//! A small graph for each device.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::window::Window;
use super::{curves, plan};
use crate::escape::fit;
use crate::model::Device;
use crate::output::units::percent;
use crate::screen::data::History;
use crate::screen::page::Scene;
use crate::screen::widgets::text::{between, split_top};

/// Least height of a small graph: a title and three lines.
const LEAST: (u16, u16) = (38, 4);

/// Layout of the grid.
struct Tiles {
    columns: usize,
    rows: usize,
    width: u16,
    height: u16,
}

impl Tiles {
    /// As few columns as show all devices, to leave room for time.
    fn of(area: Rect, devices: usize) -> Tiles {
        let most = usize::from((area.width / LEAST.0).max(1));
        let rows_there = usize::from((area.height / LEAST.1).max(1));
        let columns = devices.div_ceil(rows_there).clamp(1, most);
        let rows = devices.div_ceil(columns).clamp(1, rows_there);
        Tiles { columns, rows, width: area.width / columns as u16, height: area.height / rows as u16 }
    }

    fn at(&self, place: usize, area: Rect) -> Rect {
        let (column, row) = ((place % self.columns) as u16, (place / self.columns) as u16);
        let (x, y) = (area.x + column * self.width, area.y + row * self.height);
        // A free column separates the graphs.
        Rect { x, y, width: self.width.saturating_sub(1), height: self.height }.intersection(area)
    }
}

/// Draws the devices that fit, including the selected one.
pub(super) fn draw(frame: &mut Frame<'_>, scene: &Scene<'_>, history: &History, window: &Window, note: &str) {
    let (line, area) = split_top(scene.area, 1);
    let devices = &scene.data.model.devices;
    let title = between(" all devices, DRAM and L1 in percent of capacity", &format!("{note} "), line.width);
    frame.render_widget(Line::styled(title, scene.theme.heading()), line);
    let tiles = Tiles::of(area, devices.len());
    let seen = tiles.columns * tiles.rows;
    let first = scene.device / seen * seen;
    for (place, device) in devices.iter().enumerate().skip(first).take(seen) {
        let tile = tiles.at(place - first, area);
        let (title, graph) = split_top(tile, 1);
        let buckets = history.devices.get(place).map_or(&[][..], Vec::as_slice);
        let style = if place == scene.device { scene.theme.selected() } else { scene.theme.dim() };
        let exact = window.merge(buckets, &window.all()).is_none_or(|both| both.exact);
        frame.render_widget(Line::styled(title_of(device, exact, title.width), style), title);
        let scales = plan::scales(device, buckets, window);
        curves::draw(frame, graph, buckets, window, scales, scene.theme);
    }
}

/// `exact`: everything was followed in the time shown.
fn title_of(device: &Device, exact: bool, width: u16) -> String {
    let figure = |memory: &crate::model::Memory| percent(memory.used, memory.total);
    let left = format!(" {} {}{}", device.index, fit(&device.kind(), 12), if exact { "" } else { " ~" });
    let right = format!("DRAM {} L1 {} ", figure(&device.held.dram), figure(&device.held.l1));
    let text = between(&left, &right, width);
    format!("{text:<width$}", width = usize::from(width))
}
