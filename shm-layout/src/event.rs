//! The event: 64 bytes, self-contained, so that a consumer only adds and subtracts.

use crate::class::{Class, CoreType};
use crate::describe::codes;
use crate::segment::SLOT_WORDS;
use crate::words::shared_struct;

/// `row` of an event whose allocation has no row in the live list.
pub const NO_ROW: u32 = u32::MAX;
/// `device` of an event that concerns no single device.
pub const NO_DEVICE: u8 = u8::MAX;
/// A figure that the producer does not know.
pub const UNKNOWN: u64 = u64::MAX;

shared_struct! {
    /// One event. Fields whose meaning depends on the kind are described at [`EventKind`].
    pub struct Event, size 64 {
        /// Position of the event in its ring (from 1); 0 while the slot is being written.
        0 => pub stamp: u64,
        /// Ticks of the segment's clock.
        8 => pub time: u64,
        /// [Kind](EventKind) code.
        16 => pub kind: u8,
        /// [`Class`] code; for markers the [phase](MarkerPhase), for gauges the gauge.
        17 => pub class: u8,
        /// [Flags](flags).
        18 => pub flags: u8,
        /// Index into the segment's device list, or [255](NO_DEVICE).
        19 => pub device: u8,
        /// Interned name, 0 for none.
        20 => pub name: u16,
        /// Interned call site, 0 for none.
        22 => pub site: u16,
        /// Buffer, circular buffer, kernel, program or step id.
        24 => pub id: u64,
        /// Bytes occupied on that device.
        32 => pub size: u64,
        /// Device address or [2^64 - 1](UNKNOWN); hash of a kernel's binary.
        40 => pub address: u64,
        /// Requested bytes; program of a circular buffer or kernel.
        ///
        /// Read it through the accessor for the kind of event.
        48 => pub aux: u64,
        /// Row of the live list that this event writes or clears, or [2^32 - 1](NO_ROW).
        56 => pub row: u32,
        /// Number of cores; 0 if unknown, 65535 if there are at least that many.
        60 => pub cores: u16,
        /// Interned name of the core ranges, 0 for none.
        62 => pub place: u16,
    }
}

/// Bits of [`Event::flags`] and [`crate::row::Row::flags`].
pub mod flags {
    crate::describe::constants! {
        pub ALL;
        /// The memory is on ethernet cores.
        pub const ETHERNET: u8 = 1 << 0;
        /// On a free or unload: the bytes counted as resident, in the lanes whose bits are set in `place`. On
        /// a dispatch: the program becomes the resident one of its lane (a fabric or dispatch program does
        /// not displace the application's).
        pub const RESIDENT: u8 = 1 << 1;
        /// On a dispatch: the binary was on the device already.
        pub const CACHED: u8 = 1 << 2;
        /// Tracking began after the real load.
        pub const LATE: u8 = 1 << 3;
        /// A circular buffer inside an L1 buffer, with no bytes of its own: `size` is 0.
        pub const GLOBAL: u8 = 1 << 4;
        /// On a failed allocation: free bytes and the largest free block are per bank, not for all banks.
        pub const PER_BANK: u8 = 1 << 5;
        /// The occupied size is not known: `size` is the requested size.
        pub const REQUESTED: u8 = 1 << 6;
        /// On a free of a buffer: it was freed because its device was closed, not by the program.
        pub const DROPPED: u8 = 1 << 7;
    }
}

codes! {
    /// The kind of an event. Codes 1, 2, 8, 9, 10 and 11 are those of the earlier socket protocol.
    #[repr(u8)]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum EventKind {
        /// A buffer was allocated: `id`, `class`, `size` = occupied bytes, `aux` = requested bytes,
        /// `address`, `cores`, `place`; flag REQUESTED. Writes its row.
        Alloc = 1,
        /// A buffer was freed: `id`; `class`, `flags`, `size` and `aux` are those of the allocation,
        /// `address` is unknown, `cores` and `place` are 0; flag DROPPED. Clears its row.
        Free = 2,
        /// A circular buffer was allocated: `id`, `size` = bytes per core x cores (0 with flag GLOBAL),
        /// `address`, `aux` = program, `cores`, `place`. Writes its row.
        CbAlloc = 8,
        /// A circular buffer was freed: `id`; `size` and `aux` are those of the allocation, `address` is
        /// unknown, `cores` is 0. With flag RESIDENT `place` has the bits of the lanes in which its bytes
        /// were resident, otherwise it is 0. Clears its row.
        CbFree = 9,
        /// A kernel binary was loaded: `id`, `class`, `size` = binary x cores, `address` = hash of the binary
        /// or 0, `aux` = the program that loaded it, `cores`, `place`; flag ETHERNET for its cores. Writes
        /// its row.
        KernelLoad = 10,
        /// A kernel binary was unloaded: `id`; `class`, `size`, `aux` and the flags ETHERNET and LATE are
        /// those of the load, `address` is unknown, `cores` is 0. RESIDENT and `place` are as for CB_FREE, of
        /// all programs that ran it. Clears its row.
        KernelUnload = 11,
        /// Program `id` was dispatched. With flag RESIDENT it becomes the resident program of its lane:
        /// `size` = bytes of its circular buffers, `aux` = its kernel bytes on Tensix cores (low 32 bits) and
        /// on ethernet cores (high 32 bits). `address` = the number of dispatches that the event stands for,
        /// at least 1 (low 32 bits), and the other program row of the pair (high 32 bits); it writes program
        /// row `row`. `place` = lane (low byte) and command queue (high byte). Flag CACHED: the binary was on
        /// the device already. `class` is that of the program's kernels: 5 if it has a circular buffer or an
        /// application kernel, otherwise that of the fabric or dispatch kernel that came last. `cores` is 0.
        KernelDispatch = 16,
        /// An allocation of `class` failed: `size` = requested bytes in total, `id` = bytes needed in each
        /// bank, `cores` = banks, `address` = free bytes, `aux` = largest free block, both of one bank with
        /// flag PER_BANK, otherwise of all; 2^64 - 1 (`cores`: 0) for what the process does not know.
        AllocFailed = 17,
        /// A step began or ended, or a moment was marked: `id` = the caller's number, `name`; `class` = 0
        /// begin, 1 end, 2 instant.
        Marker = 18,
        /// All peaks of the device were reset to what was used at the time.
        PeakReset = 19,
        /// The process opened the device.
        DeviceOpen = 20,
        /// The process closed the device.
        DeviceClose = 21,
        /// Kernel ring buffer: `size` = total bytes, `address` = used bytes, `aux` = programs in it.
        Gauge = 22,
        /// Nothing of program `id` is left. Clears row `row` and the one in the high 32 bits of `address`.
        /// With flag RESIDENT the program leaves the lanes whose bits are set in `place`.
        ProgramEnd = 23,
        /// A live allocation got its name (and site) after it was allocated: `id`, `class`, `flags`, `size`,
        /// `aux` and `row` are those of the allocation. Changes the name in its row.
        Name = 24,
    }
}

impl EventKind {
    /// The kind with this code.
    #[inline]
    pub fn from_code(code: u8) -> Option<EventKind> {
        // A table, not a search: this is on the path of every event that a consumer folds.
        const BY_CODE: [Option<EventKind>; 25] = {
            let mut table = [None; 25];
            let mut i = 0;
            while i < EventKind::ALL.len() {
                table[EventKind::ALL[i] as usize] = Some(EventKind::ALL[i]);
                i += 1;
            }
            table
        };
        BY_CODE.get(usize::from(code)).copied().flatten()
    }

    /// The label used in log lines and JSON.
    pub fn label(self) -> &'static str {
        match self {
            EventKind::Alloc => "ALLOC",
            EventKind::Free => "FREE",
            EventKind::CbAlloc => "CB_ALLOC",
            EventKind::CbFree => "CB_FREE",
            EventKind::KernelLoad => "KERNEL_LOAD",
            EventKind::KernelUnload => "KERNEL_UNLOAD",
            EventKind::KernelDispatch => "KERNEL_DISPATCH",
            EventKind::AllocFailed => "ALLOC_FAILED",
            EventKind::Marker => "MARKER",
            EventKind::PeakReset => "PEAK_RESET",
            EventKind::DeviceOpen => "DEVICE_OPEN",
            EventKind::DeviceClose => "DEVICE_CLOSE",
            EventKind::Gauge => "GAUGE",
            EventKind::ProgramEnd => "PROGRAM_END",
            EventKind::Name => "NAME",
        }
    }
}

/// The phase of a marker; the `class` field of an [`EventKind::Marker`] event.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkerPhase {
    /// A step begins.
    Begin = 0,
    /// A step ends.
    End = 1,
    /// A single moment.
    Instant = 2,
}

impl MarkerPhase {
    /// The phase with this code.
    pub fn from_code(code: u8) -> Option<MarkerPhase> {
        [MarkerPhase::Begin, MarkerPhase::End, MarkerPhase::Instant].get(usize::from(code)).copied()
    }
}

impl Event {
    /// No event: what a buffer is filled with before events are read into it.
    pub const NONE: Event = bytemuck::zeroed();

    /// An event of this kind with everything else unknown.
    #[inline]
    pub fn new(kind: EventKind, device: u8) -> Event {
        Event {
            stamp: 0,
            time: 0,
            kind: kind as u8,
            class: 0,
            flags: 0,
            device,
            name: 0,
            site: 0,
            id: 0,
            size: 0,
            address: UNKNOWN,
            aux: UNKNOWN,
            row: NO_ROW,
            cores: 0,
            place: 0,
        }
    }

    /// The event as its words in memory, assembled in registers: writing the fields and reading them back as
    /// words would stall on each of the small stores.
    #[inline(always)]
    pub fn to_words(&self) -> [u64; SLOT_WORDS] {
        let Event { stamp, time, id, size, address, aux, row, cores, place, .. } = *self;
        let last = u64::from(row) | u64::from(cores) << 32 | u64::from(place) << 48;
        [stamp, time, self.meta(), id, size, address, aux, last]
    }

    /// Kind, class, flags, device, name and site as one word.
    #[inline(always)]
    pub(crate) fn meta(&self) -> u64 {
        let Event { kind, class, flags, device, name, site, .. } = *self;
        let codes = u32::from_le_bytes([kind, class, flags, device]);
        let names = u32::from(name) | u32::from(site) << 16;
        u64::from(codes) | u64::from(names) << 32
    }

    /// The requested bytes of an allocation or free. Circular buffers and kernels occupy what was requested.
    #[inline(always)]
    pub fn requested(&self) -> u64 {
        let is_buffer = self.kind == EventKind::Alloc as u8 || self.kind == EventKind::Free as u8;
        if is_buffer { self.aux } else { self.size }
    }

    /// The program of a circular buffer or kernel, on the events of either.
    #[inline(always)]
    pub fn program(&self) -> u64 {
        self.aux
    }

    /// The largest free block, on [`EventKind::AllocFailed`]; [`UNKNOWN`] if the process does not know it.
    pub fn largest_free_bytes(&self) -> u64 {
        self.aux
    }

    /// The number of programs in the kernel ring buffer, on [`EventKind::Gauge`].
    pub fn ring_programs(&self) -> u64 {
        self.aux
    }

    /// The lane of a dispatch.
    #[inline(always)]
    pub fn lane(&self) -> u8 {
        self.place as u8
    }

    /// The command queue of a dispatch.
    pub fn queue(&self) -> u8 {
        (self.place >> 8) as u8
    }

    /// The number of dispatches that a dispatch event stands for.
    #[inline(always)]
    pub fn times(&self) -> u64 {
        self.address & u64::from(u32::MAX)
    }

    /// The other row of the pair, on a dispatch or the end of a program.
    #[inline(always)]
    pub fn partner(&self) -> u32 {
        (self.address >> 32) as u32
    }

    /// The kernel bytes that a dispatch makes resident, on Tensix cores and on ethernet cores.
    #[inline(always)]
    pub fn dispatched_kernels(&self) -> [u64; 2] {
        [self.aux & u64::from(u32::MAX), self.aux >> 32]
    }

    /// The kind; `None` if this version does not know the code.
    #[inline]
    pub fn kind(&self) -> Option<EventKind> {
        EventKind::from_code(self.kind)
    }

    /// The class; `None` if this version does not know the code.
    #[inline]
    pub fn class(&self) -> Option<Class> {
        Class::from_code(self.class)
    }

    /// Whether all of these flags are set.
    #[inline]
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// The kind of cores that it concerns.
    pub fn core_type(&self) -> CoreType {
        if self.has(flags::ETHERNET) { CoreType::Ethernet } else { CoreType::Tensix }
    }
}
