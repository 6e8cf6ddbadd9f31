//! What unmodified tt-metal publishes about its memory, in regions of its own: one for each chip.

use crate::describe::constants;
use crate::words::viewed_struct;

constants! {
    pub(crate) LIMITS;
    /// The number of rows of regions and of their processes in a table.
    pub const MAX_REGION_ROWS: usize = 1024;
}

/// Values of [`RegionStats::kind`].
pub mod region_kind {
    crate::describe::constants! {
        pub ALL;
        /// A region: its bytes are the totals that it has.
        pub const REGION: u64 = 1;
        /// A process in a region.
        pub const PROCESS: u64 = 2;
        /// A region that could not be read; `note` says why.
        pub const UNREAD: u64 = 3;
    }
}

/// Values of [`RegionStats::state`].
pub mod region_state {
    crate::describe::constants! {
        pub ALL;
        /// The process is alive.
        pub const ALIVE: u64 = 1;
        /// It has ended, and its bytes stayed behind.
        pub const GHOST: u64 = 2;
        /// It is not certain whether it is alive; `note` says why.
        pub const UNCERTAIN: u64 = 3;
    }
}

/// Bits of [`RegionStats::flags`].
pub mod region_flags {
    crate::describe::constants! {
        pub ALL;
        /// The process reports by itself, so what the region says of it is not used.
        pub const REPORTS: u64 = 1 << 0;
        /// Another slot has the same pid.
        pub const DUPLICATE: u64 = 1 << 1;
        /// The region was written whenever it was read: its figures need not belong together.
        pub const UNSTEADY: u64 = 1 << 2;
    }
}

viewed_struct! {
    /// A region of tt-metal, or a process in it. Bytes are those that were requested, and never exact.
    pub struct RegionStats, size 384 {
        /// Generation that wrote this row; 0 if the row is not in use.
        0 => pub generation: u64,
        /// [Region kind](region_kind).
        8 => pub kind: u64,
        /// Index of the device row; 2^64 - 1 if there is none.
        16 => pub device: u64,
        /// The chip.
        24 => pub chip_id: u64,
        /// Version of the region's layout.
        32 => pub version: u64,
        /// [Region flags](region_flags).
        40 => pub flags: u64,
        /// [Region state](region_state) of a process.
        48 => pub state: u64,
        /// Place of the process in the region.
        56 => pub slot: u64,
        /// Pid of the process as seen by itself.
        64 => pub pid: u64,
        /// Its pid in the aggregator's PID namespace; 0 if unknown.
        72 => pub pid_here: u64,
        /// Owner of the file.
        80 => pub uid: u64,
        /// When it was written last, CLOCK_REALTIME.
        88 => pub updated_realtime_ns: u64,
        /// DRAM.
        96 => pub dram_bytes: u64,
        /// L1.
        104 => pub l1_bytes: u64,
        /// L1_SMALL.
        112 => pub l1_small_bytes: u64,
        /// Trace.
        120 => pub trace_bytes: u64,
        /// Circular buffers.
        128 => pub cb_bytes: u64,
        /// Name of the process, UTF-8, zero-filled.
        136 => pub name: [u8; 64],
        /// What is wrong with it, UTF-8, zero-filled.
        200 => pub note: [u8; 184],
    }
}

impl RegionStats {
    /// Whether it is a process that may be alive, and does not report by itself.
    pub fn is_silent(&self) -> bool {
        let may_live = self.kind == region_kind::PROCESS && self.state != region_state::GHOST;
        may_live && self.flags & region_flags::REPORTS == 0
    }
}
