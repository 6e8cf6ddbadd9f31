//! Which points were visited, and at which a process was killed and stopped.

use super::point::Point;
use super::trap::End;
use std::collections::BTreeMap;
use std::fmt;

/// What is known of a point.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// Visits in the runs that nothing ended.
    pub visits: u64,
    /// Processes killed there.
    pub killed: u64,
    /// Processes stopped there.
    pub stopped: u64,
}

/// What is known of all of them.
#[derive(Clone, Debug)]
pub struct Coverage(BTreeMap<Point, Count>);

impl Default for Coverage {
    fn default() -> Coverage {
        Coverage(Point::ALL.iter().map(|point| (*point, Count::default())).collect())
    }
}

impl Coverage {
    /// Adds visits of a run.
    pub fn visited(&mut self, point: Point, visits: u64) {
        self.0.entry(point).or_default().visits += visits;
    }

    /// Adds a case that was right.
    pub fn ended(&mut self, point: Point, end: End) {
        let count = self.0.entry(point).or_default();
        match end {
            End::Kill => count.killed += 1,
            End::Stop => count.stopped += 1,
        }
    }

    /// Cases in all.
    pub fn cases(&self) -> u64 {
        self.0.values().map(|count| count.killed + count.stopped).sum()
    }

    /// What is missing: points without a case of each end, and visits of no known point.
    pub fn gaps(&self) -> Vec<String> {
        let gap = |(point, count): (&Point, &Count)| match (point, count) {
            (Point::Unknown, Count { visits: 0, .. }) => None,
            (Point::Unknown, _) => Some("a store or system call belongs to no point".to_owned()),
            (_, Count { killed: 1.., stopped: 1.., .. }) => None,
            _ => Some(format!("{} has no case of each kind", point.name())),
        };
        self.0.iter().filter_map(gap).collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<28}{:>10}{:>10}{:>10}", "point", "visits", "killed", "stopped")?;
        for (point, Count { visits, killed, stopped }) in &self.0 {
            writeln!(f, "{:<28}{visits:>10}{killed:>10}{stopped:>10}", point.name())?;
        }
        Ok(())
    }
}
