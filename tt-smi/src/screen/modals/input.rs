//! A line of text that is being written.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::{Line, Span};

use crate::screen::theme::Theme;

/// The letters, and the position of the cursor.
#[derive(Debug, Default)]
pub(super) struct Input {
    letters: Vec<char>,
    cursor: usize,
}

impl Input {
    pub(super) fn new(text: &str) -> Input {
        let letters: Vec<char> = text.chars().collect();
        Input { cursor: letters.len(), letters }
    }

    /// Handles a key; returns whether the text changed.
    pub(super) fn key(&mut self, key: KeyEvent) -> bool {
        let before = self.letters.clone();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if control => {
                self.letters.drain(..self.cursor);
                self.cursor = 0;
            }
            KeyCode::Char('a') if control => self.cursor = 0,
            KeyCode::Char('e') if control => self.cursor = self.letters.len(),
            KeyCode::Char('w') if control => self.delete_word(),
            KeyCode::Char(letter) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.letters.insert(self.cursor, letter);
                self.cursor += 1;
            }
            KeyCode::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.letters.remove(self.cursor);
            }
            KeyCode::Delete if self.cursor < self.letters.len() => {
                self.letters.remove(self.cursor);
            }
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = (self.cursor + 1).min(self.letters.len()),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.letters.len(),
            _ => {}
        }
        before != self.letters
    }

    fn delete_word(&mut self) {
        let before = &self.letters[..self.cursor];
        let word_end = before.iter().rposition(|letter| *letter != ' ').map_or(0, |place| place + 1);
        let start = before[..word_end].iter().rposition(|letter| *letter == ' ').map_or(0, |place| place + 1);
        self.letters.drain(start..self.cursor);
        self.cursor = start;
    }

    pub(super) fn text(&self) -> String {
        self.letters.iter().collect()
    }

    /// The line with its cursor; of a long one the part where the user types.
    pub(super) fn line(&self, width: usize, theme: &Theme) -> Line<'static> {
        let start = (self.cursor + 1).saturating_sub(width);
        let span = |place: usize| {
            let letter = self.letters.get(place).copied().unwrap_or(' ');
            let style = if place == self.cursor { theme.selected() } else { theme.heading() };
            Span::styled(crate::escape::escape(&letter.to_string()), style)
        };
        Line::from_iter((start..start + width).map(span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_go_where_the_cursor_is() {
        let mut input = Input::new("name~ab");
        let press = |input: &mut Input, code: KeyCode| input.key(KeyEvent::from(code));
        assert!(!press(&mut input, KeyCode::Left));
        assert!(press(&mut input, KeyCode::Char('x')));
        press(&mut input, KeyCode::Delete);
        press(&mut input, KeyCode::Backspace);
        press(&mut input, KeyCode::Char('ä'));
        assert_eq!(input.text(), "name~aä");
        input.key(KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL));
        assert_eq!(input.text(), "");
        let mut input = Input::new("one two");
        input.key(KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL));
        assert_eq!(input.text(), "one ");
        input.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        assert_eq!(input.text(), "");
    }
}
