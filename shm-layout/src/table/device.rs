//! The row of a device: all processes together.

use super::PEAK_HOLDERS;
use crate::class::Class;
use crate::device::DeviceEntry;
use crate::words::viewed_struct;

/// Bits of [`DeviceStats::flags`].
pub mod device_flags {
    crate::describe::constants! {
        pub ALL;
        /// Buffers occupy more of a pool than it has, or, where the pool is not known, more of a memory than the
        /// chip has: some process reports wrongly.
        pub const OVER_CAPACITY: u64 = 1 << 0;
        /// Processes disagree about the device's capacity or kind.
        pub const CONFLICT: u64 = 1 << 1;
        /// A process that could not be read, or not be counted, may hold memory on it: what is shown is a
        /// lower bound.
        pub const INCOMPLETE: u64 = 1 << 2;
        /// `dram_composition` is the complete composition of the DRAM peak.
        pub const DRAM_COMPOSITION_EXACT: u64 = 1 << 3;
        /// `l1_composition` is the complete composition of the L1 peak.
        pub const L1_COMPOSITION_EXACT: u64 = 1 << 4;
        /// A process whose source does not see them is or was on it: fabric and dispatch kernels, and what they are
        /// part of, are lower bounds.
        pub const SYSTEM_KERNELS_UNSEEN: u64 = 1 << 5;
        /// A process holds it, as the driver or a region of tt-metal says, that reports to nobody: what is shown is a
        /// lower bound.
        pub const UNREPORTED_HOLDER: u64 = 1 << 6;
    }
}

viewed_struct! {
    /// A peak in the current window. It is exact if `low` = `high`, otherwise it lies between them.
    pub struct Peak, size 32 {
        /// The largest value that is certain.
        0 => pub low: u64,
        /// The largest value that is possible; [2^64 - 1](crate::UNKNOWN) if it has no bound.
        8 => pub high: u64,
        /// When `low` was first reached; 0 if not known.
        16 => pub time: u64,
        /// Number of buffers at that time.
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
    /// The composition of a peak.
    pub struct Composition, size 272 {
        /// Bytes occupied by [`Class`] code; circular buffers as resident, kernels 0.
        0 => pub classes: [u64; Class::COUNT],
        /// Largest holders, largest first.
        72 => pub holders: [Holder; PEAK_HOLDERS],
        /// Bytes of all other holders.
        264 => pub others: u64,
    }
}

viewed_struct! {
    /// One class on a device, all processes together.
    pub struct ClassStats, size 80 {
        /// Bytes occupied now.
        0 => pub live_bytes: u64,
        /// Allocations live now.
        8 => pub live_count: u64,
        /// Bytes ever allocated by the processes alive now.
        16 => pub alloc_bytes: u64,
        /// Allocations ever made by the processes alive now.
        24 => pub alloc_count: u64,
        /// Largest `live_bytes`.
        32 => pub peak: Peak,
        /// Bytes requested for what is live now.
        64 => pub requested_bytes: u64,
        /// The part of `live_bytes` for which only the requested size is known.
        72 => pub requested_basis_bytes: u64,
    }
}

viewed_struct! {
    /// The last allocation failure on a device.
    pub struct Failure, size 72 {
        /// When, 0 if there was none.
        0 => pub time: u64,
        /// Pid of the process, for display.
        8 => pub pid: u64,
        /// [`Class`] code.
        16 => pub class: u64,
        /// Bytes requested.
        24 => pub request_bytes: u64,
        /// Bytes free then, [2^64 - 1](crate::UNKNOWN) if the process did not know.
        32 => pub free_bytes: u64,
        /// Largest free block then, [2^64 - 1](crate::UNKNOWN) if the process did not know.
        40 => pub largest_free_bytes: u64,
        /// Bytes needed in each bank, [2^64 - 1](crate::UNKNOWN) if the process did not know.
        48 => pub needed_per_bank_bytes: u64,
        /// Banks, 0 if the process did not know.
        56 => pub banks: u64,
        /// 1 if free bytes and the largest free block are those of one bank, 0 if of all.
        64 => pub per_bank: u64,
    }
}

viewed_struct! {
    /// A device, all processes together.
    pub struct DeviceStats, size 2168 {
        /// Generation that wrote this row; 0 if the row is not in use.
        0 => pub generation: u64,
        /// [Device flags](device_flags).
        8 => pub flags: u64,
        /// What is taken as true of it.
        16 => pub entry: DeviceEntry,
        /// Number of processes that use it.
        528 => pub processes: u64,
        /// DRAM used.
        536 => pub dram_used_bytes: u64,
        /// L1 of Tensix cores used.
        544 => pub l1_used_bytes: u64,
        /// L1 of ethernet cores used.
        552 => pub eth_used_bytes: u64,
        /// Circular buffer bytes of resident programs.
        560 => pub cb_resident_bytes: u64,
        /// Application kernel bytes of resident programs on Tensix cores.
        568 => pub kernel_resident_bytes: u64,
        /// Application kernel bytes of resident programs on ethernet cores.
        576 => pub kernel_resident_eth_bytes: u64,
        /// Fabric and dispatch kernels on Tensix cores.
        584 => pub system_kernel_bytes: u64,
        /// Fabric and dispatch kernels on ethernet cores.
        592 => pub system_kernel_eth_bytes: u64,
        /// Dispatches of the processes alive now.
        600 => pub dispatches: u64,
        /// Of those, the ones that found the binary cached.
        608 => pub cached_dispatches: u64,
        /// Allocations that failed, of the processes alive now.
        616 => pub failed_allocs: u64,
        /// Events folded since the aggregator attached.
        624 => pub events: u64,
        /// Events of the last second, in thousandths per second.
        632 => pub events_per_1000s: u64,
        /// Dispatches of the last second, in thousandths per second.
        640 => pub dispatches_per_1000s: u64,
        /// Kernel ring buffer: size, 0 if never reported.
        648 => pub kernel_ring_total_bytes: u64,
        /// Kernel ring buffer: bytes used.
        656 => pub kernel_ring_used_bytes: u64,
        /// Kernel ring buffer: programs in it.
        664 => pub kernel_ring_programs: u64,
        /// Largest DRAM used.
        672 => pub dram_peak: Peak,
        /// Largest L1 used.
        704 => pub l1_peak: Peak,
        /// Largest ethernet L1 used.
        736 => pub eth_peak: Peak,
        /// The last failure.
        768 => pub failure: Failure,
        /// By [`Class`] code.
        840 => pub classes: [ClassStats; Class::COUNT],
        /// Composition of the DRAM peak.
        1560 => pub dram_composition: Composition,
        /// Composition of the L1 peak.
        1832 => pub l1_composition: Composition,
        /// Largest `cb_resident_bytes`; has no count.
        2104 => pub cb_resident_peak: Peak,
        /// Largest sum of `kernel_resident_bytes` and `system_kernel_bytes`; has no count.
        2136 => pub kernel_resident_peak: Peak,
    }
}
