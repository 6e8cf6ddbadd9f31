//! A row of the live list: 64 bytes that never move while the allocation lives.

use crate::class::{Class, CoreType};
use crate::describe::codes;
use crate::event::{Event, EventKind, NO_ROW, flags};
use crate::segment::SLOT_WORDS;
use crate::words::shared_struct;

codes! {
    /// `kind` of a row; the discriminant is the code of the event that writes such a row.
    #[repr(u8)]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum RowKind {
        /// A buffer of any class, written by ALLOC.
        Buffer = { EventKind::Alloc as u8 },
        /// A circular buffer, written by CB_ALLOC.
        Cb = { EventKind::CbAlloc as u8 },
        /// A loaded kernel binary, written by KERNEL_LOAD.
        Kernel = { EventKind::KernelLoad as u8 },
        /// How often a program was dispatched, written by KERNEL_DISPATCH. Such rows come in pairs.
        ///
        /// The two are written in turn, so that a process killed while it writes one leaves the other; the
        /// newer stamp counts.
        Program = { EventKind::KernelDispatch as u8 },
    }
}

impl RowKind {
    /// The kind with this code.
    pub fn from_code(code: u8) -> Option<RowKind> {
        RowKind::ALL.into_iter().find(|kind| *kind as u8 == code)
    }
}

shared_struct! {
    /// One row: the words of the event that wrote it. Only the word that holds `name` changes while the
    /// allocation is live, when it is named later. In a program row `size` counts the dispatches, `address`
    /// those that found the binary cached, `aux` is the other row of the pair, `place` the lane and queue of
    /// the last dispatch, and `time` its time.
    pub struct Row, size 64 {
        /// Position of the event that wrote the row; 0 if it is empty or being written.
        0 => pub stamp: u64,
        /// Ticks when it was allocated.
        8 => pub time: u64,
        /// [Row kind](RowKind) code.
        16 => pub kind: u8,
        /// [`Class`] code.
        17 => pub class: u8,
        /// [Flags](crate::event::flags), as in an event.
        18 => pub flags: u8,
        /// Index into the device list.
        19 => pub device: u8,
        /// Interned name, 0 for none.
        20 => pub name: u16,
        /// Interned call site, 0 for none.
        22 => pub site: u16,
        /// Buffer, circular buffer, kernel or program id.
        24 => pub id: u64,
        /// Bytes occupied on that device.
        32 => pub size: u64,
        /// Address or [2^64 - 1](crate::UNKNOWN); hash of a kernel's binary or 0.
        40 => pub address: u64,
        /// Requested bytes; program of a circular buffer or kernel.
        ///
        /// Read it through [`Row::requested`] or [`Row::program`].
        48 => pub aux: u64,
        /// Number of this row.
        56 => pub row: u32,
        /// Number of cores, 0 if unknown.
        60 => pub cores: u16,
        /// Interned name of the core ranges, 0 for none.
        62 => pub place: u16,
    }
}

impl Row {
    /// The row that an allocating event writes: the same words.
    #[inline]
    pub fn from_event(event: &Event) -> Row {
        bytemuck::must_cast(*event)
    }

    /// The row as its words in memory, assembled in registers like [`Event::to_words`].
    #[inline(always)]
    pub fn to_words(&self) -> [u64; SLOT_WORDS] {
        let event: Event = bytemuck::must_cast(*self);
        event.to_words()
    }

    /// The program row that a dispatch writes, given the newer row of the pair before it.
    #[inline]
    pub fn after_dispatch(before: Option<&Row>, event: &Event) -> Row {
        let (dispatches, cached) = before.map_or((0, 0), |row| (row.size, row.address));
        let found_cached = if event.has(flags::CACHED) { event.times() } else { 0 };
        Row::of_program(event, dispatches.wrapping_add(event.times()), cached.wrapping_add(found_cached))
    }

    /// The program row that a dispatch writes, with these numbers of dispatches and of cached ones.
    #[inline(always)]
    pub fn of_program(event: &Event, dispatches: u64, cached: u64) -> Row {
        let Event { stamp, time, kind, class, flags, device, name, site, id, row, cores, place, .. } = *event;
        let (size, address, aux) = (dispatches, cached, u64::from(event.partner()));
        Row { stamp, time, kind, class, flags, device, name, site, id, size, address, aux, row, cores, place }
    }

    /// The kind; `None` if this version does not know the code.
    pub fn kind(&self) -> Option<RowKind> {
        RowKind::from_code(self.kind)
    }

    /// The class; `None` if this version does not know the code.
    pub fn class(&self) -> Option<Class> {
        Class::from_code(self.class)
    }

    /// The requested bytes. Circular buffers and kernels occupy what was requested.
    pub fn requested(&self) -> u64 {
        if self.kind() == Some(RowKind::Buffer) { self.aux } else { self.size }
    }

    /// Whether the occupied size is not known, so that `size` is the requested size.
    pub fn is_requested_basis(&self) -> bool {
        self.flags & flags::REQUESTED != 0
    }

    /// Gives the row the name that a later event carries, if the event is about what the row holds.
    pub fn rename(&mut self, event: &Event) {
        let same = event.class().is_some_and(|class| class.row_kind() as u8 == self.kind)
            && (self.class, self.device, self.id, self.aux)
                == (event.class, event.device, event.id, event.aux);
        if same {
            (self.name, self.site) = (event.name, event.site);
        }
    }

    /// The kind of cores that it lies on.
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
    /// Changes the name in its row.
    Rename,
}

impl RowEffect {
    /// The effect of an event.
    #[inline]
    pub fn of(event: &Event) -> RowEffect {
        if event.row == NO_ROW { RowEffect::None } else { RowEffect::of_kind(event.kind()) }
    }

    /// The effect of an event of this kind that has a row.
    #[inline(always)]
    pub(crate) fn of_kind(kind: Option<EventKind>) -> RowEffect {
        match kind {
            Some(EventKind::Alloc) => RowEffect::Set(RowKind::Buffer),
            Some(EventKind::CbAlloc) => RowEffect::Set(RowKind::Cb),
            Some(EventKind::KernelLoad) => RowEffect::Set(RowKind::Kernel),
            Some(EventKind::KernelDispatch) => RowEffect::Set(RowKind::Program),
            Some(EventKind::Free | EventKind::CbFree | EventKind::KernelUnload) => RowEffect::Clear,
            Some(EventKind::ProgramEnd) => RowEffect::ClearPair,
            Some(EventKind::Name) => RowEffect::Rename,
            _ => RowEffect::None,
        }
    }
}
