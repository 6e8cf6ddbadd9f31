//! All rows of a table at one generation.

use std::sync::atomic::AtomicU64;

use shm_layout::Word;
use shm_layout::table::{DeviceStats, FailureRecord, Notice, ProcessStats, UsageStats, control};

use crate::freshness::Freshness;
use crate::rows::Found;
use crate::table::Table;

/// Attempts to read the rows between two batches of the aggregator.
const ATTEMPTS: usize = 8;

/// A table, copied.
#[derive(Clone, Debug)]
pub struct TableSnapshot {
    /// The last batch that is in it.
    pub generation: u64,
    /// Whether all rows belong together. If not, the aggregator wrote during every attempt: each row is
    /// whole, but sums over rows may differ by what happened in a batch.
    pub consistent: bool,
    /// Devices, with the number of their row.
    pub devices: Vec<(usize, DeviceStats)>,
    /// Processes, with the number of their row.
    pub processes: Vec<(usize, ProcessStats)>,
    /// What each process has on each device.
    pub usages: Vec<(usize, UsageStats)>,
    /// What an operator should know, newest first.
    pub notices: Vec<Notice>,
    /// The last allocations that failed, newest first.
    pub failures: Vec<FailureRecord>,
    /// Events folded.
    pub events: u64,
    /// Events missed because a ring went round.
    pub missed: u64,
    /// Events that came too late to be merged by time.
    pub late: u64,
    /// Processes whose file was gone before it could be opened.
    pub lost: u64,
    /// Everything that processes had reported by then is in it, CLOCK_MONOTONIC.
    pub as_of: u64,
    /// Files refused at this moment.
    pub refused: u64,
    /// Start of the window that peaks refer to.
    pub window_since: u64,
    /// Windows opened.
    pub windows: u64,
    /// Processes, devices or pairs that found no free row.
    pub overflow: u64,
    /// Processes that are known to live, or may, and cannot be read: their files have no name any more.
    pub unseen: u64,
    /// Batches that /dev/shm had no room for.
    pub publish_errors: u64,
    /// Since when rows are missing from the table because /dev/shm has no room for them.
    pub incomplete_since: Option<u64>,
    /// How often a clock stepped, so that times and orders around that moment are not known.
    pub clock_steps: u64,
    /// Since when the machine is known not to have been suspended: earlier times have no wall clock. 0: it never was.
    pub awake_since: u64,
    /// If history was adopted from an earlier table: the time that neither saw.
    pub gap: Option<(u64, u64)>,
    /// Whether the aggregator is still there.
    pub freshness: Freshness,
}

impl Table {
    /// Copies all rows, of one generation if a bounded number of attempts gets that far.
    pub fn snapshot(&self) -> TableSnapshot {
        let mut snapshot = self.attempt();
        for _ in 1..ATTEMPTS {
            if snapshot.consistent {
                break;
            }
            // Where cores are few, the aggregator may be waiting for this one to finish its batch.
            std::thread::yield_now();
            snapshot = self.attempt();
        }
        snapshot
    }

    fn attempt(&self) -> TableSnapshot {
        // Before the rows, which are of that moment or a later one.
        let as_of = self.control(control::AS_OF);
        let generation = self.control(control::GENERATION);
        // Acquire: pairs with the release store by which the aggregator ends a batch.
        AtomicU64::fence_acquire();
        let mut gather = Gather { generation, consistent: true };
        let devices = gather.rows(self.found_devices(), |row| row.generation);
        let processes = gather.rows(self.found_processes(), |row| row.generation);
        let usages = gather.rows(self.found_usages(), |row| row.generation);
        let notices = gather.rows(self.found_notices(), |row| row.generation);
        let failures = gather.rows(self.found_failures(), |row| row.generation);
        let mut failures: Vec<FailureRecord> = failures.into_iter().map(|(_, failure)| failure).collect();
        FailureRecord::newest_first(&mut failures);
        let (start, end) = (self.control(control::GAP_START), self.control(control::GAP_END));
        let mut snapshot = TableSnapshot {
            generation,
            consistent: false,
            devices,
            processes,
            usages,
            notices: notices.into_iter().map(|(_, notice)| notice).collect(),
            failures,
            events: self.control(control::EVENTS),
            missed: self.control(control::MISSED),
            late: self.control(control::LATE),
            lost: self.control(control::LOST),
            as_of,
            refused: self.control(control::REFUSED),
            window_since: self.control(control::WINDOW_SINCE),
            windows: self.control(control::WINDOWS),
            overflow: self.control(control::OVERFLOW),
            unseen: self.control(control::UNSEEN),
            publish_errors: self.control(control::PUBLISH_ERRORS),
            incomplete_since: Some(self.control(control::INCOMPLETE_SINCE)).filter(|since| *since != 0),
            clock_steps: self.control(control::CLOCK_STEPS),
            awake_since: self.control(control::AWAKE_SINCE),
            gap: (start != 0).then_some((start, end)),
            freshness: self.freshness(),
        };
        // Acquire: orders the loads above before this one, so that a batch that ended meanwhile shows.
        AtomicU64::fence_acquire();
        snapshot.consistent =
            gather.consistent && self.control(control::GENERATION) == generation && self.loss().is_none();
        snapshot
    }
}

/// Collects rows and notices what is not of a batch that had ended before.
struct Gather {
    generation: u64,
    consistent: bool,
}

impl Gather {
    fn rows<T>(
        &mut self,
        found: impl Iterator<Item = Found<T>>,
        generation: impl Fn(&T) -> u64,
    ) -> Vec<(usize, T)> {
        let mut rows = Vec::new();
        for (index, found) in found.enumerate() {
            match found {
                Found::Row(row) => {
                    self.consistent &= generation(&row) <= self.generation;
                    rows.push((index, row));
                }
                Found::Unused => {}
                Found::Busy => self.consistent = false,
            }
        }
        rows
    }
}
