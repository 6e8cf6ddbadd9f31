//! The visible part of a list's columns: those that fit, others after a step to the right, and finally the end of a text
//! that is cut.

use ratatui::layout::Rect;

use super::column::{self, Widths};
use super::{List, visible_rows};
use crate::escape::columns;

/// Margin for a mark, so that warnings are visible without colours too.
pub(super) const GUTTER: u16 = 1;

/// The visible part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Viewport {
    pub widths: Widths,
    /// Number of characters the long text is scrolled by.
    pub shift: usize,
    /// Steps made to the right.
    pub step: usize,
    /// Steps possible to the right.
    pub most: usize,
}

impl Viewport {
    /// The visible part of the list as drawn in this area.
    pub(super) fn of<T>(list: &List<T>, items: &[T], area: Rect) -> Viewport {
        let mut pages = pages(list, items, area);
        let last = pages.len() - 1;
        let (cut, stride) = cut(list, &pages[last], items, area);
        let most = last + cut.div_ceil(stride);
        let step = list.aside.min(most);
        let shift = step.saturating_sub(last) * stride;
        Viewport { widths: pages.swap_remove(step.min(last)), shift: shift.min(cut), step, most }
    }

    pub(super) fn has_before(&self) -> bool {
        self.step > 0
    }

    pub(super) fn has_more(&self) -> bool {
        self.step < self.most
    }
}

/// The mark for more columns is after the last heading; if that reaches the edge, the mark needs a column of its own.
fn pages<T>(list: &List<T>, items: &[T], area: Rect) -> Vec<Widths> {
    let room = area.width.saturating_sub(GUTTER);
    let pages = column::pages(list.columns, &list.places(), room);
    let has_more = pages.len() > 1 || cut(list, &pages[0], items, area).0 > 0;
    let reaches_end = |(place, width): &(usize, u16)| {
        let column = &list.columns[*place];
        // One more for the sort mark.
        column.right || column.head.len() + 1 >= usize::from(*width)
    };
    match has_more && pages.iter().filter_map(|page| page.last()).any(reaches_end) {
        true => column::pages(list.columns, &list.places(), room.saturating_sub(1)),
        false => pages,
    }
}

/// How much of the longest visible text is cut off, and how much of it a step shows.
fn cut<T>(list: &List<T>, widths: &Widths, items: &[T], area: Rect) -> (usize, usize) {
    let long = widths.iter().find(|(place, _)| list.columns[*place].width == 0);
    let Some((place, width)) = long.filter(|_| !area.is_empty()) else { return (0, 1) };
    let (text, width) = (list.columns[*place].text, usize::from(*width));
    let height = visible_rows(area);
    let seen = list.order.iter().skip(list.first_shown(height)).take(height);
    let longest = seen.filter_map(|item| items.get(*item as usize)).map(|item| columns(&text(item))).max();
    (longest.unwrap_or(0).saturating_sub(width), (width / 2).max(1))
}

/// A text without its beginning, with a mark for what is missing.
pub(super) fn without_start(text: &str, shift: usize) -> String {
    if shift == 0 {
        return text.to_owned();
    }
    // What is cut off, and a column for the mark.
    let start = text.char_indices().map(|(start, _)| start).find(|start| columns(&text[..*start]) > shift);
    start.map_or_else(String::new, |start| format!("…{}", &text[start..]))
}
