//! The table: one file per namespace and uid, written by that user's aggregator alone.
//!
//! Times in it are CLOCK_MONOTONIC nanoseconds. Every row is a latch (see [`crate::protocol::latch`])
//! and carries the generation of the batch that wrote it.

use crate::block::{Block, Planner};
use crate::class::Class;
use crate::counters::Counters;
use crate::device::{DeviceEntry, MAX_DEVICES};
use crate::error::LayoutError;
pub use crate::failure::{
    FAILURE_EVENTS, FAILURE_HOLDERS, FailureHolder, FailureRecord, MAX_FAILURES, PastEvent, failure_flags,
};
use crate::protocol::latch::latch_words;
use crate::segment::{MAJOR, MINOR, check_identity, expect};
use crate::words::{Word, load_pod, shared_struct, viewed_struct, words_of};

/// First eight bytes of a table, "TTSHMTAB".
pub const TABLE_MAGIC: u64 = u64::from_le_bytes(*b"TTSHMTAB");
/// Devices in a table: one process that claims as many as it can leaves room for others'.
pub const TABLE_DEVICES: usize = 2 * MAX_DEVICES;
/// Processes that a table can show.
pub const MAX_PROCESSES: usize = 1024;
/// (Process, device) pairs that a table can show.
pub const MAX_USAGES: usize = 4096;
/// Notices that a table keeps: refusals, deaths, reclaims.
pub const MAX_NOTICES: usize = 64;
/// Buckets per resolution of a device's history.
pub const HISTORY_BUCKETS: usize = 240;
/// Length of a bucket in nanoseconds: a minute, an hour, a day in [`HISTORY_BUCKETS`] buckets.
pub const HISTORY_RESOLUTIONS: [u64; 3] = [250_000_000, 15_000_000_000, 360_000_000_000];
/// Holders of memory that are kept beside a peak.
pub const PEAK_HOLDERS: usize = 8;

/// Words of a row of the device list, latch included.
pub const DEVICE_ROW_WORDS: usize = latch_words(words_of::<DeviceStats>());
/// Words of a row of the process list.
pub const PROCESS_ROW_WORDS: usize = latch_words(words_of::<ProcessStats>());
/// Words of a row of the usage list.
pub const USAGE_ROW_WORDS: usize = latch_words(words_of::<UsageStats>());
/// Words of a notice.
pub const NOTICE_ROW_WORDS: usize = latch_words(words_of::<Notice>());
/// Words of a failure.
pub const FAILURE_ROW_WORDS: usize = latch_words(words_of::<FailureRecord>());
/// Words of a history bucket.
pub const BUCKET_WORDS: usize = words_of::<Bucket>();
/// Words of a device's history.
pub const HISTORY_WORDS: usize = BUCKET_WORDS * HISTORY_BUCKETS * HISTORY_RESOLUTIONS.len();

/// Control words of a table. One name per word.
pub mod control {
    /// Words in the control block.
    pub const WORDS: usize = 32;
    /// Generation of the last complete batch.
    pub const GENERATION: usize = 0;
    /// When the aggregator last said that it is there.
    pub const HEARTBEAT: usize = 1;
    /// 1 once the aggregator ended in an orderly way.
    pub const CLOSED: usize = 2;
    /// Device rows in use or used before.
    pub const DEVICES: usize = 3;
    /// Process rows in use or used before.
    pub const PROCESSES: usize = 4;
    /// Usage rows in use or used before.
    pub const USAGES: usize = 5;
    /// Notices ever written; the newest is at (count - 1) % capacity.
    pub const NOTICES: usize = 6;
    /// Events folded.
    pub const EVENTS: usize = 7;
    /// Events missed because a ring went round.
    pub const MISSED: usize = 8;
    /// Events that came too late to be merged by time.
    pub const LATE: usize = 9;
    /// Files refused at this moment.
    pub const REFUSED: usize = 10;
    /// Start of the window that peaks refer to.
    pub const WINDOW_SINCE: usize = 11;
    /// Windows opened; counts the resets that were carried out.
    pub const WINDOWS: usize = 12;
    /// Longest the aggregator sleeps at present, so that readers know when a heartbeat is overdue.
    pub const INTERVAL: usize = 13;
    /// If history was adopted from an earlier table: end of what that one saw, 0 if not.
    pub const GAP_START: usize = 14;
    /// ... and start of what this one saw.
    pub const GAP_END: usize = 15;
    /// Processes, devices or pairs that found no free row.
    pub const OVERFLOW: usize = 16;
    /// Failure rows in use or used before.
    pub const FAILURES: usize = 17;
}

shared_struct! {
    /// The first 1024 bytes; immutable once the file is visible.
    pub struct TableHeader, size 1024 {
        /// [`TABLE_MAGIC`].
        0 => pub magic: u64,
        /// Layout version.
        8 => pub major: u32,
        /// Layout version.
        12 => pub minor: u32,
        /// Bytes of this header.
        16 => pub header_len: u64,
        /// Bytes of the file.
        24 => pub total_len: u64,
        /// Features that a reader must know.
        32 => pub incompatible: u64,
        /// Features that a reader may ignore.
        40 => pub compatible: u64,
        /// The kernel's boot id.
        48 => pub boot_id: [u8; 16],
        /// Random identity of this table.
        64 => pub identity: u64,
        /// Process id of the aggregator, for display.
        72 => pub pid: u64,
        /// When the aggregator started.
        80 => pub started: u64,
        /// CLOCK_REALTIME at the same moment.
        88 => pub started_realtime_ns: u64,
        /// Control words.
        96 => pub control: Block,
        /// [`DeviceStats`] rows.
        112 => pub devices: Block,
        /// [`ProcessStats`] rows.
        128 => pub processes: Block,
        /// [`UsageStats`] rows.
        144 => pub usages: Block,
        /// [`Notice`] rows.
        160 => pub notices: Block,
        /// [`Bucket`]s per device row.
        176 => pub history: Block,
        /// [`FailureRecord`] rows; none before version 1.1.
        192 => pub failures: Block,
        /// Zero.
        208 => pub reserved: [u64; 102],
    }
}

/// Bits of [`DeviceStats::flags`].
pub mod device_flags {
    /// More is used than the device has: some process reports wrongly.
    pub const OVER_CAPACITY: u64 = 1 << 0;
    /// Processes disagree about the device's capacity or kind.
    pub const CONFLICT: u64 = 1 << 1;
}

viewed_struct! {
    /// A largest value in the current window. It is exact if `low` = `high`, else it lies between.
    pub struct Peak, size 32 {
        /// Largest value seen.
        0 => pub low: u64,
        /// Most that it can have been, [`crate::event::UNKNOWN`] if nobody knows.
        8 => pub high: u64,
        /// When `low` was reached first.
        16 => pub time: u64,
        /// Buffers at that time.
        24 => pub count: u64,
    }
}

viewed_struct! {
    /// A process's share of a peak.
    pub struct Holder, size 24 {
        /// Identity of its segment, 0 for an unused entry.
        0 => pub identity: u64,
        /// Its pid, for display.
        8 => pub pid: u64,
        /// Bytes it held.
        16 => pub bytes: u64,
    }
}

viewed_struct! {
    /// What a peak was made of.
    pub struct Composition, size 272 {
        /// Bytes by [`Class`] code; circular buffers and application kernels as resident.
        0 => pub classes: [u64; Class::COUNT],
        /// Largest holders, largest first.
        72 => pub holders: [Holder; PEAK_HOLDERS],
        /// Bytes of all other holders.
        264 => pub others: u64,
    }
}

viewed_struct! {
    /// One class on a device, all processes together.
    pub struct ClassStats, size 64 {
        /// Bytes live now.
        0 => pub live_bytes: u64,
        /// Allocations live now.
        8 => pub live_count: u64,
        /// Bytes allocated since the aggregator attached.
        16 => pub alloc_bytes: u64,
        /// Allocations since the aggregator attached.
        24 => pub alloc_count: u64,
        /// Largest `live_bytes`.
        32 => pub peak: Peak,
    }
}

viewed_struct! {
    /// The last allocation failure on a device.
    pub struct Failure, size 48 {
        /// When, 0 if there was none.
        0 => pub time: u64,
        /// Pid of the process, for display.
        8 => pub pid: u64,
        /// [`Class`] code.
        16 => pub class: u64,
        /// Bytes asked for.
        24 => pub request_bytes: u64,
        /// Bytes free then.
        32 => pub free_bytes: u64,
        /// Largest free block then.
        40 => pub largest_free_bytes: u64,
    }
}

viewed_struct! {
    /// A device, all processes together.
    pub struct DeviceStats, size 1680 {
        /// Batch that wrote this; 0 for a row that is not in use.
        0 => pub generation: u64,
        /// Bits of [`device_flags`].
        8 => pub flags: u64,
        /// What the processes say of it.
        16 => pub entry: DeviceEntry,
        /// Processes that have something on it.
        272 => pub processes: u64,
        /// DRAM used.
        280 => pub dram_used_bytes: u64,
        /// L1 of Tensix cores used.
        288 => pub l1_used_bytes: u64,
        /// L1 of ethernet cores used.
        296 => pub eth_used_bytes: u64,
        /// Circular buffer bytes of resident programs.
        304 => pub cb_resident_bytes: u64,
        /// Application kernel bytes of resident programs on Tensix cores.
        312 => pub kernel_resident_bytes: u64,
        /// Fabric and dispatch kernels on Tensix cores.
        320 => pub system_kernel_bytes: u64,
        /// Fabric and dispatch kernels on ethernet cores.
        328 => pub system_kernel_eth_bytes: u64,
        /// Dispatches of the processes alive now.
        336 => pub dispatches: u64,
        /// Of those, the ones that found the binary cached.
        344 => pub cached_dispatches: u64,
        /// Allocations that failed, of the processes alive now.
        352 => pub failed_allocs: u64,
        /// Events folded since the aggregator attached.
        360 => pub events: u64,
        /// Events of the last second, in thousandths per second.
        368 => pub events_per_1000s: u64,
        /// Dispatches of the last second, in thousandths per second.
        376 => pub dispatches_per_1000s: u64,
        /// Kernel ring buffer: size, 0 if never reported.
        384 => pub kernel_ring_total_bytes: u64,
        /// Kernel ring buffer: bytes used.
        392 => pub kernel_ring_used_bytes: u64,
        /// Kernel ring buffer: programs in it.
        400 => pub kernel_ring_programs: u64,
        /// Since when all peaks below are exact, if they are.
        408 => pub exact_since: u64,
        /// Largest DRAM used.
        416 => pub dram_peak: Peak,
        /// Largest L1 used.
        448 => pub l1_peak: Peak,
        /// Largest ethernet L1 used.
        480 => pub eth_peak: Peak,
        /// The last failure.
        512 => pub failure: Failure,
        /// By [`Class`] code.
        560 => pub classes: [ClassStats; Class::COUNT],
        /// What the DRAM peak was made of.
        1136 => pub dram_composition: Composition,
        /// What the L1 peak was made of.
        1408 => pub l1_composition: Composition,
    }
}

/// Values of [`ProcessStats::state`].
pub mod process_state {
    /// The row is not in use.
    pub const FREE: u64 = 0;
    /// The process is alive (running or stopped).
    pub const ALIVE: u64 = 1;
    /// It ended; its row stays for a while to show what it held.
    pub const ENDED: u64 = 2;
}

/// Bits of [`ProcessStats::flags`].
pub mod process_flags {
    /// It had no room for all rows or names: totals exact, lists not complete.
    pub const DEGRADED: u64 = 1 << 0;
    /// Its events cannot be true: its figures are left out of all totals.
    pub const BROKEN: u64 = 1 << 1;
    /// Its name in /dev/shm is gone while it lives.
    pub const UNLINKED: u64 = 1 << 2;
    /// It ended in an orderly way.
    pub const CLOSED: u64 = 1 << 3;
}

viewed_struct! {
    /// A process.
    pub struct ProcessStats, size 312 {
        /// Batch that wrote this; 0 for a row that is not in use.
        0 => pub generation: u64,
        /// A value of [`process_state`].
        8 => pub state: u64,
        /// Bits of [`process_flags`].
        16 => pub flags: u64,
        /// Identity of its segment.
        24 => pub identity: u64,
        /// Process id as the process itself sees it.
        32 => pub pid: u64,
        /// Inode of its PID namespace, 0 if unknown.
        40 => pub pid_namespace: u64,
        /// Owner of the segment.
        48 => pub uid: u64,
        /// When the segment was made.
        56 => pub started: u64,
        /// When its end was noticed, 0 while it lives.
        64 => pub ended: u64,
        /// Position of the last event folded.
        72 => pub position: u64,
        /// Time of that event, 0 if there was none.
        80 => pub last_event: u64,
        /// Events missed because the ring went round.
        88 => pub missed: u64,
        /// Events that came too late to be merged by time.
        96 => pub late: u64,
        /// Events of the last second, in thousandths per second.
        104 => pub events_per_1000s: u64,
        /// Live allocations without a row.
        112 => pub unlisted: u64,
        /// Counts by [`crate::control::Anomaly`] code.
        120 => pub anomalies: [u64; 16],
        /// Process name, UTF-8, zero-filled.
        248 => pub name: [u8; 64],
    }
}

viewed_struct! {
    /// A process on a device.
    pub struct UsageStats, size 864 {
        /// Batch that wrote this; 0 for a row that is not in use.
        0 => pub generation: u64,
        /// Index of the process row.
        8 => pub process: u64,
        /// Index of the device row.
        16 => pub device: u64,
        /// The process's own number for the device; `u64::MAX` if it has none.
        24 => pub logical_id: u64,
        /// Its counters, times converted.
        32 => pub counters: Counters,
    }
}

/// Values of [`Notice::kind`].
pub mod notice_kind {
    /// A file was refused; `text` says why.
    pub const REFUSED: u64 = 1;
    /// A process ended and what it held was reclaimed; `bytes` and `counts` say what.
    pub const RECLAIMED: u64 = 2;
    /// A process's events cannot be true; `text` says why.
    pub const BROKEN: u64 = 3;
}

viewed_struct! {
    /// Something an operator should know.
    pub struct Notice, size 440 {
        /// Batch that wrote this; 0 for a row that is not in use.
        0 => pub generation: u64,
        /// A value of [`notice_kind`].
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

viewed_struct! {
    /// A stretch of a device's history: a stamped cell. In the table its stamp is its start, and one more
    /// for each time that it was written again (0: nothing there); readers round it down.
    pub struct Bucket, size 64 {
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
        /// Zero.
        56 => pub reserved: u64,
    }
}

const CONTROL_BYTES: u64 = 8;
const DEVICE_BYTES: u64 = 8 * DEVICE_ROW_WORDS as u64;
const PROCESS_BYTES: u64 = 8 * PROCESS_ROW_WORDS as u64;
const USAGE_BYTES: u64 = 8 * USAGE_ROW_WORDS as u64;
const NOTICE_BYTES: u64 = 8 * NOTICE_ROW_WORDS as u64;
const HISTORY_BYTES: u64 = 8 * HISTORY_WORDS as u64;
const FAILURE_BYTES: u64 = 8 * FAILURE_ROW_WORDS as u64;
/// The first version that has [`TableHeader::failures`].
const FAILURES_SINCE: u32 = 1;

impl TableHeader {
    /// A header with the blocks laid out, everything else zero.
    pub fn plan() -> TableHeader {
        let mut planner = Planner::after(size_of::<TableHeader>() as u64);
        let mut header: TableHeader = bytemuck::zeroed();
        header.magic = TABLE_MAGIC;
        (header.major, header.minor) = (MAJOR, MINOR);
        header.header_len = size_of::<TableHeader>() as u64;
        header.control = planner.place(control::WORDS as u64, CONTROL_BYTES);
        header.devices = planner.place(TABLE_DEVICES as u64, DEVICE_BYTES);
        header.processes = planner.place(MAX_PROCESSES as u64, PROCESS_BYTES);
        header.usages = planner.place(MAX_USAGES as u64, USAGE_BYTES);
        header.notices = planner.place(MAX_NOTICES as u64, NOTICE_BYTES);
        header.history = planner.place(TABLE_DEVICES as u64, HISTORY_BYTES);
        header.failures = planner.place(MAX_FAILURES as u64, FAILURE_BYTES);
        header.total_len = planner.len();
        header
    }

    /// Copies the header out of a file's first words and refuses it unless every block is inside the
    /// `len` bytes that the file has. Use only the returned copy.
    pub fn read<W: Word>(words: &[W], len: u64) -> Result<TableHeader, LayoutError> {
        let needed = size_of::<TableHeader>() as u64;
        if len < needed || words.len() < words_of::<TableHeader>() {
            return Err(LayoutError::TooShort { len, needed });
        }
        let mut header: TableHeader = load_pod(words);
        if header.minor < FAILURES_SINCE {
            header.failures = Block { offset: 0, capacity: 0 };
        }
        header.check(len)?;
        Ok(header)
    }

    fn check(&self, len: u64) -> Result<(), LayoutError> {
        check_identity(self.magic, TABLE_MAGIC, (self.major, self.minor), self.incompatible)?;
        expect("header_len", self.header_len, size_of::<TableHeader>() as u64)?;
        expect("total_len", self.total_len, len)?;
        expect("control words", self.control.capacity, control::WORDS as u64)?;
        expect("history", self.history.capacity, self.devices.capacity)?;
        self.control.check("control", CONTROL_BYTES, control::WORDS as u64, len)?;
        self.devices.check("devices", DEVICE_BYTES, TABLE_DEVICES as u64, len)?;
        self.processes.check("processes", PROCESS_BYTES, MAX_PROCESSES as u64, len)?;
        self.usages.check("usages", USAGE_BYTES, MAX_USAGES as u64, len)?;
        self.notices.check("notices", NOTICE_BYTES, MAX_NOTICES as u64, len)?;
        if self.minor >= FAILURES_SINCE {
            self.failures.check("failures", FAILURE_BYTES, MAX_FAILURES as u64, len)?;
        }
        self.history.check("history", HISTORY_BYTES, TABLE_DEVICES as u64, len)
    }
}

/// The blocks of a table as words.
pub struct TableWords<'a, W> {
    /// Control words.
    pub control: &'a [W],
    /// Device rows.
    pub devices: &'a [[W; DEVICE_ROW_WORDS]],
    /// Process rows.
    pub processes: &'a [[W; PROCESS_ROW_WORDS]],
    /// Usage rows.
    pub usages: &'a [[W; USAGE_ROW_WORDS]],
    /// Notices.
    pub notices: &'a [[W; NOTICE_ROW_WORDS]],
    /// History by device row.
    pub history: &'a [[W; HISTORY_WORDS]],
    /// Allocation failures.
    pub failures: &'a [[W; FAILURE_ROW_WORDS]],
}

impl<W> Clone for TableWords<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<W> Copy for TableWords<'_, W> {}

impl<'a, W: Word> TableWords<'a, W> {
    /// Carves a table's words into its blocks.
    pub fn carve(words: &'a [W], header: &TableHeader) -> TableWords<'a, W> {
        TableWords {
            control: header.control.entries::<1, W>(words).as_flattened(),
            devices: header.devices.entries(words),
            processes: header.processes.entries(words),
            usages: header.usages.entries(words),
            notices: header.notices.entries(words),
            history: header.history.entries(words),
            failures: header.failures.entries(words),
        }
    }
}

/// The bucket of a device's history that holds a moment.
pub fn bucket<W>(history: &[W; HISTORY_WORDS], resolution: usize, time: u64) -> Option<&[W; BUCKET_WORDS]> {
    let length = HISTORY_RESOLUTIONS.get(resolution)?;
    let index = (time / length) as usize % HISTORY_BUCKETS;
    history.as_chunks().0.get(resolution * HISTORY_BUCKETS + index)
}
