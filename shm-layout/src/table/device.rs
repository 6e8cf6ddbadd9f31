//! The row of a device: all processes together.

use super::PEAK_HOLDERS;
use crate::class::Class;
use crate::device::DeviceEntry;
use crate::words::viewed_struct;

/// Bits of [`DeviceStats::flags`].
pub mod device_flags {
    /// More is used than the device has: some process reports wrongly.
    pub const OVER_CAPACITY: u64 = 1 << 0;
    /// Processes disagree about the device's capacity or kind.
    pub const CONFLICT: u64 = 1 << 1;
    /// Somebody who could not be read may have something on it: whatever is live now is at least what is shown.
    pub const INCOMPLETE: u64 = 1 << 2;
    /// `dram_composition` tells all that the DRAM peak was made of.
    pub const DRAM_COMPOSITION_EXACT: u64 = 1 << 3;
    /// `l1_composition` tells all that the L1 peak was made of.
    pub const L1_COMPOSITION_EXACT: u64 = 1 << 4;
}

viewed_struct! {
    /// A largest value in the current window. It is exact if `low` = `high`, else it lies between.
    pub struct Peak, size 32 {
        /// Largest value seen.
        0 => pub low: u64,
        /// Most that it can have been, [`crate::event::UNKNOWN`] if nobody knows.
        8 => pub high: u64,
        /// When `low` was reached first, 0 if nobody knows.
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
    pub struct DeviceStats, size 1744 {
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
        /// Largest `cb_resident_bytes`; nothing is counted.
        1680 => pub cb_resident_peak: Peak,
        /// Largest sum of `kernel_resident_bytes` and `system_kernel_bytes`; nothing is counted.
        1712 => pub kernel_resident_peak: Peak,
    }
}
