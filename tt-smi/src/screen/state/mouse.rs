//! Clicks and the mouse wheel.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::{Effect, State};
use crate::screen::action::{Action, Motion};

impl State {
    pub(super) fn mouse(&mut self, mouse: MouseEvent) -> Option<Effect> {
        let at = Position::new(mouse.column, mouse.row);
        let is_shifted = mouse.modifiers.contains(KeyModifiers::SHIFT);
        match mouse.kind {
            // With Shift, the wheel scrolls sideways; some terminals report that themselves.
            MouseEventKind::ScrollDown if is_shifted => self.wheel_aside(1),
            MouseEventKind::ScrollUp if is_shifted => self.wheel_aside(-1),
            MouseEventKind::ScrollRight => self.wheel_aside(1),
            MouseEventKind::ScrollLeft => self.wheel_aside(-1),
            MouseEventKind::ScrollDown => self.wheel(3),
            MouseEventKind::ScrollUp => self.wheel(-3),
            MouseEventKind::Down(MouseButton::Left) => self.click(at),
            _ => None,
        }
    }

    fn wheel(&mut self, lines: i32) -> Option<Effect> {
        match &mut self.modal {
            Some(modal) => {
                modal.scroll(lines);
                None
            }
            None => self.act(Action::Move(Motion::Lines(lines))),
        }
    }

    fn wheel_aside(&mut self, steps: i32) -> Option<Effect> {
        match self.modal {
            Some(_) => None,
            None => self.act(Action::Move(Motion::Aside(steps))),
        }
    }

    fn click(&mut self, at: Position) -> Option<Effect> {
        self.message = None;
        if self.modal.is_some() {
            // A click outside of a menu closes it.
            self.modal = None;
            return None;
        }
        let areas = self.areas();
        if let Some(view) = areas.tab_at(at) {
            return self.show(view);
        }
        if !areas.body.contains(at) {
            return None;
        }
        let reply = self.with_page(|page, scene| page.click(at, scene));
        self.after_page(reply, Action::Open)
    }
}
