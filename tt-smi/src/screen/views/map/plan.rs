//! Layout of the view.

use ratatui::layout::{Constraint, Layout, Rect};

/// Least width with addresses at the side.
const WITH_ADDRESSES: u16 = 50;
/// ` 0x12345678 `.
const SIDE: u16 = 13;

/// The parts.
pub(super) struct Plan {
    /// Summary of both memories, and gaps of one.
    pub facts: Rect,
    pub addresses: Rect,
    pub strip: Rect,
    pub legend: Rect,
    /// What is at the cursor.
    pub readout: Rect,
}

impl Plan {
    pub(super) fn of(area: Rect) -> Plan {
        let lines = |least: u16, lines: u16| Constraint::Length(if area.height >= least { lines } else { 0 });
        let rows = [lines(2, 1), lines(5, 3), Constraint::Min(1), lines(8, 1), lines(7, 2)];
        let [_, facts, middle, legend, readout] = area.layout(&Layout::vertical(rows));
        let side = Constraint::Length(if area.width >= WITH_ADDRESSES { SIDE } else { 0 });
        let [addresses, strip, _] =
            middle.layout(&Layout::horizontal([side, Constraint::Fill(1), Constraint::Length(1)]));
        Plan { facts, addresses, strip, legend, readout }
    }
}
