//! The columns of a list, and sorting.

use crate::screen::theme::Part;

pub(crate) struct Column<T> {
    pub head: &'static str,
    /// Width; 0 takes what is left over (one column at most).
    pub width: u16,
    /// When there is no room, columns with the highest rank are dropped first.
    pub rank: u8,
    /// Whether it is right-aligned.
    pub right: bool,
    pub text: fn(&T) -> String,
    pub sort: Sort<T>,
    /// Whether the initial order is descending.
    pub descending: bool,
    /// Whether it says nothing of a row. If that is so of all rows, it takes no room.
    pub says_nothing: Option<fn(&T) -> bool>,
    /// What it is coloured as, in rows that have no colour of their own.
    pub part: Option<fn(&T) -> Part>,
}

/// The sort key of a column: extracted once, not at every comparison.
pub(crate) enum Sort<T> {
    /// None: the list cannot be sorted by it.
    No,
    /// A number; unknown ones come last in either order.
    Number(fn(&T) -> Option<u64>),
    /// A text; unknown ones come last in either order.
    Text(fn(&T) -> Option<&str>),
}

/// Least width of the column that takes what is left over: this, plus a share of a wide list. It is the most informative
/// one, and must not starve beside less important columns.
const FLEXIBLE: u16 = 12;
const FLEXIBLE_SHARE: u16 = 6;

impl<T> Column<T> {
    /// A text column that the list cannot be sorted by.
    pub(crate) const fn new(head: &'static str, width: u16, rank: u8, text: fn(&T) -> String) -> Column<T> {
        Column {
            head,
            width,
            rank,
            right: false,
            text,
            sort: Sort::No,
            descending: false,
            says_nothing: None,
            part: None,
        }
    }

    /// Left out if it says nothing of any row.
    pub(crate) const fn unless(self, says_nothing: fn(&T) -> bool) -> Column<T> {
        Column { says_nothing: Some(says_nothing), ..self }
    }

    /// Coloured as a part of a bar.
    pub(crate) const fn colored(self, part: fn(&T) -> Part) -> Column<T> {
        Column { part: Some(part), ..self }
    }

    /// Right-aligned numbers, descending.
    pub(crate) const fn number(
        head: &'static str,
        width: u16,
        rank: u8,
        text: fn(&T) -> String,
        key: fn(&T) -> Option<u64>,
    ) -> Column<T> {
        Column { descending: true, ..Column::ids(head, width, rank, text, key) }
    }

    /// Left-aligned text, ascending.
    pub(crate) const fn words(
        head: &'static str,
        width: u16,
        rank: u8,
        text: fn(&T) -> String,
        key: fn(&T) -> Option<&str>,
    ) -> Column<T> {
        Column { sort: Sort::Text(key), ..Column::new(head, width, rank, text) }
    }

    /// Right-aligned numbers that are identifiers, ascending.
    pub(crate) const fn ids(
        head: &'static str,
        width: u16,
        rank: u8,
        text: fn(&T) -> String,
        key: fn(&T) -> Option<u64>,
    ) -> Column<T> {
        Column { right: true, sort: Sort::Number(key), ..Column::new(head, width, rank, text) }
    }

    fn least(&self, of: u16) -> u16 {
        if self.width == 0 { FLEXIBLE.max(of / FLEXIBLE_SHARE) } else { self.width }
    }
}

impl<T> Clone for Sort<T> {
    fn clone(&self) -> Sort<T> {
        *self
    }
}

impl<T> Copy for Sort<T> {}

impl<T> std::fmt::Debug for Column<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.head)
    }
}

impl<T> Sort<T> {
    pub(super) fn is_some(&self) -> bool {
        !matches!(self, Sort::No)
    }

    /// Sorts indices. Stable, so that equal rows stay in place.
    pub(super) fn apply(self, places: Vec<u32>, items: &[T], descending: bool) -> Vec<u32> {
        match self {
            Sort::No => places,
            Sort::Number(key) => {
                let key = |place: u32| match key(&items[place as usize]) {
                    Some(number) => (false, if descending { !number } else { number }, place),
                    None => (true, 0, place),
                };
                let mut keys: Vec<_> = places.into_iter().map(key).collect();
                keys.sort_unstable();
                keys.into_iter().map(|(_, _, place)| place).collect()
            }
            Sort::Text(key) => {
                let key = |place: u32| (key(&items[place as usize]), place);
                let mut keys: Vec<_> = places.into_iter().map(key).collect();
                keys.sort_unstable_by(|a, b| {
                    let order = if descending { b.0.cmp(&a.0) } else { a.0.cmp(&b.0) };
                    a.0.is_none().cmp(&b.0.is_none()).then(order).then(a.1.cmp(&b.1))
                });
                keys.into_iter().map(|(_, place)| place).collect()
            }
        }
    }
}

/// Indices of columns, in order, with their widths.
pub(super) type Widths = Vec<(usize, u16)>;

/// The pages of columns: the most important first, then those that were dropped. The name of a row is on each of them, if
/// there is room.
/// Only the columns at `places` are there.
pub(super) fn pages<T>(columns: &[Column<T>], places: &[usize], width: u16) -> Vec<Widths> {
    let first = widths(columns, places, width);
    let is_in = |place: &usize| first.iter().any(|(shown, _)| shown == place);
    let is_name = |place: &usize| columns[*place].rank == 0 || columns[*place].width == 0;
    let names: Vec<usize> = places.iter().copied().filter(|place| is_in(place) && is_name(place)).collect();
    let mut left_out: Vec<usize> = places.iter().copied().filter(|place| !is_in(place)).collect();
    let mut pages = Vec::from_iter(Some(first).filter(|first| !first.is_empty() || places.is_empty()));
    while !left_out.is_empty() {
        pages.push(next_page(columns, width, &names, &mut left_out));
    }
    pages
}

/// Names, and as many of the dropped columns as fit; at least one.
fn next_page<T>(columns: &[Column<T>], width: u16, names: &[usize], left_out: &mut Vec<usize>) -> Widths {
    let needed = |place: usize| columns[place].least(width).min(width);
    let mut room = width - needed(left_out[0]);
    let mut fits = |place: usize| {
        let fits = needed(place) < room;
        room -= if fits { needed(place) + 1 } else { 0 };
        fits
    };
    let mut shown: Vec<usize> = names.iter().copied().filter(|name| fits(*name)).collect();
    let more = left_out[1..].iter().take_while(|place| fits(**place)).count();
    shown.extend(left_out.drain(..=more));
    shown.sort_unstable();
    let spare = |place: usize| if columns[place].width == 0 { room } else { 0 };
    shown.into_iter().map(|place| (place, needed(place) + spare(place))).collect()
}

/// The columns that fit, in order, with their widths.
fn widths<T>(columns: &[Column<T>], places: &[usize], width: u16) -> Widths {
    let mut by_rank: Vec<usize> = places.to_vec();
    by_rank.sort_by_key(|place| columns[*place].rank);
    let mut left = width.saturating_add(1);
    let fits = |place: &usize| {
        let needed = columns[*place].least(width) + 1;
        let fits = needed <= left;
        left = if fits { left - needed } else { left };
        fits
    };
    let mut shown: Vec<usize> = by_rank.into_iter().take_while(fits).collect();
    shown.sort_unstable();
    let spare = |column: &Column<T>| if column.width == 0 { left } else { 0 };
    shown.into_iter().map(|place| (place, columns[place].least(width) + spare(&columns[place]))).collect()
}
