//! The structs of the interface, and the numbers in them.
//!
//! A field that is zero means what a caller means who does not know the field: nothing special, or unknown.

use std::ffi::c_char;

use shm_layout::{Class, ClassCounters, Counters, DeviceEntry, Event, LANES, Lane, Row};
use tt_shm_writer::{
    Alloc, Arch, BufferType, CircularBuffer, CoreGrid, CoreMemory, CoreType, DeviceInfo, Dispatch,
    FailedAlloc, Kernel, KernelType, NameId, PciAddress, Pool, Pools,
};

use crate::code::{Done, Failure, TT_SHM_ERR_UTF8, TT_SHM_ERR_VALUE};
use crate::raw::{Text, plain, versioned};

/// A device that was registered with a tracker, and the index of a device in a segment.
pub type tt_shm_device = u8;
/// An interned name; 0 for none.
pub type tt_shm_name = u16;

/// A number that is not known.
pub const TT_SHM_UNKNOWN: u64 = u64::MAX;
/// `device` of an event that concerns no single device.
pub const TT_SHM_NO_DEVICE: u8 = u8::MAX;

/// A buffer in DRAM. Buffer types have tt-metal's numbers.
pub const TT_SHM_BUFFER_DRAM: u32 = 0;
/// A buffer in the L1 of Tensix cores.
pub const TT_SHM_BUFFER_L1: u32 = 1;
/// A buffer in host memory.
pub const TT_SHM_BUFFER_SYSTEM_MEMORY: u32 = 2;
/// A buffer in the small-buffer region of L1.
pub const TT_SHM_BUFFER_L1_SMALL: u32 = 3;
/// A trace buffer, in DRAM.
pub const TT_SHM_BUFFER_TRACE: u32 = 4;

/// Memory classes, as in counters, events and rows: buffers in DRAM.
pub const TT_SHM_CLASS_DRAM: u32 = 0;
/// Trace buffers, in DRAM.
pub const TT_SHM_CLASS_TRACE: u32 = 1;
/// Buffers in L1.
pub const TT_SHM_CLASS_L1: u32 = 2;
/// Buffers in the small-buffer region of L1.
pub const TT_SHM_CLASS_L1_SMALL: u32 = 3;
/// Program-local L1: circular buffers and the like.
pub const TT_SHM_CLASS_CB: u32 = 4;
/// Binaries of application kernels.
pub const TT_SHM_CLASS_KERNEL_APPLICATION: u32 = 5;
/// Binaries of fabric kernels.
pub const TT_SHM_CLASS_KERNEL_FABRIC: u32 = 6;
/// Binaries of dispatch kernels.
pub const TT_SHM_CLASS_KERNEL_DISPATCH: u32 = 7;
/// Host memory.
pub const TT_SHM_CLASS_SYSTEM_MEMORY: u32 = 8;
/// Room for classes in a struct; unused ones are zero.
pub const TT_SHM_CLASSES: usize = 16;
/// Lanes of a device: its sub-devices, each of which runs a program of its own.
pub const TT_SHM_LANES: usize = 8;

/// A kernel of a user's program. Kernel types have the numbers of the proof of concept.
pub const TT_SHM_KERNEL_APPLICATION: u32 = 0;
/// A kernel that routes traffic between devices.
pub const TT_SHM_KERNEL_FABRIC: u32 = 1;
/// A kernel that serves a command queue.
pub const TT_SHM_KERNEL_DISPATCH: u32 = 2;

/// Compute cores.
pub const TT_SHM_CORES_TENSIX: u32 = 0;
/// Ethernet cores.
pub const TT_SHM_CORES_ETHERNET: u32 = 1;

/// A program's binary is not on the device: launching sends it. The numbers are tt-metal's.
pub const TT_SHM_BINARY_NOT_SENT: u32 = 0;
/// A program's binary is on its way.
pub const TT_SHM_BINARY_IN_FLIGHT: u32 = 1;
/// A program's binary is on the device.
pub const TT_SHM_BINARY_COMMITTED: u32 = 2;

/// A step begins.
pub const TT_SHM_MARKER_BEGIN: u32 = 0;
/// A step ends.
pub const TT_SHM_MARKER_END: u32 = 1;
/// A single moment.
pub const TT_SHM_MARKER_INSTANT: u32 = 2;

/// What has a name: a buffer.
pub const TT_SHM_KIND_BUFFER: u32 = 0;
/// What has a name: a circular buffer of a program.
pub const TT_SHM_KIND_CB: u32 = 1;
/// What has a name: a kernel.
pub const TT_SHM_KIND_KERNEL: u32 = 2;

/// Architectures: Grayskull.
pub const TT_SHM_ARCH_GRAYSKULL: u32 = 1;
/// Wormhole B0.
pub const TT_SHM_ARCH_WORMHOLE: u32 = 2;
/// Blackhole.
pub const TT_SHM_ARCH_BLACKHOLE: u32 = 3;
/// Quasar.
pub const TT_SHM_ARCH_QUASAR: u32 = 4;

/// Bits of `tt_shm_device_info.known`: `dram_bytes`.
pub const TT_SHM_KNOWN_DRAM: u64 = 1 << 0;
/// `dram_channels`.
pub const TT_SHM_KNOWN_DRAM_CHANNELS: u64 = 1 << 1;
/// `tensix_cores` and `l1_per_core`.
pub const TT_SHM_KNOWN_L1: u64 = 1 << 2;
/// `eth_cores` and `eth_l1_per_core`.
pub const TT_SHM_KNOWN_ETH: u64 = 1 << 3;
/// `pci`.
pub const TT_SHM_KNOWN_PCI: u64 = 1 << 4;
/// `logical_id`.
pub const TT_SHM_KNOWN_LOGICAL: u64 = 1 << 5;
/// `board`.
pub const TT_SHM_KNOWN_BOARD: u64 = 1 << 6;
/// `arch`.
pub const TT_SHM_KNOWN_ARCH: u64 = 1 << 7;
/// `sub_device`.
pub const TT_SHM_KNOWN_SUB_DEVICE: u64 = 1 << 8;
/// `hybrid`.
pub const TT_SHM_KNOWN_HYBRID: u64 = 1 << 9;
/// `pools[TT_SHM_POOL_DRAM]`.
pub const TT_SHM_KNOWN_POOL_DRAM: u64 = 1 << 12;
/// `pools[TT_SHM_POOL_TRACE]`.
pub const TT_SHM_KNOWN_POOL_TRACE: u64 = 1 << 13;
/// `pools[TT_SHM_POOL_L1]`.
pub const TT_SHM_KNOWN_POOL_L1: u64 = 1 << 14;
/// `pools[TT_SHM_POOL_L1_SMALL]`.
pub const TT_SHM_KNOWN_POOL_L1_SMALL: u64 = 1 << 15;
/// `l1_base`.
pub const TT_SHM_KNOWN_L1_BASE: u64 = 1 << 16;
/// `grid_columns` and `grid_rows`.
pub const TT_SHM_KNOWN_GRID: u64 = 1 << 17;

/// Pools of an allocator: DRAM buffers.
pub const TT_SHM_POOL_DRAM: usize = 0;
/// Trace buffers.
pub const TT_SHM_POOL_TRACE: usize = 1;
/// L1 buffers.
pub const TT_SHM_POOL_L1: usize = 2;
/// Small L1 buffers.
pub const TT_SHM_POOL_L1_SMALL: usize = 3;

/// Bits of `tt_shm_buffer.known` and others: `address`.
pub const TT_SHM_HAS_ADDRESS: u64 = 1 << 0;
/// `bytes_per_bank`.
pub const TT_SHM_HAS_BYTES_PER_BANK: u64 = 1 << 1;
/// `occupied_bytes`.
pub const TT_SHM_HAS_OCCUPIED: u64 = 1 << 2;
/// `program` of a kernel: otherwise its program has the kernel's id.
pub const TT_SHM_HAS_PROGRAM: u64 = 1 << 3;
/// `free_bytes` and `largest_free_bytes`.
pub const TT_SHM_HAS_FREE: u64 = 1 << 4;
/// `needed_per_bank_bytes` and `banks`.
pub const TT_SHM_HAS_NEEDED: u64 = 1 << 5;

/// Bits of `tt_shm_options.flags`: tracking is on, whatever the environment says.
pub const TT_SHM_OPEN_ENABLED: u32 = 1 << 0;
/// Tracking is off, whatever the environment says.
pub const TT_SHM_OPEN_DISABLED: u32 = 1 << 1;
/// Allocations without a call site get the backtrace of the caller. Slow.
pub const TT_SHM_OPEN_BACKTRACE: u32 = 1 << 2;
/// What this tracker reports is no memory of tt-metal's allocators: a tap in this process goes on reporting those.
/// Without this bit it stands back, so that nothing counts twice.
pub const TT_SHM_OPEN_BESIDE_TAP: u32 = 1 << 3;

/// The tracker belongs to the thread that opens it, and its calls take no lock: calls of other threads are refused. See
/// `tt_shm_tracker_release`.
pub const TT_SHM_OPEN_EXCLUSIVE: u32 = 1 << 4;

/// How a tracker is opened. What is zero or null comes from the environment, or else is the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tt_shm_options {
    /// `sizeof(tt_shm_options)`.
    pub size: u32,
    /// `TT_SHM_OPEN_...` bits.
    pub flags: u32,
    /// The namespace, instead of `TT_SHM_NAMESPACE`.
    pub name_space: Text,
    /// The name that monitors show, at most 64 bytes, instead of that of this process.
    pub process_name: Text,
    /// Slots of the event ring, a power of two.
    pub ring_slots: u64,
    /// Most rows of the live list.
    pub live_capacity: u64,
    /// Most bytes of interned names.
    pub name_bytes: u64,
}

/// A pool of an allocator: every buffer in it occupies its bytes per bank in each of its banks.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct tt_shm_pool {
    /// Number of banks.
    pub banks: u64,
    /// Bytes of each bank that can be allocated.
    pub bank_bytes: u64,
    /// Alignment of allocations; 0 if unknown.
    pub alignment: u64,
}

/// A device, that is, one allocator on one chip: what a host knows of it, and what a segment says.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_device_info {
    /// `sizeof(tt_shm_device_info)`.
    pub size: u32,
    /// Architecture, `TT_SHM_ARCH_...`.
    pub arch: u32,
    /// `TT_SHM_KNOWN_...` bits of the fields that are known. A field whose bit is not set is ignored.
    pub known: u64,
    /// Stable id of the chip, the same in every process. Always known.
    pub chip_id: u64,
    /// Distinguishes several allocators on one chip; 0 for the only one. Always known.
    pub allocator: u64,
    /// The host's own number for it.
    pub logical_id: u64,
    /// Sub-device that the allocator belongs to.
    pub sub_device: u64,
    /// 1 if the allocator works in hybrid mode, in which not every buffer occupies every bank.
    pub hybrid: u64,
    /// DRAM of the chip in bytes.
    pub dram_bytes: u64,
    /// DRAM channels.
    pub dram_channels: u64,
    /// Tensix cores.
    pub tensix_cores: u64,
    /// L1 bytes of each Tensix core.
    pub l1_per_core: u64,
    /// Ethernet cores.
    pub eth_cores: u64,
    /// L1 bytes of each ethernet core.
    pub eth_l1_per_core: u64,
    /// Lowest address in the L1 of a core that the L1 pool provides.
    pub l1_base: u64,
    /// Columns of the grid of cores.
    pub grid_columns: u64,
    /// Rows of that grid.
    pub grid_rows: u64,
    /// PCI address: domain << 16 | bus << 8 | device << 3 | function.
    pub pci: u64,
    /// Pools of the allocator, by `TT_SHM_POOL_...`.
    pub pools: [tt_shm_pool; 4],
    /// Board name such as `n300`, at most 32 bytes, with a zero after it.
    pub board: [c_char; 40],
}

/// A buffer that was allocated.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_buffer {
    /// `sizeof(tt_shm_buffer)`.
    pub size: u32,
    /// `TT_SHM_BUFFER_...`.
    pub type_: u32,
    /// The host's id: identifies one live buffer per device.
    pub id: u64,
    // Between id and bytes: the caller has just stored both, and if they were neighbours they would be loaded at once, which
    // waits until both have left the core.
    /// `TT_SHM_HAS_...` bits of `address`, `bytes_per_bank` and `occupied_bytes`.
    pub known: u64,
    /// Requested bytes on each device.
    pub bytes: u64,
    /// Its address on the device.
    pub address: u64,
    /// Aligned bytes in each bank: it occupies that in every bank of its pool.
    pub bytes_per_bank: u64,
    /// Bytes that it occupies on each device, whatever its pool.
    pub occupied_bytes: u64,
    /// Number of cores that it is spread over; 0 if unknown.
    pub cores: u32,
    /// What it is for.
    pub name: tt_shm_name,
    /// Where in the host's code it was allocated.
    pub site: tt_shm_name,
    /// Core ranges that it lies on.
    pub core_ranges: tt_shm_name,
    /// Zero.
    pub reserved: [u16; 3],
}

/// A circular buffer. It occupies L1 from the dispatch of its program on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_cb {
    /// `sizeof(tt_shm_cb)`.
    pub size: u32,
    /// Number of cores.
    pub cores: u32,
    /// Its program.
    pub program: u64,
    /// Its id, which identifies it within its program.
    pub id: u64,
    /// Bytes on each core.
    pub bytes_per_core: u64,
    /// `TT_SHM_HAS_ADDRESS`, or 0.
    pub known: u64,
    /// Its address in L1.
    pub address: u64,
    /// 1 if it lies inside an L1 buffer that is reported by itself, so that it has no bytes of its own.
    pub globally_allocated: u32,
    /// What it is for.
    pub name: tt_shm_name,
    /// Core ranges that it lies on: rectangles `x,y-x,y` with spaces between them.
    pub core_ranges: tt_shm_name,
}

/// A kernel binary, as loaded to a number of cores.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_kernel {
    /// `sizeof(tt_shm_kernel)`.
    pub size: u32,
    /// `TT_SHM_KERNEL_...`.
    pub type_: u32,
    /// Its id.
    pub id: u64,
    /// `TT_SHM_HAS_PROGRAM`, or 0.
    pub known: u64,
    /// The program that runs it.
    pub program: u64,
    /// Bytes of the binary on each core.
    pub binary_bytes: u64,
    /// A hash of the binary; 0 for none.
    pub hash: u64,
    /// Number of cores.
    pub cores: u32,
    /// `TT_SHM_CORES_...`.
    pub core_type: u32,
    /// What it is for.
    pub name: tt_shm_name,
    /// Core ranges that it lies on.
    pub core_ranges: tt_shm_name,
    /// Zero.
    pub reserved: u32,
}

/// A dispatch of a program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_dispatch_info {
    /// `sizeof(tt_shm_dispatch_info)`.
    pub size: u32,
    /// How often it is dispatched in a row, as when a trace is replayed; 0 is taken as once.
    pub times: u32,
    /// Its program.
    pub program: u64,
    /// The sub-device that runs it, below `TT_SHM_LANES`.
    pub lane: u8,
    /// The command queue that it came by.
    pub queue: u8,
    /// What the program does.
    pub name: tt_shm_name,
    /// Zero.
    pub reserved: u32,
}

/// An allocation that failed, with the state of the allocator at that time.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_failure {
    /// `sizeof(tt_shm_failure)`.
    pub size: u32,
    /// `TT_SHM_CLASS_...`.
    pub class_: u32,
    /// Bytes requested.
    pub request_bytes: u64,
    /// `TT_SHM_HAS_FREE` and `TT_SHM_HAS_NEEDED` bits.
    pub known: u64,
    /// Bytes that were free.
    pub free_bytes: u64,
    /// Largest free block.
    pub largest_free_bytes: u64,
    /// Bytes needed in each bank.
    pub needed_per_bank_bytes: u64,
    /// Banks.
    pub banks: u32,
    /// 1 if free bytes and the largest free block are those of one bank, 0 if of all.
    pub per_bank: u32,
}

/// One class on one device.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct tt_shm_class_counters {
    /// Bytes occupied now.
    pub live_bytes: u64,
    /// Allocations live now.
    pub live_count: u64,
    /// Bytes ever occupied.
    pub alloc_bytes: u64,
    /// Allocations ever made.
    pub alloc_count: u64,
    /// Largest `live_bytes` since the last reset.
    pub peak_bytes: u64,
    /// When that was first reached, in ticks.
    pub peak_time: u64,
    /// `live_count` at that time.
    pub peak_count: u64,
    /// Bytes requested for what is live now.
    pub requested_bytes: u64,
    /// The part of `live_bytes` for which only the requested size is known.
    pub requested_basis_bytes: u64,
}

/// The program dispatched last in a lane. All zero in a lane that has none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct tt_shm_lane {
    /// Its id.
    pub program: u64,
    /// Bytes of its circular buffers.
    pub cb_bytes: u64,
    /// Bytes of its kernels on Tensix cores.
    pub kernel_bytes: u64,
    /// Bytes of its kernels on ethernet cores.
    pub kernel_eth_bytes: u64,
}

/// All counters of one process on one device. Times are ticks of the segment's clock, in a snapshot of a table
/// CLOCK_MONOTONIC nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_counters {
    /// `sizeof(tt_shm_counters)`.
    pub size: u32,
    /// 1 while the process reports the device as open.
    pub open: u32,
    /// Position of the last event counted.
    pub position: u64,
    /// Its time.
    pub time: u64,
    /// DRAM used: DRAM and trace buffers.
    pub dram_used_bytes: u64,
    /// L1 used: L1 and L1_SMALL buffers and resident circular buffers.
    pub l1_used_bytes: u64,
    /// Ethernet L1 used.
    pub eth_used_bytes: u64,
    /// Largest DRAM used since the last reset.
    pub dram_peak_bytes: u64,
    /// When that was first reached.
    pub dram_peak_time: u64,
    /// Largest L1 used since the last reset.
    pub l1_peak_bytes: u64,
    /// When that was first reached.
    pub l1_peak_time: u64,
    /// Largest ethernet L1 used since the last reset.
    pub eth_peak_bytes: u64,
    /// When that was first reached.
    pub eth_peak_time: u64,
    /// Time of the last reset of peaks, 0 if there was none.
    pub peak_reset_time: u64,
    /// Dispatches.
    pub dispatches: u64,
    /// Dispatches that found the binary cached.
    pub cached_dispatches: u64,
    /// Time of the last dispatch, 0 if there was none.
    pub last_dispatch_time: u64,
    /// Circular buffer bytes of resident programs.
    pub cb_resident_bytes: u64,
    /// Kernel bytes of resident programs on Tensix cores.
    pub kernel_resident_bytes: u64,
    /// Kernel bytes of resident programs on ethernet cores.
    pub kernel_resident_eth_bytes: u64,
    /// Fabric and dispatch kernels on Tensix cores.
    pub system_kernel_bytes: u64,
    /// Fabric and dispatch kernels on ethernet cores.
    pub system_kernel_eth_bytes: u64,
    /// Bytes of all loaded kernels, of all types and on all cores.
    pub kernel_loaded_bytes: u64,
    /// Allocations that failed.
    pub failed_allocs: u64,
    /// Time of the last failure, 0 if there was none.
    pub last_failed_time: u64,
    /// Kernel ring buffer: size, 0 if never reported.
    pub kernel_ring_total_bytes: u64,
    /// Kernel ring buffer: bytes used.
    pub kernel_ring_used_bytes: u64,
    /// Kernel ring buffer: programs in it.
    pub kernel_ring_programs: u64,
    /// Bits of the lanes that have a resident program.
    pub resident_lanes: u64,
    /// The resident program of each lane.
    pub lanes: [tt_shm_lane; TT_SHM_LANES],
    /// By `TT_SHM_CLASS_...`.
    pub classes: [tt_shm_class_counters; TT_SHM_CLASSES],
}

/// One event, as it is in shared memory. `docs/layout.md` says which kinds there are and what the fields mean for each.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct tt_shm_event {
    /// Position of the event in its ring, from 1.
    pub stamp: u64,
    /// Ticks of the segment's clock.
    pub time: u64,
    /// `TT_SHM_EVENT_...`.
    pub kind: u8,
    /// `TT_SHM_CLASS_...`; of a marker `TT_SHM_MARKER_...`.
    pub class_: u8,
    /// `TT_SHM_FLAG_...` bits.
    pub flags: u8,
    /// Index of the device, or `TT_SHM_NO_DEVICE`.
    pub device: u8,
    /// Name, 0 for none.
    pub name: u16,
    /// Call site, 0 for none.
    pub site: u16,
    /// Buffer, circular buffer, kernel, program or step id.
    pub id: u64,
    /// Bytes occupied on that device.
    pub bytes: u64,
    /// Device address or `TT_SHM_UNKNOWN`; hash of a kernel's binary.
    pub address: u64,
    /// Requested bytes of a buffer; program of a circular buffer or kernel.
    pub aux: u64,
    /// Row of the live list that it writes or clears, or 2^32 - 1.
    pub row: u32,
    /// Number of cores; 0 if unknown.
    pub cores: u16,
    /// Name of the core ranges, 0 for none.
    pub place: u16,
}

/// Something live in a process: the event by which it was allocated. `kind` is ALLOC, CB_ALLOC or KERNEL_LOAD.
pub type tt_shm_allocation = tt_shm_event;

/// Kinds of events: a buffer was allocated.
pub const TT_SHM_EVENT_ALLOC: u8 = 1;
/// A buffer was freed.
pub const TT_SHM_EVENT_FREE: u8 = 2;
/// A circular buffer was allocated.
pub const TT_SHM_EVENT_CB_ALLOC: u8 = 8;
/// A circular buffer was freed.
pub const TT_SHM_EVENT_CB_FREE: u8 = 9;
/// A kernel was loaded.
pub const TT_SHM_EVENT_KERNEL_LOAD: u8 = 10;
/// A kernel was unloaded.
pub const TT_SHM_EVENT_KERNEL_UNLOAD: u8 = 11;
/// A program was dispatched.
pub const TT_SHM_EVENT_KERNEL_DISPATCH: u8 = 16;
/// An allocation failed.
pub const TT_SHM_EVENT_ALLOC_FAILED: u8 = 17;
/// A marker.
pub const TT_SHM_EVENT_MARKER: u8 = 18;
/// Peaks were reset.
pub const TT_SHM_EVENT_PEAK_RESET: u8 = 19;
/// The device was opened.
pub const TT_SHM_EVENT_DEVICE_OPEN: u8 = 20;
/// The device was closed.
pub const TT_SHM_EVENT_DEVICE_CLOSE: u8 = 21;
/// How full the kernel ring buffer is.
pub const TT_SHM_EVENT_GAUGE: u8 = 22;
/// Nothing of a program is left.
pub const TT_SHM_EVENT_PROGRAM_END: u8 = 23;
/// Something live got a name.
pub const TT_SHM_EVENT_NAME: u8 = 24;

/// Flags of events: on ethernet cores.
pub const TT_SHM_FLAG_ETHERNET: u8 = 1 << 0;
/// Resident.
pub const TT_SHM_FLAG_RESIDENT: u8 = 1 << 1;
/// A dispatch that found the binary cached.
pub const TT_SHM_FLAG_CACHED: u8 = 1 << 2;
/// Tracking began after the real load.
pub const TT_SHM_FLAG_LATE: u8 = 1 << 3;
/// A circular buffer inside an L1 buffer, with no bytes of its own.
pub const TT_SHM_FLAG_GLOBAL: u8 = 1 << 4;
/// Of a failure: free bytes are those of one bank.
pub const TT_SHM_FLAG_PER_BANK: u8 = 1 << 5;
/// The occupied size is not known: `bytes` is the requested size.
pub const TT_SHM_FLAG_REQUESTED: u8 = 1 << 6;
/// Freed because its device was closed.
pub const TT_SHM_FLAG_DROPPED: u8 = 1 << 7;

versioned!(
    tt_shm_options,
    tt_shm_device_info,
    tt_shm_buffer,
    tt_shm_cb,
    tt_shm_kernel,
    tt_shm_dispatch_info,
    tt_shm_failure,
    tt_shm_counters,
);
plain!(tt_shm_event);

// Events and rows are copied as they are.
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<tt_shm_event>() == 64 && align_of::<tt_shm_event>() == 8);
    assert!(offset_of!(tt_shm_event, device) == offset_of!(Event, device));
    assert!(offset_of!(tt_shm_event, site) == offset_of!(Event, site));
    assert!(offset_of!(tt_shm_event, aux) == offset_of!(Event, aux));
    assert!(offset_of!(tt_shm_event, place) == offset_of!(Event, place));
    assert!(offset_of!(tt_shm_event, place) == offset_of!(Row, place));
    // The sizes of the first version, which callers may have been compiled with.
    assert!(size_of::<tt_shm_options>() == 48);
    assert!(size_of::<tt_shm_device_info>() == 272);
    assert!(size_of::<tt_shm_buffer>() == 72);
    assert!(size_of::<tt_shm_cb>() == 56);
    assert!(size_of::<tt_shm_kernel>() == 64);
    assert!(size_of::<tt_shm_dispatch_info>() == 24);
    assert!(size_of::<tt_shm_failure>() == 56);
    assert!(size_of::<tt_shm_counters>() == 1632);
    assert!(TT_SHM_LANES == LANES && Class::COUNT <= TT_SHM_CLASSES);
};

impl From<Event> for tt_shm_event {
    fn from(event: Event) -> tt_shm_event {
        bytemuck::must_cast(event)
    }
}

impl From<Row> for tt_shm_event {
    fn from(row: Row) -> tt_shm_event {
        bytemuck::must_cast(row)
    }
}

/// A value that there is not.
#[cold]
pub(crate) fn no_such(what: &str, value: u64) -> Failure {
    Failure::new(TT_SHM_ERR_VALUE, None, format_args!("there is no {what} {value}"))
}

#[inline(always)]
pub(crate) fn buffer_type(code: u32) -> Done<BufferType> {
    u8::try_from(code).ok().and_then(BufferType::from_code).ok_or_else(|| no_such("buffer type", code.into()))
}

impl tt_shm_buffer {
    /// The buffer; its type was checked. Not in a `Result`, which would put it together from parts that a later load waits for.
    #[inline(always)]
    pub(crate) fn alloc(&self, buffer_type: BufferType) -> Alloc {
        let mut alloc = Alloc::new(buffer_type, self.id, self.bytes)
            .cores(self.cores)
            .core_ranges(NameId::from_raw(self.core_ranges))
            .name(NameId::from_raw(self.name))
            .site(NameId::from_raw(self.site));
        if self.known & TT_SHM_HAS_ADDRESS != 0 {
            alloc = alloc.address(self.address);
        }
        if self.known & TT_SHM_HAS_BYTES_PER_BANK != 0 {
            alloc = alloc.bytes_per_bank(self.bytes_per_bank);
        }
        if self.known & TT_SHM_HAS_OCCUPIED != 0 {
            alloc = alloc.occupied(self.occupied_bytes);
        }
        alloc
    }
}

impl tt_shm_cb {
    pub(crate) fn circular_buffer(&self) -> CircularBuffer {
        let mut cb = CircularBuffer::new(self.program, self.id, self.bytes_per_core, self.cores)
            .name(NameId::from_raw(self.name))
            .core_ranges(NameId::from_raw(self.core_ranges));
        if self.known & TT_SHM_HAS_ADDRESS != 0 {
            cb = cb.address(self.address);
        }
        if self.globally_allocated != 0 { cb.globally_allocated() } else { cb }
    }
}

impl tt_shm_kernel {
    pub(crate) fn kernel(&self) -> Done<Kernel> {
        let kernel_type = match self.type_ {
            TT_SHM_KERNEL_APPLICATION => KernelType::Application,
            TT_SHM_KERNEL_FABRIC => KernelType::Fabric,
            TT_SHM_KERNEL_DISPATCH => KernelType::Dispatch,
            other => return Err(no_such("kernel type", other.into())),
        };
        let core_type = match self.core_type {
            TT_SHM_CORES_TENSIX => CoreType::Tensix,
            TT_SHM_CORES_ETHERNET => CoreType::Ethernet,
            other => return Err(no_such("core type", other.into())),
        };
        let kernel = Kernel::new(self.id, kernel_type, core_type, self.binary_bytes, self.cores)
            .hash(self.hash)
            .name(NameId::from_raw(self.name))
            .core_ranges(NameId::from_raw(self.core_ranges));
        Ok(if self.known & TT_SHM_HAS_PROGRAM != 0 { kernel.program(self.program) } else { kernel })
    }
}

impl tt_shm_dispatch_info {
    pub(crate) fn dispatch(&self) -> Dispatch {
        Dispatch::new(self.program)
            .times(self.times.max(1))
            .lane(self.lane)
            .queue(self.queue)
            .name(NameId::from_raw(self.name))
    }
}

impl tt_shm_failure {
    pub(crate) fn failed(&self) -> Done<FailedAlloc> {
        let class = u8::try_from(self.class_).ok().and_then(Class::from_code);
        let class = class.ok_or_else(|| no_such("memory class", self.class_.into()))?;
        let mut failed = FailedAlloc::new(class, self.request_bytes);
        if self.known & TT_SHM_HAS_FREE != 0 {
            let (free, largest) = (self.free_bytes, self.largest_free_bytes);
            failed = if self.per_bank != 0 {
                failed.free_per_bank(free, largest)
            } else {
                failed.free(free, largest)
            };
        }
        if self.known & TT_SHM_HAS_NEEDED != 0 {
            failed = failed.needed_per_bank(self.needed_per_bank_bytes, self.banks);
        }
        Ok(failed)
    }
}

impl tt_shm_device_info {
    /// What a host says of a device.
    pub(crate) fn info(&self) -> Done<DeviceInfo> {
        let if_known = |bit: u64, value: u64| (self.known & bit != 0).then_some(value);
        let short = |what: &str, value: u64| u32::try_from(value).map_err(|_| no_such(what, value));
        let short_if_known =
            |bit, what, value| if_known(bit, value).map(|value| short(what, value)).transpose();
        let pool = |number: usize| -> Done<Option<Pool>> {
            let tt_shm_pool { banks, bank_bytes, alignment } = self.pools[number];
            let banks = short_if_known(TT_SHM_KNOWN_POOL_DRAM << number, "number of banks", banks)?;
            Ok(banks.map(|banks| Pool { banks, bank_bytes, alignment }))
        };
        let cores = |bit, cores, bytes_per_core| -> Done<Option<CoreMemory>> {
            let cores = short_if_known(bit, "number of cores", cores)?;
            Ok(cores.map(|cores| CoreMemory { cores, bytes_per_core }))
        };
        let columns = short_if_known(TT_SHM_KNOWN_GRID, "number of columns", self.grid_columns)?;
        let rows = short_if_known(TT_SHM_KNOWN_GRID, "number of rows", self.grid_rows)?;
        let pci = |pci: u64| -> Done<PciAddress> {
            let [function, bus, ..] = pci.to_le_bytes();
            let domain = short("PCI domain", pci >> 16)?;
            Ok(PciAddress { domain, bus, device: function >> 3, function: function & 7 })
        };
        Ok(DeviceInfo {
            chip_id: self.chip_id,
            allocator: self.allocator,
            sub_device: short_if_known(TT_SHM_KNOWN_SUB_DEVICE, "sub-device", self.sub_device)?,
            hybrid: if_known(TT_SHM_KNOWN_HYBRID, self.hybrid).map(|hybrid| hybrid != 0),
            pools: Pools {
                dram: pool(TT_SHM_POOL_DRAM)?,
                trace: pool(TT_SHM_POOL_TRACE)?,
                l1: pool(TT_SHM_POOL_L1)?,
                l1_small: pool(TT_SHM_POOL_L1_SMALL)?,
            },
            logical_id: short_if_known(TT_SHM_KNOWN_LOGICAL, "logical id", self.logical_id)?,
            arch: if_known(TT_SHM_KNOWN_ARCH, self.arch.into()).map_or(Arch::Unknown, Arch::from_code),
            board: if_known(TT_SHM_KNOWN_BOARD, 0).map(|_| text(&self.board, "the board")).transpose()?,
            pci: if_known(TT_SHM_KNOWN_PCI, self.pci).map(pci).transpose()?,
            dram_bytes: if_known(TT_SHM_KNOWN_DRAM, self.dram_bytes),
            dram_channels: short_if_known(
                TT_SHM_KNOWN_DRAM_CHANNELS,
                "number of channels",
                self.dram_channels,
            )?,
            l1: cores(TT_SHM_KNOWN_L1, self.tensix_cores, self.l1_per_core)?,
            eth: cores(TT_SHM_KNOWN_ETH, self.eth_cores, self.eth_l1_per_core)?,
            l1_base: if_known(TT_SHM_KNOWN_L1_BASE, self.l1_base),
            grid: columns.zip(rows).map(|(columns, rows)| CoreGrid { columns, rows }),
        })
    }
}

impl From<&DeviceEntry> for tt_shm_device_info {
    fn from(entry: &DeviceEntry) -> tt_shm_device_info {
        let pool = |number: usize| {
            let shm_layout::Pool { banks, bank_bytes, alignment } = entry.pools[number];
            tt_shm_pool { banks, bank_bytes, alignment }
        };
        tt_shm_device_info {
            size: size_of::<tt_shm_device_info>() as u32,
            arch: entry.architecture() as u32,
            known: entry.known,
            chip_id: entry.chip_id,
            allocator: entry.allocator,
            logical_id: entry.logical_id,
            sub_device: entry.sub_device,
            hybrid: entry.mode & shm_layout::mode::HYBRID,
            dram_bytes: entry.dram_bytes,
            dram_channels: entry.dram_channels,
            tensix_cores: entry.tensix_cores,
            l1_per_core: entry.l1_per_core,
            eth_cores: entry.eth_cores,
            eth_l1_per_core: entry.eth_l1_per_core,
            l1_base: entry.l1_base,
            grid_columns: entry.grid_columns,
            grid_rows: entry.grid_rows,
            pci: entry.pci,
            pools: [0, 1, 2, 3].map(pool),
            board: fixed(&entry.board),
        }
    }
}

/// Figures by class, in an array with room for more classes.
pub(crate) fn by_class(figures: &[u64; Class::COUNT]) -> [u64; TT_SHM_CLASSES] {
    let mut classes = [0; TT_SHM_CLASSES];
    classes[..Class::COUNT].copy_from_slice(figures);
    classes
}

/// The text in a field, up to its zero.
fn text(field: &[c_char], what: &str) -> Done<String> {
    #[allow(clippy::cast_sign_loss, reason = "the same bits")]
    let bytes: Vec<u8> = field.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0).collect();
    String::from_utf8(bytes)
        .map_err(|_| Failure::new(TT_SHM_ERR_UTF8, None, format_args!("{what} is not UTF-8")))
}

/// A text in a field, cut so that there is a zero after it.
pub(crate) fn fixed<const N: usize>(text: &[u8]) -> [c_char; N] {
    let mut field = [0; N];
    let text = text.iter().take_while(|byte| **byte != 0);
    for (place, byte) in field[..N - 1].iter_mut().zip(text) {
        #[allow(clippy::cast_possible_wrap, reason = "the same bits")]
        {
            *place = *byte as c_char;
        }
    }
    field
}

impl From<&Counters> for tt_shm_counters {
    fn from(counters: &Counters) -> tt_shm_counters {
        let mut classes = [tt_shm_class_counters::default(); TT_SHM_CLASSES];
        let basis = counters.requested_basis_bytes;
        for ((place, class), basis) in classes.iter_mut().zip(&counters.classes).zip(basis) {
            *place = class_counters(class, basis);
        }
        let lane = |lane: Lane| {
            let Lane { program, cb_bytes, kernel_bytes, kernel_eth_bytes } = lane;
            tt_shm_lane { program, cb_bytes, kernel_bytes, kernel_eth_bytes }
        };
        tt_shm_counters {
            size: size_of::<tt_shm_counters>() as u32,
            open: counters.open as u32,
            position: counters.position,
            time: counters.time,
            dram_used_bytes: counters.dram_used(),
            l1_used_bytes: counters.l1_used(),
            eth_used_bytes: counters.eth_used(),
            dram_peak_bytes: counters.dram_peak_bytes,
            dram_peak_time: counters.dram_peak_time,
            l1_peak_bytes: counters.l1_peak_bytes,
            l1_peak_time: counters.l1_peak_time,
            eth_peak_bytes: counters.eth_peak_bytes,
            eth_peak_time: counters.eth_peak_time,
            peak_reset_time: counters.peak_reset_time,
            dispatches: counters.dispatches,
            cached_dispatches: counters.cached_dispatches,
            last_dispatch_time: counters.last_dispatch_time,
            cb_resident_bytes: counters.cb_resident_bytes,
            kernel_resident_bytes: counters.kernel_resident_bytes,
            kernel_resident_eth_bytes: counters.kernel_resident_eth_bytes,
            system_kernel_bytes: counters.system_kernel_bytes,
            system_kernel_eth_bytes: counters.system_kernel_eth_bytes,
            kernel_loaded_bytes: counters.kernel_loaded_bytes(),
            failed_allocs: counters.failed_allocs,
            last_failed_time: counters.last_failed_time,
            kernel_ring_total_bytes: counters.kernel_ring_total_bytes,
            kernel_ring_used_bytes: counters.kernel_ring_used_bytes,
            kernel_ring_programs: counters.kernel_ring_programs,
            resident_lanes: counters.resident_lanes,
            lanes: counters.lanes.map(lane),
            classes,
        }
    }
}

fn class_counters(class: &ClassCounters, requested_basis_bytes: u64) -> tt_shm_class_counters {
    let ClassCounters { live_bytes, live_count, alloc_bytes, alloc_count, .. } = *class;
    let ClassCounters { peak_bytes, peak_time, peak_count, requested_bytes, .. } = *class;
    tt_shm_class_counters {
        live_bytes,
        live_count,
        alloc_bytes,
        alloc_count,
        peak_bytes,
        peak_time,
        peak_count,
        requested_bytes,
        requested_basis_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm_layout::{EventKind, flags, known};
    use tt_shm_writer::MarkerPhase;

    #[test]
    fn numbers_are_those_of_the_layout() {
        let classes = [
            (TT_SHM_CLASS_DRAM, Class::Dram),
            (TT_SHM_CLASS_TRACE, Class::Trace),
            (TT_SHM_CLASS_L1, Class::L1),
            (TT_SHM_CLASS_L1_SMALL, Class::L1Small),
            (TT_SHM_CLASS_CB, Class::Cb),
            (TT_SHM_CLASS_KERNEL_APPLICATION, Class::KernelApplication),
            (TT_SHM_CLASS_KERNEL_FABRIC, Class::KernelFabric),
            (TT_SHM_CLASS_KERNEL_DISPATCH, Class::KernelDispatch),
            (TT_SHM_CLASS_SYSTEM_MEMORY, Class::SystemMemory),
        ];
        assert_eq!(classes.len(), Class::COUNT, "a class is missing");
        assert!(classes.iter().all(|(code, class)| *code == *class as u32));
        let kinds = [
            (TT_SHM_EVENT_ALLOC, EventKind::Alloc),
            (TT_SHM_EVENT_FREE, EventKind::Free),
            (TT_SHM_EVENT_CB_ALLOC, EventKind::CbAlloc),
            (TT_SHM_EVENT_CB_FREE, EventKind::CbFree),
            (TT_SHM_EVENT_KERNEL_LOAD, EventKind::KernelLoad),
            (TT_SHM_EVENT_KERNEL_UNLOAD, EventKind::KernelUnload),
            (TT_SHM_EVENT_KERNEL_DISPATCH, EventKind::KernelDispatch),
            (TT_SHM_EVENT_ALLOC_FAILED, EventKind::AllocFailed),
            (TT_SHM_EVENT_MARKER, EventKind::Marker),
            (TT_SHM_EVENT_PEAK_RESET, EventKind::PeakReset),
            (TT_SHM_EVENT_DEVICE_OPEN, EventKind::DeviceOpen),
            (TT_SHM_EVENT_DEVICE_CLOSE, EventKind::DeviceClose),
            (TT_SHM_EVENT_GAUGE, EventKind::Gauge),
            (TT_SHM_EVENT_PROGRAM_END, EventKind::ProgramEnd),
            (TT_SHM_EVENT_NAME, EventKind::Name),
        ];
        assert_eq!(kinds.len(), EventKind::ALL.len(), "a kind is missing");
        assert!(kinds.iter().all(|(code, kind)| *code == *kind as u8));
        assert_eq!(
            [
                TT_SHM_FLAG_ETHERNET,
                TT_SHM_FLAG_RESIDENT,
                TT_SHM_FLAG_CACHED,
                TT_SHM_FLAG_LATE,
                TT_SHM_FLAG_GLOBAL,
                TT_SHM_FLAG_PER_BANK,
                TT_SHM_FLAG_REQUESTED,
                TT_SHM_FLAG_DROPPED
            ],
            [
                flags::ETHERNET,
                flags::RESIDENT,
                flags::CACHED,
                flags::LATE,
                flags::GLOBAL,
                flags::PER_BANK,
                flags::REQUESTED,
                flags::DROPPED
            ]
        );
        assert_eq!(
            [TT_SHM_MARKER_BEGIN, TT_SHM_MARKER_END, TT_SHM_MARKER_INSTANT],
            [MarkerPhase::Begin, MarkerPhase::End, MarkerPhase::Instant].map(|phase| phase as u32)
        );
        let bits = [
            (TT_SHM_KNOWN_DRAM, known::DRAM),
            (TT_SHM_KNOWN_DRAM_CHANNELS, known::DRAM_CHANNELS),
            (TT_SHM_KNOWN_L1, known::L1),
            (TT_SHM_KNOWN_ETH, known::ETH),
            (TT_SHM_KNOWN_PCI, known::PCI),
            (TT_SHM_KNOWN_LOGICAL, known::LOGICAL),
            (TT_SHM_KNOWN_BOARD, known::BOARD),
            (TT_SHM_KNOWN_ARCH, known::ARCH),
            (TT_SHM_KNOWN_SUB_DEVICE, known::SUB_DEVICE),
            (TT_SHM_KNOWN_HYBRID, known::MODE),
            (TT_SHM_KNOWN_POOL_DRAM, known::POOL),
            (TT_SHM_KNOWN_POOL_L1_SMALL, known::POOL << 3),
            (TT_SHM_KNOWN_L1_BASE, known::L1_BASE),
            (TT_SHM_KNOWN_GRID, known::GRID),
        ];
        assert!(bits.iter().all(|(ours, theirs)| ours == theirs), "{bits:x?}");
        assert_eq!((TT_SHM_UNKNOWN, TT_SHM_NO_DEVICE), (shm_layout::UNKNOWN, shm_layout::NO_DEVICE));
    }

    #[test]
    fn what_a_host_says_of_a_device_comes_back_as_it_was() {
        let known = (0..18).filter(|bit| !matches!(bit, 10 | 11)).fold(0, |known, bit| known | 1 << bit);
        let mut said =
            tt_shm_device_info { known, ..tt_shm_device_info::from(&bytemuck::zeroed::<DeviceEntry>()) };
        (said.arch, said.chip_id, said.allocator, said.logical_id) = (TT_SHM_ARCH_WORMHOLE, 7, 1, 3);
        (said.sub_device, said.hybrid, said.dram_bytes, said.dram_channels) = (2, 1, 12 << 30, 12);
        (said.tensix_cores, said.l1_per_core, said.eth_cores, said.eth_l1_per_core) =
            (64, 1_499_136, 16, 4096);
        (said.l1_base, said.grid_columns, said.grid_rows, said.pci) = (105_824, 8, 8, 0x1_02_1b);
        said.pools = [1, 2, 3, 4].map(|n| tt_shm_pool { banks: n, bank_bytes: 10 * n, alignment: 32 });
        said.board = fixed(b"n300");
        let info = said.info().unwrap();
        assert_eq!(info.pci.map(|pci| (pci.domain, pci.bus, pci.device, pci.function)), Some((1, 2, 3, 3)));
        assert_eq!((info.board.as_deref(), info.l1.map(|l1| l1.cores)), (Some("n300"), Some(64)));
        assert_eq!(info.pools.l1_small, Some(Pool { banks: 4, bank_bytes: 40, alignment: 32 }));
        said.known = 0;
        let nothing = said.info().unwrap();
        assert!(nothing.board.is_none() && nothing.pools == Pools::default() && nothing.grid.is_none());
        (said.known, said.tensix_cores) = (TT_SHM_KNOWN_L1, 1 << 32);
        assert_eq!(said.info().unwrap_err().code(), TT_SHM_ERR_VALUE);
    }
}
