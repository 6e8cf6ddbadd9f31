//! The address space as cells, line by line, and what is at the cursor.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::bank::Bank;
use super::{MapLayout, tint};
use crate::escape::{columns, fit};
use crate::lists::allocations::{Item, Listing};
use crate::lists::cores::text::describe_ring;
use crate::lists::extents::Extent;
use crate::screen::theme::{Part, Theme};
use crate::units::{age, bytes};

/// Mark of a cell with overlapping allocations.
const OVERLAP: char = '!';
/// What the allocator does not provide: firmware, and the kernel-config ring.
const RESERVED: char = '░';

/// A range of addresses, and how many of them a cell covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strip {
    /// All addresses: first and last.
    pub whole: (u64, u64),
    /// The first address shown.
    pub first: u64,
    /// Bytes per cell.
    pub bytes: u64,
    /// Number of cells shown.
    pub cells: u64,
    /// The cell of the cursor.
    pub cursor: Option<u64>,
}

impl Strip {
    /// The part of the whole that is around the cursor.
    pub(super) fn new(whole: (u64, u64), zoom: u32, cursor: Option<u64>, cells: u64) -> Strip {
        let (start, end) = whole;
        let length = ((end - start) >> zoom).max(1);
        let bytes = round(length.div_ceil(cells.max(1)));
        let latest = end.saturating_sub(length).max(start);
        let middle = cursor.map_or(start, |cursor| cursor.saturating_sub(length / 2));
        let first = middle.clamp(start, latest);
        let cursor = cursor.map(|cursor| (cursor.saturating_sub(first) / bytes).min(cells.saturating_sub(1)));
        Strip { whole, first, bytes, cells, cursor }
    }

    /// The addresses of a cell.
    pub(super) fn covered(&self, cell: u64) -> (u64, u64) {
        let start = self.first.saturating_add(cell.saturating_mul(self.bytes));
        (start, start.saturating_add(self.bytes))
    }

    /// The visible cells of a range of addresses.
    fn cells_of(&self, start: u64, end: u64) -> std::ops::Range<u64> {
        let first = start.saturating_sub(self.first) / self.bytes;
        let last = end.saturating_sub(self.first).div_ceil(self.bytes);
        first.min(self.cells)..last.min(self.cells)
    }
}

/// Rounds up, so that cells begin at addresses that are easy to read.
fn round(bytes: u64) -> u64 {
    bytes.next_multiple_of((bytes.next_power_of_two() / 16).max(1))
}

/// The extent that most of a cell holds, how much it holds of it, and whether there are overlaps.
type Cell = (Option<usize>, u64, bool);

fn cells(bank: &Bank, strip: &Strip) -> Vec<Cell> {
    let mut cells: Vec<Cell> = vec![(None, 0, false); strip.cells as usize];
    for (place, extent) in bank.extents.iter().enumerate() {
        for cell in strip.cells_of(extent.start, extent.end) {
            let (start, end) = strip.covered(cell);
            let bytes = extent.end.min(end).saturating_sub(extent.start.max(start));
            let best = &mut cells[cell as usize];
            if bytes > best.1 {
                (best.0, best.1) = (Some(place), bytes);
            }
        }
    }
    for (start, end) in &bank.overlaps {
        strip.cells_of(*start, *end).for_each(|cell| cells[cell as usize].2 = true);
    }
    cells
}

/// Draws cells, addresses and the legend.
pub(super) fn draw_strip(
    frame: &mut Frame<'_>,
    layout: &MapLayout,
    bank: &Bank,
    strip: &Strip,
    listing: &Listing,
    theme: &Theme,
) {
    frame.render_widget(legend(bank, usize::from(layout.legend.width), theme), layout.legend);
    let (area, whole_end) = (layout.strip, strip.whole.1);
    if bank.extents.is_empty() {
        let text =
            if bank.count == 0 { "nothing to draw" } else { "nothing to draw: no process reports addresses" };
        return frame.render_widget(Line::styled(text, theme.dim()), area);
    }
    let width = u64::from(area.width).max(1);
    let reserved = bank.reserved.unwrap_or(0);
    for (number, (place, _, overlaps)) in (0..).zip(cells(bank, strip)) {
        let (x, y) = (area.x + (number % width) as u16, area.y + (number / width) as u16);
        let item = place.and_then(|place| Some((place, listing.items.get(bank.extents[place].item)?)));
        let (sign, style) = match item {
            _ if overlaps => (OVERLAP, theme.alarm()),
            Some((place, item)) => bank.groups.look(place, item, theme),
            None if strip.covered(number).1 <= reserved => (RESERVED, theme.dim()),
            // Not shown as free: what is there is unknown.
            None if strip.covered(number).1 <= bank.survey.lowest => (' ', Style::new()),
            None => theme.part(Part::Free),
        };
        let style = if strip.cursor == Some(number) { style.patch(theme.selected()) } else { style };
        if strip.covered(number).0 < whole_end
            && let Some(cell) = frame.buffer_mut().cell_mut((x, y))
        {
            cell.set_char(sign).set_style(style);
        }
    }
    let row = |y: u16| Rect { y: area.y + y, height: 1, ..layout.addresses };
    for y in 0..layout.addresses.height {
        let (start, _) = strip.covered(u64::from(y) * width);
        if start < whole_end {
            frame.render_widget(Line::styled(format!("{start:>#11x} "), theme.dim()), row(y));
        }
    }
}

fn legend(bank: &Bank, width: usize, theme: &Theme) -> Line<'static> {
    let mut samples: Vec<((char, Style), String)> = Vec::new();
    if bank.groups.labels.is_empty() {
        for info in Part::legend().filter(|info| info.class.memory() != tt_shm_reader::Memory::Kernels) {
            samples.push((theme.part(Part::Of(info.class)), info.legend.to_owned()));
        }
    }
    let labels = bank.groups.labels.iter().enumerate();
    samples.extend(labels.map(|(rank, label)| (tint::sample(rank, theme), label.clone())));
    if bank.groups.has_others() && !bank.groups.labels.is_empty() {
        samples.push((tint::sample(usize::MAX, theme), "others".to_owned()));
    }
    let free = if bank.knows_gaps() { "free" } else { "unknown" };
    samples.push((theme.part(Part::Free), free.to_owned()));
    if bank.reserved.is_some() {
        samples.push(((RESERVED, theme.dim()), "firmware, kernels".to_owned()));
    } else if bank.survey.lowest > 0 && bank.knows_gaps() && !bank.extents.is_empty() {
        samples.push(((' ', Style::new()), "blank: unknown".to_owned()));
    }
    if !bank.overlaps.is_empty() {
        // First: it must not be what has no room.
        samples.insert(0, ((OVERLAP, theme.alarm()), "overlap".to_owned()));
    }
    let (mut spans, mut used) = (vec![Span::raw(" ")], 1);
    for ((sign, style), name) in samples {
        let text = format!(" {name}  ");
        used += 1 + columns(text.trim_end());
        if used > width {
            spans.push(Span::styled("…", theme.dim()));
            break;
        }
        used += 2;
        spans.extend([Span::styled(sign.to_string(), style), Span::styled(text, theme.dim())]);
    }
    Line::from(spans)
}

/// Draws the position of the cursor, and the largest allocation there.
pub(super) fn draw_readout(
    frame: &mut Frame<'_>,
    area: Rect,
    bank: &Bank,
    strip: &Strip,
    listing: &Listing,
    theme: &Theme,
) {
    let width = usize::from(area.width);
    let lines = match strip.cursor {
        None => {
            let keys = " arrows: cursor, Enter: its process, Tab: other memory, b: colours, z Z: zoom";
            vec![Line::styled(fit(keys, width), theme.dim())]
        }
        Some(cell) => {
            let (start, end) = strip.covered(cell);
            let [first, second] = readout_texts(bank, (start, end), listing);
            vec![Line::styled(fit(&first, width), theme.heading()), Line::raw(fit(&second, width))]
        }
    };
    frame.render_widget(Paragraph::new(lines), area);
}

/// What a range of addresses holds most of, and how many allocations are in it.
pub(super) fn largest_in(bank: &Bank, (start, end): (u64, u64)) -> (Option<&Extent>, usize) {
    let within = |extent: &&Extent| extent.start < end && extent.end > start;
    let here = bank.extents.iter().filter(within);
    let share = |extent: &&Extent| extent.end.min(end) - extent.start.max(start);
    (here.clone().max_by_key(share), here.count())
}

fn readout_texts(bank: &Bank, (start, end): (u64, u64), listing: &Listing) -> [String; 2] {
    let place = format!(" {start:#x} to {end:#x} ({})", bytes(end - start));
    let (largest, count) = largest_in(bank, (start, end));
    let Some(extent) = largest else { return [place, empty_text(bank, start)] };
    let Some(item) = listing.items.get(extent.item) else { return [place, String::new()] };
    let more = if count > 1 { format!(", largest of {count} here") } else { String::new() };
    [format!("{place}{more}"), item_text(item, extent)]
}

fn empty_text(bank: &Bank, start: u64) -> String {
    if bank.reserved.is_some_and(|end| start < end) {
        let rings: Vec<String> = bank.rings.iter().map(describe_ring).collect();
        let rings = if rings.is_empty() { String::new() } else { format!(": {}", rings.join(", ")) };
        return format!(" firmware and kernel-config ring{rings}");
    }
    match bank.knows_gaps() {
        true if start >= bank.survey.lowest => " free".to_owned(),
        true => " below all allocations: firmware and kernels have no known addresses".to_owned(),
        false => " unknown: some allocations have no address".to_owned(),
    }
}

/// The name comes last: it may be long.
fn item_text(item: &Item, extent: &Extent) -> String {
    format!(
        " {}, {} at {:#x}, {} in total, pid {}, {} old: {}",
        item.class.name(),
        bytes(extent.end - extent.start),
        extent.start,
        bytes(item.size),
        item.pid,
        age(item.age_ns),
        item.label(),
    )
}
