//! The control words of a segment: values that change often or grow. One constant per word.

use crate::describe::{codes, constants};

constants! {
    pub(crate) LIMITS;
    /// The number of words of a segment's control block.
    ///
    /// A line of 128 bytes for the head, one for what is published, one for the anomalies.
    pub const CONTROL_WORDS: usize = 48;
}

constants! {
    pub ALL;
    /// The position of the last complete event, 0 if there was none; stored with release.
    ///
    /// Alone on its line: it changes with every event.
    pub const HEAD: usize = 0;
    /// [State bits](state).
    pub const STATE: usize = 16;
    /// The number of device entries that may be read; stored with release.
    pub const DEVICE_COUNT: usize = 17;
    /// The number of names that may be read, counting the empty name 0; stored with release.
    pub const NAME_COUNT: usize = 18;
    /// The number of rows that may be read; all others are holes in the file. Stored with release.
    pub const ROWS_PUBLISHED: usize = 19;
    /// The number of live allocations without a row, because there was no room for one.
    pub const UNLISTED: usize = 20;
    /// The ticks when the process closed the segment; 0 if it did not, or the time was not recorded.
    pub const CLOSED_AT: usize = 21;
    /// How often the process compared its sums with those of the device's allocator.
    pub const SELF_CHECKS: usize = 22;
    /// How often such a comparison found a difference.
    pub const SELF_CHECKS_DIFFERENT: usize = 23;
    /// The first of the [anomaly](Anomaly) counts.
    pub const ANOMALIES: usize = 32;
}

/// Bits of the [`STATE`] word.
pub mod state {
    crate::describe::constants! {
        pub ALL;
        /// The process closed the segment in an orderly way.
        pub const CLOSED: u64 = 1 << 0;
        /// There is no room for all rows or names: totals are exact, the lists are incomplete. Cleared once
        /// everything live has a row again and the last name fitted.
        pub const DEGRADED: u64 = 1 << 1;
        /// The process holds memory of a device that it cannot report, such as that of programs from before it began to
        /// report: its figures are a part of what it holds. Cleared if it was only not sure, as after a late start, and has
        /// made sure since.
        pub const PARTIAL: u64 = 1 << 2;
    }
}

codes! {
    /// Misuse of the reporting interface. It is counted and never makes a total wrong. The discriminant is the
    /// word after [`ANOMALIES`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Anomaly {
        /// A free of something that is not live.
        UnmatchedFree = 0,
        /// An allocation of something that is live.
        DoubleAlloc = 1,
        /// A free with a different size than was allocated.
        SizeMismatch = 2,
        /// An allocation that got no row.
        Unlisted = 3,
        /// A device that was never registered.
        UnknownDevice = 4,
        /// More devices than the list holds.
        DeviceListFull = 5,
        /// More names than the list holds.
        NamesFull = 6,
        /// A size that no device can hold.
        SizeOutOfRange = 7,
        /// A dispatch of a program that has no kernel and no circular buffer.
        UnknownProgram = 8,
        /// A device was described differently than before; the first description stays.
        DeviceConflict = 9,
        /// No room in /dev/shm for the counters of another device.
        NoRoom = 10,
        /// A dispatch in a lane that no device has.
        LaneOutOfRange = 11,
    }
}

impl Anomaly {
    /// The name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Anomaly::UnmatchedFree => "unmatched_free",
            Anomaly::DoubleAlloc => "double_alloc",
            Anomaly::SizeMismatch => "size_mismatch",
            Anomaly::Unlisted => "unlisted",
            Anomaly::UnknownDevice => "unknown_device",
            Anomaly::DeviceListFull => "device_list_full",
            Anomaly::NamesFull => "names_full",
            Anomaly::SizeOutOfRange => "size_out_of_range",
            Anomaly::UnknownProgram => "unknown_program",
            Anomaly::DeviceConflict => "device_conflict",
            Anomaly::NoRoom => "no_room",
            Anomaly::LaneOutOfRange => "lane_out_of_range",
        }
    }
}

const _: () = assert!(ANOMALIES + Anomaly::ALL.len() <= CONTROL_WORDS);
