//! A list that sorts, filters and scrolls. Only the lines that are seen are made into text, so a hundred
//! thousand rows cost no more than twenty.

use std::cmp::Ordering;

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::escape::fit;
use crate::screen::action::Motion;
use crate::screen::theme::Theme;

/// A column.
pub(crate) struct Column<T> {
    /// Heading.
    pub head: &'static str,
    /// Characters; 0 takes what is left over, one column at most.
    pub width: u16,
    /// Where there is no room, the columns with the highest rank go first.
    pub rank: u8,
    /// Numbers stand right.
    pub right: bool,
    /// What stands there.
    pub text: fn(&T) -> String,
    /// The order of two rows; `None`: not to be sorted by.
    pub order: Option<fn(&T, &T) -> Ordering>,
    /// Whether the largest come first at first.
    pub descending: bool,
}

/// The least that a column without a width gets.
const FLEXIBLE: u16 = 8;

/// What a click hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hit {
    /// A heading: the order changed.
    Heading,
    /// A row, which is selected now; whether it was before.
    Row { again: bool },
    /// Neither.
    Nothing,
}

/// A list's order, selection and place.
#[derive(Debug)]
pub(crate) struct List<T: 'static> {
    columns: &'static [Column<T>],
    key: fn(&T) -> u64,
    sort: usize,
    descending: bool,
    order: Vec<u32>,
    selected: usize,
    /// What is selected, so that it stays so when rows come and go.
    selected_key: Option<u64>,
    top: usize,
}

impl<T> std::fmt::Debug for Column<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.head)
    }
}

impl<T> List<T> {
    /// An empty one, sorted by a column. `key` tells rows apart.
    pub(crate) fn new(columns: &'static [Column<T>], sort: usize, key: fn(&T) -> u64) -> List<T> {
        let descending = columns.get(sort).is_some_and(|column| column.descending);
        List { columns, key, sort, descending, order: Vec::new(), selected: 0, selected_key: None, top: 0 }
    }

    /// Puts rows in order, those that are wanted. What was selected stays selected if it is still there.
    pub(crate) fn arrange(&mut self, items: &[T], wanted: impl Fn(&T) -> bool) {
        let kept = items.iter().enumerate().filter(|(_, item)| wanted(item));
        self.order = kept.map(|(place, _)| place as u32).collect();
        let order = self.columns.get(self.sort).and_then(|column| column.order);
        if let Some(order) = order {
            let descending = self.descending;
            // Stable, so that equal rows do not dance.
            self.order.sort_by(|a, b| {
                let ordering = order(&items[*a as usize], &items[*b as usize]);
                if descending { ordering.reverse() } else { ordering }
            });
        }
        self.find_selected(items);
    }

    /// Takes the rows as they are.
    pub(crate) fn arrange_as_given(&mut self, items: &[T]) {
        self.order = (0..items.len() as u32).collect();
        self.find_selected(items);
    }

    fn find_selected(&mut self, items: &[T]) {
        let key = self.key;
        let same = |place: &u32| Some(key(&items[*place as usize])) == self.selected_key;
        let found = self.selected_key.and_then(|_| self.order.iter().position(same));
        self.selected = found.unwrap_or(self.selected).min(self.order.len().saturating_sub(1));
        self.selected_key = self.order.get(self.selected).map(|place| key(&items[*place as usize]));
    }

    /// Rows that are shown.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// The place of the selected row, from 0.
    pub(crate) fn position(&self) -> usize {
        self.selected
    }

    /// The selected row.
    pub(crate) fn selected<'a>(&self, items: &'a [T]) -> Option<&'a T> {
        items.get(*self.order.get(self.selected)? as usize)
    }

    /// The rows in their order.
    pub(crate) fn rows<'a>(&'a self, items: &'a [T]) -> impl Iterator<Item = &'a T> {
        self.order.iter().filter_map(|place| items.get(*place as usize))
    }

    /// Names of the columns that one can sort by, and which it is.
    pub(crate) fn sort_names(&self) -> Vec<&'static str> {
        self.sortable().map(|(_, column)| column.head).collect()
    }

    /// Which of [`List::sort_names`] is the order now, and whether it is turned round.
    pub(crate) fn sorted_by(&self) -> (Option<usize>, bool) {
        (self.sortable().position(|(place, _)| place == self.sort), self.descending)
    }

    /// Sorts by one of [`List::sort_names`]; arrange after it.
    pub(crate) fn sort_by(&mut self, choice: usize) {
        if let Some((place, column)) = self.sortable().nth(choice) {
            (self.sort, self.descending) = (place, column.descending);
        }
    }

    /// Turns the order round; arrange after it.
    pub(crate) fn reverse(&mut self) {
        self.descending = !self.descending;
    }

    fn sortable(&self) -> impl Iterator<Item = (usize, &'static Column<T>)> + use<T> {
        let columns = self.columns;
        columns.iter().enumerate().filter(|(_, column)| column.order.is_some())
    }

    /// Moves the selection, where so many rows are seen at once.
    pub(crate) fn go(&mut self, motion: Motion, items: &[T], area: Rect) {
        let height = visible_rows(area);
        let last = self.order.len().saturating_sub(1);
        let by = |steps: i64| (self.selected as i64).saturating_add(steps).clamp(0, last as i64) as usize;
        self.selected = match motion {
            Motion::Lines(lines) => by(i64::from(lines)),
            Motion::Pages(pages) => by(i64::from(pages) * height.max(1) as i64),
            Motion::First => 0,
            Motion::Last => last,
        };
        self.select(self.selected, items, height);
    }

    fn select(&mut self, place: usize, items: &[T], height: usize) {
        self.selected = place;
        self.selected_key = self.selected(items).map(self.key);
        self.top = self.first_shown(height);
    }

    /// The row at the top: where it was, moved as far as the selected one must be seen.
    fn first_shown(&self, height: usize) -> usize {
        let lowest = (self.selected + 1).saturating_sub(height);
        let fits = self.order.len().saturating_sub(height);
        self.top.clamp(lowest, self.selected.max(lowest)).min(fits.max(lowest))
    }

    /// A click into the list as it is drawn in this area.
    pub(crate) fn click(&mut self, at: Position, items: &[T], area: Rect) -> Hit {
        if !area.contains(at) {
            return Hit::Nothing;
        }
        if at.y == area.y {
            return self.click_heading(at.x - area.x, area.width);
        }
        let place = self.first_shown(visible_rows(area)) + usize::from(at.y - area.y - 1);
        if place >= self.order.len() {
            return Hit::Nothing;
        }
        let again = place == self.selected;
        self.select(place, items, visible_rows(area));
        Hit::Row { again }
    }

    fn click_heading(&mut self, x: u16, width: u16) -> Hit {
        let mut end = 0;
        for (place, width) in self.widths(width) {
            end += width + 1;
            if x < end && self.columns[place].order.is_some() {
                match place == self.sort {
                    true => self.reverse(),
                    false => (self.sort, self.descending) = (place, self.columns[place].descending),
                }
                return Hit::Heading;
            }
            if x < end {
                break;
            }
        }
        Hit::Nothing
    }

    /// The columns that fit, in order, with their widths.
    fn widths(&self, width: u16) -> Vec<(usize, u16)> {
        let least = |column: &Column<T>| if column.width == 0 { FLEXIBLE } else { column.width };
        let mut by_rank: Vec<usize> = (0..self.columns.len()).collect();
        by_rank.sort_by_key(|place| self.columns[*place].rank);
        let mut left = width + 1;
        let fits = |place: &usize| {
            let needed = least(&self.columns[*place]) + 1;
            let fits = needed <= left;
            left = if fits { left - needed } else { 0 };
            fits
        };
        let mut shown: Vec<usize> = by_rank.into_iter().take_while(fits).collect();
        shown.sort_unstable();
        let spare = |column: &Column<T>| if column.width == 0 { left } else { 0 };
        shown
            .into_iter()
            .map(|place| (place, least(&self.columns[place]) + spare(&self.columns[place])))
            .collect()
    }

    /// Draws headings and the rows that are seen.
    pub(crate) fn draw(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        items: &[T],
        theme: &Theme,
        style: impl Fn(&T) -> Style,
    ) {
        if area.is_empty() {
            return;
        }
        let widths = self.widths(area.width);
        let line_at = |y: u16| Rect { y: area.y + y, height: 1, ..area };
        frame.render_widget(self.heading(&widths, theme), line_at(0));
        let height = visible_rows(area);
        let top = self.first_shown(height);
        let places = self.order.iter().enumerate().skip(top).take(height);
        for (y, (place, item)) in (1..).zip(places) {
            let Some(item) = items.get(*item as usize) else { continue };
            let mut line = Line::styled(self.row(item, &widths), style(item));
            if place == self.selected {
                // Wide as the list, so that the bar has no ragged end.
                let gap = usize::from(area.width).saturating_sub(line.width());
                line.push_span(Span::raw(" ".repeat(gap)));
                line = line.style(theme.selected());
            }
            frame.render_widget(line, line_at(y));
        }
    }

    fn heading(&self, widths: &[(usize, u16)], theme: &Theme) -> Line<'static> {
        let mut spans = Vec::new();
        for (place, width) in widths {
            let column = &self.columns[*place];
            let mark = match (*place == self.sort, self.descending) {
                (false, _) => "",
                (true, true) => "▼",
                (true, false) => "▲",
            };
            let style = if mark.is_empty() { theme.heading() } else { theme.sorted() };
            spans.push(Span::styled(cell(&format!("{}{mark}", column.head), *width, column.right), style));
            spans.push(Span::raw(" "));
        }
        Line::from(spans)
    }

    fn row(&self, item: &T, widths: &[(usize, u16)]) -> String {
        let mut row = String::new();
        for (place, width) in widths {
            let column = &self.columns[*place];
            row += &cell(&(column.text)(item), *width, column.right);
            row.push(' ');
        }
        row
    }
}

fn cell(text: &str, width: u16, right: bool) -> String {
    let width = usize::from(width);
    let text = fit(text, width);
    if right { format!("{text:>width$}") } else { format!("{text:<width$}") }
}

/// Rows that are seen at once: all lines but that of the headings.
fn visible_rows(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column<u64>] = &[
        Column {
            head: "N",
            width: 6,
            rank: 0,
            right: true,
            text: |n| n.to_string(),
            order: Some(|a, b| a.cmp(b)),
            descending: true,
        },
        Column {
            head: "NAME",
            width: 0,
            rank: 1,
            right: false,
            text: |n| format!("n{n}"),
            order: None,
            descending: false,
        },
    ];
    const AREA: Rect = Rect::new(0, 0, 40, 11);

    fn list(items: &[u64]) -> List<u64> {
        let mut list = List::new(COLUMNS, 0, |n| *n);
        list.arrange(items, |_| true);
        list
    }

    #[test]
    fn the_selected_row_stays_selected_when_rows_come_and_go() {
        let mut list = list(&[1, 2, 3, 4]);
        list.go(Motion::Lines(1), &[1, 2, 3, 4], AREA);
        assert_eq!(list.selected(&[1, 2, 3, 4]), Some(&3));
        let more = [9, 8, 1, 2, 3, 4];
        list.arrange(&more, |_| true);
        assert_eq!(list.selected(&more), Some(&3));
        let fewer = [1, 2];
        list.arrange(&fewer, |_| true);
        assert!(list.selected(&fewer).is_some());
        list.arrange(&[], |_| true);
        assert_eq!(list.selected(&[]), None);
    }

    #[test]
    fn scrolling_keeps_the_selection_in_sight() {
        let items: Vec<u64> = (0..100_000).collect();
        let mut list = list(&items);
        list.go(Motion::Last, &items, AREA);
        assert_eq!(list.selected(&items), Some(&0));
        assert_eq!(list.first_shown(10), 99_990);
        list.go(Motion::Lines(-3), &items, AREA);
        assert_eq!(list.first_shown(10), 99_990, "no need to move");
        list.go(Motion::Pages(-1), &items, AREA);
        assert_eq!(list.first_shown(10), list.position());
        list.go(Motion::First, &items, AREA);
        assert_eq!(list.first_shown(10), 0);
        assert_eq!(list.first_shown(0), 1.min(list.first_shown(0)), "no room at all");
    }

    #[test]
    fn clicks_select_sort_and_miss() {
        let items = [5, 7, 6];
        let mut list = list(&items);
        assert_eq!(list.click(Position::new(3, 2), &items, AREA), Hit::Row { again: false });
        assert_eq!(list.selected(&items), Some(&6));
        assert_eq!(list.click(Position::new(3, 2), &items, AREA), Hit::Row { again: true });
        assert_eq!(list.click(Position::new(2, 0), &items, AREA), Hit::Heading);
        list.arrange(&items, |_| true);
        assert_eq!(list.rows(&items).copied().collect::<Vec<_>>(), [5, 6, 7]);
        assert_eq!(list.selected(&items), Some(&6), "sorting moves the bar along");
        assert_eq!(list.click(Position::new(20, 0), &items, AREA), Hit::Nothing);
        assert_eq!(list.click(Position::new(3, 9), &items, AREA), Hit::Nothing);
    }

    #[test]
    fn columns_that_do_not_fit_are_left_out() {
        let list = list(&[1]);
        assert_eq!(list.widths(40), [(0, 6), (1, 33)]);
        assert_eq!(list.widths(10), [(0, 6)]);
        assert_eq!(list.widths(3), []);
    }
}
