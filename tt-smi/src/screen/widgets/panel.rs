//! One memory of a device over time: an area by class, with the range of each time above it, and lines at the peak and at
//! the capacity. Now is at the right.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use tt_shm_reader::{Bucket, Class};

use super::graph::Dots;
use super::stack::{Layer, Sign, Stack};
use super::text::split_top;
use super::window::{Both, DRAM_PARTS, L1_PARTS, Values, Window};
use crate::model::{Device, Memory, class_info};
use crate::screen::theme::{Part, Theme};
use crate::units::{bytes, bytes_short, percent};

/// Least width with axes at the sides.
pub(crate) const WITH_SIDES: u16 = 40;
/// Width of the axis of bytes, at the left: `1023.9 MiB` and a gap.
pub(crate) const LEFT: u16 = 10;
/// Width of the axis at the right: percentages and the peak, or bytes of another memory.
pub(crate) const RIGHT: u16 = 10;
/// The layer of what was used for a part of the time only, beside those of the classes.
const RANGE: Layer = 8;

/// The two memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Graphed {
    Dram,
    L1,
}

impl Graphed {
    pub(crate) const ALL: [Graphed; 2] = [Graphed::Dram, Graphed::L1];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Graphed::Dram => "DRAM",
            Graphed::L1 => "L1",
        }
    }

    pub(crate) fn of(self, device: &Device) -> &Memory {
        match self {
            Graphed::Dram => &device.held.dram,
            Graphed::L1 => &device.held.l1,
        }
    }

    pub(crate) fn values(self, both: &Both) -> Values {
        match self {
            Graphed::Dram => both.dram,
            Graphed::L1 => both.l1,
        }
    }

    fn classes(self) -> &'static [Class] {
        match self {
            Graphed::Dram => &DRAM_PARTS,
            Graphed::L1 => &L1_PARTS,
        }
    }
}

/// The scale of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    /// Bytes at the top; 0 if nothing is known.
    pub top: u64,
    /// The capacity, if it is known.
    pub capacity: Option<u64>,
}

impl Scale {
    /// Up to the capacity; halved as long as what is shown stays in the lower half, so that little is not a flat line. Up
    /// to the highest value shown if that is more or the capacity is unknown.
    pub(crate) fn new(capacity: Option<u64>, most: u64) -> Scale {
        let top = match capacity {
            // Of nothing there is nothing to see more closely.
            Some(capacity) if most == 0 => capacity,
            Some(capacity) if capacity >= most => {
                let mut top = capacity;
                while top / 2 > most.saturating_add(most / 8) {
                    top /= 2;
                }
                top
            }
            _ => most,
        };
        Scale { top, capacity }
    }

    /// Whether the top is the capacity.
    fn is_full(self) -> bool {
        self.capacity == Some(self.top)
    }

    pub(crate) fn share(self, bytes: u64) -> f64 {
        bytes as f64 / self.top.max(1) as f64
    }

    /// The line of a value, from the top of a graph of this height.
    fn line(self, bytes: u64, height: u16) -> Option<u16> {
        let from_bottom = (self.share(bytes) * f64::from(height)).ceil() as u16;
        (self.top > 0 && bytes <= self.top).then(|| height - from_bottom.clamp(1, height))
    }
}

/// A memory of a device, and the time to show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel<'a> {
    pub graphed: Graphed,
    pub memory: &'a Memory,
    pub buckets: &'a [Bucket],
    pub window: &'a Window,
}

/// Where the parts of a panel are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PanelLayout {
    title: Rect,
    left: Rect,
    pub graph: Rect,
    right: Rect,
}

impl PanelLayout {
    pub(crate) fn of(area: Rect) -> PanelLayout {
        let (title, rest) = split_top(area, 1);
        let (left, right) = if area.width >= WITH_SIDES { (LEFT, RIGHT) } else { (0, 0) };
        let graph = Rect { x: rest.x + left, width: rest.width - left - right, ..rest };
        PanelLayout {
            title,
            left: Rect { width: left, ..rest },
            graph,
            right: Rect { x: graph.right(), width: right, ..rest },
        }
    }
}

impl Panel<'_> {
    /// Draws it with its title and axes.
    pub(crate) fn draw(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let (layout, scale) = (PanelLayout::of(area), self.scale());
        frame.render_widget(self.title(layout.title.width, theme), layout.title);
        if layout.graph.height == 0 {
            return;
        }
        let peak = Some(self.memory.peak.range.low).filter(|peak| *peak > 0);
        let peak = peak.and_then(|peak| scale.line(peak, layout.graph.height));
        self.draw_lines(frame, layout.graph, scale, peak, theme);
        self.draw_area(frame, layout.graph, scale, theme);
        draw_axes(frame, &layout, scale, peak, theme);
    }

    fn scale(&self) -> Scale {
        let most = self.window.merge(self.buckets, &self.window.all());
        let most = most.map_or(0, |both| self.graphed.values(&both).max);
        Scale::new(self.memory.total, most)
    }

    /// Name, what is used, peak and classes; what there is no room for is left out from the right.
    fn title(&self, width: u16, theme: &Theme) -> Line<'static> {
        let memory = self.memory;
        let level = theme.level(memory.used, memory.total);
        let mut parts: Vec<Vec<Span<'static>>> = vec![
            vec![Span::styled(format!(" {:<4} ", self.graphed.name()), theme.heading())],
            vec![
                Span::raw(memory.used_share()),
                Span::styled(format!(" {}", percent(memory.used, memory.total)), level),
            ],
            vec![Span::styled(
                format!("  peak {}{}", memory.peak.range.mark().trim(), bytes(memory.peak.range.low)),
                theme.peak(),
            )],
        ];
        for class in self.graphed.classes() {
            let (sign, style) = theme.part(Part::Of(*class));
            let name = Span::styled(format!(" {}", class_info(*class).legend), theme.dim());
            parts.push(vec![Span::raw("  "), Span::styled(sign.to_string(), style), name]);
        }
        let mut room = usize::from(width);
        let mut spans = Vec::new();
        for part in parts {
            let needed: usize = part.iter().map(|span| span.content.chars().count()).sum();
            let Some(left) = room.checked_sub(needed) else { break };
            room = left;
            spans.extend(part);
        }
        Line::from(spans)
    }

    /// The peak, and the capacity if it is the top: behind the area.
    fn draw_lines(&self, frame: &mut Frame<'_>, graph: Rect, scale: Scale, peak: Option<u16>, theme: &Theme) {
        let line = |y: u16| Rect { y: graph.y + y, height: 1, ..graph };
        let across = |sign: &str| sign.repeat(graph.width.into());
        if scale.is_full() {
            frame.render_widget(Span::styled(across("─"), theme.dim()), line(0));
        }
        if let Some(peak) = peak {
            frame.render_widget(Span::styled(across("╌"), theme.peak()), line(peak));
        }
    }

    fn draw_area(&self, frame: &mut Frame<'_>, graph: Rect, scale: Scale, theme: &Theme) {
        let mut stack = Stack::new(Dots::of(theme), graph.width.into(), graph.height.into());
        let columns = stack.columns();
        for column in 0..columns {
            let covered = self.window.covered(column, columns);
            let Some(both) = self.window.merge(self.buckets, &covered) else { continue };
            stack.pile(column, &ends(&self.graphed.values(&both), scale, self.graphed.classes().len()));
        }
        let cursor = self.window.cursor.and_then(|cursor| self.window.place_of(cursor, graph.width.into()));
        let buffer = frame.buffer_mut();
        for (x, y) in (0..graph.width).flat_map(|x| (0..graph.height).map(move |y| (x, y))) {
            let at_cursor = cursor == Some(usize::from(x));
            let drawn = stack.sign(x.into(), y.into()).map(|sign| self.signed(sign, theme));
            let (sign, style) = match drawn {
                Some((sign, style)) if at_cursor => (sign, style.patch(theme.selected())),
                Some(drawn) => drawn,
                None if at_cursor => ('│', theme.heading()),
                None => continue,
            };
            if let Some(cell) = buffer.cell_mut((graph.x + x, graph.y + y)) {
                cell.set_char(sign).set_style(style);
            }
        }
    }

    /// The character and its style. What was used for a part of the time is fainter.
    fn signed(&self, sign: Sign, theme: &Theme) -> (char, Style) {
        let class = |layer: Layer| self.graphed.classes()[usize::from(layer % RANGE)];
        let (letter, style) = theme.part(Part::Of(class(sign.layer)));
        let style = if sign.layer >= RANGE { style.add_modifier(Modifier::DIM) } else { style };
        let style = match sign.behind.and_then(|layer| theme.part(Part::Of(class(layer))).1.fg) {
            Some(color) => style.bg(color),
            None => style,
        };
        let letter = if sign.layer >= RANGE { letter.to_ascii_lowercase() } else { letter };
        (sign.sign.unwrap_or(letter), style)
    }
}

/// Where each layer ends: the classes share what was always used as they did at the end of the time, and above that is what
/// was used for a part of it.
fn ends(values: &Values, scale: Scale, classes: usize) -> Vec<(Layer, f64)> {
    let (low, last) = (scale.share(values.min), values.last.max(1) as f64);
    let mut sum = 0;
    let mut ends = Vec::with_capacity(classes + 1);
    let mut largest = (0, 0);
    for (layer, bytes) in values.parts.into_iter().enumerate().take(classes) {
        sum += bytes;
        ends.push((layer as Layer, low * sum as f64 / last));
        if bytes > largest.0 {
            largest = (bytes, layer);
        }
    }
    // All was freed at the end: what it was made of is not known, so it has the first colour.
    if sum == 0 {
        ends = vec![(0, low)];
    }
    ends.push((RANGE + largest.1 as Layer, scale.share(values.max)));
    ends
}

/// From this height on, the middle is labelled; from the other one, the quarters.
const WITH_MIDDLE: u16 = 5;
const WITH_QUARTERS: u16 = 12;

/// Bytes at the left; at the right percentages of the capacity, and the peak.
fn draw_axes(frame: &mut Frame<'_>, layout: &PanelLayout, scale: Scale, peak: Option<u16>, theme: &Theme) {
    let height = layout.graph.height;
    let quarters: &[u64] = match height {
        0..WITH_MIDDLE => &[4],
        WITH_MIDDLE..WITH_QUARTERS => &[0, 2, 4],
        _ => &[0, 1, 2, 3, 4],
    };
    let at = |y: u16, area: Rect| Rect { y: area.y + y, height: 1, ..area };
    for quarter in quarters.iter().filter(|_| scale.top > 0) {
        let y = height - 1 - (u64::from(height - 1) * quarter / 4) as u16;
        let bytes = (u128::from(scale.top) * u128::from(*quarter) / 4) as u64;
        let text = if bytes == 0 { "0".to_owned() } else { bytes_short(bytes) };
        let line = Line::styled(format!("{text} "), theme.dim()).right_aligned();
        frame.render_widget(line, at(y, layout.left));
        let share = percent(bytes, scale.capacity);
        if scale.capacity.is_some() && peak != Some(y) {
            frame.render_widget(Span::styled(format!(" {share}"), theme.dim()), at(y, layout.right));
        }
    }
    if let Some(y) = peak {
        frame.render_widget(Span::styled(" peak", theme.peak()), at(y, layout.right));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_scale_is_the_capacity_or_a_half_of_it() {
        let top = |capacity: Option<u64>, most: u64| Scale::new(capacity, most).top;
        assert_eq!(top(Some(1000 * MIB), 900 * MIB), 1000 * MIB);
        assert_eq!(top(Some(1000 * MIB), 460 * MIB), 1000 * MIB, "some room above it");
        assert_eq!(top(Some(1000 * MIB), 400 * MIB), 500 * MIB);
        assert_eq!(top(Some(1000 * MIB), 1001 * MIB), 1001 * MIB, "more than there is");
        assert_eq!(top(None, 7), 7);
        assert_eq!(top(Some(1000 * MIB), 0), 1000 * MIB);
        assert_eq!(Scale::new(None, 0).line(5, 10), None);
        assert_eq!(Scale::new(Some(100 << 20), 100 << 20).line(100 << 20, 10), Some(0));
        assert_eq!(Scale::new(Some(100 << 20), 100 << 20).line(1, 10), Some(9));
    }

    #[test]
    fn classes_share_what_was_always_used() {
        let scale = Scale { top: 100, capacity: Some(100) };
        let values = Values { min: 40, max: 90, last: 80, parts: [60, 20, 0] };
        assert_eq!(ends(&values, scale, 2), [(0, 0.3), (1, 0.4), (RANGE, 0.9)]);
        let freed = Values { min: 10, max: 20, last: 0, parts: [0; 3] };
        assert_eq!(ends(&freed, scale, 3), [(0, 0.1), (RANGE, 0.2)]);
    }
}
