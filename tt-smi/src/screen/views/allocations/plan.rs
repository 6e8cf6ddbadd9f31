//! Layout of the view.

use ratatui::layout::{Constraint, Layout, Rect};

/// The pane with the focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pane {
    /// Allocations or groups.
    #[default]
    List,
    /// The size histogram.
    Sizes,
    /// Leak suspects.
    Suspects,
}

impl Pane {
    /// The next pane, cyclically.
    pub(super) fn next(self) -> Pane {
        match self {
            Pane::List => Pane::Sizes,
            Pane::Sizes => Pane::Suspects,
            Pane::Suspects => Pane::List,
        }
    }
}

/// From this width on, panes are side by side.
const WIDE: u16 = 150;
/// Width of the panes beside the list.
const SIDE: u16 = 64;
/// From this height on, panes are stacked.
const TALL: u16 = 40;

/// The panes; one with an empty area is not shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub head: Rect,
    pub doubts: Rect,
    pub list: Rect,
    pub sizes: Rect,
    pub suspects: Rect,
}

impl Plan {
    /// Layout of an area with this many notes. Histogram and suspects get no more than they need.
    pub(super) fn of(area: Rect, pane: Pane, doubts: usize, bins: usize, suspects: usize) -> Plan {
        let doubts = doubts.min(3).min(usize::from(area.height / 5)) as u16;
        let head = u16::from(area.height > 2);
        let rows = [Constraint::Length(head), Constraint::Length(doubts), Constraint::Min(0)];
        let [head, doubts, rest] = area.layout(&Layout::vertical(rows));
        let plan = Plan { head, doubts, list: rest, sizes: Rect::ZERO, suspects: Rect::ZERO };
        // A title and a heading each.
        let lines =
            |rows: usize, most: u16| Constraint::Length((rows as u16).saturating_add(2).clamp(3, most));
        if area.width >= WIDE && rest.height >= 12 {
            let [list, side] =
                rest.layout(&Layout::horizontal([Constraint::Min(0), Constraint::Length(SIDE)]).spacing(1));
            let [sizes, suspects] =
                side.layout(&Layout::vertical([lines(bins, rest.height * 3 / 5), Constraint::Min(0)]));
            return Plan { list, sizes, suspects, ..plan };
        }
        if rest.height >= TALL {
            let parts = [Constraint::Min(0), lines(bins, rest.height / 3), lines(suspects, rest.height / 5)];
            let [list, sizes, suspects] = rest.layout(&Layout::vertical(parts));
            return Plan { list, sizes, suspects, ..plan };
        }
        match pane {
            Pane::List => plan,
            Pane::Sizes => Plan { list: Rect::ZERO, sizes: rest, ..plan },
            Pane::Suspects => Plan { list: Rect::ZERO, suspects: rest, ..plan },
        }
    }
}
