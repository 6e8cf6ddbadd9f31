//! Layout and drawing: one device's graph with its axes and readout, or a grid with a small graph for each device.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use tt_shm_reader::{Bucket, Class, TelemetryBucket, Told};

use super::window::{Values, Window};
use crate::driver::Measure;
use crate::escape::fit;
use crate::model::{Device, Memory};
use crate::screen::data::History;
use crate::screen::page::Scene;
use crate::screen::theme::{Part, Theme};
use crate::screen::widgets::graph::{Canvas, Curve, Dots};
use crate::screen::widgets::text::{between, or_unknown, split_top};
use crate::screen::widgets::trend::trend;
use crate::units::{UNKNOWN, age, bytes, bytes_short, percent};

/// Least width with axes at the sides.
const WITH_SIDES: u16 = 40;
/// Width of an axis: `1023.9 MiB` and a gap.
const SIDE: u16 = 10;

/// Where the parts of a graph are.
pub(super) struct ChartLayout {
    pub left: Rect,
    pub graph: Rect,
    pub right: Rect,
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
        let rows = [lines(2, 1), Constraint::Min(1), measured, lines(5, 1), lines(6, 1), lines(8, 2)];
        let [_, middle, telemetry, axis, times, readout] = area.layout(&Layout::vertical(rows));
        let side = Constraint::Length(if area.width >= WITH_SIDES { SIDE } else { 0 });
        let columns = Layout::horizontal([side, Constraint::Fill(1), side]);
        let [left, graph, right] = middle.layout(&columns);
        let below = |row: Rect| Rect { x: graph.x, width: graph.width, ..row };
        ChartLayout { left, graph, right, telemetry, axis: below(axis), times: below(times), readout }
    }
}

/// Draws a device's graph with its axes and readout, below the headline.
pub(super) fn draw_device(
    frame: &mut Frame<'_>,
    scene: &Scene<'_>,
    device: &Device,
    history: &History,
    window: &Window,
) {
    let layout = ChartLayout::of(scene);
    let buckets = history.devices.get(scene.device).map_or(&[][..], Vec::as_slice);
    let scales = scales(device, buckets, window);
    draw_curves(frame, layout.graph, buckets, window, scales, scene.theme);
    draw_value_axes(frame, &layout, scales, scene.theme);
    let measured = history.telemetry.get(scene.device).map_or(&[][..], Vec::as_slice);
    draw_telemetry(frame, &layout, device, measured, window, scene.theme);
    draw_time_axis(frame, &layout, scene, history, buckets, window);
    draw_readout(frame, layout.readout, scene, device, buckets, window);
}

/// What of the telemetry is drawn below the graph.
const CURVES: [Told; 2] = [Told::Temperature, Told::Power];
/// From this height on there is room for it.
const WITH_TELEMETRY: u16 = 14;

/// Draws a line for each of [`CURVES`]: the value at the cursor or now at the left, the most of each time, and the limit
/// at the right.
fn draw_telemetry(
    frame: &mut Frame<'_>,
    layout: &ChartLayout,
    device: &Device,
    buckets: &[TelemetryBucket],
    window: &Window,
    theme: &Theme,
) {
    let Some(driver) = &device.driver else { return };
    let width = usize::from(layout.graph.width);
    let cursor = window.cursor.and_then(|cursor| window.place_of(cursor, width));
    for (y, told) in (layout.telemetry.y..layout.telemetry.bottom()).zip(CURVES) {
        let Some(measure) = Measure::of(told) else { continue };
        let most = |place: usize| window.most_measured(buckets, &window.covered(place, width), told);
        let values: Vec<Option<i64>> = (0..width).map(most).collect();
        let shown = match cursor {
            Some(place) => values[place].map(|value| measure.scaled(value)),
            None => measure.value(&driver.stats),
        };
        let unit = measure.unit;
        let text = |value: Option<f64>| or_unknown(value, |value| format!("{} {unit}", measure.text(value)));
        let row = |area: Rect| Rect { y, height: 1, ..area };
        let limit = measure.limit(&driver.stats).map(|limit| format!(" /{}", text(Some(limit))));
        frame.render_widget(Line::from(format!("{} ", text(shown))).right_aligned(), row(layout.left));
        frame.render_widget(Line::styled(trend(&values, theme), theme.dim()), row(layout.graph));
        frame.render_widget(Line::styled(limit.unwrap_or_default(), theme.dim()), row(layout.right));
    }
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
fn curve_style(curve: Curve, theme: &Theme) -> Style {
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

/// The horizontal axis: a line with what is known of each time, and one with times.
fn draw_time_axis(
    frame: &mut Frame<'_>,
    layout: &ChartLayout,
    scene: &Scene<'_>,
    history: &History,
    buckets: &[Bucket],
    window: &Window,
) {
    let width = usize::from(layout.graph.width);
    let cursor = window.cursor.and_then(|cursor| window.place_of(cursor, width));
    let sign = |place: usize| {
        let covered = window.covered(place, width);
        match window.merge(buckets, &covered) {
            _ if cursor == Some(place) => '▲',
            _ if history.gap.is_some_and(|gap| window.overlaps(&covered, gap)) => '×',
            None => '·',
            Some(both) if !both.exact => '~',
            Some(_) => '─',
        }
    };
    let axis: String = (0..width).map(sign).collect();
    let clock = scene.data.model.clock;
    let at = |bucket: i64| {
        time_label(clock.rfc3339_signed(bucket.saturating_mul(window.length as i64)), window.length)
    };
    let (start, end) = (at(window.first), at(window.all().end).min(window_end(scene, window)));
    let times = time_axis_text(&start, &end, &axis, width);
    frame.render_widget(Line::styled(axis, scene.theme.dim()), layout.axis);
    frame.render_widget(Line::styled(times, scene.theme.dim()), layout.times);
}

/// Start, end, and between them a legend of the axis, if there is room.
fn time_axis_text(start: &str, end: &str, axis: &str, width: usize) -> String {
    let meanings = [
        [" · unknown", " ~ not exact", " × no aggregator ran"],
        [" · unknown", " ~ not exact", " × unseen"],
        ["", " ~ not exact", " × unseen"],
        ["", " ~ not exact", ""],
        ["", "", ""],
    ];
    let there = |text: &&str| text.trim().chars().next().is_some_and(|sign| axis.contains(sign));
    let texts = meanings.map(|signs| signs.into_iter().filter(there).collect::<String>());
    let needed = |text: &&String| start.len() + text.chars().count() + end.len() + 5 <= width;
    let meaning = texts.iter().find(needed).map_or("", String::as_str);
    between(&format!("{start}{meaning}"), &format!("{end} UTC"), width as u16)
}

/// The end of the window; the last bucket ends in the future.
fn window_end(scene: &Scene<'_>, window: &Window) -> String {
    time_label(Some(scene.data.model.clock.timestamp()), window.length)
}

/// The time of an RFC 3339 text; for day-long windows also the date.
fn time_label(rfc3339: Option<String>, bucket_length: u64) -> String {
    /// From this length on, a time without a date would be ambiguous.
    const LONG: u64 = 360_000_000_000;
    let range = if bucket_length >= LONG { 5..16 } else { 11..19 };
    let part = rfc3339.as_deref().and_then(|text| text.get(range));
    or_unknown(part, |text| text.replace('T', " "))
}

/// From this width on there is room for exact byte counts.
const WITH_BYTES: u16 = 100;
/// From this width on there is room for labels.
const WITH_WORDS: u16 = 68;
/// From this width on there is room for the capacity.
const WITH_CAPACITY: u16 = 76;

/// Values at the cursor, or of the whole window if there is none: one line per curve; at the right, the time.
fn draw_readout(
    frame: &mut Frame<'_>,
    area: Rect,
    scene: &Scene<'_>,
    device: &Device,
    buckets: &[Bucket],
    window: &Window,
) {
    let places = usize::from(ChartLayout::of(scene).graph.width);
    let place = window.cursor.and_then(|cursor| window.place_of(cursor, places));
    let range = place.map_or(window.all(), |place| window.covered(place, places));
    let clock = scene.data.model.clock;
    let start = range.start.saturating_mul(window.length as i64);
    let when = match window.cursor {
        None => ["whole".to_owned(), "window".to_owned()],
        Some(_) => {
            let ago = clock.age_ns(u64::try_from(start).unwrap_or(0));
            [time_label(clock.rfc3339_signed(start), window.length), format!("{} ago", age(ago))]
        }
    };
    let both = window.merge(buckets, &range);
    let curves = [
        (Curve::First, "DRAM", both.map(|both| both.dram), &device.held.dram),
        (Curve::Second, "L1", both.map(|both| both.l1), &device.held.l1),
    ];
    let lines = curves.into_iter().zip(when).map(|((curve, name, values, memory), when)| {
        // The same mark as on the axis: not everything was followed at that time.
        let doubt = if both.is_some_and(|both| !both.exact) { "~" } else { "" };
        let text =
            format!(" {:<5}{}", format!("{name}{doubt}"), readout_text(values.as_ref(), memory, area.width));
        let sign = Canvas::key(Dots::of(scene.theme), curve);
        let gap = usize::from(area.width).saturating_sub(text.chars().count() + when.chars().count() + 3);
        Line::from(vec![
            Span::styled(format!(" {sign}"), curve_style(curve, scene.theme)),
            Span::raw(format!("{text}{}{when}", " ".repeat(gap))),
        ])
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

fn readout_text(values: Option<&Values>, memory: &Memory, width: u16) -> String {
    let figure = |name: &str, of: fn(&Values) -> u64| {
        let text = or_unknown(values, |values| bytes(of(values)));
        let exact = values.filter(|_| width >= WITH_BYTES).map(|values| format!(" ({} B)", of(values)));
        format!("{name} {text:>9}{}  ", exact.unwrap_or_default())
    };
    if width < WITH_WORDS {
        let text = |values: &Values| {
            format!("{} to {}, last {}", bytes(values.min), bytes(values.max), bytes(values.last))
        };
        return or_unknown(values, text);
    }
    let all = [figure("min", |of| of.min), figure("max", |of| of.max), figure("last", |of| of.last)].concat();
    match memory.total {
        _ if width < WITH_CAPACITY => all,
        Some(total) => format!("{all}of {}", bytes(total)),
        None => format!("{all}of {UNKNOWN}"),
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
