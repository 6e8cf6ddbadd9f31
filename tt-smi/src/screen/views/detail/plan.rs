//! Layout of the view. With little room, the focused pane takes precedence.

use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::{facts, figures};
use crate::output::units::plural;
use crate::screen::page::Scene;
use crate::screen::widgets::text::{split_bottom, split_top};

/// From this width on, activity and peaks are beside the figures.
const WIDE: u16 = 150;
/// Lines that the other pane keeps; for processes, the heading and one row.
const OTHER_LINES: u16 = 2;

pub(super) type Lines = Vec<Line<'static>>;

/// The focused pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pane {
    /// Figures, activity and peaks.
    #[default]
    Figures,
    /// Processes on the device.
    Processes,
}

impl Pane {
    pub(super) fn other(self) -> Pane {
        match self {
            Pane::Figures => Pane::Processes,
            Pane::Processes => Pane::Figures,
        }
    }
}

/// The panes and their contents.
pub(super) struct Plan {
    /// Area of `left`.
    pub figures: Rect,
    pub left: Lines,
    /// Lines beside them, if there is room.
    pub right: (Lines, Rect),
    /// The rule between figures and processes.
    pub rule: Rect,
    pub processes: Rect,
}

impl Plan {
    pub(super) fn of(scene: &Scene<'_>, pane: Pane, processes: usize) -> Plan {
        let (_, area) = split_top(scene.area, 1);
        let wide = area.width >= WIDE;
        let halves = Layout::horizontal([Constraint::Percentage(58), Constraint::Fill(1)]);
        let [left, right] = if wide { area.layout(&halves) } else { [area, Rect::ZERO] };
        let mut lines = figures::lines(scene, left.width);
        let facts = facts::lines(scene, if wide { right.width } else { left.width });
        let mut beside = Vec::new();
        if wide { &mut beside } else { &mut lines }.extend(facts);
        let wanted = lines.len().max(beside.len()) as u16;
        let height = processes_height(area.height, wanted, processes as u16 + 2, pane);
        let (top, bottom) = split_bottom(area, height);
        let (rule, processes) = split_top(bottom, 1);
        // The same margin as everywhere else.
        let processes = Rect { x: processes.x + 1, width: processes.width.saturating_sub(1), ..processes };
        let figures = Rect { width: left.width, ..top };
        let right = Rect { x: right.x, width: right.width, ..top };
        Plan { figures, left: lines, right: (beside, right), rule, processes }
    }

    /// Highest scroll position of the figures.
    pub(super) fn last_top(&self) -> usize {
        let lines = self.left.len().max(self.right.0.len());
        lines.saturating_sub(usize::from(self.figures.height))
    }

    /// How many lines are hidden, and how to reach them.
    pub(super) fn note(&self, top: usize, pane: Pane) -> String {
        match (self.last_top() - top, pane) {
            (0, _) => String::new(),
            (below, Pane::Figures) => format!("▼ {}", plural(below as u64, "more line")),
            (below, Pane::Processes) => format!("▼ {}: Tab", plural(below as u64, "more line")),
        }
    }
}

/// Lines for the rule, the heading and the processes.
fn processes_height(height: u16, figures: u16, processes: u16, pane: Pane) -> u16 {
    let spare = height.saturating_sub(figures);
    match pane {
        _ if processes <= spare => processes.max(spare),
        Pane::Figures => spare.max(processes.min(OTHER_LINES + 1)).min(height / 2),
        Pane::Processes => spare.max(processes).min(height.saturating_sub(OTHER_LINES)),
    }
}
