//! All rows of a table at one generation.

use std::sync::atomic::AtomicU64;

use shm_layout::Word;
use shm_layout::table::{
    DeviceStats, DriverStats, FailureRecord, Notice, ProcessStats, RegionStats, UsageStats, control,
};

use crate::freshness::Freshness;
use crate::rows::Found;
use crate::table::Table;

/// The number of attempts to read the rows between two generations of the aggregator.
const ATTEMPTS: usize = 8;

/// A copy of a table.
#[derive(Clone, Debug)]
pub struct TableSnapshot {
    /// The last generation included.
    pub generation: u64,
    /// Whether all rows are of one generation. If not, the aggregator wrote during every attempt: each row is
    /// consistent, but sums over rows may differ by the changes of a generation.
    pub consistent: bool,
    /// The devices, with their row numbers.
    pub devices: Vec<(usize, DeviceStats)>,
    /// The processes, with their row numbers.
    pub processes: Vec<(usize, ProcessStats)>,
    /// The usage of each device by each process.
    pub usages: Vec<(usize, UsageStats)>,
    /// The notices for the operator, newest first.
    pub notices: Vec<Notice>,
    /// The last failed allocations, newest first.
    pub failures: Vec<FailureRecord>,
    /// What the driver tells of its devices, with their row numbers.
    pub driver: Vec<(usize, DriverStats)>,
    /// The number of devices of the driver that the table has no row for.
    pub driver_left_out: u64,
    /// The regions of tt-metal and their processes, with their row numbers.
    pub regions: Vec<(usize, RegionStats)>,
    /// The number of rows of regions that the table has no room for.
    pub regions_left_out: u64,
    /// The number of events folded.
    pub events: u64,
    /// The number of events missed because they were overwritten.
    pub missed: u64,
    /// The number of events that came too late to be merged by time.
    pub late: u64,
    /// The number of processes whose file was gone before it could be opened.
    pub lost: u64,
    /// Everything that processes had reported by this time is included, CLOCK_MONOTONIC.
    pub as_of: u64,
    /// The number of files refused at this moment.
    pub refused: u64,
    /// The start of the window that peaks refer to.
    pub window_since: u64,
    /// The number of windows opened.
    pub windows: u64,
    /// The number of usages (process and device) that the table has no row for.
    pub overflow: u64,
    /// The number of processes that are alive, or may be, and cannot be read: their files were unlinked.
    pub unseen: u64,
    /// The number of generations for which /dev/shm had no room.
    pub publish_errors: u64,
    /// Since when rows are missing from the table because /dev/shm has no room for them.
    pub incomplete_since: Option<u64>,
    /// How often a clock stepped. Times and order of events around a step are not known.
    pub clock_steps: u64,
    /// Since when the machine is known not to have been suspended: earlier times have no wall-clock time. 0
    /// if it never was.
    pub awake_since: u64,
    /// If history was adopted from an earlier table: the time that neither saw.
    pub gap: Option<(u64, u64)>,
    /// Whether the aggregator is still running.
    pub freshness: Freshness,
}

impl Table {
    /// Copies all rows, of one generation if that succeeds within a bounded number of attempts.
    pub fn snapshot(&self) -> TableSnapshot {
        let mut snapshot = self.attempt();
        for _ in 1..ATTEMPTS {
            if snapshot.consistent {
                break;
            }
            // With few cores, the aggregator may be waiting for this one to finish its generation.
            std::thread::yield_now();
            snapshot = self.attempt();
        }
        snapshot
    }

    fn attempt(&self) -> TableSnapshot {
        // Read before the rows, which are of that moment or a later one.
        let as_of = self.control(control::AS_OF);
        let generation = self.control(control::GENERATION);
        // Acquire: pairs with the release store by which the aggregator ends a generation.
        AtomicU64::fence_acquire();
        let mut gather = Gather { generation, consistent: true };
        let devices = gather.rows(self.found_devices(), |row| row.generation);
        let processes = gather.rows(self.found_processes(), |row| row.generation);
        let usages = gather.rows(self.found_usages(), |row| row.generation);
        let notices = gather.rows(self.found_notices(), |row| row.generation);
        let failures = gather.rows(self.found_failures(), |row| row.generation);
        let driver = gather.rows(self.found_driver(), |row| row.generation);
        let regions = gather.rows(self.found_regions(), |row| row.generation);
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
            driver,
            driver_left_out: self.control(control::DRIVER_LEFT_OUT),
            regions,
            regions_left_out: self.control(control::REGIONS_LEFT_OUT),
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
        // Acquire: orders the loads above before this one, so that a generation that ended meanwhile is seen.
        AtomicU64::fence_acquire();
        snapshot.consistent =
            gather.consistent && self.control(control::GENERATION) == generation && self.loss().is_none();
        snapshot
    }
}

/// Collects rows, and detects those of a generation that had not ended before.
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
