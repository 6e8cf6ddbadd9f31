//! One device: every kind of memory, composition of its peaks, and its processes.

mod figures;
mod processes;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use crate::screen::action::{Action, Motion};
use crate::screen::data::Data;
use crate::screen::page::{Page, Reply, Scene};
use crate::screen::widgets::device::{draw_headline, draw_none};
use crate::screen::widgets::text::{split_bottom, split_top};
use crate::units::plural;
use processes::ProcessLists;

/// The focused pane, the scroll position of the figures, and the processes of every device.
#[derive(Debug, Default)]
pub(crate) struct Detail {
    pane: Pane,
    top: usize,
    lists: ProcessLists,
}

impl Detail {
    fn layout(&self, scene: &Scene<'_>) -> DetailLayout {
        DetailLayout::of(scene, self.pane, self.lists.count(scene.device))
    }

    fn go(&mut self, motion: Motion, scene: &Scene<'_>) {
        let layout = self.layout(scene);
        // If all figures fit, only the processes can scroll.
        if self.pane == Pane::Processes || layout.last_top() == 0 {
            return self.lists.go(scene.device, motion, layout.processes);
        }
        match motion.target(self.top, layout.last_top(), layout.figures.height.max(1).into()) {
            Some(top) => self.top = top,
            // Only the processes have columns.
            None => self.lists.go(scene.device, motion, layout.processes),
        }
    }

    fn open(&self, scene: &Scene<'_>) -> Reply {
        self.lists.selected(scene.device).map_or(Reply::Ignored, Reply::Process)
    }
}

impl Page for Detail {
    fn refresh(&mut self, data: &Data) {
        self.lists.refresh(&data.model);
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        match action {
            Action::Move(motion) => self.go(motion, scene),
            Action::NextPane => self.pane = self.pane.other(),
            Action::Open => return self.open(scene),
            _ => return Reply::Ignored,
        }
        Reply::Done
    }

    fn click(&mut self, at: Position, scene: &Scene<'_>) -> Reply {
        let layout = self.layout(scene);
        if layout.figures.contains(at) {
            self.pane = Pane::Figures;
            return Reply::Done;
        }
        match self.lists.click(scene.device, at, layout.processes) {
            true => self.open(scene),
            false => Reply::Done,
        }
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let Some(device) = scene.device() else { return draw_none(frame, scene) };
        let layout = self.layout(scene);
        let top = self.top.min(layout.last_top());
        draw_headline(frame, scene, device, &layout.note(top, self.pane));
        let shown =
            |lines: &Vec<Line<'static>>| Paragraph::new(lines.iter().skip(top).cloned().collect::<Vec<_>>());
        frame.render_widget(shown(&layout.left), layout.figures);
        frame.render_widget(shown(&layout.right.0), layout.right.1);
        frame.render_widget(
            processes::rule(self.lists.count(scene.device), layout.rule.width, self.pane, scene.theme),
            layout.rule,
        );
        self.lists.draw(frame, scene, layout.processes);
    }
}

/// From this width on, activity and peaks are beside the figures.
const WIDE: u16 = 150;
/// Lines that the other pane keeps; for processes, the heading and one row.
const OTHER_LINES: u16 = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pane {
    /// Figures, activity and peaks.
    #[default]
    Figures,
    /// Processes on the device.
    Processes,
}

impl Pane {
    fn other(self) -> Pane {
        match self {
            Pane::Figures => Pane::Processes,
            Pane::Processes => Pane::Figures,
        }
    }
}

/// The panes and their contents. With little room, the focused pane takes precedence.
struct DetailLayout {
    /// Area of `left`.
    figures: Rect,
    left: Vec<Line<'static>>,
    /// Lines beside them, if there is room.
    right: (Vec<Line<'static>>, Rect),
    /// The rule between figures and processes.
    rule: Rect,
    processes: Rect,
}

impl DetailLayout {
    fn of(scene: &Scene<'_>, pane: Pane, processes: usize) -> DetailLayout {
        let (_, area) = split_top(scene.area, 1);
        let wide = area.width >= WIDE;
        let halves = Layout::horizontal([Constraint::Percentage(58), Constraint::Fill(1)]);
        let [left, right] = if wide { area.layout(&halves) } else { [area, Rect::ZERO] };
        let mut lines = figures::memory_lines(scene, left.width);
        let facts = figures::activity_lines(scene, if wide { right.width } else { left.width });
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
        DetailLayout { figures, left: lines, right: (beside, right), rule, processes }
    }

    /// Highest scroll position of the figures.
    fn last_top(&self) -> usize {
        let lines = self.left.len().max(self.right.0.len());
        lines.saturating_sub(usize::from(self.figures.height))
    }

    /// How many lines are hidden, and how to reach them.
    fn note(&self, top: usize, pane: Pane) -> String {
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

#[cfg(test)]
mod tests;
