//! The filter input. It filters and reports mistakes while the filter is being typed.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::input::Input;
use super::{Outcome, draw_low_box};
use crate::query::{Field, Query};
use crate::screen::theme::Theme;

/// The text, and the filter before it was opened.
#[derive(Debug)]
pub(crate) struct Filter {
    fields: &'static [Field],
    before: Query,
    input: Input,
}

impl Filter {
    pub(super) fn new(query: &Query, fields: &'static [Field]) -> Filter {
        Filter { fields, before: query.clone(), input: Input::new(&query.to_string()) }
    }

    /// The filter to return to.
    pub(super) fn before(&self) -> &Query {
        &self.before
    }

    /// Handles a key. A filter with a mistake stays open, and the last one without stays in force.
    pub(super) fn key(&mut self, key: KeyEvent) -> Outcome {
        let is_finished = key.code == KeyCode::Enter;
        if !is_finished && !self.input.key(key) {
            return Outcome::Open;
        }
        match self.query() {
            Ok(query) if is_finished => Outcome::Filter(query),
            Ok(query) => Outcome::Filtering(query),
            Err(_) => Outcome::Open,
        }
    }

    fn query(&self) -> Result<Query, String> {
        Query::about(&self.input.text(), self.fields).map_err(|error| error.to_string())
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let width = usize::from(area.width.saturating_sub(4)).max(1);
        let below = match self.query() {
            Ok(query) if query.is_empty() => {
                let fields: Vec<&str> = self.fields.iter().map(|field| field.name()).collect();
                Line::styled(format!("words, or fields such as {}", fields.join(" ")), theme.dim())
            }
            Ok(_) => Line::styled("Enter keeps it, Esc returns to the one before", theme.dim()),
            Err(error) => Line::styled(error, theme.warn()),
        };
        let lines = std::iter::once(self.input.line(width, theme)).chain(wrap(below, width)).collect();
        draw_low_box(frame, area, " filter ", lines, theme);
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
    use crossterm::event::KeyModifiers;

    fn typed(filter: &mut Filter, text: &str) -> Outcome {
        let keys = text.chars().map(|letter| KeyEvent::from(KeyCode::Char(letter)));
        keys.map(|key| filter.key(key)).last().unwrap()
    }

    #[test]
    fn a_filter_applies_while_it_is_written() {
        let mut filter = Filter::new(&Query::default(), ALLOCATION_FIELDS);
        let Outcome::Filtering(query) = typed(&mut filter, "class=l1") else { panic!("it is complete") };
        assert_eq!(query.to_string(), "class=l1");
        assert_eq!(typed(&mut filter, " sise>1MiB"), Outcome::Open, "a mistake is not applied");
        assert_eq!(filter.key(KeyEvent::from(KeyCode::Enter)), Outcome::Open);
        filter.key(KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL));
        typed(&mut filter, "size>1MiB");
        let Outcome::Filter(query) = filter.key(KeyEvent::from(KeyCode::Enter)) else { panic!("finished") };
        assert_eq!(query.to_string(), "class=l1 size>1MiB");
        assert_eq!(*filter.before(), Query::default());
    }
}
