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

/// A sign for each number of bytes. Small changes of much stay small: the lowest sign is at most half of the most. Where
/// nothing changes, it is in the middle.
pub(crate) fn used_trend(values: &[Option<u64>]) -> String {
    let least = values.iter().flatten().min().copied().unwrap_or(0);
    let most = values.iter().flatten().max().copied().unwrap_or(0);
    let low = least.min(most / 2);
    let sign = |value: u64| match most {
        0 => EIGHTHS[0],
        _ if most - least <= most / 16 => EIGHTHS[3],
        _ => EIGHTHS[((value - low) as f64 / (most - low) as f64 * 7.0).round() as usize],
    };
    values.iter().map(|value| value.map_or(' ', sign)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_change_of_much_is_a_flat_line() {
        assert_eq!(used_trend(&[Some(1000), Some(1001), None]), "▄▄ ");
        assert_eq!(used_trend(&[Some(0), Some(0)]), "▁▁");
        assert_eq!(used_trend(&[Some(500), Some(750), Some(1000)]), "▁▅█");
        assert_eq!(used_trend(&[Some(900), Some(1000)]), "▇█");
        assert_eq!(used_trend(&[Some(950), Some(1000)]), "▄▄");
    }

    #[test]
    fn it_goes_from_the_least_to_the_most_and_leaves_out_what_is_unknown() {
        let ascii = Theme { signs: Signs::Ascii, ..Theme::MONO };
        assert_eq!(trend(&[Some(-5), None, Some(0), Some(10)], &ascii), "_ .^");
        assert_eq!(trend(&[Some(7), Some(7)], &ascii), "--");
        assert_eq!(trend(&[None, None], &ascii), "  ");
    }
}
