//! Numbers for people.

use crate::units::UNKNOWN;

/// Ascending numbers as ranges: `0-3,5`; "-" for none.
pub fn ranges(numbers: impl IntoIterator<Item = usize>) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == number => *end = number,
            _ => runs.push((number, number)),
        }
    }
    let run = |(start, end): &(usize, usize)| match start == end {
        true => start.to_string(),
        false => format!("{start}-{end}"),
    };
    let text: Vec<String> = runs.iter().map(run).collect();
    if text.is_empty() { UNKNOWN.to_owned() } else { text.join(",") }
}

#[cfg(test)]
mod tests {
    #[test]
    fn device_sets_are_short() {
        let cases: [(&[usize], &str); 4] =
            [(&[], "-"), (&[0, 1, 2, 3], "0-3"), (&[0, 2], "0,2"), (&[1, 2, 5], "1-2,5")];
        for (numbers, text) in cases {
            assert_eq!(super::ranges(numbers.iter().copied()), text);
        }
    }
}
