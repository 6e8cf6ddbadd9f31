//! The filter input. It reports mistakes while the filter is being typed.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::draw_box;
use crate::query::{Field, Query};
use crate::screen::theme::Theme;

/// Least width of the text.
const WIDTH: usize = 52;

/// The text, and the position of the cursor.
#[derive(Debug)]
pub(crate) struct Filter {
    fields: &'static [Field],
    letters: Vec<char>,
    cursor: usize,
}

impl Filter {
    pub(super) fn new(query: &Query, fields: &'static [Field]) -> Filter {
        let letters: Vec<char> = query.to_string().chars().collect();
        Filter { fields, cursor: letters.len(), letters }
    }

    /// Handles a key; returns the filter when it is finished.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<Query> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            // A filter with a mistake stays open.
            KeyCode::Enter => return self.query().ok(),
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
        None
    }

    fn delete_word(&mut self) {
        let before = &self.letters[..self.cursor];
        let word_end = before.iter().rposition(|letter| *letter != ' ').map_or(0, |place| place + 1);
        let start = before[..word_end].iter().rposition(|letter| *letter == ' ').map_or(0, |place| place + 1);
        self.letters.drain(start..self.cursor);
        self.cursor = start;
    }

    fn text(&self) -> String {
        self.letters.iter().collect()
    }

    fn query(&self) -> Result<Query, String> {
        Query::about(&self.text(), self.fields).map_err(|error| error.to_string())
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let room = usize::from(area.width.saturating_sub(4)).min(WIDTH.max(self.letters.len() + 1)).max(1);
        // The end of a long line is where the user types.
        let start = (self.cursor + 1).saturating_sub(room);
        let mut spans: Vec<Span<'_>> = Vec::new();
        for place in start..start + room {
            let letter = self.letters.get(place).copied().unwrap_or(' ');
            let style = if place == self.cursor { theme.selected() } else { theme.heading() };
            spans.push(Span::styled(crate::escape::escape(&letter.to_string()), style));
        }
        let below = match self.query() {
            Ok(query) if query.is_empty() => {
                let fields: Vec<&str> = self.fields.iter().map(|field| field.name()).collect();
                Line::styled(format!("fields: {}", fields.join(" ")), theme.dim())
            }
            Ok(_) => Line::styled("Enter applies, Esc cancels", theme.dim()),
            Err(error) => Line::styled(error, theme.warn()),
        };
        let wrapped = wrap(below, room);
        let lines = std::iter::once(Line::from(spans)).chain(wrapped).collect();
        draw_box(frame, area, " filter: class=dram size>1MiB matmul ", lines, theme);
    }
}

/// Wraps a long line, at blanks if there are any.
fn wrap(line: Line<'_>, width: usize) -> Vec<Line<'static>> {
    let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
    let style = line.style;
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is always one");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            let gap = if last.is_empty() { "" } else { " " };
            *last += &format!("{gap}{word}");
        }
    }
    lines.into_iter().map(|line| Line::styled(line, style)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::ALLOCATION_FIELDS;

    fn typed(filter: &mut Filter, text: &str) {
        for letter in text.chars() {
            assert_eq!(filter.key(KeyEvent::from(KeyCode::Char(letter))), None);
        }
    }

    #[test]
    fn a_filter_is_written_and_applied() {
        let mut filter = Filter::new(&Query::default(), ALLOCATION_FIELDS);
        typed(&mut filter, "class=l1 sise>1MiB");
        assert_eq!(filter.key(KeyEvent::from(KeyCode::Enter)), None, "a mistake is not applied");
        filter.key(KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL));
        assert_eq!(filter.text(), "class=l1 ");
        typed(&mut filter, "size>1MiB");
        let query = filter.key(KeyEvent::from(KeyCode::Enter)).unwrap();
        assert_eq!(query.to_string(), "class=l1 size>1MiB");
    }

    #[test]
    fn letters_go_where_the_cursor_is() {
        let mut filter = Filter::new(&"name~ab".parse().unwrap(), ALLOCATION_FIELDS);
        filter.key(KeyEvent::from(KeyCode::Left));
        typed(&mut filter, "x");
        filter.key(KeyEvent::from(KeyCode::Delete));
        filter.key(KeyEvent::from(KeyCode::Backspace));
        typed(&mut filter, "ä");
        assert_eq!(filter.text(), "name~aä");
        filter.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        assert_eq!(filter.text(), "");
    }
}
