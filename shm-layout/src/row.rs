//! A row of the live list: 64 bytes that never move while the allocation lives.

use crate::class::{Class, CoreType};
use crate::event::{Event, EventKind, NO_ROW, flags};
use crate::words::shared_struct;

/// `kind` of a row.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowKind {
    /// A buffer of any class.
    Buffer = 1,
    /// A circular buffer.
    Cb = 2,
    /// A loaded kernel binary.
    Kernel = 3,
    /// How often a program was dispatched. Such rows come in pairs that are written in turn, so that a
    /// process killed while it writes one leaves the other; the newer stamp counts.
    Program = 4,
}

impl RowKind {
    /// The kind with this code.
    pub fn from_code(code: u8) -> Option<RowKind> {
        [RowKind::Buffer, RowKind::Cb, RowKind::Kernel, RowKind::Program]
            .into_iter()
            .find(|kind| *kind as u8 == code)
    }
}

shared_struct! {
    /// One row. In a program row `size` counts the dispatches, `address` those that found the binary
    /// cached, `cores` is the other row of the pair and `time` the last dispatch.
    pub struct Row, size 64 {
        /// Position of the event that wrote the row; 0 if it is empty or being written.
        0 => pub stamp: u64,
        /// Buffer, circular buffer, kernel or program id.
        8 => pub id: u64,
        /// [`RowKind`] code.
        16 => pub kind: u8,
        /// [`Class`] code.
        17 => pub class: u8,
        /// Bits of [`crate::event::flags`].
        18 => pub flags: u8,
        /// Index into the device list.
        19 => pub device: u8,
        /// Interned name, 0 for none.
        20 => pub name: u16,
        /// Interned call site, 0 for none.
        22 => pub site: u16,
        /// Bytes in total on that device.
        24 => pub size: u64,
        /// Address or [`crate::event::UNKNOWN`]; hash of a kernel's binary or 0.
        32 => pub address: u64,
        /// Bytes per bank or [`crate::event::UNKNOWN`]; program of a circular buffer or kernel.
        40 => pub aux: u64,
        /// Number of cores, 0 if unknown.
        48 => pub cores: u32,
        /// Zero.
        52 => pub reserved: u32,
        /// Ticks when it was allocated.
        56 => pub time: u64,
    }
}

impl Row {
    /// The row that an event which creates one writes.
    #[inline]
    pub fn from_event(kind: RowKind, event: &Event) -> Row {
        Row {
            stamp: event.stamp,
            id: event.id,
            kind: kind as u8,
            class: event.class,
            flags: event.flags,
            device: event.device,
            name: event.name,
            site: event.site,
            size: event.size,
            address: event.address,
            aux: event.aux,
            cores: event.cores,
            reserved: 0,
            time: event.time,
        }
    }

    /// The program row that a dispatch writes, given the newer row of the pair before it.
    #[inline]
    pub fn after_dispatch(before: Option<&Row>, event: &Event) -> Row {
        let (dispatches, cached) = before.map_or((0, 0), |row| (row.size, row.address));
        Row {
            size: dispatches.wrapping_add(1),
            address: cached.wrapping_add(u64::from(event.has(flags::CACHED))),
            aux: 0,
            ..Row::from_event(RowKind::Program, event)
        }
    }

    /// The kind, unless the code is foreign to this version.
    pub fn kind(&self) -> Option<RowKind> {
        RowKind::from_code(self.kind)
    }

    /// The class, unless the code is foreign to this version.
    pub fn class(&self) -> Option<Class> {
        Class::from_code(self.class)
    }

    /// The kind of cores it lies on.
    pub fn core_type(&self) -> CoreType {
        if self.flags & flags::ETHERNET != 0 { CoreType::Ethernet } else { CoreType::Tensix }
    }

    /// The program that a circular buffer, kernel or program row belongs to.
    pub fn program(&self) -> Option<u64> {
        match self.kind()? {
            RowKind::Buffer => None,
            RowKind::Cb | RowKind::Kernel => Some(self.aux),
            RowKind::Program => Some(self.id),
        }
    }
}

/// What an event does to the live list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowEffect {
    /// Nothing.
    None,
    /// Writes its row.
    Set(RowKind),
    /// Clears its row.
    Clear,
    /// Clears its row and the other of the pair.
    ClearPair,
}

impl RowEffect {
    /// The effect of an event.
    #[inline]
    pub fn of(event: &Event) -> RowEffect {
        if event.row == NO_ROW {
            return RowEffect::None;
        }
        match event.kind() {
            Some(EventKind::Alloc) => RowEffect::Set(RowKind::Buffer),
            Some(EventKind::CbAlloc) => RowEffect::Set(RowKind::Cb),
            Some(EventKind::KernelLoad) => RowEffect::Set(RowKind::Kernel),
            Some(EventKind::KernelDispatch) => RowEffect::Set(RowKind::Program),
            Some(EventKind::Free | EventKind::CbFree | EventKind::KernelUnload) => RowEffect::Clear,
            Some(EventKind::ProgramEnd) => RowEffect::ClearPair,
            _ => RowEffect::None,
        }
    }
}
