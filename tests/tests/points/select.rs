//! Which visits of a point become cases.

use std::collections::BTreeMap;
use tt_shm_tests::points::point::Point;
use tt_shm_tests::points::trap::{End, Trap};

/// How often each point was visited in a run that nothing ended.
#[derive(Clone, Debug)]
pub(crate) struct Visits(BTreeMap<String, u64>);

impl Visits {
    /// From a helper's own words.
    pub(crate) fn parse(line: Option<String>) -> Visits {
        let line = line.expect("the helper tells its visits");
        Visits(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}")))
    }

    /// Visits of a point.
    pub(crate) fn of(&self, point: Point) -> u64 {
        self.0[point.name()]
    }

    /// The same, but for one point.
    pub(crate) fn with(mut self, point: Point, visits: u64) -> Visits {
        self.0.insert(point.name().to_owned(), visits);
        self
    }
}

/// Both ends at up to `most` visits of a point, from the first to the last, evenly.
pub(crate) fn traps(point: Point, visits: u64, most: u64) -> impl Iterator<Item = Trap> {
    let picked = visits.min(most);
    (0..picked).flat_map(move |number| {
        let visit = if picked > 1 { 1 + number * (visits - 1) / (picked - 1) } else { 1 };
        End::BOTH.map(|end| Trap { point, visit, end })
    })
}
