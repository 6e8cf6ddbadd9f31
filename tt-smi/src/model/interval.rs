//! What is known of a figure: the one rule of what may be called exact, for every output.

use serde::Serialize;

use crate::units::bytes;

/// A figure that is at least `low` and at most `high`. It is exact if both ends meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "Bounds")]
pub struct Interval {
    /// What is certain.
    pub low: u64,
    /// The most that is possible; `None` if nothing bounds it.
    pub high: Option<u64>,
}

/// An interval as JSON.
///
/// Not an [`Interval`]: it says whether it is exact, so that no script has to compare the ends.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Bounds {
    /// Most that is certain; within a window it never falls.
    low_bytes: u64,
    /// Most that can have been; equal if exact; `None` if nothing bounds it.
    high_bytes: Option<u64>,
    /// Whether it is exact.
    exact: bool,
}

impl From<Interval> for Bounds {
    fn from(interval: Interval) -> Bounds {
        Bounds { low_bytes: interval.low, high_bytes: interval.high, exact: interval.is_exact() }
    }
}

impl Default for Interval {
    /// Exactly nothing.
    fn default() -> Interval {
        Interval::exact(0)
    }
}

impl Interval {
    /// A figure that is known.
    pub fn exact(bytes: u64) -> Interval {
        Interval { low: bytes, high: Some(bytes) }
    }

    /// A figure of which only this part is certain.
    pub fn at_least(bytes: u64) -> Interval {
        Interval { low: bytes, high: None }
    }

    /// Whether it is exact.
    pub fn is_exact(&self) -> bool {
        self.high == Some(self.low)
    }

    /// Whether it is known to be nothing.
    pub fn is_nothing(&self) -> bool {
        self.high == Some(0)
    }

    /// What stands before `low` on the screen, where there is no room for more: a blank, or the sign of a figure that
    /// may be larger.
    pub fn mark(&self) -> &'static str {
        if self.is_exact() { " " } else { "≥" }
    }

    /// `4.1 GiB`, or `≥4.1 GiB` of a figure that may be larger.
    pub fn short(&self) -> String {
        format!("{}{}", self.mark().trim(), bytes(self.low))
    }

    /// `4.1 GiB`, `4.1 GiB to 5.0 GiB`, or `at least 4.1 GiB`.
    pub fn text(&self) -> String {
        match self.high {
            Some(high) if high == self.low => bytes(high),
            Some(high) => format!("{} to {}", bytes(self.low), bytes(high)),
            None => format!("at least {}", bytes(self.low)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_means_that_both_ends_meet() {
        let range = Interval { low: 1024, high: Some(2048) };
        let cases = [
            (Interval::exact(1024), true, "1.0 KiB", " "),
            (range, false, "1.0 KiB to 2.0 KiB", "≥"),
            (Interval::at_least(1024), false, "at least 1.0 KiB", "≥"),
        ];
        for (interval, exact, text, mark) in cases {
            assert_eq!((interval.is_exact(), &*interval.text(), interval.mark()), (exact, text, mark));
        }
        assert!(Interval::default().is_nothing() && !Interval::at_least(0).is_nothing());
    }
}
