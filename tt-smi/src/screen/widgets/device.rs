//! The headline of single-device views.

use ratatui::Frame;
use ratatui::text::{Line, Span};

use super::text::{between, split_top};
use crate::escape::fit;
use crate::model::Device;
use crate::screen::page::Scene;

/// The device at the left, a note at the right. The note is kept; the description of the device is shortened.
pub(crate) fn draw_headline(frame: &mut Frame<'_>, scene: &Scene<'_>, device: &Device, note: &str) {
    let width = scene.area.width;
    let note = format!("{note} ");
    let room = usize::from(width).saturating_sub(note.chars().count() + 1);
    let names = names(device);
    let left = names.iter().find(|name| name.chars().count() <= room).or(names.last());
    let left = left.map_or_else(String::new, |name| fit(name, usize::from(width)));
    let (line, _) = split_top(scene.area, 1);
    let flags = device.flags().join(", ");
    let flags = if flags.is_empty() { flags } else { format!("  ! {flags}") };
    let gap = usize::from(width).saturating_sub(left.chars().count() + note.chars().count());
    let flags = fit(&flags, gap.saturating_sub(1));
    let style = scene.theme.heading();
    let rest = between(&" ".repeat(left.chars().count() + flags.chars().count()), &note, width);
    frame.render_widget(Line::styled(rest, style), line);
    frame.render_widget(
        Line::from(vec![Span::styled(left, style), Span::styled(flags, scene.theme.warn())]),
        line,
    );
}

/// Descriptions of the device, most detailed first.
fn names(device: &Device) -> [String; 4] {
    let short = format!(" device {}", device.index);
    let with_kind = format!("{short}  {}", device.kind());
    // Without a board, its kind is its architecture.
    let arch =
        device.arch.filter(|_| device.board.is_some()).map_or_else(String::new, |arch| format!(" {arch}"));
    let with_pci =
        format!("{with_kind}{arch}  {}", device.id.pci.as_deref().unwrap_or("PCI address unknown"));
    let full = format!("{with_pci}  chip {:#018x}", device.id.chip_id);
    [full, with_pci, with_kind, short]
}

/// Shown in place of a view when there is no device.
pub(crate) fn draw_none(frame: &mut Frame<'_>, scene: &Scene<'_>) {
    let text = " No devices: no process reports here. Try `tt-smi demo`.";
    frame.render_widget(Line::styled(text, scene.theme.dim()), split_top(scene.area, 1).0);
}
