//! The last failed allocations: who requested them, and who held what at that moment of merged time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use shm_layout::table::{
    FAILURE_EVENTS, FAILURE_HOLDERS, Failure, FailureHolder, FailureRecord, MAX_FAILURES, MAX_HELD,
    PastEvent, ProcessStats, failure_flags,
};
use shm_layout::{Class, Counters};

use crate::model::rows::Rows;

/// The failures of one process that are examined per poll. What a process can do at full speed must not cost
/// more than folding it; failures beyond this are counted like all others.
const MAX_PER_PROCESS: usize = 8;
/// The failures of one user's processes that are examined per poll, so that many processes cannot keep the
/// failures of others from being examined.
const MAX_PER_USER: usize = MAX_PER_POLL / 2;
/// The failures of all processes that are examined per poll. The table keeps no more.
const MAX_PER_POLL: usize = MAX_FAILURES;

/// The process that a failure belongs to. The identity alone is not enough: everybody can see it in the name
/// of the file and give it to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Whose {
    identity: u64,
    pid: u64,
    uid: u64,
}

impl Whose {
    fn of(record: &FailureRecord) -> Whose {
        let FailureRecord { identity, pid, uid, .. } = *record;
        Whose { identity, pid, uid }
    }
}

/// The failures that the table shows.
#[derive(Debug)]
pub(crate) struct Failures {
    rows: Rows<FailureRecord>,
    /// The rows whose preceding events are still to be read.
    fresh: Vec<usize>,
    /// The processes whose failures were examined in this poll.
    looked_into: Vec<Whose>,
    pub(crate) looks: Looks,
}

/// The ring slots that this poll may still read, whatever they hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks {
    /// For the events before failures.
    pub(crate) past: usize,
    /// For the failures of processes that died before they were followed.
    pub(crate) dead: usize,
}

const LOOKS: Looks = Looks { past: 1 << 16, dead: 1 << 19 };

impl Default for Failures {
    fn default() -> Failures {
        Failures { rows: Rows::new(MAX_FAILURES), fresh: Vec::new(), looked_into: Vec::new(), looks: LOOKS }
    }
}

impl Failures {
    /// Resets the limits per poll.
    pub(crate) fn begin_poll(&mut self) {
        self.looked_into.clear();
        self.looks = LOOKS;
    }

    /// Whether to examine a failure: it was not seen by an earlier aggregator, and is not one of a flood.
    pub(crate) fn wants(&mut self, owner: &ProcessStats, position: u64) -> bool {
        let whose = Whose { identity: owner.identity, pid: owner.pid, uid: owner.uid };
        let known =
            |(_, record): (usize, &FailureRecord)| record.position == position && Whose::of(record) == whose;
        let theirs = self.looked_into.iter().filter(|seen| **seen == whose).count();
        let of_user = self.looked_into.iter().filter(|seen| seen.uid == whose.uid).count();
        if theirs >= MAX_PER_PROCESS
            || of_user >= MAX_PER_USER
            || self.looked_into.len() >= MAX_PER_POLL
            || self.rows.values().any(known)
        {
            return false;
        }
        self.looked_into.push(whose);
        true
    }

    /// Keeps a failure whose preceding events are still to be read.
    pub(crate) fn note(&mut self, generation: u64, record: FailureRecord) {
        let row = self.keep(generation, record);
        self.fresh.push(row);
    }

    /// Keeps a failure; if there is no room, another one is dropped.
    pub(crate) fn keep(&mut self, generation: u64, record: FailureRecord) -> usize {
        if self.rows.count() == MAX_FAILURES
            && let Some(row) = self.to_give_up(&record)
        {
            self.rows.remove(generation, row);
        }
        // A row was just freed.
        self.rows.insert(generation, record).unwrap_or(0)
    }

    /// The failure to drop: the oldest of the process with the most rows, of the user with the most rows. So
    /// nobody's failures displace those of all others.
    fn to_give_up(&self, new: &FailureRecord) -> Option<usize> {
        let all = || self.rows.values().map(|(_, record)| record).chain([new]);
        let of_user = |uid: u64| all().filter(|record| record.uid == uid).count();
        let of_process = |whose: Whose| all().filter(|record| Whose::of(record) == whose).count();
        let weight = |record: &FailureRecord| {
            (of_user(record.uid), of_process(Whose::of(record)), Reverse((record.time, record.position)))
        };
        self.rows.values().max_by_key(|(_, record)| weight(record)).map(|(row, _)| row)
    }

    /// Marks the holders of failures on a chip since `since` as uncertain.
    pub(crate) fn doubt(&mut self, generation: u64, chip_id: u64, since: u64) {
        let rows = self.rows.values().filter(|(_, record)| {
            record.chip_id == chip_id && record.time >= since && record.has(failure_flags::HOLDERS_EXACT)
        });
        for row in rows.map(|(row, _)| row).collect::<Vec<_>>() {
            if let Some(record) = self.rows.change(generation, row) {
                record.flags &= !failure_flags::HOLDERS_EXACT;
            }
        }
    }

    /// Whether preceding events are still to be read.
    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// The failures whose preceding events are still to be read, with their rows.
    pub(crate) fn take_fresh(&mut self) -> Vec<(usize, FailureRecord)> {
        let fresh = std::mem::take(&mut self.fresh);
        fresh.into_iter().filter_map(|row| Some((row, *self.rows.get(row)?))).collect()
    }

    /// Adds the events that were found in the rings; `all_read` tells whether every existing process could be
    /// read.
    pub(crate) fn complete(&mut self, generation: u64, row: usize, past: &Past, all_read: bool) {
        let Some(record) = self.rows.change(generation, row) else { return };
        if !all_read {
            record.flags &= !failure_flags::HOLDERS_EXACT;
        }
        past.put_into(record);
    }

    /// Every row ever used: number, generation that changed it last, record.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u64, Option<&FailureRecord>)> {
        self.rows.iter()
    }

    /// Rows in use or used before.
    pub(crate) fn high_water(&self) -> usize {
        self.rows.high_water()
    }

    /// The failures, latest first.
    pub(crate) fn newest_first(&self) -> Vec<FailureRecord> {
        let all = self
            .rows
            .iter()
            .filter_map(|(_, generation, record)| Some(FailureRecord { generation, ..*record? }));
        let mut all: Vec<FailureRecord> = all.collect();
        FailureRecord::newest_first(&mut all);
        all
    }
}

/// The events before a failure, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Past {
    pub(crate) events: Vec<PastEvent>,
    pub(crate) complete: bool,
}

impl Past {
    pub(crate) fn put_into(&self, record: &mut FailureRecord) {
        let from = self.events.len().saturating_sub(FAILURE_EVENTS);
        let last = &self.events[from..];
        record.events[..last.len()].copy_from_slice(last);
        record.event_count = last.len() as u64;
        record.flags |= if self.complete { failure_flags::EVENTS_COMPLETE } else { 0 };
    }
}

/// A record of a failure with nothing but its event.
pub(crate) fn blank(owner: &ProcessStats, chip_id: u64, position: u64, failure: &Failure) -> FailureRecord {
    FailureRecord {
        time: failure.time,
        chip_id,
        identity: owner.identity,
        position,
        pid: owner.pid,
        pid_namespace: owner.pid_namespace,
        uid: owner.uid,
        class: failure.class,
        request_bytes: failure.request_bytes,
        free_bytes: failure.free_bytes,
        largest_free_bytes: failure.largest_free_bytes,
        needed_per_bank_bytes: failure.needed_per_bank_bytes,
        banks: failure.banks,
        flags: if failure.per_bank != 0 { failure_flags::PER_BANK } else { 0 },
        name: owner.name,
        ..bytemuck::Zeroable::zeroed()
    }
}

/// A process by its row, and its counters on the device.
type HolderShare<'a> = (usize, &'a ProcessStats, &'a Counters);

/// Fills in who holds what. A process is one holder, and holds no more than is plausible, however many
/// entries for one chip it made.
pub(crate) fn compose<'a>(record: &mut FailureRecord, shares: impl Iterator<Item = HolderShare<'a>>) {
    let mut by_process: BTreeMap<usize, FailureHolder> = BTreeMap::new();
    for (row, stats, counters) in shares {
        let ProcessStats { identity, pid, pid_namespace, name, .. } = *stats;
        let nothing = FailureHolder { identity, pid, pid_namespace, classes: [0; Class::COUNT], name };
        let holder = by_process.entry(row).or_insert(nothing);
        for (sum, bytes) in holder.classes.iter_mut().zip(counters.used_by_class()) {
            *sum = sum.saturating_add(bytes).min(MAX_HELD);
        }
    }
    let mut holders: Vec<FailureHolder> =
        by_process.into_values().filter(|holder| holder.classes != [0; Class::COUNT]).collect();
    holders.iter().for_each(|holder| add(&mut record.classes, &holder.classes));
    let failed = u8::try_from(record.class).ok().and_then(Class::from_code);
    holders.sort_by_key(|holder| {
        let of_memory = Class::ALL.into_iter().filter(|class| failed.is_none_or(|f| f.shares_memory(*class)));
        let bytes: u64 = of_memory.map(|class| holder.classes[class as usize]).fold(0, u64::wrapping_add);
        (Reverse(bytes), holder.identity)
    });
    record.holder_count = holders.len() as u64;
    let kept = holders.len().min(FAILURE_HOLDERS);
    record.holders[..kept].copy_from_slice(&holders[..kept]);
    holders[kept..].iter().for_each(|holder| add(&mut record.others, &holder.classes));
}

/// Wrapping: the maximum number of processes, each with at most [`MAX_HELD`], stays below 2^64.
fn add(sum: &mut [u64; Class::COUNT], classes: &[u64; Class::COUNT]) {
    sum.iter_mut().zip(classes).for_each(|(sum, bytes)| *sum = sum.wrapping_add(*bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(identity: u64, uid: u64) -> ProcessStats {
        ProcessStats { identity, pid: identity, uid, ..bytemuck::Zeroable::zeroed() }
    }

    #[test]
    fn many_processes_of_a_user_leave_looks_for_others() {
        let mut failures = Failures::default();
        for process in 1..100 {
            (1..100).for_each(|position| _ = failures.wants(&owner(process, 1000), position));
        }
        assert!(failures.wants(&owner(200, 1001), 1));
        assert!(!failures.wants(&owner(201, 1000), 1));
        failures.begin_poll();
        assert!(failures.wants(&owner(201, 1000), 1));
    }
}
