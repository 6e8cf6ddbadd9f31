//! The table: one file per namespace and uid, written by that user's aggregator alone.
//!
//! Times are CLOCK_MONOTONIC nanoseconds. Every row is a latch (see [`crate::protocol::latch`]) and carries
//! the generation that wrote it.

mod device;
mod driver;
mod failure;
mod region;
mod rows;

pub use self::device::{ClassStats, Composition, DeviceStats, Failure, Holder, Peak, device_flags};
pub(crate) use self::driver::LIMITS as DRIVER_LIMITS;
pub use self::driver::{
    Absent, DRIVER_NUMBERS, DriverStats, FIRMWARE_PARTS, MAX_DRIVER_DEVICES, TELEMETRY_BUCKET_WORDS,
    TELEMETRY_RESOLUTIONS, TELEMETRY_WORDS, TRENDS, TelemetryBucket, Told, Trend, driver_flags,
};
pub(crate) use self::failure::LIMITS as FAILURE_LIMITS;
pub use self::failure::{
    FAILURE_EVENTS, FAILURE_HOLDERS, FailureHolder, FailureRecord, MAX_FAILURES, MAX_HELD, PastEvent,
    failure_flags,
};
pub(crate) use self::region::LIMITS as REGION_LIMITS;
pub use self::region::{MAX_REGION_ROWS, RegionStats, region_flags, region_kind, region_state};
pub use self::rows::{
    Bucket, Notice, ProcessStats, UsageStats, bucket_flags, notice_kind, process_flags, process_state,
    usage_flags,
};
use crate::block::{Block, Planner};
use crate::describe::constants;
use crate::device::MAX_DEVICES;
use crate::error::LayoutError;
use crate::protocol::latch::latch_words;
use crate::segment::{MAJOR, MINOR, check_identity, expect};
use crate::words::{Word, load_pod, shared_struct, words_of};

/// The first eight bytes of a table, "TTSHMTAB".
pub const TABLE_MAGIC: u64 = u64::from_le_bytes(*b"TTSHMTAB");
/// The incompatible features of tables that this version knows.
pub const TABLE_FEATURES: u64 = 0;
/// The length of a bucket in nanoseconds: a minute, an hour, a day in [`HISTORY_BUCKETS`] buckets.
pub const HISTORY_RESOLUTIONS: [u64; 3] = [250_000_000, 15_000_000_000, 360_000_000_000];
/// The number of words of a history bucket.
pub const BUCKET_WORDS: usize = words_of::<Bucket>();

constants! {
    pub(crate) LIMITS;
    /// The number of words of a table's control block.
    pub const TABLE_CONTROL_WORDS: usize = 32;
    /// The number of devices in a table: one process that claims as many as it can leaves room for others.
    pub const TABLE_DEVICES: usize = 2 * MAX_DEVICES;
    /// The number of process rows of a table.
    pub const MAX_PROCESSES: usize = 4096;
    /// The number of usage rows (process and device) of a table.
    pub const MAX_USAGES: usize = 4096;
    /// The number of notices that a table keeps: refusals, deaths, reclaims.
    pub const MAX_NOTICES: usize = 64;
    /// The number of buckets per resolution of a device's history.
    pub const HISTORY_BUCKETS: usize = 240;
    /// The number of words of a device's history.
    pub const HISTORY_WORDS: usize = BUCKET_WORDS * HISTORY_BUCKETS * HISTORY_RESOLUTIONS.len();
    /// The number of holders that are kept with a peak.
    pub const PEAK_HOLDERS: usize = 8;
    /// The number of words of a device row, including the latch.
    pub const DEVICE_ROW_WORDS: usize = latch_words(words_of::<DeviceStats>());
    /// The number of words of a process row, including the latch.
    pub const PROCESS_ROW_WORDS: usize = latch_words(words_of::<ProcessStats>());
    /// The number of words of a usage row, including the latch.
    pub const USAGE_ROW_WORDS: usize = latch_words(words_of::<UsageStats>());
    /// The number of words of a notice row, including the latch.
    pub const NOTICE_ROW_WORDS: usize = latch_words(words_of::<Notice>());
    /// The number of words of a failure row, including the latch.
    pub const FAILURE_ROW_WORDS: usize = latch_words(words_of::<FailureRecord>());
    /// The number of words of a row of the driver, including the latch.
    pub const DRIVER_ROW_WORDS: usize = latch_words(words_of::<DriverStats>());
    /// The number of words of a row of a region, including the latch.
    pub const REGION_ROW_WORDS: usize = latch_words(words_of::<RegionStats>());
}

/// The control words of a table. One constant per word.
pub mod control {
    crate::describe::constants! {
        pub ALL;
        /// The generation of the last complete batch; stored last, with release.
        pub const GENERATION: usize = 0;
        /// The time of the last heartbeat, which says that the aggregator is running.
        pub const HEARTBEAT: usize = 1;
        /// 1 once the aggregator has ended in an orderly way.
        pub const CLOSED: usize = 2;
        /// The number of device rows that may be read.
        pub const DEVICES: usize = 3;
        /// The number of process rows that may be read.
        pub const PROCESSES: usize = 4;
        /// The number of usage rows that may be read.
        pub const USAGES: usize = 5;
        /// Notices ever written; the newest is row (count - 1) mod capacity.
        pub const NOTICES: usize = 6;
        /// Events folded.
        pub const EVENTS: usize = 7;
        /// Events missed because they were overwritten.
        pub const MISSED: usize = 8;
        /// Events that came too late to be merged by time.
        pub const LATE: usize = 9;
        /// Files refused at this moment.
        pub const REFUSED: usize = 10;
        /// Start of the window that peaks refer to.
        pub const WINDOW_SINCE: usize = 11;
        /// Windows opened; counts the resets that were carried out.
        pub const WINDOWS: usize = 12;
        /// The longest that the aggregator sleeps at present, in nanoseconds, so that readers know when a
        /// heartbeat is overdue.
        pub const INTERVAL: usize = 13;
        /// If history was adopted from an earlier table: the end of what that one saw; 0 if not.
        pub const GAP_START: usize = 14;
        /// If history was adopted: the start of what this aggregator saw; 0 if not.
        pub const GAP_END: usize = 15;
        /// Usages (process and device) that the table has no row for. Most of them are counted in the totals of
        /// their device all the same. Those that are not make it incomplete, or are on a chip that has no row
        /// either and concern no other device; a notice says so.
        pub const OVERFLOW: usize = 16;
        /// The number of failure rows that may be read.
        pub const FAILURES: usize = 17;
        /// Processes that are alive, or may be, and cannot be read: their files were unlinked.
        pub const UNSEEN: usize = 18;
        /// Batches for which /dev/shm had no room. What there was room for is complete.
        pub const PUBLISH_ERRORS: usize = 19;
        /// Since when rows are missing for lack of room; 0 if none are.
        pub const INCOMPLETE_SINCE: usize = 20;
        /// How often a clock stepped. Times and order of events around a step are not known.
        pub const CLOCK_STEPS: usize = 21;
        /// Processes whose file was gone before it could be opened.
        pub const LOST: usize = 22;
        /// Everything that processes had reported by this time is in the rows.
        pub const AS_OF: usize = 23;
        /// Since when the machine is known not to have been suspended, 0 if it never was. CLOCK_MONOTONIC stands
        /// still while it is, so the wall-clock time of earlier moments is not known.
        pub const AWAKE_SINCE: usize = 24;
        /// The number of rows of the driver that may be read.
        pub const DRIVER: usize = 25;
        /// Devices that the driver has and there is no row for.
        pub const DRIVER_LEFT_OUT: usize = 26;
        /// The number of rows of regions that may be read.
        pub const REGIONS: usize = 27;
        /// Rows of regions that there is no room for.
        pub const REGIONS_LEFT_OUT: usize = 28;
    }
}

shared_struct! {
    /// The first 1024 bytes; immutable once the file is visible.
    pub struct TableHeader, size 1024 {
        /// The bytes `TTSHMTAB`.
        0 => pub magic: u64,
        /// Layout version.
        8 => pub major: u32,
        /// Layout version.
        12 => pub minor: u32,
        /// Length of this header in bytes.
        16 => pub header_len: u64,
        /// Length of the file in bytes.
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
        /// [`FailureRecord`] rows.
        192 => pub failures: Block,
        /// [`DriverStats`] rows.
        208 => pub driver: Block,
        /// [`TelemetryBucket`]s per row of the driver.
        224 => pub telemetry: Block,
        /// [`RegionStats`] rows.
        240 => pub regions: Block,
        /// Zero.
        256 => pub reserved: [u64; 96],
    }
}

const CONTROL_BYTES: u64 = 8;
const DEVICE_BYTES: u64 = 8 * DEVICE_ROW_WORDS as u64;
const PROCESS_BYTES: u64 = 8 * PROCESS_ROW_WORDS as u64;
const USAGE_BYTES: u64 = 8 * USAGE_ROW_WORDS as u64;
const NOTICE_BYTES: u64 = 8 * NOTICE_ROW_WORDS as u64;
const HISTORY_BYTES: u64 = 8 * HISTORY_WORDS as u64;
const FAILURE_BYTES: u64 = 8 * FAILURE_ROW_WORDS as u64;
const DRIVER_BYTES: u64 = 8 * DRIVER_ROW_WORDS as u64;
const TELEMETRY_BYTES: u64 = 8 * TELEMETRY_WORDS as u64;
const REGION_BYTES: u64 = 8 * REGION_ROW_WORDS as u64;

impl TableHeader {
    /// A header with the blocks laid out; everything else is zero.
    pub fn plan() -> TableHeader {
        let mut planner = Planner::after(size_of::<TableHeader>() as u64);
        let mut header: TableHeader = bytemuck::zeroed();
        header.magic = TABLE_MAGIC;
        (header.major, header.minor) = (MAJOR, MINOR);
        header.header_len = size_of::<TableHeader>() as u64;
        header.control = planner.place(TABLE_CONTROL_WORDS as u64, CONTROL_BYTES);
        header.devices = planner.place(TABLE_DEVICES as u64, DEVICE_BYTES);
        header.processes = planner.place(MAX_PROCESSES as u64, PROCESS_BYTES);
        header.usages = planner.place(MAX_USAGES as u64, USAGE_BYTES);
        header.notices = planner.place(MAX_NOTICES as u64, NOTICE_BYTES);
        header.history = planner.place(TABLE_DEVICES as u64, HISTORY_BYTES);
        header.failures = planner.place(MAX_FAILURES as u64, FAILURE_BYTES);
        header.driver = planner.place(MAX_DRIVER_DEVICES as u64, DRIVER_BYTES);
        header.telemetry = planner.place(MAX_DRIVER_DEVICES as u64, TELEMETRY_BYTES);
        header.regions = planner.place(MAX_REGION_ROWS as u64, REGION_BYTES);
        header.total_len = planner.len();
        header
    }

    /// Copies the header out of a file's first words; returns an error unless every block is inside the `len`
    /// bytes that the file has. Use only the returned copy.
    pub fn read<W: Word>(words: &[W], len: u64) -> Result<TableHeader, LayoutError> {
        let needed = size_of::<TableHeader>() as u64;
        if len < needed || words.len() < words_of::<TableHeader>() {
            return Err(LayoutError::TooShort { len, needed });
        }
        let header: TableHeader = load_pod(words);
        header.check(len)?;
        Ok(header)
    }

    fn check(&self, len: u64) -> Result<(), LayoutError> {
        check_identity(
            self.magic,
            TABLE_MAGIC,
            (self.major, self.minor),
            self.incompatible & !TABLE_FEATURES,
        )?;
        expect("header_len", self.header_len, size_of::<TableHeader>() as u64)?;
        expect("total_len", self.total_len, len)?;
        expect("control words", self.control.capacity, TABLE_CONTROL_WORDS as u64)?;
        expect("history", self.history.capacity, self.devices.capacity)?;
        expect("telemetry", self.telemetry.capacity, self.driver.capacity)?;
        self.control.check("control", CONTROL_BYTES, TABLE_CONTROL_WORDS as u64, len)?;
        self.devices.check("devices", DEVICE_BYTES, TABLE_DEVICES as u64, len)?;
        self.processes.check("processes", PROCESS_BYTES, MAX_PROCESSES as u64, len)?;
        self.usages.check("usages", USAGE_BYTES, MAX_USAGES as u64, len)?;
        self.notices.check("notices", NOTICE_BYTES, MAX_NOTICES as u64, len)?;
        self.failures.check("failures", FAILURE_BYTES, MAX_FAILURES as u64, len)?;
        self.driver.check("driver", DRIVER_BYTES, MAX_DRIVER_DEVICES as u64, len)?;
        self.telemetry.check("telemetry", TELEMETRY_BYTES, MAX_DRIVER_DEVICES as u64, len)?;
        self.regions.check("regions", REGION_BYTES, MAX_REGION_ROWS as u64, len)?;
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
    /// Devices of the driver.
    pub driver: &'a [[W; DRIVER_ROW_WORDS]],
    /// Telemetry by row of the driver.
    pub telemetry: &'a [[W; TELEMETRY_WORDS]],
    /// Regions of tt-metal, and their processes.
    pub regions: &'a [[W; REGION_ROW_WORDS]],
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
            driver: header.driver.entries(words),
            telemetry: header.telemetry.entries(words),
            regions: header.regions.entries(words),
        }
    }
}

/// How late a heartbeat may be beyond the aggregator's own interval: on a busy machine it is not dead.
const HEARTBEAT_SLACK_NS: u64 = 1_000_000_000;
/// The number of intervals that may pass without a heartbeat.
const HEARTBEAT_INTERVALS: u64 = 3;

/// Whether an aggregator counts as running whose last heartbeat is this old, and that sleeps for at most
/// `interval_ns`.
pub fn is_heartbeat_fresh(age_ns: u64, interval_ns: u64) -> bool {
    age_ns <= interval_ns.saturating_mul(HEARTBEAT_INTERVALS).saturating_add(HEARTBEAT_SLACK_NS)
}

/// The cell of a device's telemetry that holds a moment.
pub fn telemetry_bucket<W>(
    history: &[W; TELEMETRY_WORDS],
    resolution: usize,
    time: u64,
) -> Option<&[W; TELEMETRY_BUCKET_WORDS]> {
    let length = TELEMETRY_RESOLUTIONS.get(resolution)?;
    let index = (time / length) as usize % HISTORY_BUCKETS;
    history.as_chunks().0.get(resolution * HISTORY_BUCKETS + index)
}

/// The cell of a device's history that holds a moment.
pub fn bucket<W>(history: &[W; HISTORY_WORDS], resolution: usize, time: u64) -> Option<&[W; BUCKET_WORDS]> {
    let length = HISTORY_RESOLUTIONS.get(resolution)?;
    let index = (time / length) as usize % HISTORY_BUCKETS;
    history.as_chunks().0.get(resolution * HISTORY_BUCKETS + index)
}
