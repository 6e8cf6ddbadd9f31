//! Devices as lines: on a wide screen one row with everything, else up to four lines (identity, DRAM, L1, kernels). With
//! less room, both memories share a line; on a single line only what is used remains.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use tt_shm_reader::{Class, Told};

use crate::driver::Measure;
use crate::escape::fit;
use crate::model::{CLASSES, Device, Memory, Model};
use crate::screen::theme::{Part, Theme, parts};
use crate::screen::widgets::bar;
use crate::screen::widgets::text::or_unknown;
use crate::units::{UNKNOWN, bytes, bytes_short, count, percent, plural};

/// How much fits side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Width {
    /// A bar, or figures.
    Narrow,
    /// Two bars with their figures.
    Usual,
    /// Kernels by type.
    Wide,
}

impl Width {
    pub(super) fn of(columns: u16) -> Width {
        match columns {
            100.. => Width::Wide,
            80.. => Width::Usual,
            _ => Width::Narrow,
        }
    }

    /// Width of the board's name.
    fn names(self) -> usize {
        if self == Width::Wide { 12 } else { 6 }
    }
}

/// Lines per device, if there are this many lines for all.
pub(super) fn lines_per_device(devices: usize, width: Width, room: usize) -> usize {
    match devices {
        0 => 1,
        _ if devices * 4 <= room && width == Width::Wide => 4,
        _ if devices * 3 <= room => 3,
        _ if devices * 2 <= room && width >= Width::Usual => 2,
        _ => 1,
    }
}

/// Draws a device on this many lines.
pub(super) fn lines(
    device: &Device,
    each: usize,
    columns: u16,
    selected: bool,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let style = head_style(device, selected, theme);
    let (width, columns) = (Width::of(columns), usize::from(columns));
    match each {
        1 => vec![one_line(device, width, columns, style, theme)],
        2 => vec![identity_line(device, width, true, style), both_memories(device, columns, theme)],
        _ => {
            let head = identity_line(device, width, false, style);
            let [dram, l1] = memory_lines(device, width, columns, theme);
            let kernels = (each > 3).then(|| kernel_line(device, theme));
            [head, dram, l1].into_iter().chain(kernels).collect()
        }
    }
}

/// The style of a device's identity.
fn head_style(device: &Device, selected: bool, theme: &Theme) -> Style {
    match selected {
        true => theme.selected(),
        false if device.flags().is_empty() => Style::new(),
        false => theme.warn(),
    }
}

/// `2 procs`.
pub(super) fn processes(device: &Device) -> String {
    plural(device.processes, "proc")
}

/// Events of the last second.
fn rate(device: &Device) -> String {
    format!("{} ev/s", or_unknown(device.events_per_second, count))
}

fn dram_parts(device: &Device) -> Vec<(Part, u64)> {
    parts(&device.held, tt_shm_reader::Memory::Dram)
}

fn l1_parts(device: &Device) -> Vec<(Part, u64)> {
    parts(&device.held, tt_shm_reader::Memory::L1)
}

/// A memory: name, bar, used, peak.
fn memory(
    name: &str,
    memory: &Memory,
    parts: &[(Part, u64)],
    figures: String,
    columns: usize,
    theme: &Theme,
) -> Vec<Span<'static>> {
    // Two for the brackets.
    let room = columns.saturating_sub(name.chars().count() + figures.chars().count() + 2);
    let mut spans = vec![Span::raw(name.to_owned())];
    spans.extend(bracketed(memory, parts, room, theme));
    spans.push(Span::raw(figures));
    spans
}

/// Each memory on a line of its own.
fn memory_lines(device: &Device, width: Width, columns: usize, theme: &Theme) -> [Line<'static>; 2] {
    let figures = |memory: &Memory, tail: String| {
        let percent = match width {
            // The bar shows it.
            Width::Narrow => String::new(),
            _ => format!(" {:>4}", percent(memory.used, memory.total)),
        };
        let (share, peak) = (memory.used_share(), bytes(memory.peak.range.low));
        format!(" {share:>15}{percent} peak{}{peak:>9} {tail:>9} ", about(memory))
    };
    let (dram, l1) = (figures(&device.held.dram, processes(device)), figures(&device.held.l1, rate(device)));
    [
        Line::from(memory("    DRAM ", &device.held.dram, &dram_parts(device), dram, columns, theme)),
        Line::from(memory("    L1   ", &device.held.l1, &l1_parts(device), l1, columns, theme)),
    ]
}

/// Both memories on one line. The peak has the same mark as in the bar.
fn both_memories(device: &Device, columns: usize, theme: &Theme) -> Line<'static> {
    let figures = |memory: &Memory| {
        let (share, peak) = (memory.used_share(), bytes(memory.peak.range.low));
        format!(" {share:>15} │{}{peak:>9}", about(memory))
    };
    let (dram, l1) = (figures(&device.held.dram), figures(&device.held.l1));
    let (left, right) = (columns.div_ceil(2) + 1, columns / 2 - 1);
    let mut spans = memory("  DRAM ", &device.held.dram, &dram_parts(device), dram, left, theme);
    spans.extend(memory(" L1 ", &device.held.l1, &l1_parts(device), l1, right, theme));
    Line::from(spans)
}

/// The mark of a peak that is not exact.
fn about(memory: &Memory) -> &'static str {
    memory.peak.range.mark()
}

/// Kernels by type and circular buffers: loaded and allocated, and resident.
fn kernel_line(device: &Device, theme: &Theme) -> Line<'static> {
    let held = &device.held;
    let types = CLASSES.iter().filter(|info| info.class.memory() == tt_shm_reader::Memory::Kernels);
    let types = types.map(|info| {
        let memory = held.class(info.class);
        let name = info.label.to_ascii_lowercase();
        format!("{name} {} ({})", bytes_short(memory.used), memory.count.unwrap_or(0))
    });
    let types = types.collect::<Vec<_>>().join(", ");
    let (resident, allocated) = (bytes_short(held.cb_resident.used), bytes_short(held.class(Class::Cb).used));
    let text = format!("{:4}kernels {}: {types}", "", bytes_short(held.kernel_loaded.used));
    Line::styled(format!("{text}  cb {resident} of {allocated}"), theme.dim())
}

fn bracketed(memory: &Memory, parts: &[(Part, u64)], width: usize, theme: &Theme) -> Vec<Span<'static>> {
    match width {
        0 => Vec::new(),
        _ => bar::bracketed(parts, memory.peak.range.low, memory.total, width, theme),
    }
}

/// Only what is used. A narrow screen has no room for bars.
fn one_line(device: &Device, width: Width, columns: usize, style: Style, theme: &Theme) -> Line<'static> {
    let names = if width == Width::Narrow { 6 } else { 10 };
    let head = format!("{:>3} {:<names$} ", device.index, fit(&device.kind(), names));
    let rate = or_unknown(device.events_per_second, count);
    let figures = |memory: &Memory| {
        let (mark, used) = (memory.used_range().mark(), bytes(memory.used));
        format!("{mark}{used:>9} {:>4} ", percent(memory.used, memory.total))
    };
    let tail = format!("{:>2}p {rate:>5}/s", device.processes);
    let (dram, l1) = (figures(&device.held.dram), figures(&device.held.l1));
    let fixed = head.len() + dram.len() + l1.len() + tail.len() + "DRAML1 ".len();
    let bar = if width == Width::Narrow { 0 } else { (columns.saturating_sub(fixed + 5)) / 2 };
    let mut spans = vec![Span::styled(head, style), Span::styled("DRAM", theme.dim())];
    let gap = || Span::raw(if bar > 0 { " " } else { "" });
    spans.push(gap());
    spans.extend(bracketed(&device.held.dram, &dram_parts(device), bar, theme));
    spans.extend([Span::raw(dram), Span::styled("L1", theme.dim()), gap()]);
    spans.extend(bracketed(&device.held.l1, &l1_parts(device), bar, theme));
    spans.extend([Span::raw(l1), Span::raw(tail)]);
    Line::from(spans)
}

/// The legend of the bars.
pub(super) fn legend(model: &Model, theme: &Theme) -> Line<'static> {
    let mut spans = vec![Span::raw("    ")];
    for info in Part::legend() {
        let (sign, style) = theme.part(Part::Of(info.class));
        spans.push(Span::styled(sign.to_string(), style));
        spans.push(Span::styled(format!(" {}  ", info.legend), theme.dim()));
    }
    spans.push(Span::styled("│", theme.peak()));
    spans.push(Span::styled(" peak", theme.dim()));
    let exact = |device: &Device| {
        !device.incomplete && device.held.dram.peak.is_exact() && device.held.l1.peak.is_exact()
    };
    if !model.devices.iter().all(exact) {
        spans.push(Span::styled("  ≥ lower bound", theme.dim()));
    }
    Line::from(spans)
}

/// What the driver measures that is shown with each device, and the width of the value.
const MEASURED: [(Told, usize); 3] = [(Told::Temperature, 4), (Told::Power, 5), (Told::Aiclk, 4)];

/// ` 38.5 °C 120.1 W 1000 MHz`.
fn driver(device: &Device) -> String {
    let of = |(told, width): (Told, usize)| {
        let text = or_unknown(device.measured(told), |text| text);
        Some(format!(" {text:>width$} {}", Measure::of(told)?.unit))
    };
    MEASURED.into_iter().filter_map(of).collect()
}

/// Architecture and PCI address.
fn place(device: &Device) -> String {
    let (arch, pci) = (device.arch.unwrap_or(UNKNOWN), device.id.pci.as_deref().unwrap_or(UNKNOWN));
    format!("{:<11} {pci:<12}", fit(arch, 11))
}

/// The line above a device's bars, `with_counts` of processes and events if these are not beside the bars.
fn identity_line(device: &Device, width: Width, with_counts: bool, style: Style) -> Line<'static> {
    let names = width.names();
    let board = or_unknown(device.board.as_ref(), |board| fit(board, names));
    let head = format!("{:>3} {board:<names$} {}", device.index, place(device));
    let counts = match with_counts {
        true => format!(" {:>8} {:>9}", processes(device), rate(device)),
        false => String::new(),
    };
    Line::from(vec![Span::styled(head, style), Span::raw(driver(device) + &counts)])
}

/// What a single line per device omits, for the selected device; without the peaks if they do not fit.
pub(super) fn selected_line(device: &Device, columns: u16, theme: &Theme) -> Line<'static> {
    let peak = |memory: &Memory| format!("{}{}", about(memory).trim(), bytes(memory.peak.range.low));
    let peaks = format!("  peak {}, {}", peak(&device.held.dram), peak(&device.held.l1));
    let text = format!("{:>3} {}{}", device.index, place(device), driver(device));
    let fits = text.chars().count() + peaks.chars().count() <= usize::from(columns);
    Line::styled(if fits { text + &peaks } else { text }, theme.heading())
}

/// Least width; on a narrower screen a device gets several lines.
pub(super) const WIDE: u16 = 160;
/// Bars in a row.
const BARS: usize = 2;

/// The text of a row before, between and after its bars.
struct RowTexts {
    head: String,
    dram: String,
    l1: String,
    tail: String,
}

impl RowTexts {
    fn width(&self) -> usize {
        [&self.head, &self.dram, &self.l1, &self.tail].map(|text| text.chars().count()).iter().sum()
    }

    /// Width of each bar, without its brackets.
    fn bar(&self, width: usize) -> usize {
        (width.saturating_sub(self.width()) / BARS).saturating_sub(2)
    }
}

fn row_texts(device: &Device) -> RowTexts {
    let (arch, pci) = (device.arch.unwrap_or(UNKNOWN), device.id.pci.as_deref().unwrap_or(UNKNOWN));
    let board = or_unknown(device.board.as_ref(), |board| fit(board, 8));
    let rate = or_unknown(device.events_per_second, count);
    let measured = MEASURED.map(|(told, _)| or_unknown(device.measured(told), |text| text));
    let [temperature, power, clock] = measured;
    RowTexts {
        head: format!("{:>3} {board:<8} {:<11} {pci:<12} ", device.index, fit(arch, 11)),
        dram: figures(&device.held.dram),
        l1: figures(&device.held.l1),
        tail: format!(" {temperature:>4} {power:>5} {clock:>5} {:>5} {rate:>6}", device.processes),
    }
}

fn figures(memory: &Memory) -> String {
    let (share, percent) = (memory.used_share(), percent(memory.used, memory.total));
    format!(" {share:>17} {percent:>4} {}{:>9} ", about(memory), bytes(memory.peak.range.low))
}

pub(super) fn wide_heading(width: usize, theme: &Theme) -> Line<'static> {
    let memory = |name: &str| format!(" {name:>17} {:>4} {:>10} ", "", "PEAK");
    let head = format!("{:>3} {:<8} {:<11} {:<12} ", "DEV", "BOARD", "ARCH", "PCI");
    let tail = format!(" {:>4} {:>5} {:>5} {:>5} {:>6}", "°C", "W", "MHz", "PROCS", "EV/S");
    let texts = RowTexts { head, dram: memory("DRAM"), l1: memory("L1"), tail };
    let gap = " ".repeat(texts.bar(width) + 2);
    Line::styled(format!("{}{gap}{}{gap}{}{}", texts.head, texts.dram, texts.l1, texts.tail), theme.heading())
}

/// A device.
pub(super) fn wide_line(device: &Device, width: usize, selected: bool, theme: &Theme) -> Line<'static> {
    let texts = row_texts(device);
    let bar = texts.bar(width);
    let style = head_style(device, selected, theme);
    let mut spans = vec![Span::styled(texts.head, style)];
    spans.extend(bracketed(&device.held.dram, &dram_parts(device), bar, theme));
    spans.push(Span::raw(texts.dram));
    spans.extend(bracketed(&device.held.l1, &l1_parts(device), bar, theme));
    spans.extend([Span::raw(texts.l1), Span::raw(texts.tail)]);
    Line::from(spans)
}
