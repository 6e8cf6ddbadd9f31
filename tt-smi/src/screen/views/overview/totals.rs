//! The whole host on one line.

use ratatui::text::{Line, Span};

use crate::model::{Device, Memory, Model};
use crate::output::units::{UNKNOWN, percent, share};
use crate::screen::theme::Theme;

/// DRAM and L1 of all devices. If the capacity of one is unknown, so is the total.
pub(super) fn line(model: &Model, theme: &Theme) -> Line<'static> {
    let text = |name: &str, of: fn(&Device) -> &Memory| {
        if model.devices.is_empty() {
            return format!("{name} {UNKNOWN}");
        }
        let used = model.devices.iter().map(|device| of(device).used).fold(0, u64::saturating_add);
        let totals = model.devices.iter().map(|device| of(device).total);
        let total = totals.sum::<Option<u64>>();
        let incomplete = model.devices.iter().any(|device| device.incomplete);
        let mark = Memory { used, incomplete, ..Memory::default() }.used_range().mark().trim();
        format!("{name} {mark}{} {}", share(used, total), percent(used, total))
    };
    let memory = format!(" all devices  {}   {}", text("DRAM", |d| &d.held.dram), text("L1", |d| &d.held.l1));
    // Telemetry is not read yet.
    let driver = format!("   {UNKNOWN} °C   {UNKNOWN} W");
    Line::from(vec![Span::styled(memory, theme.heading()), Span::styled(driver, theme.dim())])
}
