//! Draws a list.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::sight::{GUTTER, Sight, without_start};
use super::{List, visible_rows};
use crate::escape::{columns, pad};
use crate::screen::theme::Theme;

/// The look of a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Look {
    /// Its style, unless it is selected.
    pub style: Style,
    /// The mark before it.
    pub mark: Option<char>,
}

impl From<Style> for Look {
    fn from(style: Style) -> Look {
        Look { style, mark: None }
    }
}

impl Look {
    /// A warning.
    pub(crate) fn warn(theme: &Theme) -> Look {
        Look { style: theme.warn(), mark: Some('!') }
    }
}

impl<T> List<T> {
    /// Draws the headings and the visible rows.
    pub(crate) fn draw<L: Into<Look>>(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        items: &[T],
        theme: &Theme,
        look: impl Fn(&T) -> L,
    ) {
        if area.is_empty() {
            return;
        }
        let sight = self.sight(items, area);
        let line_at = |y: u16| Rect { y: area.y + y, height: 1, ..area };
        frame.render_widget(self.heading(&sight, theme), line_at(0));
        let sign_at = |x: u16| Rect { x, width: 1, ..line_at(0) };
        if sight.has_before() {
            frame.render_widget(Span::styled("‹", theme.warn()), sign_at(area.x));
        }
        if sight.has_more() {
            frame.render_widget(Span::styled("›", theme.warn()), sign_at(area.right() - 1));
        }
        let height = visible_rows(area);
        let places = self.order.iter().enumerate().skip(self.first_shown(height)).take(height);
        for (y, (place, item)) in (1..).zip(places) {
            let Some(item) = items.get(*item as usize) else { continue };
            let look = look(item).into();
            let text = self.row(item, &sight, look.mark.unwrap_or(' '));
            let line = match self.has_focus && place == self.selected {
                false => Line::styled(text, look.style),
                // As wide as the list, so that the selection bar has a straight end.
                true => Line::styled(pad(&text, usize::from(area.width), false), theme.selected()),
            };
            frame.render_widget(line, line_at(y));
        }
    }

    fn heading(&self, sight: &Sight, theme: &Theme) -> Line<'static> {
        let mut spans = vec![Span::raw(" ".repeat(usize::from(GUTTER)))];
        for (place, width) in &sight.widths {
            let column = &self.columns[*place];
            let mark = match (*place == self.sort && column.sort.is_some(), self.descending) {
                (false, _) => "",
                (true, true) => "▼",
                (true, false) => "▲",
            };
            let style = if mark.is_empty() { theme.heading() } else { theme.sorted() };
            let width = usize::from(*width);
            // The mark is more important than the last letter.
            let head: String = column.head.chars().take(width.saturating_sub(columns(mark))).collect();
            spans.push(Span::styled(pad(&format!("{head}{mark}"), width, column.right), style));
            spans.push(Span::raw(" "));
        }
        Line::from(spans)
    }

    fn row(&self, item: &T, sight: &Sight, mark: char) -> String {
        let cell = |(place, width): &(usize, u16)| {
            let column = &self.columns[*place];
            let text = (column.text)(item);
            let text = if column.width == 0 { without_start(&text, sight.shift) } else { text };
            pad(&text, usize::from(*width), column.right)
        };
        let cells: Vec<String> = sight.widths.iter().map(cell).collect();
        format!("{mark}{}", cells.join(" "))
    }
}
