//! Columns that fit a terminal: the least important are dropped, and one gets the remaining width.

use crate::escape::{columns, fit};
use crate::output::columns::{Align, Columns};

/// Blanks between two columns.
const GAP: usize = 2;
/// Least useful width of a command line.
const LEAST: usize = 16;

/// A column, and its importance if there is no room for all.
pub(super) struct Column {
    pub(super) head: &'static str,
    pub(super) align: Align,
    /// The lowest are dropped first; `None` is never dropped.
    pub(super) rank: Option<u8>,
    pub(super) may_be_cut: bool,
    pub(super) cells: Vec<String>,
}

impl Column {
    fn width(&self) -> usize {
        self.cells.iter().map(|cell| columns(cell)).chain([self.head.len()]).max().unwrap_or(0)
    }
}

/// Drops columns until the rest fits into `width`. Of those that may be cut, the last one gets the remaining width.
pub(super) fn fit_into(mut all: Vec<Column>, width: usize) -> Vec<Column> {
    while whole_width(&all) > width {
        let cut = all.iter().rposition(|column| column.may_be_cut);
        let ranked = all.iter().enumerate().filter_map(|(place, column)| Some((column.rank?, place)));
        let (least_ranked, whole) = (ranked.min(), whole_width(&all));
        let fits = |place: usize| {
            let own = all[place].width();
            whole - own + own.min(LEAST) <= width
        };
        match (cut, least_ranked) {
            (Some(place), dropped) if fits(place) || dropped.is_none() => {
                let others = whole - all[place].width();
                let rest = width.saturating_sub(others).max(1);
                all[place].cells.iter_mut().for_each(|cell| *cell = fit(cell.as_str(), rest));
                break;
            }
            (_, Some((_, place))) => drop(all.remove(place)),
            (_, None) => break,
        }
    }
    all
}

fn whole_width(all: &[Column]) -> usize {
    all.iter().map(Column::width).sum::<usize>() + GAP * all.len().saturating_sub(1)
}

/// The columns as a table.
pub(super) fn table(all: &[Column]) -> Columns {
    let heads: Vec<(&'static str, Align)> = all.iter().map(|column| (column.head, column.align)).collect();
    let mut columns = Columns::new(&heads);
    for line in 0..all.first().map_or(0, |column| column.cells.len()) {
        columns.push(all.iter().map(|column| column.cells[line].clone()).collect());
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Column> {
        let column = |head, rank, cell: &str| Column {
            head,
            align: Align::Left,
            rank,
            may_be_cut: head == "COMMAND",
            cells: vec![cell.to_owned(), "x".to_owned()],
        };
        vec![
            column("PID", None, "12345"),
            column("USER", Some(2), "somebody"),
            column("TRACE", Some(1), "10.0 MiB"),
            column("COMMAND", Some(3), "python3 train.py --steps 1000"),
        ]
    }

    fn lines(width: usize) -> Vec<String> {
        let mut out = Vec::new();
        table(&fit_into(all(), width)).write(&mut out, crate::output::paint::Paint::PLAIN).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_matters_least_is_left_out_and_the_command_is_cut() {
        let all = "PID    USER      TRACE     COMMAND";
        assert_eq!(lines(100)[..2], [all, "12345  somebody  10.0 MiB  python3 train.py --steps 1000"]);
        assert_eq!(lines(50)[..2], [all, "12345  somebody  10.0 MiB  python3 train.py --ste…"]);
        assert_eq!(lines(40)[..2], ["PID    USER      COMMAND", "12345  somebody  python3 train.py --ste…"]);
        assert_eq!(lines(25)[..2], ["PID    COMMAND", "12345  python3 train.py …"]);
        for width in 5..100 {
            assert!(lines(width).iter().all(|line| columns(line) <= width), "{width}");
        }
    }
}
