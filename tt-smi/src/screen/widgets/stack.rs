//! A canvas for an area of several layers, in dots, eighths of blocks or letters.
//!
//! Each dot has the layer that covers it. A character of dots has the colour of the layer with the most dots; a character
//! of blocks shows the border between two layers, since it has a foreground and a background.

use super::graph::{Dots, braille};

/// A layer, by its number; the caller knows its colour.
pub(crate) type Layer = u8;

const NOTHING: Layer = Layer::MAX;
const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A character of the canvas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sign {
    /// `None` if a letter of the layer is to be drawn.
    pub sign: Option<char>,
    pub layer: Layer,
    /// The layer behind the character.
    pub behind: Option<Layer>,
}

/// The dots of an area.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    dots: Dots,
    width: usize,
    height: usize,
    /// The layer of each dot, column by column, from the bottom.
    layers: Vec<Layer>,
}

impl Stack {
    /// An empty canvas of this many characters.
    pub(crate) fn new(dots: Dots, width: usize, height: usize) -> Stack {
        let (across, down) = dots.size();
        Stack { dots, width, height, layers: vec![NOTHING; width * across * height * down] }
    }

    /// Columns of dots.
    pub(crate) fn columns(&self) -> usize {
        self.width * self.dots.size().0
    }

    fn rows(&self) -> usize {
        self.height * self.dots.size().1
    }

    /// Covers a column with layers, each up to its end; 0 is the bottom and 1 the top. What is known is at least one dot
    /// high, even if it is 0.
    pub(crate) fn pile(&mut self, column: usize, ends: &[(Layer, f64)]) {
        let rows = self.rows();
        let Some(column) = self.layers.chunks_exact_mut(rows.max(1)).nth(column) else { return };
        let mut from = 0;
        for (layer, end) in ends {
            // NaN becomes 0 as an integer.
            let to = ((end * rows as f64).round() as usize).min(rows);
            if to > from {
                column[from..to].fill(*layer);
                from = to;
            }
        }
        if let (0, Some((layer, _)), Some(dot)) = (from, ends.first(), column.first_mut()) {
            *dot = *layer;
        }
    }

    fn layer(&self, column: usize, from_bottom: usize) -> Layer {
        self.layers.get(column * self.rows() + from_bottom).copied().unwrap_or(NOTHING)
    }

    /// The character at a position, if there is anything.
    pub(crate) fn sign(&self, x: usize, y: usize) -> Option<Sign> {
        if x >= self.width || y >= self.height {
            return None;
        }
        let down = self.dots.size().1;
        let bottom = (self.height - 1 - y) * down;
        match self.dots {
            Dots::Braille => self.braille(x, bottom),
            Dots::Blocks => self.block(x, bottom),
            Dots::Letters => {
                let layer = self.layer(x, bottom);
                (layer != NOTHING).then_some(Sign { sign: None, layer, behind: None })
            }
        }
    }

    fn braille(&self, x: usize, bottom: usize) -> Option<Sign> {
        let places = (0..2).flat_map(|column| (0..4).map(move |row| (column, row)));
        let dots = places.map(|(column, row)| (column, row, self.layer(2 * x + column, bottom + row)));
        let covered: Vec<_> = dots.filter(|(_, _, layer)| *layer != NOTHING).collect();
        let of = |wanted: Layer| covered.iter().filter(|(_, _, layer)| *layer == wanted).count();
        let (_, _, layer) = covered.iter().max_by_key(|(_, _, layer)| of(*layer))?;
        let sign = braille(covered.iter().map(|(column, row, _)| (*column, 3 - row)));
        Some(Sign { sign: Some(sign), layer: *layer, behind: None })
    }

    fn block(&self, x: usize, bottom: usize) -> Option<Sign> {
        let dots: [Layer; 8] = std::array::from_fn(|row| self.layer(x, bottom + row));
        let layer = dots[0];
        let high = dots.iter().take_while(|dot| **dot == layer).count();
        let behind = dots.get(high).copied().filter(|layer| *layer != NOTHING);
        (layer != NOTHING).then(|| Sign { sign: Some(EIGHTHS[high - 1]), layer, behind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(stack: &Stack) -> Vec<Option<(char, Layer, Option<Layer>)>> {
        let places = (0..stack.height).flat_map(|y| (0..stack.width).map(move |x| (x, y)));
        places.map(|(x, y)| stack.sign(x, y).map(|s| (s.sign.unwrap_or('?'), s.layer, s.behind))).collect()
    }

    #[test]
    fn a_border_within_a_block_has_both_layers() {
        let mut stack = Stack::new(Dots::Blocks, 2, 2);
        stack.pile(0, &[(0, 0.25), (1, 0.75)]);
        stack.pile(1, &[(0, 0.5)]);
        assert_eq!(
            signs(&stack),
            [Some(('▄', 1, None)), None, Some(('▄', 0, Some(1))), Some(('█', 0, None))]
        );
    }

    #[test]
    fn dots_have_the_layer_with_the_most_of_them() {
        let mut stack = Stack::new(Dots::Braille, 1, 1);
        stack.pile(0, &[(3, 1.0)]);
        stack.pile(1, &[(4, 0.25)]);
        assert_eq!(signs(&stack), [Some(('\u{28c7}', 3, None))]);
    }

    #[test]
    fn nothing_used_is_seen_and_nothing_known_is_not() {
        let mut stack = Stack::new(Dots::Blocks, 2, 1);
        stack.pile(0, &[(2, 0.0), (1, 0.0)]);
        stack.pile(9, &[(2, 1.0)]);
        assert_eq!(signs(&stack), [Some(('▁', 2, None)), None]);
        let mut letters = Stack::new(Dots::Letters, 1, 2);
        letters.pile(0, &[(1, 0.4), (0, 5.0)]);
        assert_eq!(signs(&letters), [Some(('?', 0, None)), Some(('?', 1, None))]);
    }

    #[test]
    fn no_room_is_no_trouble() {
        for (width, height) in [(0, 0), (0, 3), (3, 0)] {
            let mut stack = Stack::new(Dots::Braille, width, height);
            stack.pile(0, &[(0, 1.0)]);
            assert!(stack.sign(0, 0).is_none());
        }
    }
}
