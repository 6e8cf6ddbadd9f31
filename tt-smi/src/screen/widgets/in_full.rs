//! A selected row in full, below its list: what the columns cut or leave out.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders};

use super::text::{draw_lines, split_bottom};
use crate::escape::{columns, fit};
use crate::screen::theme::Theme;

/// A fact: what it is, and its value.
pub(crate) type Fact = (&'static str, String);

/// Most lines, besides the rule above them.
const MOST: u16 = 8;
/// Lines that a panel may have also where that is more than a third.
const LOW: u16 = 6;
/// Columns between two facts of one line.
const GAP: usize = 3;

/// The list above, and the panel below it: as high as its facts need, a third of the area at most, or half of a low one.
pub(crate) fn split(area: Rect, facts: &[Fact]) -> (Rect, Rect) {
    let needed = lines(facts, inner(area.width)).len() as u16;
    let most = (area.height / 3).max(LOW.min(area.height / 2));
    match most.min(needed.min(MOST) + 1) {
        0 | 1 => (area, Rect::ZERO),
        height => split_bottom(area, height),
    }
}

/// Draws the facts one after the other, each on one line.
pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, facts: &[Fact], hint: &str, theme: &Theme) {
    if area.is_empty() {
        return;
    }
    let title = Line::styled(format!(" {hint} "), theme.dim()).right_aligned();
    let block = Block::new().borders(Borders::TOP).border_style(theme.dim()).title_top(title);
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let (width, lines) = (inner(area.width), lines(facts, inner(area.width)));
    let line = |facts: &Vec<&Fact>| {
        let mut spans = vec![Span::raw(" ")];
        for (place, (what, value)) in facts.iter().enumerate() {
            let gap = if place == 0 { "" } else { &" ".repeat(GAP) };
            spans.push(Span::styled(format!("{gap}{what} "), theme.dim()));
            spans.push(Span::raw(fit(value, width.saturating_sub(what.len() + 1))));
        }
        Line::from(spans)
    };
    draw_lines(frame, inside, lines.iter().map(line));
}

/// Width for text: a blank at each side.
fn inner(width: u16) -> usize {
    usize::from(width).saturating_sub(2)
}

/// As many facts on each line as fit.
fn lines(facts: &[Fact], width: usize) -> Vec<Vec<&Fact>> {
    let mut lines: Vec<Vec<&Fact>> = Vec::new();
    let mut used = 0;
    for fact in facts {
        let needed = fact.0.len() + 1 + columns(&fact.1);
        match lines.last_mut() {
            Some(line) if used + GAP + needed <= width => {
                used += GAP + needed;
                line.push(fact);
            }
            _ => {
                used = needed;
                lines.push(vec![fact]);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_share_lines_and_stay_whole() {
        let facts = [("name", "weights".to_owned()), ("size", "1 KiB".to_owned()), ("id", "0x1".to_owned())];
        let shape = |width| lines(&facts, width).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(shape(80), [3]);
        assert_eq!(shape(26), [2, 1]);
        assert_eq!(shape(3), [1, 1, 1]);
        let (list, panel) = split(Rect::new(0, 0, 26, 30), &facts);
        assert_eq!((list.height, panel.height), (27, 3));
        assert_eq!(split(Rect::new(0, 0, 26, 3), &facts).1, Rect::ZERO, "no room");
    }
}
