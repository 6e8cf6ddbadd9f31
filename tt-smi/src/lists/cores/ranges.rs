//! Core ranges as processes name them: rectangles `x,y-x,y`, or `x,y` for a single core, with spaces between them.

/// Most cores that a grid is believed to have; no chip has nearly as many.
pub(crate) const MOST_CORES: u64 = 1024;

/// Columns and rows of cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) columns: u32,
    pub(crate) rows: u32,
}

impl Grid {
    /// `None` for one that no chip has.
    pub(crate) fn new(columns: u64, rows: u64) -> Option<Grid> {
        let is_sane = (1..=MOST_CORES).contains(&columns.checked_mul(rows)?);
        is_sane.then_some(Grid { columns: columns as u32, rows: rows as u32 })
    }

    pub(crate) fn count(self) -> u64 {
        u64::from(self.columns) * u64::from(self.rows)
    }

    /// Its cores, row by row.
    pub(crate) fn cores(self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.rows).flat_map(move |y| (0..self.columns).map(move |x| (x, y)))
    }
}

/// Rectangles of cores: the first and the last core of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CoreRanges(Vec<[(u32, u32); 2]>);

impl CoreRanges {
    /// Reads what a process wrote. `None` unless it names that many cores, all of them in the grid.
    pub(crate) fn parse(text: &str, count: u64, grid: Grid) -> Option<CoreRanges> {
        let core = |text: &str| {
            let (x, y) = text.split_once(',')?;
            let core: (u32, u32) = (number(x)?, number(y)?);
            (core.0 < grid.columns && core.1 < grid.rows).then_some(core)
        };
        let range = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let (first, last) = (core(first)?, core(last)?);
            (first.0 <= last.0 && first.1 <= last.1).then_some([first, last])
        };
        let ranges = CoreRanges(text.split(' ').map(range).collect::<Option<_>>()?);
        // Counted core by core: rectangles that overlap would name fewer than they seem to.
        let named = grid.cores().filter(|core| ranges.contains(*core)).count() as u64;
        (named == count).then_some(ranges)
    }

    pub(crate) fn contains(&self, (x, y): (u32, u32)) -> bool {
        self.0.iter().any(|[first, last]| (first.0..=last.0).contains(&x) && (first.1..=last.1).contains(&y))
    }
}

/// Only digits: `+1` is no core.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// The same notation for these cores, which are in the order of [`Grid::cores`]: runs of a row, and equal runs of
/// adjacent rows as one rectangle.
pub(crate) fn describe(cores: &[(u32, u32)]) -> String {
    let mut ranges: Vec<[(u32, u32); 2]> = Vec::new();
    for run in cores.chunk_by(|a, b| a.1 == b.1 && a.0 + 1 == b.0) {
        let (first, last) = (run[0], run[run.len() - 1]);
        let above =
            ranges.iter_mut().find(|[from, to]| (from.0, to.0, to.1 + 1) == (first.0, last.0, first.1));
        match above {
            Some([_, to]) => to.1 = first.1,
            None => ranges.push([first, last]),
        }
    }
    let text = |[first, last]: &[(u32, u32); 2]| match first == last {
        true => format!("{},{}", first.0, first.1),
        false => format!("{},{}-{},{}", first.0, first.1, last.0, last.1),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GRID: Grid = Grid { columns: 8, rows: 7 };

    #[test]
    fn rectangles_and_single_cores() {
        let ranges = CoreRanges::parse("0,0-7,1 3,4", 17, GRID).unwrap();
        assert!(ranges.contains((7, 1)) && ranges.contains((3, 4)) && !ranges.contains((3, 3)));
    }

    #[test]
    fn what_is_no_set_of_that_many_cores_is_refused() {
        for (text, count) in [
            ("", 0),
            ("0,0", 2),
            ("0,0 0,0", 2),
            ("0,0-1,0 1,0-2,0", 4),
            ("8,0", 1),
            ("0,7", 1),
            ("1,0-0,0", 2),
            ("0,0-4294967295,4294967295", 1),
            ("+1,0", 1),
            (" 1,0", 1),
            ("1", 1),
            (",", 1),
            ("[(x=0,y=0) - (x=7,y=7)]", 64),
        ] {
            assert_eq!(CoreRanges::parse(text, count, GRID), None, "{text:?}");
        }
        assert_eq!(Grid::new(u64::MAX, 2), None);
        assert_eq!(Grid::new(0, 5), None);
    }

    #[test]
    fn cores_are_described_as_few_rectangles() {
        let all: Vec<_> = GRID.cores().collect();
        assert_eq!(describe(&all), "0,0-7,6");
        let rest: Vec<_> = all.into_iter().filter(|core| core.1 > 0 || core.0 > 2).collect();
        assert_eq!(describe(&rest), "3,0-7,0 0,1-7,6");
        assert_eq!(describe(&[(2, 5)]), "2,5");
    }

    proptest! {
        #[test]
        fn a_description_means_what_it_describes(chosen in prop::collection::vec(any::<bool>(), 56)) {
            let cores: Vec<_> = GRID.cores().zip(&chosen).filter(|(_, is)| **is).map(|(core, _)| core).collect();
            prop_assume!(!cores.is_empty());
            let ranges = CoreRanges::parse(&describe(&cores), cores.len() as u64, GRID).unwrap();
            let again: Vec<_> = GRID.cores().filter(|core| ranges.contains(*core)).collect();
            prop_assert_eq!(again, cores);
        }
    }
}
