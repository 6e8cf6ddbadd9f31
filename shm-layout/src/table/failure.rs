//! A failed allocation as the table keeps it: what was requested, who held what then, and what came before.

use core::cmp::Reverse;

use super::MAX_PROCESSES;
use crate::class::Class;
use crate::counters::{MAX_BYTES, MAX_COUNT};
use crate::describe::constants;
use crate::words::viewed_struct;

constants! {
    pub(crate) LIMITS;
    /// The number of failures that a table keeps, over all devices.
    pub const MAX_FAILURES: usize = 32;
    /// The number of holders kept with a failure.
    pub const FAILURE_HOLDERS: usize = 8;
    /// The number of preceding events kept with a failure.
    pub const FAILURE_EVENTS: usize = 16;
}

/// The most bytes of a class that one process is shown to hold, however many entries for one chip it made.
pub const MAX_HELD: u64 = 2 * MAX_BYTES;
const MOST_PROCESSES: u64 = MAX_PROCESSES as u64;
const _: () = assert!(MOST_PROCESSES.checked_mul(MAX_HELD).is_some());

/// Bits of [`FailureRecord::flags`].
pub mod failure_flags {
    crate::describe::constants! {
        pub ALL;
        /// All holders are listed, and their bytes are exact. Without this flag some may be missing: a process
        /// that ended before the aggregator started, could not be read, or whose events were missed.
        pub const HOLDERS_EXACT: u64 = 1 << 0;
        /// The events are the last before the failure, of all processes that were followed. Without this flag, a
        /// ring no longer held some of them.
        pub const EVENTS_COMPLETE: u64 = 1 << 1;
        /// Free bytes and the largest free block are per bank, not for all banks.
        pub const PER_BANK: u64 = 1 << 2;
    }
}

viewed_struct! {
    /// A process's bytes on the device when an allocation failed.
    pub struct FailureHolder, size 160 {
        /// Identity of its segment, 0 for an unused entry.
        0 => pub identity: u64,
        /// Its pid as seen by itself.
        8 => pub pid: u64,
        /// Inode of its PID namespace, 0 if unknown.
        16 => pub pid_namespace: u64,
        /// Bytes occupied by [`Class`] code; circular buffers as resident, kernels 0.
        24 => pub classes: [u64; Class::COUNT],
        /// Its name, UTF-8, zero-filled.
        96 => pub name: [u8; 64],
    }
}

viewed_struct! {
    /// An event before a failure, on the same device.
    pub struct PastEvent, size 56 {
        /// When, 0 for an unused entry.
        0 => pub time: u64,
        /// Identity of the segment.
        8 => pub identity: u64,
        /// Pid of the process as seen by itself.
        16 => pub pid: u64,
        /// [Kind](crate::EventKind) code of the event.
        24 => pub kind: u64,
        /// [`Class`] code.
        32 => pub class: u64,
        /// Buffer, circular buffer, kernel or program id.
        40 => pub id: u64,
        /// Bytes.
        48 => pub size: u64,
    }
}

viewed_struct! {
    /// A failed allocation, identified by segment and position.
    pub struct FailureRecord, size 2520 {
        /// Generation that wrote this row; 0 if the row is not in use.
        0 => pub generation: u64,
        /// [Failure flags](failure_flags).
        8 => pub flags: u64,
        /// When.
        16 => pub time: u64,
        /// The chip. Not its row: the row may belong to another device by the time this is read.
        24 => pub chip_id: u64,
        /// Identity of the segment of the process that made the request.
        32 => pub identity: u64,
        /// Position of the event in its ring.
        40 => pub position: u64,
        /// Pid of the process as seen by itself.
        48 => pub pid: u64,
        /// Inode of its PID namespace, 0 if unknown.
        56 => pub pid_namespace: u64,
        /// Its owner.
        64 => pub uid: u64,
        /// [`Class`] code.
        72 => pub class: u64,
        /// Bytes requested.
        80 => pub request_bytes: u64,
        /// Bytes free then, 2^64 - 1 if the process did not know.
        88 => pub free_bytes: u64,
        /// Largest free block then, 2^64 - 1 if the process did not know.
        96 => pub largest_free_bytes: u64,
        /// Bytes needed in each bank, 2^64 - 1 if the process did not know.
        104 => pub needed_per_bank_bytes: u64,
        /// Banks, 0 if the process did not know.
        112 => pub banks: u64,
        /// Name of the process, UTF-8, zero-filled.
        120 => pub name: [u8; 64],
        /// Bytes on the device then by [`Class`] code, all holders together.
        184 => pub classes: [u64; Class::COUNT],
        /// Number of processes that held memory on the device.
        256 => pub holder_count: u64,
        /// The largest holders, by what they held of the requested memory.
        264 => pub holders: [FailureHolder; FAILURE_HOLDERS],
        /// Bytes of all other holders.
        1544 => pub others: [u64; Class::COUNT],
        /// Number of entries of `events` in use.
        1616 => pub event_count: u64,
        /// The preceding events on the device, of all processes, oldest first.
        1624 => pub events: [PastEvent; FAILURE_EVENTS],
    }
}

impl FailureRecord {
    /// Whether an aggregator can have written this. The sums are over at most as many processes as a table
    /// has rows, each with at most [`MAX_HELD`], so that they do not overflow.
    pub fn is_plausible(&self) -> bool {
        let whose = self.identity != 0 && (1..=MAX_COUNT).contains(&self.position);
        whose
            && self.time != 0
            && self.class <= u64::from(u8::MAX)
            && self.are_holders_plausible()
            && self.are_events_plausible()
    }

    fn are_holders_plausible(&self) -> bool {
        let each = self.holders.iter().flat_map(|holder| holder.classes).all(|bytes| bytes <= MAX_HELD);
        let all = self.others.iter().chain(&self.classes).all(|bytes| *bytes <= MOST_PROCESSES * MAX_HELD);
        let used = self.holders.iter().take_while(|holder| holder.identity != 0).count();
        let unused = &self.holders[used..];
        let sum = |class: usize| -> u64 {
            self.holders.iter().map(|holder| holder.classes[class]).sum::<u64>() + self.others[class]
        };
        each && all
            && unused.iter().all(|holder| holder.identity == 0 && holder.classes == [0; Class::COUNT])
            && (used as u64..=MOST_PROCESSES).contains(&self.holder_count)
            && (0..Class::COUNT).all(|class| sum(class) == self.classes[class])
    }

    fn are_events_plausible(&self) -> bool {
        let Some(events) = self.past() else { return false };
        events.iter().all(|event| event.time != 0 && event.time <= self.time && event.identity != 0)
            && events.is_sorted_by_key(|event| event.time)
    }

    /// The events in use, oldest first; `None` if their number is impossible.
    pub fn past(&self) -> Option<&[PastEvent]> {
        self.events.get(..usize::try_from(self.event_count).ok()?)
    }

    /// Sorts failures, latest first.
    pub fn newest_first(failures: &mut [FailureRecord]) {
        failures.sort_by_key(|failure| (Reverse(failure.time), failure.identity, Reverse(failure.position)));
    }

    /// Whether all of these flags are set.
    pub fn has(&self, flags: u64) -> bool {
        self.flags & flags == flags
    }
}
