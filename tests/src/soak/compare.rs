//! A writer's segment against the states that its notes allow.

use super::found::{Difference, fits, label, range, value};
use super::replay::State;
use shm_layout::{Counters, RowKind};
use std::fmt::Debug;
use tt_shm_reader::Segment;

/// What a segment says at a moment when its writer does nothing.
pub struct Said {
    counters: Vec<Counters>,
    live: Vec<(u8, u8, u64, u64)>,
    programs: Vec<(u8, u64, u64, u64)>,
}

impl Said {
    /// Reads a segment; says why it could not be read exactly.
    pub fn read(segment: &Segment) -> Result<Said, String> {
        let counted = segment.counters().map_err(|error| error.to_string())?;
        let list = segment.live_list();
        if !list.exact || list.unlisted > 0 || segment.is_degraded() {
            let (missed, unlisted) = (list.missed, list.unlisted);
            return Err(format!("the list is not exact: {missed} events missed, {unlisted} not listed"));
        }
        if list.position != counted.position {
            return Err(format!(
                "the list is of event {}, the counters of {}",
                list.position, counted.position
            ));
        }
        let anomalies = segment.anomalies();
        if anomalies.iter().any(|count| *count > 0) {
            return Err(format!("misuse was counted where there was none: {anomalies:?}"));
        }
        let is_program = |kind: Option<RowKind>| kind == Some(RowKind::Program);
        let things = list.rows.iter().filter(|row| !is_program(row.kind()));
        let mut live: Vec<_> = things.map(|row| (row.device, row.class, row.id, row.size)).collect();
        live.sort_unstable();
        let rows = list.rows.iter().filter(|row| is_program(row.kind()));
        let mut programs: Vec<_> = rows.map(|row| (row.device, row.id, row.size, row.address)).collect();
        programs.sort_unstable();
        Ok(Said { counters: counted.counters, live, programs })
    }

    fn is(&self, state: &State) -> bool {
        self.counters.len() == state.devices.len()
            && self.counters.iter().zip(&state.devices).all(|(said, expected)| fits(said, expected))
            && self.live == state.live
            && self.programs == state.programs
    }

    /// The state that it is; if it is none of them, in what it differs from the nearest.
    pub fn identify<'a>(&self, pid: u32, candidates: &'a [State]) -> Result<&'a State, Vec<Difference>> {
        if let Some(state) = candidates.iter().find(|state| self.is(state)) {
            return Ok(state);
        }
        let (before, after) = (&candidates[0], &candidates[candidates.len() - 1]);
        let differences = candidates.iter().map(|nearest| self.differences(pid, nearest, before, after));
        Err(differences.min_by_key(Vec::len).unwrap_or_default())
    }

    fn differences(&self, pid: u32, nearest: &State, before: &State, after: &State) -> Vec<Difference> {
        let mut found = Vec::new();
        let place = || "its segment".to_owned();
        for (device, expected) in nearest.devices.iter().enumerate() {
            for (number, figure) in expected.iter().enumerate() {
                let said = self.counters.get(device).map(|counters| value(counters, figure));
                if said.is_some_and(|said| (figure.low..=figure.high).contains(&said)) {
                    continue;
                }
                found.push(Difference {
                    pid,
                    place: place(),
                    what: label(device, figure.what, figure.class),
                    before: range(&before.devices[device][number]),
                    after: range(&after.devices[device][number]),
                    found: said.map_or("no such device".to_owned(), |said| said.to_string()),
                });
            }
        }
        let lists = [
            ("live (device, class, id, size)", difference(&nearest.live, &self.live)),
            ("programs (device, id, dispatches, cached)", difference(&nearest.programs, &self.programs)),
        ];
        for (what, (missing, surplus)) in lists {
            if (&missing, &surplus) != (&"[]".to_owned(), &"[]".to_owned()) {
                let (before, found_list) = (format!("also {missing}"), format!("instead {surplus}"));
                let after = before.clone();
                found.push(Difference {
                    pid,
                    place: place(),
                    what: what.into(),
                    before,
                    after,
                    found: found_list,
                });
            }
        }
        found
    }
}

/// What only one of two sorted lists has.
fn difference<T: PartialEq + Debug>(expected: &[T], found: &[T]) -> (String, String) {
    let only = |list: &[T], other: &[T]| {
        let only: Vec<_> = list.iter().filter(|entry| !other.contains(entry)).take(20).collect();
        format!("{only:?}")
    };
    (only(expected, found), only(found, expected))
}
