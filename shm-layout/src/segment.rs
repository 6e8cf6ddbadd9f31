//! The segment: one file per process, written by that process alone.

use crate::block::{Block, Planner};
use crate::control::CONTROL_WORDS;
use crate::counters::Counters;
use crate::describe::constants;
use crate::device::{DEVICE_WORDS, MAX_DEVICES};
use crate::error::LayoutError;
use crate::protocol::latch::latch_words;
use crate::words::{Word, load_pod, shared_struct, words_of};

/// The first eight bytes of a segment, "TTSHMSEG".
pub const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"TTSHMSEG");
/// The layout version, which readers must know exactly.
pub const MAJOR: u32 = 2;
/// The minor version, which grows when something is added that older readers can ignore.
pub const MINOR: u32 = 0;
/// The incompatible features of segments that this version knows.
pub const KNOWN_FEATURES: u64 = 0;

/// The number of words of an event slot or a row.
pub const SLOT_WORDS: usize = 8;

constants! {
    pub(crate) LIMITS;
    /// The number of names in a segment, counting name 0, which stands for "none".
    pub const MAX_NAMES: u64 = 1 << 16;
    /// The longest name in bytes.
    pub const MAX_NAME_LEN: usize = 1024;
    /// The largest name area in bytes.
    pub const MAX_NAME_BYTES: u64 = 1 << 26;
    /// How long after its creation the segment of a run is left to the run, in nanoseconds, even if its
    /// process has ended.
    pub const RUN_GRACE_NS: u64 = 10_000_000_000;
    /// The smallest capacity of the ring.
    pub const MIN_RING_SLOTS: u64 = 64;
    /// The largest capacity of the ring.
    pub const MAX_RING_SLOTS: u64 = 1 << 24;
    /// The largest capacity of the live list.
    pub const MAX_ROWS: u64 = 1 << 23;
    /// The number of words of a device's entry in the counters block, which is a latch.
    pub const DEVICE_COUNTER_WORDS: usize = latch_words(words_of::<Counters>());
}

/// The bounds of the ring's capacity.
pub const RING_SLOTS: core::ops::RangeInclusive<u64> = MIN_RING_SLOTS..=MAX_RING_SLOTS;

/// The kind of writer of a segment; the discriminant is its code.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Source {
    /// The process that uses the device.
    #[default]
    Ring = 1,
    /// A library in that process that listens to its allocator.
    Tap = 2,
    /// Another process, on behalf of that process.
    Bridge = 3,
}

impl Source {
    /// The source with this code.
    pub fn from_code(code: u64) -> Option<Source> {
        [Source::Ring, Source::Tap, Source::Bridge].into_iter().find(|source| *source as u64 == code)
    }

    /// Whether it reports the kernels that the runtime launches by itself (fabric, dispatch), where there are some. What
    /// listens to an allocator does not see them.
    pub fn sees_system_kernels(self) -> bool {
        self != Source::Tap
    }

    /// The name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Source::Ring => "ring",
            Source::Tap => "tap",
            Source::Bridge => "bridge",
        }
    }
}

shared_struct! {
    /// The first 1024 bytes; immutable once the file is visible.
    pub struct SegmentHeader, size 1024 {
        /// The bytes `TTSHMSEG`.
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
        /// Random identity of the segment, also in its file name.
        64 => pub identity: u64,
        /// Process id as seen by the process itself, for display.
        72 => pub pid: u64,
        /// Inode of its PID namespace, 0 if unknown.
        80 => pub pid_namespace: u64,
        /// Start of the process in clock ticks since boot, 0 if unknown.
        88 => pub start_time: u64,
        /// 1 TSC, 2 virtual counter, 3 CLOCK_MONOTONIC in nanoseconds.
        96 => pub clock_kind: u64,
        /// Ticks of that clock when the segment was created.
        104 => pub anchor_ticks: u64,
        /// CLOCK_MONOTONIC at the same moment.
        112 => pub anchor_monotonic_ns: u64,
        /// CLOCK_REALTIME at the same moment.
        120 => pub anchor_realtime_ns: u64,
        /// Process name, UTF-8, zero-filled.
        128 => pub process_name: [u8; 64],
        /// Control words, in words of 8 bytes.
        192 => pub control: Block,
        /// Device entries.
        208 => pub devices: Block,
        /// Counters per device.
        224 => pub counters: Block,
        /// Name index: one word per name, offset << 32 | length.
        240 => pub name_index: Block,
        /// Name bytes, in words of 8 bytes.
        256 => pub name_bytes: Block,
        /// Event slots, a power of two.
        272 => pub ring: Block,
        /// Live rows.
        288 => pub rows: Block,
        /// The `tt-smi run` that the process belongs to, 0 if none.
        304 => pub run: u64,
        /// [`Source`] code: the kind of writer.
        312 => pub source: u64,
        /// Pid of the process that it is written on behalf of, in the same PID namespace; 0 if that is the
        /// writer.
        320 => pub on_behalf_of: u64,
        /// Inode of its time namespace, 0 if unknown: anchors of two namespaces cannot be compared.
        328 => pub time_namespace: u64,
        /// Zero.
        336 => pub reserved: [u64; 86],
    }
}

/// The number of words of the header.
pub const HEADER_WORDS: usize = words_of::<SegmentHeader>();

const CONTROL_BYTES: u64 = 8;
const DEVICE_BYTES: u64 = 8 * DEVICE_WORDS as u64;
const COUNTER_BYTES: u64 = 8 * DEVICE_COUNTER_WORDS as u64;
const SLOT_BYTES: u64 = 8 * SLOT_WORDS as u64;

impl SegmentHeader {
    /// A header with the blocks laid out for these capacities; everything else is zero.
    pub fn plan(ring_slots: u64, rows: u64, name_bytes: u64) -> SegmentHeader {
        let mut planner = Planner::after(size_of::<SegmentHeader>() as u64);
        let mut header: SegmentHeader = bytemuck::zeroed();
        header.magic = SEGMENT_MAGIC;
        (header.major, header.minor) = (MAJOR, MINOR);
        header.header_len = size_of::<SegmentHeader>() as u64;
        header.source = Source::Ring as u64;
        header.control = planner.place(CONTROL_WORDS as u64, CONTROL_BYTES);
        header.devices = planner.place(MAX_DEVICES as u64, DEVICE_BYTES);
        header.counters = planner.place(MAX_DEVICES as u64, COUNTER_BYTES);
        header.name_index = planner.place(MAX_NAMES, 8);
        header.name_bytes = planner.place(name_bytes.div_ceil(8), 8);
        header.ring = planner.place(ring_slots, SLOT_BYTES);
        header.rows = planner.place(rows, SLOT_BYTES);
        header.total_len = planner.len();
        header
    }

    /// Copies the header out of a file's first words; returns an error unless every block is inside the `len`
    /// bytes that the file has. Use only the returned copy: the file may change at any time.
    pub fn read<W: Word>(words: &[W], len: u64) -> Result<SegmentHeader, LayoutError> {
        let needed = size_of::<SegmentHeader>() as u64;
        if len < needed || words.len() < HEADER_WORDS {
            return Err(LayoutError::TooShort { len, needed });
        }
        let header: SegmentHeader = load_pod(words);
        header.check(len)?;
        Ok(header)
    }

    /// Whether the segment belongs to a run that may not have seen it yet. Only the run removes it then,
    /// however soon its process ended. `now` is CLOCK_MONOTONIC. A segment that claims to be from the future
    /// is not waited for.
    pub fn is_left_to_run(&self, now: u64) -> bool {
        let age = now.checked_sub(self.anchor_monotonic_ns);
        self.run != 0 && age.is_some_and(|age| age < RUN_GRACE_NS)
    }

    fn check(&self, len: u64) -> Result<(), LayoutError> {
        check_identity(
            self.magic,
            SEGMENT_MAGIC,
            (self.major, self.minor),
            self.incompatible & !KNOWN_FEATURES,
        )?;
        expect("header_len", self.header_len, size_of::<SegmentHeader>() as u64)?;
        expect("total_len", self.total_len, len)?;
        expect("control words", self.control.capacity, CONTROL_WORDS as u64)?;
        expect("devices", self.devices.capacity, MAX_DEVICES as u64)?;
        expect("counters", self.counters.capacity, MAX_DEVICES as u64)?;
        expect("names", self.name_index.capacity, MAX_NAMES)?;
        self.control.check("control", CONTROL_BYTES, CONTROL_WORDS as u64, len)?;
        self.devices.check("devices", DEVICE_BYTES, MAX_DEVICES as u64, len)?;
        self.counters.check("counters", COUNTER_BYTES, MAX_DEVICES as u64, len)?;
        self.name_index.check("name index", 8, MAX_NAMES, len)?;
        self.name_bytes.check("name bytes", 8, MAX_NAME_BYTES / 8, len)?;
        self.ring.check("ring", SLOT_BYTES, *RING_SLOTS.end(), len)?;
        self.rows.check("rows", SLOT_BYTES, MAX_ROWS, len)?;
        let slots = self.ring.capacity;
        if !slots.is_power_of_two() || !RING_SLOTS.contains(&slots) {
            return expect("ring slots", slots, slots.next_power_of_two().max(*RING_SLOTS.start()));
        }
        Ok(())
    }
}

pub(crate) fn expect(what: &'static str, found: u64, expected: u64) -> Result<(), LayoutError> {
    if found == expected { Ok(()) } else { Err(LayoutError::Header { what, found, expected }) }
}

/// The checks that segments and tables share: is it such a file, and is its version known?
pub(crate) fn check_identity(
    found: u64,
    expected: u64,
    (found_major, found_minor): (u32, u32),
    unknown: u64,
) -> Result<(), LayoutError> {
    if found != expected {
        return Err(LayoutError::Magic { found, expected });
    }
    if found_major != MAJOR {
        return Err(LayoutError::Version { found_major, found_minor, major: MAJOR, minor: MINOR });
    }
    if unknown != 0 {
        return Err(LayoutError::Features { unknown, found_major, found_minor, major: MAJOR, minor: MINOR });
    }
    Ok(())
}

/// The blocks of a segment as words. Carved once from a checked header, so that no offset from the file is
/// needed again; every access below is bounds-checked.
pub struct SegmentWords<'a, W> {
    /// Control words.
    pub control: &'a [W],
    /// Device entries.
    pub devices: &'a [[W; DEVICE_WORDS]],
    /// Counters by device index.
    pub counters: &'a [[W; DEVICE_COUNTER_WORDS]],
    /// Name index.
    pub name_index: &'a [W],
    /// Name bytes.
    pub name_bytes: &'a [W],
    /// Event slots; the length is a power of two.
    pub ring: &'a [[W; SLOT_WORDS]],
    /// Live rows.
    pub rows: &'a [[W; SLOT_WORDS]],
}

impl<W> Clone for SegmentWords<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<W> Copy for SegmentWords<'_, W> {}

impl<'a, W: Word> SegmentWords<'a, W> {
    /// Carves a segment's words into its blocks.
    pub fn carve(words: &'a [W], header: &SegmentHeader) -> SegmentWords<'a, W> {
        SegmentWords {
            control: header.control.entries::<1, W>(words).as_flattened(),
            devices: header.devices.entries(words),
            counters: header.counters.entries(words),
            name_index: header.name_index.entries::<1, W>(words).as_flattened(),
            name_bytes: header.name_bytes.entries::<1, W>(words).as_flattened(),
            ring: header.ring.entries(words),
            rows: header.rows.entries(words),
        }
    }
}
