//! The columns of a list, and what rows are sorted by.

/// A column.
pub(crate) struct Column<T> {
    /// Heading.
    pub head: &'static str,
    /// Columns of the terminal; 0 takes what is left over, one column at most.
    pub width: u16,
    /// Where there is no room, the columns with the highest rank go first.
    pub rank: u8,
    /// Numbers stand right.
    pub right: bool,
    /// What stands there.
    pub text: fn(&T) -> String,
    /// What to sort by.
    pub sort: Sort<T>,
    /// Whether the largest come first at first.
    pub descending: bool,
}

/// What a column is sorted by: numbers are taken out once, not at every comparison.
pub(crate) enum Sort<T> {
    /// Nothing: not to be sorted by.
    No,
    /// A number; unknown ones come last in either order.
    Number(fn(&T) -> Option<u64>),
    /// A text; unknown ones come last in either order.
    Text(fn(&T) -> Option<&str>),
}

/// The least that a column without a width gets: this, and a share of a wide list. What takes what is left over
/// tells most, and must not starve beside columns that tell little.
const FLEXIBLE: u16 = 12;
const FLEXIBLE_SHARE: u16 = 6;

impl<T> Column<T> {
    /// A column of text that is not sorted by.
    pub(crate) const fn new(head: &'static str, width: u16, rank: u8, text: fn(&T) -> String) -> Column<T> {
        Column { head, width, rank, right: false, text, sort: Sort::No, descending: false }
    }

    /// At the right, the largest first.
    pub(crate) const fn number(
        head: &'static str,
        width: u16,
        rank: u8,
        text: fn(&T) -> String,
        key: fn(&T) -> Option<u64>,
    ) -> Column<T> {
        Column { descending: true, ..Column::ids(head, width, rank, text, key) }
    }

    /// At the left, by the alphabet.
    pub(crate) const fn words(
        head: &'static str,
        width: u16,
        rank: u8,
        text: fn(&T) -> String,
        key: fn(&T) -> Option<&str>,
    ) -> Column<T> {
        Column { sort: Sort::Text(key), ..Column::new(head, width, rank, text) }
    }

    /// At the right, the smallest first: numbers that are names.
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

    /// Puts places in order. Equal rows stay as they were, so that they do not dance.
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

/// Places of columns, in order, with their widths.
pub(super) type Widths = Vec<(usize, u16)>;

/// What is seen at once, page by page: first what matters most, then what was left out. What a row is called is
/// on each of them, where there is room.
pub(super) fn pages<T>(columns: &[Column<T>], width: u16) -> Vec<Widths> {
    let first = widths(columns, width);
    let is_in = |place: &usize| first.iter().any(|(shown, _)| shown == place);
    let is_name = |place: &usize| columns[*place].rank == 0 || columns[*place].width == 0;
    let names: Vec<usize> = (0..columns.len()).filter(|place| is_in(place) && is_name(place)).collect();
    let mut left_out: Vec<usize> = (0..columns.len()).filter(|place| !is_in(place)).collect();
    let mut pages = Vec::from_iter(Some(first).filter(|first| !first.is_empty() || columns.is_empty()));
    while !left_out.is_empty() {
        pages.push(next_page(columns, width, &names, &mut left_out));
    }
    pages
}

/// Names, and as many of those that are left out as fit: one at least, however narrow it is.
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
fn widths<T>(columns: &[Column<T>], width: u16) -> Widths {
    let mut by_rank: Vec<usize> = (0..columns.len()).collect();
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
