//! Versions of the driver and of firmware.

use std::fmt;

/// Numbers of a version.
const PARTS: usize = 4;
/// Characters of a version.
const MAX_CHARS: usize = 32;

/// A version such as `19.11.0.0`, `6.9.0` or `2.10.0-rc1`. Compared by its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    text: String,
    numbers: [u32; PARTS],
}

impl Version {
    /// Two to four numbers with dots between; the last may have a suffix.
    #[must_use]
    pub fn parse(text: &str) -> Option<Version> {
        let is_printable = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.len() > MAX_CHARS || !is_printable {
            return None;
        }
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (digits, suffix) = text.split_at(end);
        if !(suffix.is_empty() || suffix.starts_with(['-', '+', '~'])) {
            return None;
        }
        let mut numbers = [0; PARTS];
        let mut count = 0;
        for part in digits.split('.') {
            *numbers.get_mut(count)? = part.parse().ok()?;
            count += 1;
        }
        (count >= 2).then(|| Version { text: text.to_owned(), numbers })
    }

    /// As it was read.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is this or a later one.
    #[must_use]
    pub fn is_at_least(&self, major: u32, minor: u32) -> bool {
        (self.numbers[0], self.numbers[1]) >= (major, minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_numbers() {
        for (text, least) in
            [("2.10.0", (2, 9)), ("19.11.0.0", (19, 5)), ("2.7", (2, 7)), ("3.0.0-rc1", (2, 99))]
        {
            let version = Version::parse(text).unwrap();
            assert!(version.is_at_least(least.0, least.1), "{text}");
            assert_eq!(version.to_string(), text);
        }
        assert!(!Version::parse("2.9.0").unwrap().is_at_least(2, 10));
    }

    #[test]
    fn other_texts_are_no_versions() {
        let long = "1.".repeat(40);
        for bad in
            ["", "2", "2.", ".2", "a.b", "1.2.3.4.5", "1.2x", "1.2 3", "4294967296.0", "1..2", "ä.1", &long]
        {
            assert_eq!(Version::parse(bad), None, "{bad:?}");
        }
    }
}
