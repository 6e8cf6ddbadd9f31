//! The other rows: processes, usages, notices, history.

use crate::class::Class;
use crate::counters::Counters;
use crate::device::DeviceEntry;
use crate::words::viewed_struct;

/// Values of [`ProcessStats::state`].
pub mod process_state {
    crate::describe::constants! {
        pub ALL;
        /// The row is not in use.
        pub const FREE: u64 = 0;
        /// The process is alive (running or stopped).
        pub const ALIVE: u64 = 1;
        /// The process ended; its row stays for a while to show what it held.
        pub const ENDED: u64 = 2;
    }
}

/// Bits of [`ProcessStats::flags`].
pub mod process_flags {
    crate::describe::constants! {
        pub ALL;
        /// The process had no room for all rows or names: totals are exact, lists are incomplete.
        pub const DEGRADED: u64 = 1 << 0;
        /// Its events are impossible: its figures are excluded from all totals.
        pub const BROKEN: u64 = 1 << 1;
        /// Its file in /dev/shm was unlinked while it is alive.
        pub const UNLINKED: u64 = 1 << 2;
        /// It closed its segment.
        pub const CLOSED: u64 = 1 << 3;
        /// It is alive, or may be, and cannot be read any more: what it uses is not known.
        pub const UNSEEN: u64 = 1 << 4;
        /// It holds memory that it cannot report: its figures are a part of what it holds.
        pub const PARTIAL: u64 = 1 << 5;
    }
}

viewed_struct! {
    /// A process.
    pub struct ProcessStats, size 360 {
        /// Generation that wrote this row; 0 if the row is not in use.
        0 => pub generation: u64,
        /// [Process state](process_state).
        8 => pub state: u64,
        /// [Process flags](process_flags).
        16 => pub flags: u64,
        /// Identity of its segment.
        24 => pub identity: u64,
        /// Process id as seen by the process itself.
        32 => pub pid: u64,
        /// Inode of its PID namespace, 0 if unknown.
        40 => pub pid_namespace: u64,
        /// Owner of the segment.
        48 => pub uid: u64,
        /// When the segment was created.
        56 => pub started: u64,
        /// When its end was noticed; 0 while it is alive.
        64 => pub ended: u64,
        /// Position of the last event folded.
        72 => pub position: u64,
        /// Time of that event, 0 if there was none.
        80 => pub last_event: u64,
        /// Events missed because they were overwritten.
        88 => pub missed: u64,
        /// Events that came too late to be merged by time.
        96 => pub late: u64,
        /// Events of the last second, in thousandths per second.
        104 => pub events_per_1000s: u64,
        /// Live allocations without a row.
        112 => pub unlisted: u64,
        /// Counts by [anomaly](crate::control::Anomaly) code.
        120 => pub anomalies: [u64; 16],
        /// Process name, UTF-8, zero-filled.
        248 => pub name: [u8; 64],
        /// [`Source`](crate::Source) code: the kind of writer.
        312 => pub source: u64,
        /// Pid of the process that it is written on behalf of; 0 if that is the writer.
        320 => pub on_behalf_of: u64,
        /// How often the process compared its sums with those of the device's allocator.
        328 => pub self_checks: u64,
        /// How often such a comparison found a difference.
        336 => pub self_checks_different: u64,
        /// When the process was started, in clock ticks since boot as in /proc/PID/stat; 0 if unknown.
        344 => pub start_time: u64,
        /// Number of devices that it registered. It has a usage row for each, unless there was no room for
        /// one: then the table does not tell what it uses in total.
        352 => pub devices: u64,
    }
}

viewed_struct! {
    /// One process's use of one device.
    pub struct UsageStats, size 1776 {
        /// Generation that wrote this row; 0 if the row is not in use.
        0 => pub generation: u64,
        /// Index of the process row.
        8 => pub process: u64,
        /// Index of the device row.
        16 => pub device: u64,
        /// The process's own number for the device; 2^64 - 1 if it has none.
        24 => pub logical_id: u64,
        /// The allocator of the device that it uses, 0 if the chip has only one.
        32 => pub allocator: u64,
        /// Its counters, with times converted.
        40 => pub counters: Counters,
        /// [Usage flags](usage_flags).
        1256 => pub flags: u64,
        /// What the process claims about the device.
        1264 => pub entry: DeviceEntry,
    }
}

/// Bits of [`UsageStats::flags`].
pub mod usage_flags {
    crate::describe::constants! {
        pub ALL;
        /// What the process claims about the device contradicts what is taken as true.
        pub const CONFLICT: u64 = 1 << 0;
    }
}

/// Values of [`Notice::kind`].
pub mod notice_kind {
    crate::describe::constants! {
        pub ALL;
        /// The notice no longer holds: a file that was refused is read now.
        pub const WITHDRAWN: u64 = 0;
        /// A file was refused; `text` says why.
        pub const REFUSED: u64 = 1;
        /// A process ended and what it held was reclaimed; `bytes` and `counts` say what.
        pub const RECLAIMED: u64 = 2;
        /// A process's events are impossible; `text` says why.
        pub const BROKEN: u64 = 3;
        /// A process is alive, or may be, and cannot be read any more; `text` says why.
        pub const UNSEEN: u64 = 4;
        /// A clock stepped; `text` says in which direction, and what is not known as a result.
        pub const CLOCK: u64 = 5;
        /// A user has usages for which there is no room. The file is that of one of the processes.
        pub const UNCOUNTED: u64 = 6;
    }
}

viewed_struct! {
    /// A notice for the operator.
    pub struct Notice, size 440 {
        /// Generation that wrote this row; 0 if the row is not in use.
        0 => pub generation: u64,
        /// [Notice kind](notice_kind).
        8 => pub kind: u64,
        /// When it was noticed.
        16 => pub time: u64,
        /// Process, 0 if unknown.
        24 => pub pid: u64,
        /// Owner of the file.
        32 => pub uid: u64,
        /// Bytes by [`Class`] code that were reclaimed, all devices together.
        40 => pub bytes: [u64; Class::COUNT],
        /// Allocations by [`Class`] code.
        112 => pub counts: [u64; Class::COUNT],
        /// File name, UTF-8, zero-filled.
        184 => pub file: [u8; 96],
        /// Reason, UTF-8, zero-filled.
        280 => pub text: [u8; 160],
    }
}

/// Bits of [`Bucket::flags`].
pub mod bucket_flags {
    crate::describe::constants! {
        pub ALL;
        /// Something was not followed in a part of this time: the figures need not be exact.
        pub const INEXACT: u64 = 1 << 0;
    }
}

viewed_struct! {
    /// A bucket of a device's history: a stamped cell. In the table its stamp is its start, plus one for each
    /// time it was written again (0: empty); readers round it down.
    pub struct Bucket, size 96 {
        /// Start of the bucket, a multiple of its length, plus the number of updates.
        0 => pub start: u64,
        /// Smallest DRAM used.
        8 => pub dram_min: u64,
        /// Largest DRAM used.
        16 => pub dram_max: u64,
        /// Last DRAM used.
        24 => pub dram_last: u64,
        /// Smallest L1 used.
        32 => pub l1_min: u64,
        /// Largest L1 used.
        40 => pub l1_max: u64,
        /// Last L1 used.
        48 => pub l1_last: u64,
        /// [Bucket flags](bucket_flags).
        56 => pub flags: u64,
        /// Last trace buffers: a part of `dram_last`, the rest of which are DRAM buffers.
        64 => pub trace_last: u64,
        /// Last buffers in the small-buffer region: a part of `l1_last`.
        72 => pub l1_small_last: u64,
        /// Last resident circular buffers: a part of `l1_last`, the rest of which are L1 buffers.
        80 => pub cb_last: u64,
        /// Steps that processes on the device ended.
        88 => pub steps: u64,
    }
}

impl Bucket {
    /// What this bucket and a later one hold together, with the start of this one.
    pub fn joined(&self, later: &Bucket) -> Bucket {
        Bucket {
            start: self.start,
            dram_min: self.dram_min.min(later.dram_min),
            dram_max: self.dram_max.max(later.dram_max),
            dram_last: later.dram_last,
            l1_min: self.l1_min.min(later.l1_min),
            l1_max: self.l1_max.max(later.l1_max),
            l1_last: later.l1_last,
            flags: self.flags | later.flags,
            trace_last: later.trace_last,
            l1_small_last: later.l1_small_last,
            cb_last: later.cb_last,
            steps: self.steps.saturating_add(later.steps),
        }
    }
}
