//! Rectangles of cores: the column and row of the first and of the last core, as tt-metal numbers them.

use std::collections::HashSet;
use std::fmt::Write;

use tt_shm_writer::CoreGrid;

pub(crate) type Rectangle = [usize; 4];

/// No chip has more columns or rows; what is beyond is not a rectangle of cores.
const MOST: usize = 256;

/// The number of cores in any of the rectangles.
pub(crate) fn cores_in(rectangles: &[Rectangle]) -> u32 {
    let mut cores = HashSet::new();
    for [left, top, right, bottom] in rectangles {
        let (right, bottom) = ((*right).min(left + MOST), (*bottom).min(top + MOST));
        cores.extend((*left..=right).flat_map(|x| (*top..=bottom).map(move |y| (x, y))));
    }
    cores.len() as u32
}

/// As segments name them: `0,0-7,3 2,4`.
pub(crate) fn text(rectangles: &[Rectangle]) -> String {
    let mut text = String::new();
    for [left, top, right, bottom] in rectangles {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}{left},{top}");
        if (left, top) != (right, bottom) {
            let _ = write!(text, "-{right},{bottom}");
        }
    }
    text
}

/// The grid that these cores fill, one each, from column and row 0 on; `None` if they are no such grid.
pub(crate) fn grid(cores: &[[usize; 2]]) -> Option<CoreGrid> {
    let [columns, rows] = [0, 1].map(|axis| cores.iter().map(|core| core[axis]).max());
    let (columns, rows) = (columns?.saturating_add(1), rows?.saturating_add(1));
    let all: HashSet<_> = cores.iter().collect();
    let fill = columns <= MOST
        && rows <= MOST
        && all.len() == cores.len()
        && cores.len() == columns.saturating_mul(rows);
    fill.then_some(CoreGrid { columns: columns as u32, rows: rows as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_are_named_and_counted_once() {
        let rectangles = [[0, 0, 7, 3], [2, 4, 2, 4], [2, 4, 2, 4]];
        assert_eq!(text(&rectangles), "0,0-7,3 2,4 2,4");
        assert_eq!(cores_in(&rectangles), 33);
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn a_grid_has_every_core_once() {
        let cores = || (0..3).flat_map(|x| (0..2).map(move |y| [x, y])).collect::<Vec<_>>();
        assert_eq!(grid(&cores()), Some(CoreGrid { columns: 3, rows: 2 }));
        assert_eq!(grid(&cores()[1..]), None);
        assert_eq!(grid(&[cores(), vec![[0, 0]]].concat()), None);
        assert_eq!(grid(&[]), None);
        assert_eq!(grid(&[[usize::MAX, usize::MAX]]), None);
    }
}
