//! What views of one device have in common: the line that says which it is.

use ratatui::Frame;
use ratatui::text::Line;

use super::text::{between, split_top};
use crate::escape::fit;
use crate::model::Device;
use crate::screen::page::Scene;

/// Which device this is at the left, a note at the right. The note stays: what is left out is of the device,
/// the longest first.
pub(crate) fn draw_headline(frame: &mut Frame<'_>, scene: &Scene<'_>, device: &Device, note: &str) {
    let width = scene.area.width;
    let note = format!("{note} ");
    let room = usize::from(width).saturating_sub(note.chars().count() + 1);
    let names = names(device);
    let left = names.iter().find(|name| name.chars().count() <= room).or(names.last());
    let left = left.map_or_else(String::new, |name| fit(name, usize::from(width)));
    let (line, _) = split_top(scene.area, 1);
    frame.render_widget(Line::styled(between(&left, &note, width), scene.theme.heading()), line);
}

/// What the device is called, the most exact first.
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

/// In place of a view where there is no device.
pub(crate) fn draw_none(frame: &mut Frame<'_>, scene: &Scene<'_>) {
    let text = " No device: no process reports allocations here. `tt-smi demo` shows how it looks.";
    frame.render_widget(Line::styled(text, scene.theme.dim()), split_top(scene.area, 1).0);
}
