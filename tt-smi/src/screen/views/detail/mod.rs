//! One device: every kind of memory, composition of its peaks, and its processes.

mod facts;
mod figures;
mod plan;
mod processes;

use ratatui::Frame;
use ratatui::layout::Position;
use ratatui::widgets::Paragraph;

use self::plan::{Pane, Plan};
use self::processes::Lists;
use crate::screen::action::{Action, Motion};
use crate::screen::data::Data;
use crate::screen::page::{Page, Reply, Scene};
use crate::screen::widgets::device::{draw_headline, draw_none};

/// The focused pane, the scroll position of the figures, and the processes of every device.
#[derive(Debug, Default)]
pub(crate) struct Detail {
    pane: Pane,
    top: usize,
    lists: Lists,
}

impl Detail {
    fn plan(&self, scene: &Scene<'_>) -> Plan {
        Plan::of(scene, self.pane, self.lists.count(scene.device))
    }

    fn go(&mut self, motion: Motion, scene: &Scene<'_>) {
        let plan = self.plan(scene);
        // If all figures fit, only the processes can scroll.
        if self.pane == Pane::Processes || plan.last_top() == 0 {
            return self.lists.go(scene.device, motion, plan.processes);
        }
        let by =
            |lines: i64| (self.top as i64).saturating_add(lines).clamp(0, plan.last_top() as i64) as usize;
        self.top = match motion {
            Motion::Lines(lines) => by(i64::from(lines)),
            Motion::Pages(pages) => by(i64::from(pages) * i64::from(plan.figures.height.max(1))),
            // Only the processes have columns.
            Motion::Aside(_) => return self.lists.go(scene.device, motion, plan.processes),
            Motion::First => 0,
            Motion::Last => plan.last_top(),
        };
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
        let plan = self.plan(scene);
        if plan.figures.contains(at) {
            self.pane = Pane::Figures;
            return Reply::Done;
        }
        match self.lists.click(scene.device, at, plan.processes) {
            true => self.open(scene),
            false => Reply::Done,
        }
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let Some(device) = scene.device() else { return draw_none(frame, scene) };
        let plan = self.plan(scene);
        let top = self.top.min(plan.last_top());
        draw_headline(frame, scene, device, &plan.note(top, self.pane));
        let shown = |lines: &plan::Lines| Paragraph::new(lines.iter().skip(top).cloned().collect::<Vec<_>>());
        frame.render_widget(shown(&plan.left), plan.figures);
        frame.render_widget(shown(&plan.right.0), plan.right.1);
        frame.render_widget(
            processes::rule(self.lists.count(scene.device), plan.rule.width, self.pane, scene.theme),
            plan.rule,
        );
        self.lists.draw(frame, scene, plan.processes);
    }
}

#[cfg(test)]
mod tests;
