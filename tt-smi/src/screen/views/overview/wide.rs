//! One row per device with everything, on a wide screen.

use ratatui::text::{Line, Span};

use super::facts::DRIVER;
use super::rows::{about, bracketed, dram_parts, l1_parts};
use crate::escape::fit;
use crate::model::{Device, Memory};
use crate::output::units::{UNKNOWN, bytes, count, percent, used_share};
use crate::screen::theme::Theme;

/// Least width; on a narrower screen a device gets several lines.
pub(super) const LEAST_WIDTH: u16 = 160;
/// Width of everything but the bars.
const BARS: usize = 2;

/// The text of a row before, between and after its bars.
struct Texts {
    head: String,
    dram: String,
    l1: String,
    tail: String,
}

impl Texts {
    fn width(&self) -> usize {
        [&self.head, &self.dram, &self.l1, &self.tail].map(|text| text.chars().count()).iter().sum()
    }

    /// Width of each bar, without its brackets.
    fn bar(&self, width: usize) -> usize {
        (width.saturating_sub(self.width()) / BARS).saturating_sub(2)
    }
}

fn texts(device: &Device) -> Texts {
    let (arch, pci) = (device.arch.unwrap_or(UNKNOWN), device.id.pci.as_deref().unwrap_or(UNKNOWN));
    let board = device.board.as_ref().map_or_else(|| UNKNOWN.to_owned(), |board| fit(board, 8));
    let rate = device.events_per_second.map_or_else(|| UNKNOWN.to_owned(), count);
    let [temperature, power, clock] = DRIVER.map(|(value, _)| value);
    Texts {
        head: format!("{:>3} {board:<8} {:<11} {pci:<12} ", device.index, fit(arch, 11)),
        dram: figures(&device.held.dram),
        l1: figures(&device.held.l1),
        tail: format!(" {temperature:>4} {power:>5} {clock:>5} {:>5} {rate:>6}", device.processes),
    }
}

fn figures(memory: &Memory) -> String {
    let (share, percent) = (used_share(memory), percent(memory.used, memory.total));
    format!(" {share:>17} {percent:>4} {}{:>9} ", about(memory), bytes(memory.peak.range.low))
}

/// The headings.
pub(super) fn heading(width: usize, theme: &Theme) -> Line<'static> {
    let memory = |name: &str| format!(" {name:>17} {:>4} {:>10} ", "", "PEAK");
    let head = format!("{:>3} {:<8} {:<11} {:<12} ", "DEV", "BOARD", "ARCH", "PCI");
    let tail = format!(" {:>4} {:>5} {:>5} {:>5} {:>6}", "°C", "W", "MHz", "PROCS", "EV/S");
    let texts = Texts { head, dram: memory("DRAM"), l1: memory("L1"), tail };
    let gap = " ".repeat(texts.bar(width) + 2);
    Line::styled(format!("{}{gap}{}{gap}{}{}", texts.head, texts.dram, texts.l1, texts.tail), theme.heading())
}

/// A device.
pub(super) fn line(device: &Device, width: usize, selected: bool, theme: &Theme) -> Line<'static> {
    let texts = texts(device);
    let bar = texts.bar(width);
    let flagged = if device.flags().is_empty() { ratatui::style::Style::new() } else { theme.warn() };
    let style = if selected { theme.selected() } else { flagged };
    let mut spans = vec![Span::styled(texts.head, style)];
    spans.extend(bracketed(&device.held.dram, &dram_parts(device), bar, theme));
    spans.push(Span::raw(texts.dram));
    spans.extend(bracketed(&device.held.l1, &l1_parts(device), bar, theme));
    spans.extend([Span::raw(texts.l1), Span::raw(texts.tail)]);
    Line::from(spans)
}
