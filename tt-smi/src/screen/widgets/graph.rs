//! A canvas for two curves, in dots, eighths of blocks or letters.
//!
//! What is drawn is a range per column, so that a short spike keeps its height however much time a column covers. A range
//! is at least one dot high: known values are always visible, unknown ones never drawn.

use crate::screen::theme::{Signs, Theme};

/// One of the two curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Curve {
    /// The curve of the left axis.
    First,
    /// The curve of the right axis.
    Second,
}

/// Resolution of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dots {
    /// Two by four.
    Braille,
    /// One by eight.
    Blocks,
    /// One by one. Letters distinguish the curves without colours.
    Letters,
}

impl Dots {
    /// What a theme draws with. Without colours two curves of dots could not be distinguished.
    pub(crate) fn of(theme: &Theme) -> Dots {
        match theme.signs {
            Signs::Ascii => Dots::Letters,
            _ if !theme.is_colored() => Dots::Letters,
            Signs::Braille => Dots::Braille,
            Signs::Blocks => Dots::Blocks,
        }
    }

    /// Dots per character, across and down.
    pub(crate) fn size(self) -> (usize, usize) {
        match self {
            Dots::Braille => (2, 4),
            Dots::Blocks => (1, 8),
            Dots::Letters => (1, 1),
        }
    }
}

/// Letters of both curves, and of cells with both.
const LETTERS: [char; 3] = ['D', 'L', 'X'];

/// Dots of two curves.
#[derive(Clone, Debug)]
pub(crate) struct Canvas {
    dots: Dots,
    width: usize,
    height: usize,
    /// The dots of each curve by character, from the top left.
    cells: Vec<[u8; 2]>,
}

impl Canvas {
    /// An empty canvas of this many characters.
    pub(crate) fn new(dots: Dots, width: usize, height: usize) -> Canvas {
        Canvas { dots, width, height, cells: vec![[0; 2]; width * height] }
    }

    /// Columns of dots.
    pub(crate) fn columns(&self) -> usize {
        self.width * self.dots.size().0
    }

    /// Draws a range of a curve in a column of dots; 0 is the bottom and 1 the top.
    pub(crate) fn range(&mut self, curve: Curve, column: usize, low: f64, high: f64) {
        let (across, down) = self.dots.size();
        let rows = self.height * down;
        if column >= self.columns() || rows == 0 {
            return;
        }
        // NaN becomes 0 as an integer.
        let row_of = |value: f64| ((value * rows as f64) as usize).min(rows - 1);
        for from_bottom in row_of(low)..=row_of(high) {
            let row = rows - 1 - from_bottom;
            let cell = &mut self.cells[row / down * self.width + column / across];
            cell[curve as usize] |= bit(self.dots, column % across, row % down);
        }
    }

    /// The character at a position, and its curve; where both meet, the curve with fewer dots, so that a thin curve stays
    /// visible in front of a wide one.
    pub(crate) fn sign(&self, x: usize, y: usize) -> Option<(char, Curve)> {
        let [first, second] = *self.cells.get(y * self.width + x).filter(|_| x < self.width)?;
        let all = first | second;
        if all == 0 {
            return None;
        }
        let curve = match (first.count_ones(), second.count_ones()) {
            (_, 0) => Curve::First,
            (1.., dots) if first.count_ones() < dots => Curve::First,
            _ => Curve::Second,
        };
        let sign = match self.dots {
            Dots::Braille => char::from_u32(0x2800 + u32::from(all)).unwrap_or(' '),
            Dots::Blocks => block(all),
            Dots::Letters if first & second != 0 => LETTERS[2],
            Dots::Letters => LETTERS[curve as usize],
        };
        Some((sign, curve))
    }

    /// The character for a curve in a legend.
    pub(crate) fn key(dots: Dots, curve: Curve) -> char {
        match dots {
            Dots::Letters => LETTERS[curve as usize],
            _ => '█',
        }
    }
}

/// The character with these dots, each by its column and its row from the top.
pub(crate) fn braille(dots: impl Iterator<Item = (usize, usize)>) -> char {
    let bits = dots.fold(0, |bits, (x, y)| bits | bit(Dots::Braille, x, y));
    char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' ')
}

/// The bit of a dot. Braille numbers dots by columns; the last row was added later.
fn bit(dots: Dots, x: usize, y: usize) -> u8 {
    const BRAILLE: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
    match dots {
        Dots::Braille => BRAILLE[x % 2][y % 4],
        // The lowest bit is the lowest eighth.
        Dots::Blocks => 0x80 >> (y % 8),
        Dots::Letters => 1,
    }
}

/// The block that differs in the fewest eighths; not every range has one.
fn block(eighths: u8) -> char {
    const BLOCKS: [(u8, char); 11] = [
        (0x01, '▁'),
        (0x03, '▂'),
        (0x07, '▃'),
        (0x0f, '▄'),
        (0x1f, '▅'),
        (0x3f, '▆'),
        (0x7f, '▇'),
        (0xff, '█'),
        (0xf0, '▀'),
        (0x80, '▔'),
        (0x18, '─'),
    ];
    let nearest = BLOCKS.iter().min_by_key(|(sign, _)| (sign ^ eighths).count_ones());
    nearest.map_or(' ', |(_, sign)| *sign)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn picture(canvas: &Canvas) -> Vec<String> {
        let sign = |x, y| canvas.sign(x, y).map_or(' ', |(sign, _)| sign);
        (0..canvas.height).map(|y| (0..canvas.width).map(|x| sign(x, y)).collect()).collect()
    }

    #[test]
    fn ranges_reach_from_low_to_high() {
        let mut canvas = Canvas::new(Dots::Letters, 3, 4);
        canvas.range(Curve::First, 0, 0.0, 0.0);
        canvas.range(Curve::First, 1, 0.0, 1.0);
        canvas.range(Curve::Second, 1, 0.5, 0.5);
        canvas.range(Curve::Second, 2, 0.25, 0.6);
        assert_eq!(picture(&canvas), [" D ", " XL", " DL", "DD "]);
    }

    #[test]
    fn braille_and_blocks_are_finer() {
        let mut canvas = Canvas::new(Dots::Braille, 1, 1);
        canvas.range(Curve::First, 0, 0.0, 0.0);
        canvas.range(Curve::Second, 1, 0.0, 1.0);
        assert_eq!(canvas.sign(0, 0), Some(('\u{28f8}', Curve::First)), "the thin one");
        let mut canvas = Canvas::new(Dots::Blocks, 1, 2);
        canvas.range(Curve::First, 0, 0.0, 0.2);
        assert_eq!(picture(&canvas), [" ", "▄"]);
        let mut canvas = Canvas::new(Dots::Blocks, 1, 1);
        canvas.range(Curve::First, 0, 0.99, 2.0);
        assert_eq!(picture(&canvas), ["▔"]);
    }

    proptest! {
        #[test]
        fn nothing_known_is_invisible(
            low in -0.5..1.5_f64,
            more in 0.0..1.5_f64,
            column in 0..30_usize,
            (width, height) in (0..9_usize, 0..5_usize),
            dots in prop::sample::select(vec![Dots::Braille, Dots::Blocks, Dots::Letters]),
        ) {
            let mut canvas = Canvas::new(dots, width, height);
            canvas.range(Curve::First, column, low, low + more);
            let x = column / dots.size().0;
            let seen = (0..height).filter_map(|y| canvas.sign(x, y)).count();
            let inside = column < canvas.columns() && height > 0;
            prop_assert_eq!(seen > 0, inside);
            let others = (0..width).filter(|other| *other != x).flat_map(|x| (0..height).map(move |y| (x, y)));
            prop_assert_eq!(others.filter(|(x, y)| canvas.sign(*x, *y).is_some()).count(), 0);
        }
    }
}
