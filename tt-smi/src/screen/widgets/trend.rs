//! A curve in one line of text.

use crate::screen::theme::{Signs, Theme};

const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 4] = ['_', '.', '-', '^'];

/// A sign for each value, between the least and the most of all; a blank where nothing is known.
pub(crate) fn trend(values: &[Option<i64>], theme: &Theme) -> String {
    let signs: &[char] = if theme.signs == Signs::Ascii { &ASCII } else { &EIGHTHS };
    let least = values.iter().flatten().min().copied().unwrap_or(0);
    let most = values.iter().flatten().max().copied().unwrap_or(0);
    let sign = |value: i64| {
        // All the same is in the middle.
        let part = if most > least { (value - least) as f64 / (most - least) as f64 } else { 0.5 };
        signs[(part * (signs.len() - 1) as f64).round() as usize]
    };
    values.iter().map(|value| value.map_or(' ', sign)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_from_the_least_to_the_most_and_leaves_out_what_is_unknown() {
        let ascii = Theme { signs: Signs::Ascii, ..Theme::MONO };
        assert_eq!(trend(&[Some(-5), None, Some(0), Some(10)], &ascii), "_ .^");
        assert_eq!(trend(&[Some(7), Some(7)], &ascii), "--");
        assert_eq!(trend(&[None, None], &ascii), "  ");
    }
}
