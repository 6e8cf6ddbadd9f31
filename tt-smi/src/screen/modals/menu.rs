//! A menu.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::draw_box;
use crate::screen::theme::Theme;

/// The choices, and the highlighted one.
#[derive(Debug)]
pub(crate) struct Menu {
    title: String,
    choices: Vec<String>,
    selected: usize,
}

impl Menu {
    pub(super) fn new(title: impl Into<String>, choices: Vec<String>, selected: usize) -> Menu {
        Menu { title: title.into(), choices, selected }
    }

    /// Handles a key; returns the choice if one was made.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<usize> {
        match key.code {
            KeyCode::Enter => return Some(self.selected),
            KeyCode::Up | KeyCode::Char('k') => self.go(-1),
            KeyCode::Down | KeyCode::Char('j') => self.go(1),
            KeyCode::Home | KeyCode::Char('g') => self.selected = 0,
            KeyCode::End | KeyCode::Char('G') => self.go(i32::MAX),
            _ => {}
        }
        None
    }

    pub(super) fn go(&mut self, lines: i32) {
        let last = self.choices.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(lines as isize).min(last);
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let room = usize::from(area.height.saturating_sub(2)).max(1);
        let top = (self.selected + 1).saturating_sub(room);
        let choices = self.choices.iter().enumerate().skip(top).take(room);
        let line = |(place, choice): (usize, &String)| match place == self.selected {
            true => Line::styled(choice.clone(), theme.selected()),
            false => Line::from(choice.clone()),
        };
        draw_box(frame, area, &self.title, choices.map(line).collect(), theme);
    }
}
