//! The event: 64 bytes, complete in itself, so that a consumer only adds and subtracts.

use crate::class::{Class, CoreType};
use crate::segment::SLOT_WORDS;
use crate::words::shared_struct;

/// `row` of an event whose allocation has no row in the live list.
pub const NO_ROW: u32 = u32::MAX;
/// `device` of an event that concerns no single device.
pub const NO_DEVICE: u8 = u8::MAX;
/// `address` (and bytes per bank, in `aux`) that the producer does not know.
pub const UNKNOWN: u64 = u64::MAX;

shared_struct! {
    /// One event. Fields whose meaning depends on the kind are described at [`EventKind`].
    pub struct Event, size 64 {
        /// Position of the event in its ring (from 1); 0 while the slot is being written.
        0 => pub stamp: u64,
        /// Ticks of the segment's clock.
        8 => pub time: u64,
        /// [`EventKind`] code.
        16 => pub kind: u8,
        /// [`Class`] code; for markers the [`MarkerPhase`], for gauges the gauge.
        17 => pub class: u8,
        /// Bits of [`flags`].
        18 => pub flags: u8,
        /// Index into the segment's device list, or [`NO_DEVICE`].
        19 => pub device: u8,
        /// Interned name, 0 for none.
        20 => pub name: u16,
        /// Interned call site, 0 for none.
        22 => pub site: u16,
        /// Buffer, circular buffer, kernel, program or step id.
        24 => pub id: u64,
        /// Bytes in total on that device.
        32 => pub size: u64,
        /// Device address or [`UNKNOWN`]; hash of a kernel's binary.
        40 => pub address: u64,
        /// Bytes per bank or [`UNKNOWN`]; program of a circular buffer or kernel.
        48 => pub aux: u64,
        /// Row of the live list that this event writes or clears, or [`NO_ROW`].
        56 => pub row: u32,
        /// Number of cores, 0 if unknown.
        60 => pub cores: u32,
    }
}

/// Bits of [`Event::flags`] and [`crate::row::Row::flags`].
pub mod flags {
    /// The memory is on ethernet cores.
    pub const ETHERNET: u8 = 1 << 0;
    /// On a free or unload: the bytes counted as resident. On a dispatch: the program is the resident
    /// one from now on (a fabric or dispatch program does not displace the application's).
    pub const RESIDENT: u8 = 1 << 1;
    /// On a dispatch: the binary was on the device already.
    pub const CACHED: u8 = 1 << 2;
    /// Tracking began after the real load.
    pub const LATE: u8 = 1 << 3;
    /// A circular buffer inside an L1 buffer; it has no bytes of its own.
    pub const GLOBAL: u8 = 1 << 4;
}

/// What happened. Codes 1, 2, 8, 9, 10 and 11 are those of the socket protocol that came before.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A buffer was allocated.
    Alloc = 1,
    /// A buffer was freed; size, class and row are those found.
    Free = 2,
    /// A circular buffer was allocated; `aux` is its program.
    CbAlloc = 8,
    /// A circular buffer was freed.
    CbFree = 9,
    /// A kernel binary was loaded; `size` = binary x cores, `address` its hash or 0, `aux` its program.
    KernelLoad = 10,
    /// A kernel binary was unloaded.
    KernelUnload = 11,
    /// Program `id` was dispatched. With [`flags::RESIDENT`] it is the resident program now: `size`
    /// kernel bytes on Tensix cores, `address` circular buffer bytes, `aux` kernel bytes on ethernet
    /// cores. `row` is the program row that it wrote, `cores` the other row of the pair.
    KernelDispatch = 16,
    /// An allocation of `size` bytes of `class` failed with `address` bytes free, the largest block `aux`.
    AllocFailed = 17,
    /// A step began, ended, or a moment worth naming; `id` is the caller's number.
    Marker = 18,
    /// The device's peaks were reset to what was used then.
    PeakReset = 19,
    /// The process opened the device.
    DeviceOpen = 20,
    /// The process closed the device.
    DeviceClose = 21,
    /// Kernel ring buffer: `size` total bytes, `address` used bytes, `aux` programs in it.
    Gauge = 22,
    /// Nothing of program `id` is left; rows `row` and `cores` are cleared.
    ProgramEnd = 23,
}

impl EventKind {
    /// Every kind.
    pub const ALL: [EventKind; 14] = [
        EventKind::Alloc,
        EventKind::Free,
        EventKind::CbAlloc,
        EventKind::CbFree,
        EventKind::KernelLoad,
        EventKind::KernelUnload,
        EventKind::KernelDispatch,
        EventKind::AllocFailed,
        EventKind::Marker,
        EventKind::PeakReset,
        EventKind::DeviceOpen,
        EventKind::DeviceClose,
        EventKind::Gauge,
        EventKind::ProgramEnd,
    ];

    /// The kind with this code.
    #[inline]
    pub fn from_code(code: u8) -> Option<EventKind> {
        // A table, not a search: this is on the path of every event that a consumer folds.
        const BY_CODE: [Option<EventKind>; 24] = {
            let mut table = [None; 24];
            let mut i = 0;
            while i < EventKind::ALL.len() {
                table[EventKind::ALL[i] as usize] = Some(EventKind::ALL[i]);
                i += 1;
            }
            table
        };
        BY_CODE.get(usize::from(code)).copied().flatten()
    }

    /// The word used in log lines and JSON.
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
        }
    }
}

/// Which end of a step a marker is; the `class` field of a [`EventKind::Marker`] event.
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
    /// An event of this kind with nothing else known.
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
        }
    }

    /// The event as it lies in memory, put together in registers: writing the fields and reading them back
    /// as words would wait for each of the small stores.
    #[inline(always)]
    pub fn to_words(&self) -> [u64; SLOT_WORDS] {
        let Event { stamp, time, kind, class, flags, device, name, site, id, size, address, aux, row, cores } =
            *self;
        let codes = u32::from_le_bytes([kind, class, flags, device]);
        let names = u32::from(name) | u32::from(site) << 16;
        let meta = u64::from(codes) | u64::from(names) << 32;
        [stamp, time, meta, id, size, address, aux, u64::from(row) | u64::from(cores) << 32]
    }

    /// The kind, unless the code is foreign to this version.
    #[inline]
    pub fn kind(&self) -> Option<EventKind> {
        EventKind::from_code(self.kind)
    }

    /// The class, unless the code is foreign to this version.
    #[inline]
    pub fn class(&self) -> Option<Class> {
        Class::from_code(self.class)
    }

    /// Whether all of these flags are set.
    #[inline]
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// The kind of cores it concerns.
    pub fn core_type(&self) -> CoreType {
        if self.has(flags::ETHERNET) { CoreType::Ethernet } else { CoreType::Tensix }
    }
}
