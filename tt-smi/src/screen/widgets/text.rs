//! Text helpers shared by views.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::escape::{columns, fit};
use crate::units::UNKNOWN;

/// Text at the left and at the right of a line; the right one is dropped if there is no room for both.
pub(crate) fn between(left: &str, right: &str, width: u16) -> String {
    match usize::from(width).checked_sub(left.chars().count() + right.chars().count()) {
        Some(gap @ 1..) => format!("{left}{}{right}", " ".repeat(gap)),
        _ => left.to_owned(),
    }
}

/// A value as text, or the sign for an unknown one.
pub(crate) fn or_unknown<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), text)
}

/// An address or id in hexadecimal.
pub(crate) fn hex(number: u64) -> String {
    format!("{number:#x}")
}

/// Draws lines from the top of an area on, as many as fit.
pub(crate) fn draw_lines<'a>(frame: &mut Frame<'_>, area: Rect, lines: impl IntoIterator<Item = Line<'a>>) {
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

/// The first `height` lines of an area, and the rest.
pub(crate) fn split_top(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    (Rect { height, ..area }, Rect { y: area.y + height, height: area.height - height, ..area })
}

/// All but the last `height` lines of an area, and these.
pub(crate) fn split_bottom(area: Rect, height: u16) -> (Rect, Rect) {
    split_top(area, area.height.saturating_sub(height))
}

/// A box of this size in the middle of an area, as far as it fits.
pub(crate) fn centered(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

/// As many spans as fit, with a mark if there are more.
pub(crate) fn fitting(spans: Vec<Span<'static>>, width: u16) -> Line<'static> {
    let (mut used, count, width) = (0, spans.len(), usize::from(width));
    let mut line = Line::default();
    for (place, span) in spans.into_iter().enumerate() {
        let mark = if place + 1 < count { 2 } else { 0 };
        let room = width.saturating_sub(used);
        if columns(&span.content) + mark > room {
            let is_first = place == 0;
            let text = if is_first { fit(&span.content, room) } else { " …".to_owned() };
            line.push_span(Span::styled(text, span.style));
            break;
        }
        used += columns(&span.content);
        line.push_span(span);
    }
    line
}
