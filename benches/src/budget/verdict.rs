//! Counts held against budgets.

use std::collections::BTreeMap;
use std::fmt;

/// How far a count may be from its budget, in percent.
pub const TOLERANCE: f64 = 5.0;

/// What is to be said of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Near its budget.
    Within,
    /// Too many.
    Over,
    /// So few that the budget is out of date.
    Better,
    /// There is no budget.
    Unrecorded,
    /// There is a budget, and no such case any more.
    Gone,
}

impl Verdict {
    /// Of a count and a budget, as far as there are any.
    pub fn of(counted: Option<f64>, budget: Option<f64>) -> Verdict {
        match (counted, budget) {
            (Some(counted), Some(budget)) => match change(counted, budget) {
                change if change > TOLERANCE => Verdict::Over,
                change if change < -TOLERANCE => Verdict::Better,
                _ => Verdict::Within,
            },
            (None, _) => Verdict::Gone,
            (Some(_), None) => Verdict::Unrecorded,
        }
    }

    /// Whether it fails a build. A case without a budget does: it would never be looked at again.
    pub fn fails(self) -> bool {
        matches!(self, Verdict::Over | Verdict::Unrecorded | Verdict::Gone)
    }

    fn text(self) -> &'static str {
        match self {
            Verdict::Within => "ok",
            Verdict::Over => "OVER BUDGET",
            Verdict::Better => "better: accept it",
            Verdict::Unrecorded => "NO BUDGET",
            Verdict::Gone => "NO SUCH CASE",
        }
    }
}

/// In percent of the budget.
fn change(counted: f64, budget: f64) -> f64 {
    (counted / budget - 1.0) * 100.0
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Line {
    case: String,
    counted: Option<f64>,
    budget: Option<f64>,
    /// What is to be said of it.
    pub verdict: Verdict,
}

/// A line for each case that was counted or is recorded.
pub fn compare(counted: &BTreeMap<String, f64>, budgets: &BTreeMap<String, f64>) -> Vec<Line> {
    let gone = budgets.keys().filter(|case| !counted.contains_key(*case));
    let all = counted.keys().chain(gone);
    all.map(|case| {
        let (counted, budget) = (counted.get(case).copied(), budgets.get(case).copied());
        Line { case: case.clone(), counted, budget, verdict: Verdict::of(counted, budget) }
    })
    .collect()
}

/// The heading of the lines.
pub fn heading() -> String {
    format!("{:<28} {:>12} {:>9} {:>8}  verdict", "case", "instructions", "budget", "change")
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |n| format!("{n:.1}"));
        let change = match (self.counted, self.budget) {
            (Some(counted), Some(budget)) => format!("{:+.1} %", change(counted, budget)),
            _ => "-".to_owned(),
        };
        let (counted, budget) = (number(self.counted), number(self.budget));
        write!(out, "{:<28} {counted:>12} {budget:>9} {change:>8}  {}", self.case, self.verdict.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counted: impl Into<Option<f64>>, budget: impl Into<Option<f64>>) -> Verdict {
        Verdict::of(counted.into(), budget.into())
    }

    #[test]
    fn five_percent_more_fail_and_five_percent_less_are_told() {
        assert_eq!(of(104.9, 100.0), Verdict::Within);
        assert_eq!(of(95.1, 100.0), Verdict::Within);
        assert_eq!(of(105.1, 100.0), Verdict::Over);
        assert_eq!(of(94.9, 100.0), Verdict::Better);
        assert_eq!((of(1.0, None), of(None, 1.0)), (Verdict::Unrecorded, Verdict::Gone));
        assert!(Verdict::Over.fails() && Verdict::Unrecorded.fails() && Verdict::Gone.fails());
        assert!(!Verdict::Within.fails() && !Verdict::Better.fails());
    }

    #[test]
    fn every_case_has_a_line_whether_counted_or_recorded() {
        let map = |cases: &[(&str, f64)]| cases.iter().map(|(case, n)| ((*case).to_owned(), *n)).collect();
        let lines = compare(&map(&[("a", 110.0), ("b", 1.0)]), &map(&[("a", 100.0), ("c", 1.0)]));
        let verdicts: Vec<Verdict> = lines.iter().map(|line| line.verdict).collect();
        assert_eq!(verdicts, [Verdict::Over, Verdict::Unrecorded, Verdict::Gone]);
        assert!(lines[0].to_string().ends_with("110.0     100.0  +10.0 %  OVER BUDGET"), "{}", lines[0]);
    }
}
