//! Identity and telemetry of a device on one line.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::rows::{Width, about, processes, rate};
use crate::escape::fit;
use crate::model::{Device, Memory};
use crate::output::units::{UNKNOWN, bytes};
use crate::screen::theme::Theme;

/// Temperature, power and AI clock, with their units. Telemetry is not read yet.
pub(super) const DRIVER: [(&str, &str); 3] = [(UNKNOWN, "°C"), (UNKNOWN, "W"), (UNKNOWN, "MHz")];

/// ` 38.5 °C 120.1 W 1000 MHz`.
fn driver() -> String {
    let widths = [4, 5, 4];
    DRIVER.iter().zip(widths).map(|((value, unit), width)| format!(" {value:>width$} {unit}")).collect()
}

/// Architecture and PCI address.
fn place(device: &Device) -> String {
    let (arch, pci) = (device.arch.unwrap_or(UNKNOWN), device.id.pci.as_deref().unwrap_or(UNKNOWN));
    format!("{:<11} {pci:<12}", fit(arch, 11))
}

/// The line above a device's bars, `with_counts` of processes and events if these are not beside the bars.
pub(super) fn head(device: &Device, width: Width, with_counts: bool, style: Style) -> Line<'static> {
    let names = width.names();
    let board = device.board.as_ref().map_or_else(|| UNKNOWN.to_owned(), |board| fit(board, names));
    let head = format!("{:>3} {board:<names$} {}", device.index, place(device));
    let counts = match with_counts {
        true => format!(" {:>8} {:>9}", processes(device), rate(device)),
        false => String::new(),
    };
    Line::from(vec![Span::styled(head, style), Span::raw(driver() + &counts)])
}

/// What a single line per device omits, for the selected device; without the peaks if they do not fit.
pub(super) fn selected(device: &Device, columns: u16, theme: &Theme) -> Line<'static> {
    let peak = |memory: &Memory| format!("{}{}", about(memory).trim(), bytes(memory.peak.range.low));
    let peaks = format!("  peak {}, {}", peak(&device.held.dram), peak(&device.held.l1));
    let text = format!("{:>3} {}{}", device.index, place(device), driver());
    let fits = text.chars().count() + peaks.chars().count() <= usize::from(columns);
    Line::styled(if fits { text + &peaks } else { text }, theme.heading())
}
