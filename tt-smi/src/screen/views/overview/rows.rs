//! A device in three lines if there is room, else two, else one.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use tt_shm_reader::Class;

use crate::escape::fit;
use crate::model::{Device, KERNEL_CLASSES, Memory, Model};
use crate::output::units::{UNKNOWN, bytes, bytes_short, count, percent, share};
use crate::screen::theme::{Part, Theme};
use crate::screen::widgets::bar;

/// From this width on there is room for PCI addresses and kernels by type.
const WIDE: usize = 100;

/// Lines that a device gets where there are so many lines for all.
pub(crate) fn lines_per_device(devices: usize, width: usize, room: usize) -> usize {
    match devices {
        _ if devices * 3 <= room && width >= WIDE => 3,
        _ if devices * 2 <= room => 2,
        _ => 1,
    }
}

/// A device in so many lines.
pub(crate) fn lines(
    device: &Device,
    each: usize,
    width: usize,
    selected: bool,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let flagged = if device.flags().is_empty() { Style::new() } else { theme.warn() };
    let style = if selected { theme.selected() } else { flagged };
    let mut lines = match each {
        1 => vec![one_line(device, width, style, theme)],
        _ => two_lines(device, width, style, theme).into(),
    };
    if each == 3 {
        lines.push(kernel_line(device, theme));
    }
    lines
}

pub(super) fn dram_parts(device: &Device) -> Vec<(Part, u64)> {
    vec![(Part::Dram, device.class(Class::Dram).bytes), (Part::Trace, device.class(Class::Trace).bytes)]
}

pub(super) fn l1_parts(device: &Device) -> Vec<(Part, u64)> {
    vec![
        (Part::L1, device.class(Class::L1).bytes),
        (Part::L1Small, device.class(Class::L1Small).bytes),
        (Part::Cb, device.cb_resident),
        (Part::Kernels, device.kernel_resident),
    ]
}

fn two_lines(device: &Device, width: usize, style: Style, theme: &Theme) -> [Line<'static>; 2] {
    let rate = device.events_per_second.map_or_else(|| UNKNOWN.to_owned(), count);
    let processes =
        if device.processes == 1 { "1 proc".to_owned() } else { format!("{} procs", device.processes) };
    let names = if width >= WIDE { 12 } else { 6 };
    let pci = device.id.pci.as_deref().filter(|_| width >= WIDE).unwrap_or("");
    let first = format!("{:>3} {:<names$} DRAM ", device.index, fit(&device.kind(), names));
    let second = format!("{:>3} {pci:<names$} L1   ", "");
    let (first, second) = (Span::styled(first, style), Span::styled(second, style));
    let rate = format!("{rate} ev/s");
    [
        memory_line(first, &device.dram, &dram_parts(device), &processes, width, theme),
        memory_line(second, &device.l1, &l1_parts(device), &rate, width, theme),
    ]
}

/// Kernels by type, and circular buffers: what is loaded and allocated, beside what is resident.
fn kernel_line(device: &Device, theme: &Theme) -> Line<'static> {
    let (loaded, _) = device.kernel_loaded();
    let types = KERNEL_CLASSES.map(|class| {
        let figure = device.class(class);
        let name = class.kernel_type().map_or("", |kernel| kernel.label()).to_ascii_lowercase();
        format!("{name} {} ({})", bytes_short(figure.bytes), figure.count)
    });
    let (resident, allocated) = (bytes_short(device.cb_resident), bytes_short(device.class(Class::Cb).bytes));
    let text = format!("{:4}kernels {}: {}", "", bytes_short(loaded), types.join(", "));
    Line::styled(format!("{text}  cb {resident} of {allocated}"), theme.dim())
}

fn memory_line(
    head: Span<'static>,
    memory: &Memory,
    parts: &[(Part, u64)],
    tail: &str,
    width: usize,
    theme: &Theme,
) -> Line<'static> {
    let (share, percent) = (share(memory.used, memory.total), percent(memory.used, memory.total));
    let about = if memory.peak.is_exact() { ' ' } else { '~' };
    let figures = format!(" {share:>15} {percent:>4} peak{about}{:>9} {tail:>9}", bytes(memory.peak.low));
    // Two for the brackets, one at the end.
    let room = width.saturating_sub(head.content.chars().count() + figures.chars().count() + 3);
    let mut spans = vec![head];
    spans.extend(bracketed(memory, parts, room, theme));
    spans.push(Span::raw(figures));
    Line::from(spans)
}

pub(super) fn bracketed(
    memory: &Memory,
    parts: &[(Part, u64)],
    width: usize,
    theme: &Theme,
) -> Vec<Span<'static>> {
    if width == 0 {
        return Vec::new();
    }
    let mut spans = vec![Span::styled("▕", theme.dim())];
    match memory.total {
        Some(total) => {
            let cells = bar::cells(parts, total, width);
            spans.extend(bar::spans(&cells, memory.peak.low, total, theme));
        }
        None => spans.push(Span::styled(format!("{:^width$}", fit("capacity unknown", width)), theme.dim())),
    }
    spans.push(Span::styled("▏", theme.dim()));
    spans
}

fn one_line(device: &Device, width: usize, style: Style, theme: &Theme) -> Line<'static> {
    let head = format!("{:>3} {:<10}", device.index, fit(&device.kind(), 10));
    let rate = device.events_per_second.map_or_else(|| UNKNOWN.to_owned(), count);
    let figures =
        |memory: &Memory| format!(" {:>9} {:>4} ", bytes(memory.used), percent(memory.used, memory.total));
    let tail = format!("{:>3}p {rate:>5}/s", device.processes);
    let (dram, l1) = (figures(&device.dram), figures(&device.l1));
    let fixed = head.len() + dram.len() + l1.len() + tail.len() + "DRAM L1 ".len() + 5;
    let room = width.saturating_sub(fixed) / 2;
    let mut spans = vec![Span::styled(head, style), Span::styled("DRAM ", theme.dim())];
    spans.extend(bracketed(&device.dram, &dram_parts(device), room, theme));
    spans.extend([Span::raw(dram), Span::styled("L1 ", theme.dim())]);
    spans.extend(bracketed(&device.l1, &l1_parts(device), room, theme));
    spans.extend([Span::raw(l1), Span::raw(tail)]);
    Line::from(spans)
}

/// What the parts of the bars mean.
pub(crate) fn legend(model: &Model, theme: &Theme) -> Line<'static> {
    let mut spans = vec![Span::raw("    ")];
    for part in Part::ALL {
        let (sign, style) = theme.part(part);
        spans.push(Span::styled(sign.to_string(), style));
        spans.push(Span::styled(format!(" {}  ", part.name()), theme.dim()));
    }
    spans.push(Span::styled("│", theme.peak()));
    spans.push(Span::styled(" peak", theme.dim()));
    let exact = |device: &Device| device.dram.peak.is_exact() && device.l1.peak.is_exact();
    if !model.devices.iter().all(exact) {
        spans.push(Span::styled("  ~ at least", theme.dim()));
    }
    Line::from(spans)
}
