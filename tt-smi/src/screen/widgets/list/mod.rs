//! A list that sorts, filters and scrolls. Only visible lines are formatted, so a hundred thousand rows cost little more
//! than twenty.

mod column;
mod growing;
mod viewport;

pub(crate) use column::{Column, Sort};

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::escape::{columns, pad};
use crate::screen::action::Motion;
use crate::screen::theme::Theme;
use viewport::{GUTTER, Viewport, without_start};

/// The result of a click.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hit {
    /// A heading: the order changed; arrange after it.
    Heading,
    /// A row, which is now selected; whether it was before.
    Row {
        again: bool,
    },
    Nothing,
}

/// The style of a row, and its mark.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowStyle {
    /// Its style, unless it is selected.
    pub style: Style,
    /// The mark before it.
    pub mark: Option<char>,
}

impl From<Style> for RowStyle {
    fn from(style: Style) -> RowStyle {
        RowStyle { style, mark: None }
    }
}

impl RowStyle {
    pub(crate) fn warn(theme: &Theme) -> RowStyle {
        RowStyle { style: theme.warn(), mark: Some('!') }
    }
}

/// Order, selection and scroll position of a list.
#[derive(Debug)]
pub(crate) struct List<T: 'static> {
    columns: &'static [Column<T>],
    key: fn(&T) -> u64,
    sort: usize,
    descending: bool,
    order: Vec<u32>,
    selected: usize,
    /// Key of the selected row, so that it stays selected when rows come and go.
    selected_key: Option<u64>,
    top: usize,
    /// Steps to the right: pages of columns, then of a text that is cut.
    aside: usize,
    /// Only the focused list shows its selection.
    has_focus: bool,
    /// Whether the user wants each column; `None` if nothing was chosen.
    chosen: Vec<Option<bool>>,
    /// Columns that say nothing of any row.
    needless: Vec<bool>,
}

impl<T> List<T> {
    /// An empty list, sorted by a column. `key` identifies rows.
    pub(crate) fn new(columns: &'static [Column<T>], sort: usize, key: fn(&T) -> u64) -> List<T> {
        let descending = columns.get(sort).is_some_and(|column| column.descending);
        let (order, selected_key, has_focus) = (Vec::new(), None, true);
        List {
            columns,
            key,
            sort,
            descending,
            order,
            selected: 0,
            selected_key,
            top: 0,
            aside: 0,
            has_focus,
            chosen: vec![None; columns.len()],
            needless: vec![false; columns.len()],
        }
    }

    fn is_wanted(&self, place: usize) -> bool {
        self.chosen[place].unwrap_or(!self.needless[place])
    }

    /// The columns that are wanted.
    fn places(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|place| self.is_wanted(*place)).collect()
    }

    /// All columns, and whether each is wanted.
    pub(crate) fn columns(&self) -> Vec<(&'static str, bool)> {
        self.columns.iter().enumerate().map(|(place, column)| (column.head, self.is_wanted(place))).collect()
    }

    /// Shows or hides a column. One always stays.
    pub(crate) fn toggle_column(&mut self, place: usize) {
        if place < self.columns.len() && self.places() != [place] {
            self.chosen[place] = Some(!self.is_wanted(place));
            self.aside = 0;
        }
    }

    /// Selects the next row with this text in any of its columns, cyclically, from the selected one on or after it;
    /// returns whether there is one.
    pub(crate) fn find(&mut self, text: &str, after: bool, items: &[T]) -> bool {
        let text = text.to_lowercase();
        let places = self.places();
        let has = |item: &T| {
            places.iter().any(|place| (self.columns[*place].text)(item).to_lowercase().contains(&text))
        };
        let all = self.order.len();
        let places = (0..all).map(|step| (self.selected + step + usize::from(after)) % all);
        let found = places.into_iter().find(|place| items.get(self.order[*place] as usize).is_some_and(has));
        if let Some(place) = found {
            self.selected = place;
            self.selected_key = self.selected(items).map(self.key);
        }
        found.is_some()
    }

    /// Sets whether the list has the focus.
    pub(crate) fn focus(&mut self, has_focus: bool) {
        self.has_focus = has_focus;
    }

    /// Filters and sorts rows. The selection is kept if the row is still there.
    pub(crate) fn arrange(&mut self, items: &[T], wanted: impl Fn(&T) -> bool) {
        let mut places = std::mem::take(&mut self.order);
        places.clear();
        let kept = items.iter().enumerate().filter(|(_, item)| wanted(item));
        places.extend(kept.map(|(place, _)| place as u32));
        for (needless, column) in self.needless.iter_mut().zip(self.columns) {
            let says_nothing = |says_nothing: fn(&T) -> bool| {
                places.iter().filter_map(|place| items.get(*place as usize)).all(says_nothing)
            };
            *needless = column.says_nothing.is_some_and(says_nothing);
        }
        let sort = self.columns.get(self.sort).map_or(Sort::No, |column| column.sort);
        self.order = sort.apply(places, items, self.descending);
        self.find_selected(items);
    }

    /// Reorders the rows shown, for example as a tree.
    pub(crate) fn reorder(&mut self, items: &[T], order: impl FnOnce(Vec<u32>) -> Vec<u32>) {
        self.order = order(std::mem::take(&mut self.order));
        self.find_selected(items);
    }

    fn find_selected(&mut self, items: &[T]) {
        let key = self.key;
        let key_at = |place: &u32| items.get(*place as usize).map(key);
        let same = |place: &u32| key_at(place) == self.selected_key;
        let found = self.selected_key.and_then(|_| self.order.iter().position(same));
        let before = self.selected;
        self.selected = found.unwrap_or(before).min(self.order.len().saturating_sub(1));
        self.selected_key = self.order.get(self.selected).and_then(key_at);
        // After scrolling down, the line stays in place; at the top, new first lines come into view.
        if self.top > 0 {
            self.top = (self.top + self.selected).saturating_sub(before);
        }
    }

    /// Number of rows shown.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Position of the selected row, from 0.
    pub(crate) fn position(&self) -> usize {
        self.selected
    }

    pub(crate) fn selected<'a>(&self, items: &'a [T]) -> Option<&'a T> {
        items.get(*self.order.get(self.selected)? as usize)
    }

    /// The rows in order.
    #[cfg(test)]
    pub(crate) fn rows<'a>(&'a self, items: &'a [T]) -> impl Iterator<Item = &'a T> {
        self.order.iter().filter_map(|place| items.get(*place as usize))
    }

    /// Names of the sort columns, and the current one.
    pub(crate) fn sorts(&self) -> (Vec<&'static str>, Option<usize>) {
        let names = self.sortable().map(|(_, column)| column.head).collect();
        (names, self.sortable().position(|(place, _)| place == self.sort))
    }

    /// Sorts by one of [`List::sorts`]; arrange after it.
    pub(crate) fn sort_by(&mut self, choice: usize) {
        if let Some((place, column)) = self.sortable().nth(choice) {
            (self.sort, self.descending) = (place, column.descending);
        }
    }

    /// Reverses the sort order; arrange after it.
    pub(crate) fn reverse(&mut self) {
        self.descending = !self.descending;
    }

    fn sortable(&self) -> impl Iterator<Item = (usize, &'static Column<T>)> + use<T> {
        let columns = self.columns;
        columns.iter().enumerate().filter(|(_, column)| column.sort.is_some())
    }

    /// Moves the selection in the list as drawn in this area.
    pub(crate) fn go(&mut self, motion: Motion, items: &[T], area: Rect) {
        if let Motion::Aside(steps) = motion {
            let most = Viewport::of(self, items, area).most;
            let steps = i64::from(steps) + self.aside.min(most) as i64;
            self.aside = steps.clamp(0, most as i64) as usize;
            return;
        }
        let height = visible_rows(area);
        let last = self.order.len().saturating_sub(1);
        if let Some(place) = motion.target(self.selected, last, height.max(1)) {
            self.select(place, items, height);
        }
    }

    /// Selects the last row, whatever the height.
    pub(crate) fn go_last(&mut self, items: &[T]) {
        self.selected = self.order.len().saturating_sub(1);
        self.selected_key = self.selected(items).map(self.key);
        // As far up as possible: drawing scrolls down as far as the selected row needs.
        self.top = 0;
    }

    /// Whether the last row is selected.
    pub(crate) fn is_at_end(&self) -> bool {
        self.selected + 1 >= self.order.len()
    }

    fn select(&mut self, place: usize, items: &[T], height: usize) {
        self.top = self.first_shown(height);
        self.selected = place;
        self.selected_key = self.selected(items).map(self.key);
        self.top = self.first_shown(height);
    }

    /// Selects the row with this key, if it exists.
    pub(crate) fn select_key(&mut self, wanted: u64, items: &[T]) {
        self.selected_key = Some(wanted);
        self.find_selected(items);
    }

    /// The row at the top: the scroll position, adjusted so that the selected row is visible. Without focus nothing looks
    /// selected, and a row that sank to the end takes nothing along.
    fn first_shown(&self, height: usize) -> usize {
        let lowest = (self.selected + 1).saturating_sub(height);
        let fits = self.order.len().saturating_sub(height);
        if !self.has_focus {
            return self.top.min(fits);
        }
        self.top.clamp(lowest, self.selected.max(lowest)).min(fits.max(lowest))
    }

    /// Handles a click into the list as drawn in this area.
    pub(crate) fn click(&mut self, at: Position, items: &[T], area: Rect) -> Hit {
        if !area.contains(at) {
            return Hit::Nothing;
        }
        if at.y == area.y {
            return self.click_heading(at.x - area.x, items, area);
        }
        let place = self.first_shown(visible_rows(area)) + usize::from(at.y - area.y - 1);
        if place >= self.order.len() {
            return Hit::Nothing;
        }
        let again = place == self.selected;
        self.select(place, items, visible_rows(area));
        Hit::Row { again }
    }

    fn click_heading(&mut self, x: u16, items: &[T], area: Rect) -> Hit {
        let viewport = Viewport::of(self, items, area);
        match x {
            0 if viewport.has_before() => {
                self.go(Motion::Aside(-1), items, area);
                return Hit::Heading;
            }
            _ if x + 1 == area.width && viewport.has_more() => {
                self.go(Motion::Aside(1), items, area);
                return Hit::Heading;
            }
            _ => {}
        }
        let mut end = GUTTER;
        let column = viewport.widths.into_iter().find(|(_, width)| {
            end += width + 1;
            x < end
        });
        let Some((place, _)) = column.filter(|(place, _)| self.columns[*place].sort.is_some()) else {
            return Hit::Nothing;
        };
        match place == self.sort {
            true => self.reverse(),
            false => (self.sort, self.descending) = (place, self.columns[place].descending),
        }
        Hit::Heading
    }

    /// Draws the headings and the visible rows.
    pub(crate) fn draw<L: Into<RowStyle>>(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        items: &[T],
        theme: &Theme,
        style: impl Fn(&T) -> L,
    ) {
        if area.is_empty() {
            return;
        }
        let viewport = Viewport::of(self, items, area);
        let line_at = |y: u16| Rect { y: area.y + y, height: 1, ..area };
        frame.render_widget(self.heading(&viewport, theme), line_at(0));
        let sign_at = |x: u16| Rect { x, width: 1, ..line_at(0) };
        if viewport.has_before() {
            frame.render_widget(Span::styled("‹", theme.warn()), sign_at(area.x));
        }
        if viewport.has_more() {
            frame.render_widget(Span::styled("›", theme.warn()), sign_at(area.right() - 1));
        }
        let height = visible_rows(area);
        self.draw_more(frame, line_at(0), &viewport, height, theme);
        let places = self.order.iter().enumerate().skip(self.first_shown(height)).take(height);
        for (y, (place, item)) in (1..).zip(places) {
            let Some(item) = items.get(*item as usize) else { continue };
            let style = style(item).into();
            let text = self.row(item, &viewport, style.mark.unwrap_or(' '));
            let line = match self.has_focus && place == self.selected {
                false => Line::styled(text, style.style),
                // As wide as the list, so that the selection bar has a straight end.
                true => Line::styled(pad(&text, usize::from(area.width), false), theme.selected()),
            };
            let is_plain = line.style == Style::new();
            frame.render_widget(line, line_at(y));
            if is_plain {
                self.color_columns(frame, line_at(y), item, &viewport, theme);
            }
        }
    }

    fn color_columns(&self, frame: &mut Frame<'_>, line: Rect, item: &T, viewport: &Viewport, theme: &Theme) {
        let mut x = line.x + GUTTER;
        for (place, width) in &viewport.widths {
            if let Some(part) = self.columns[*place].part {
                let cells = Rect { x, width: *width, ..line }.intersection(line);
                frame.buffer_mut().set_style(cells, theme.part(part(item)).1);
            }
            x = x.saturating_add(width + 1);
        }
    }

    /// How many rows are above and below, at the end of the headings if there is room.
    fn draw_more(
        &self,
        frame: &mut Frame<'_>,
        line: Rect,
        viewport: &Viewport,
        height: usize,
        theme: &Theme,
    ) {
        let above = self.first_shown(height);
        let below = self.order.len().saturating_sub(above + height);
        let (long, short) = match (above, below) {
            (0, 0) => return,
            (0, below) => (format!(" {below} more ↓ "), format!(" {below} ↓ ")),
            (above, 0) => (format!(" {above} above ↑ "), format!(" {above} ↑ ")),
            (above, below) => (format!(" {above} ↑ {below} ↓ "), String::new()),
        };
        let Some(((place, last), before)) = viewport.widths.split_last() else { return };
        let column = &self.columns[*place];
        let start = line.x + GUTTER + before.iter().map(|(_, width)| width + 1).sum::<u16>();
        let head = if column.right { *last } else { column.head.chars().count() as u16 };
        let room = line.right().saturating_sub(start + head + 1);
        let width = |text: &String| text.chars().count() as u16;
        let beside = [&long, &short].into_iter().find(|text| !text.is_empty() && width(text) <= room);
        // Over a heading only if that column is wide: that something is missing is more important.
        let over = Some(&long).filter(|text| *last > width(text) && line.width > width(text) + 1);
        if let Some(text) = beside.or(over) {
            let area = Rect { x: line.right() - width(text) - 1, width: width(text), ..line };
            frame.render_widget(Span::styled(text.clone(), theme.warn()), area);
        }
    }

    fn heading(&self, viewport: &Viewport, theme: &Theme) -> Line<'static> {
        let mut spans = vec![Span::raw(" ".repeat(usize::from(GUTTER)))];
        for (place, width) in &viewport.widths {
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

    fn row(&self, item: &T, viewport: &Viewport, mark: char) -> String {
        let cell = |(place, width): &(usize, u16)| {
            let column = &self.columns[*place];
            let text = (column.text)(item);
            let text = if column.width == 0 { without_start(&text, viewport.shift) } else { text };
            pad(&text, usize::from(*width), column.right)
        };
        let cells: Vec<String> = viewport.widths.iter().map(cell).collect();
        format!("{mark}{}", cells.join(" "))
    }
}

/// Draws a text below the headings of an empty list.
pub(crate) fn draw_empty(frame: &mut Frame<'_>, area: Rect, text: &str, theme: &Theme) {
    if area.height > 1 {
        frame.render_widget(Line::styled(text, theme.dim()), Rect { y: area.y + 1, height: 1, ..area });
    }
}

/// Number of visible rows: all lines but the headings.
fn visible_rows(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(1))
}

#[cfg(test)]
mod tests;
