//! The search input: the next row with the text is selected while it is being typed.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::input::Input;
use super::{Outcome, draw_low_box};
use crate::screen::theme::Theme;

#[derive(Debug, Default)]
pub(crate) struct Search {
    input: Input,
    /// Whether nothing was found.
    pub in_vain: bool,
}

impl Search {
    pub(super) fn key(&mut self, key: KeyEvent) -> Outcome {
        match key.code {
            KeyCode::Enter => Outcome::Closed,
            KeyCode::F(3) | KeyCode::Down => Outcome::Search(self.input.text(), true),
            _ if self.input.key(key) => Outcome::Search(self.input.text(), false),
            _ => Outcome::Open,
        }
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let width = usize::from(area.width.saturating_sub(4)).max(1);
        let below = match self.in_vain {
            true => Line::styled("no row has this text", theme.warn()),
            false => Line::styled("F3 or Down: next, Enter: done", theme.dim()),
        };
        draw_low_box(frame, area, " search ", vec![self.input.line(width, theme), below], theme);
    }
}
