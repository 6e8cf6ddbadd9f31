//! Both curves in one graph, each with an axis of its own; and a grid of small ones, one for each device.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use tt_shm_reader::{Bucket, Class};

use super::draw::ChartLayout;
use crate::escape::fit;
use crate::model::{Device, Memory};
use crate::screen::data::History;
use crate::screen::page::Scene;
use crate::screen::theme::{Part, Theme};
use crate::screen::widgets::graph::{Canvas, Curve, Dots};
use crate::screen::widgets::text::{between, split_top};
use crate::screen::widgets::window::Window;
use crate::units::{UNKNOWN, bytes_short, percent};

/// Draws the curves and their axes.
pub(super) fn draw_both(
    frame: &mut Frame<'_>,
    layout: &ChartLayout,
    device: &Device,
    buckets: &[Bucket],
    window: &Window,
    theme: &Theme,
) {
    let scales = scales(device, buckets, window);
    draw_curves(frame, layout.graph, buckets, window, scales, theme);
    draw_value_axes(frame, layout, scales, theme);
}

/// The scale of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scale {
    /// Bytes at the top; 0 if nothing is known.
    top: u64,
    /// Whether the top is the capacity.
    is_capacity: bool,
}

impl Scale {
    /// Up to the capacity, or to the highest value shown if that is more or the capacity is unknown.
    fn new(memory: &Memory, most: u64) -> Scale {
        match memory.total {
            Some(total) if total >= most && total > 0 => Scale { top: total, is_capacity: true },
            _ => Scale { top: most, is_capacity: false },
        }
    }

    fn share(self, bytes: u64) -> f64 {
        bytes as f64 / self.top.max(1) as f64
    }
}

/// The scales of both curves for the window.
fn scales(device: &Device, buckets: &[Bucket], window: &Window) -> [Scale; 2] {
    let most = window.merge(buckets, &window.all());
    let [dram, l1] = most.map_or([0, 0], |both| [both.dram.max, both.l1.max]);
    [Scale::new(&device.held.dram, dram), Scale::new(&device.held.l1, l1)]
}

/// The style of a curve.
pub(super) fn curve_style(curve: Curve, theme: &Theme) -> Style {
    let part = match curve {
        Curve::First => Part::Of(Class::Dram),
        Curve::Second => Part::Of(Class::L1),
    };
    theme.part(part).1
}

/// Draws the range of each curve in each column.
fn draw_curves(
    frame: &mut Frame<'_>,
    area: Rect,
    buckets: &[Bucket],
    window: &Window,
    scales: [Scale; 2],
    theme: &Theme,
) {
    let mut canvas = Canvas::new(Dots::of(theme), area.width.into(), area.height.into());
    let columns = canvas.columns();
    for column in 0..columns {
        let Some(both) = window.merge(buckets, &window.covered(column, columns)) else { continue };
        for (curve, values, scale) in
            [(Curve::First, both.dram, scales[0]), (Curve::Second, both.l1, scales[1])]
        {
            canvas.range(curve, column, scale.share(values.min), scale.share(values.max));
        }
    }
    let cursor = window.cursor.and_then(|cursor| window.place_of(cursor, area.width.into()));
    let buffer = frame.buffer_mut();
    for (x, y) in (0..area.width).flat_map(|x| (0..area.height).map(move |y| (x, y))) {
        let at_cursor = cursor == Some(usize::from(x));
        let sign = canvas.sign(x.into(), y.into()).map(|(sign, curve)| (sign, curve_style(curve, theme)));
        let (sign, style) = match sign {
            Some((sign, style)) if at_cursor => (sign, style.patch(theme.selected())),
            Some(drawn) => drawn,
            None if at_cursor => ('│', theme.dim()),
            None => continue,
        };
        if let Some(cell) = buffer.cell_mut((area.x + x, area.y + y)) {
            cell.set_char(sign).set_style(style);
        }
    }
}

/// From this height on, quarters are marked too.
const WITH_QUARTERS: u16 = 12;

/// The vertical axes: DRAM at the left, L1 at the right; bytes at the top, percentages below.
fn draw_value_axes(frame: &mut Frame<'_>, layout: &ChartLayout, scales: [Scale; 2], theme: &Theme) {
    let height = layout.graph.height;
    let quarters: &[u16] = match height {
        0 => return,
        1..5 => &[4],
        5..WITH_QUARTERS => &[0, 2, 4],
        _ => &[0, 1, 2, 3, 4],
    };
    for quarter in quarters {
        let from_bottom = (height - 1) * quarter / 4;
        let y = layout.graph.bottom() - 1 - from_bottom;
        for (curve, area) in [(Curve::First, layout.left), (Curve::Second, layout.right)] {
            let text = value_label(scales[curve as usize], u64::from(*quarter));
            let line = match curve {
                Curve::First => Line::from(format!("{text} ")).right_aligned(),
                Curve::Second => Line::from(format!(" {text}")),
            };
            let row = Rect { y, height: 1, ..area };
            frame.render_widget(line.style(curve_style(curve, theme)), row);
        }
    }
}

fn value_label(scale: Scale, quarter: u64) -> String {
    match quarter {
        0 => "0".to_owned(),
        _ if scale.top == 0 => UNKNOWN.to_owned(),
        4 => bytes_short(scale.top),
        _ if scale.is_capacity => format!("{}%", quarter * 25),
        // A percentage of the highest value shown would mean nothing.
        _ => bytes_short(scale.top / 4 * quarter),
    }
}

/// Least width and height of a small graph: a title and three lines.
const LEAST_TILE: (u16, u16) = (38, 4);

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
        let most = usize::from((area.width / LEAST_TILE.0).max(1));
        let rows_there = usize::from((area.height / LEAST_TILE.1).max(1));
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

/// Draws a small graph for each of the devices that fit, including the selected one.
pub(super) fn draw_grid(
    frame: &mut Frame<'_>,
    scene: &Scene<'_>,
    history: &History,
    window: &Window,
    note: &str,
) {
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
        frame.render_widget(Line::styled(tile_title(device, exact, title.width), style), title);
        let scales = scales(device, buckets, window);
        draw_curves(frame, graph, buckets, window, scales, scene.theme);
    }
}

/// `exact`: everything was followed in the time shown.
fn tile_title(device: &Device, exact: bool, width: u16) -> String {
    let figure = |memory: &Memory| percent(memory.used, memory.total);
    let left = format!(" {} {}{}", device.index, fit(&device.kind(), 12), if exact { "" } else { " ~" });
    let right = format!("DRAM {} L1 {} ", figure(&device.held.dram), figure(&device.held.l1));
    let text = between(&left, &right, width);
    format!("{text:<width$}", width = usize::from(width))
}
