//! What a host reports about an allocation, a program or a failure.

use crate::emitter::short;
use crate::live::Key;
use shm_layout::{Class, CoreType, KernelType, UNKNOWN};

/// An interned name; [`NameId::NONE`] for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct NameId(pub(crate) u16);

impl NameId {
    /// No name.
    pub const NONE: NameId = NameId(0);

    /// The name with this number, as [`NameId::raw`] returned it. With a number that the tracker has not given out, calls
    /// are recorded all the same; readers find no name for it, until it is given out.
    #[inline]
    pub const fn from_raw(number: u16) -> NameId {
        NameId(number)
    }

    /// Its number, as events have it; 0 for none.
    #[inline]
    pub const fn raw(self) -> u16 {
        self.0
    }
}

/// The memory of a buffer. Discriminants are tt-metal's.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferType {
    /// DRAM.
    Dram = 0,
    /// L1 of Tensix cores.
    L1 = 1,
    /// Host memory.
    SystemMemory = 2,
    /// The small-buffer region of L1.
    L1Small = 3,
    /// A trace buffer (in DRAM).
    Trace = 4,
}

impl BufferType {
    /// The type with this tt-metal code.
    pub fn from_code(code: u8) -> Option<BufferType> {
        use BufferType::*;
        [Dram, L1, SystemMemory, L1Small, Trace].get(usize::from(code)).copied()
    }

    /// Its memory class.
    #[inline]
    pub fn class(self) -> Class {
        match self {
            BufferType::Dram => Class::Dram,
            BufferType::L1 => Class::L1,
            BufferType::SystemMemory => Class::SystemMemory,
            BufferType::L1Small => Class::L1Small,
            BufferType::Trace => Class::Trace,
        }
    }
}

/// A buffer.
#[derive(Clone, Copy, Debug)]
pub struct Alloc {
    pub(crate) id: u64,
    pub(crate) size: u64,
    pub(crate) address: u64,
    pub(crate) bytes_per_bank: u64,
    pub(crate) occupied: u64,
    pub(crate) names: Pair,
    /// The cores, as an event has them, and the core ranges.
    pub(crate) place: Pair,
    pub(crate) class: Class,
}

/// Two short values that an event has in one half of a word.
///
/// They are one field so that the host stores them at once and the emitter loads them at once: a load that needs two
/// recent stores waits until both have left the core, and putting the values together takes instructions of each event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair(u32);

impl Pair {
    #[inline(always)]
    fn new(low: u16, high: u16) -> Pair {
        Pair(u32::from(low) | u32::from(high) << 16)
    }

    #[inline(always)]
    pub(crate) fn low(self) -> u16 {
        self.0 as u16
    }

    #[inline(always)]
    pub(crate) fn high(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

impl Alloc {
    /// A buffer of `size` requested bytes on each device that it is reported for. Ids are the host's own; an
    /// id identifies one live buffer per device.
    ///
    /// A buffer occupies more than that if its pool has banks: give it by [`Alloc::bytes_per_bank`] or
    /// [`Alloc::occupied`]. Otherwise it counts with its requested size, and is marked accordingly.
    #[inline]
    pub fn new(buffer_type: BufferType, id: u64, size: u64) -> Alloc {
        Alloc {
            class: buffer_type.class(),
            id,
            size,
            address: UNKNOWN,
            bytes_per_bank: UNKNOWN,
            occupied: UNKNOWN,
            names: Pair::new(0, 0),
            place: Pair::new(0, 0),
        }
    }

    /// Sets its address on the device.
    #[inline]
    pub fn address(self, address: u64) -> Alloc {
        Alloc { address, ..self }
    }

    /// Sets the number of cores it is spread over.
    #[inline]
    pub fn cores(self, cores: u32) -> Alloc {
        Alloc { place: Pair::new(short(cores), self.place.high()), ..self }
    }

    /// Sets the aligned bytes in each bank. If the banks of its pool are known, it occupies that in all of
    /// them. Not in hybrid mode, in which it may be in some of them only: use [`Alloc::occupied`] then.
    #[inline]
    pub fn bytes_per_bank(self, bytes_per_bank: u64) -> Alloc {
        Alloc { bytes_per_bank, ..self }
    }

    /// Sets the bytes that it occupies on each device, regardless of its pool.
    #[inline]
    pub fn occupied(self, bytes: u64) -> Alloc {
        Alloc { occupied: bytes, ..self }
    }

    /// Sets the interned name of the core ranges that it is spread over.
    #[inline]
    pub fn core_ranges(self, ranges: NameId) -> Alloc {
        Alloc { place: Pair::new(self.place.low(), ranges.0), ..self }
    }

    /// Sets what it is for: a tensor, a layer, an operation.
    #[inline]
    pub fn name(self, name: NameId) -> Alloc {
        Alloc { names: Pair::new(name.0, self.names.high()), ..self }
    }

    /// Sets where in the host's code it was allocated.
    #[inline]
    pub fn site(self, site: NameId) -> Alloc {
        Alloc { names: Pair::new(self.names.low(), site.0), ..self }
    }
}

/// A circular buffer. It occupies L1 from the dispatch of its program on.
#[derive(Clone, Copy, Debug)]
pub struct CircularBuffer {
    pub(crate) program: u64,
    pub(crate) id: u64,
    pub(crate) bytes_per_core: u64,
    pub(crate) cores: u32,
    pub(crate) address: u64,
    pub(crate) globally_allocated: bool,
    pub(crate) name: NameId,
    pub(crate) core_ranges: NameId,
}

impl CircularBuffer {
    /// A circular buffer of a program. Ids (often addresses) need to differ only within a program.
    #[inline]
    pub fn new(program: u64, id: u64, bytes_per_core: u64, cores: u32) -> CircularBuffer {
        CircularBuffer {
            program,
            id,
            bytes_per_core,
            cores,
            address: UNKNOWN,
            globally_allocated: false,
            name: NameId::NONE,
            core_ranges: NameId::NONE,
        }
    }

    /// Sets its address in L1.
    pub fn address(self, address: u64) -> CircularBuffer {
        CircularBuffer { address, ..self }
    }

    /// Marks it as lying inside an L1 buffer that is reported by itself, so that it has no bytes of its own.
    pub fn globally_allocated(self) -> CircularBuffer {
        CircularBuffer { globally_allocated: true, ..self }
    }

    /// Sets what it is for.
    pub fn name(self, name: NameId) -> CircularBuffer {
        CircularBuffer { name, ..self }
    }

    /// Sets the interned name of the core ranges that it lies on: rectangles of cores, `x,y-x,y` with the first
    /// and the last core or `x,y` for a single one, with spaces between them. Observers that understand it
    /// know what each core holds.
    pub fn core_ranges(self, ranges: NameId) -> CircularBuffer {
        CircularBuffer { core_ranges: ranges, ..self }
    }
}

/// A kernel binary, as loaded to a number of cores.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    pub(crate) id: u64,
    /// `None`: the one that loaded it, or its own id.
    pub(crate) program: Option<u64>,
    pub(crate) kernel_type: KernelType,
    pub(crate) core_type: CoreType,
    pub(crate) binary_bytes: u64,
    pub(crate) cores: u32,
    pub(crate) hash: u64,
    pub(crate) name: NameId,
    pub(crate) core_ranges: NameId,
}

impl Kernel {
    /// A binary of `binary_bytes` on each of `cores` cores. Its program has the same id unless
    /// [`Kernel::program`] says otherwise.
    #[inline]
    pub fn new(
        id: u64,
        kernel_type: KernelType,
        core_type: CoreType,
        binary_bytes: u64,
        cores: u32,
    ) -> Kernel {
        let (name, core_ranges) = (NameId::NONE, NameId::NONE);
        Kernel { id, program: None, kernel_type, core_type, binary_bytes, cores, hash: 0, name, core_ranges }
    }

    /// Sets the program that runs it. Several programs may run one kernel; the first that loads it owns it.
    pub fn program(self, program: u64) -> Kernel {
        Kernel { program: Some(program), ..self }
    }

    /// Sets a hash of the binary (not 0), from which bytes shared between kernels are reported.
    pub fn hash(self, hash: u64) -> Kernel {
        Kernel { hash, ..self }
    }

    /// Sets what it is for.
    pub fn name(self, name: NameId) -> Kernel {
        Kernel { name, ..self }
    }

    /// Sets the interned name of the core ranges that it lies on.
    pub fn core_ranges(self, ranges: NameId) -> Kernel {
        Kernel { core_ranges: ranges, ..self }
    }

    /// Bytes on all cores together.
    pub(crate) fn bytes(&self) -> u64 {
        self.binary_bytes.saturating_mul(u64::from(self.cores))
    }

    pub(crate) fn is_on_ethernet(&self) -> bool {
        self.core_type == CoreType::Ethernet
    }
}

/// A dispatch of a program whose binary is on the device.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch {
    pub(crate) program: u64,
    pub(crate) times: u32,
    pub(crate) lane: u8,
    pub(crate) queue: u8,
    pub(crate) name: NameId,
}

impl Dispatch {
    /// One dispatch of a program in lane 0, by command queue 0.
    #[inline]
    pub fn new(program: u64) -> Dispatch {
        Dispatch { program, times: 1, lane: 0, queue: 0, name: NameId::NONE }
    }

    /// Sets how often it is dispatched in a row, as when a trace is replayed. 0 is nothing to report.
    #[inline]
    pub fn times(self, times: u32) -> Dispatch {
        Dispatch { times, ..self }
    }

    /// Sets the lane: the sub-device that runs it, below 8.
    #[inline]
    pub fn lane(self, lane: u8) -> Dispatch {
        Dispatch { lane, ..self }
    }

    /// Sets the command queue that it came by.
    #[inline]
    pub fn queue(self, queue: u8) -> Dispatch {
        Dispatch { queue, ..self }
    }

    /// Sets what the program does: an operation, a layer. It keeps the name until it gets another one.
    #[inline]
    pub fn name(self, name: NameId) -> Dispatch {
        Dispatch { name, ..self }
    }
}

impl From<u64> for Dispatch {
    #[inline]
    fn from(program: u64) -> Dispatch {
        Dispatch::new(program)
    }
}

/// A launch of a program: those of its kernels that are not loaded are loaded, and it is dispatched once.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    pub(crate) kernels: &'a [Kernel],
    pub(crate) status: ProgramBinaryStatus,
    pub(crate) dispatch: Dispatch,
}

impl<'a> Launch<'a> {
    /// A launch of a program with these kernels, all of which it runs, in lane 0, by command queue 0.
    #[inline]
    pub fn new(program: u64, kernels: &'a [Kernel], status: ProgramBinaryStatus) -> Launch<'a> {
        Launch::of(Dispatch::new(program), kernels, status)
    }

    /// The launch that begins with this dispatch of a program, which says where it runs.
    #[inline]
    pub fn of(dispatch: Dispatch, kernels: &'a [Kernel], status: ProgramBinaryStatus) -> Launch<'a> {
        Launch { kernels, status, dispatch }
    }

    /// Sets the lane: the sub-device that runs it, below 8.
    #[inline]
    pub fn lane(self, lane: u8) -> Launch<'a> {
        Launch { dispatch: self.dispatch.lane(lane), ..self }
    }

    /// Sets the command queue that it came by.
    #[inline]
    pub fn queue(self, queue: u8) -> Launch<'a> {
        Launch { dispatch: self.dispatch.queue(queue), ..self }
    }
}

/// A live allocation, by the host's ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Allocation {
    /// A buffer.
    Buffer(u64),
    /// A circular buffer of a program.
    CircularBuffer {
        /// The program.
        program: u64,
        /// Its id in the program.
        id: u64,
    },
    /// A kernel.
    Kernel(u64),
}

impl Allocation {
    /// How it is found on a device, and what it is called.
    pub(crate) fn key(self, device: u8) -> (Key, &'static str) {
        match self {
            Allocation::Buffer(id) => (Key::buffer(device, id), "buffer"),
            Allocation::CircularBuffer { program, id } => (Key::cb(device, program, id), "circular buffer"),
            Allocation::Kernel(id) => (Key::kernel(device, id), "kernel"),
        }
    }
}

/// A failed allocation, with the state of the allocator at that time.
#[derive(Clone, Copy, Debug)]
pub struct FailedAlloc {
    pub(crate) class: Class,
    pub(crate) request_bytes: u64,
    pub(crate) free_bytes: u64,
    pub(crate) largest_free_bytes: u64,
    pub(crate) needed_per_bank_bytes: u64,
    pub(crate) banks: u32,
    pub(crate) per_bank: bool,
}

impl FailedAlloc {
    /// A failed request for this many bytes.
    pub fn new(class: Class, request_bytes: u64) -> FailedAlloc {
        FailedAlloc {
            class,
            request_bytes,
            free_bytes: UNKNOWN,
            largest_free_bytes: UNKNOWN,
            needed_per_bank_bytes: UNKNOWN,
            banks: 0,
            per_bank: false,
        }
    }

    /// Sets the bytes that were free in all banks together, and the largest free block.
    pub fn free(self, free_bytes: u64, largest_free_bytes: u64) -> FailedAlloc {
        FailedAlloc { free_bytes, largest_free_bytes, per_bank: false, ..self }
    }

    /// Sets the bytes that were free in each bank, and the largest free block there.
    pub fn free_per_bank(self, free_bytes: u64, largest_free_bytes: u64) -> FailedAlloc {
        FailedAlloc { free_bytes, largest_free_bytes, per_bank: true, ..self }
    }

    /// Sets the bytes that were needed in each of this many banks.
    pub fn needed_per_bank(self, needed_per_bank_bytes: u64, banks: u32) -> FailedAlloc {
        FailedAlloc { needed_per_bank_bytes, banks, ..self }
    }
}

/// Whether a program's binary is on the device; discriminants are tt-metal's.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgramBinaryStatus {
    /// Not yet: launching sends it.
    NotSent = 0,
    /// On its way.
    InFlight = 1,
    /// There.
    Committed = 2,
}

impl ProgramBinaryStatus {
    /// The status with this tt-metal code.
    pub fn from_code(code: u8) -> Option<ProgramBinaryStatus> {
        use ProgramBinaryStatus::*;
        [NotSent, InFlight, Committed].get(usize::from(code)).copied()
    }
}

/// The result of loading a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loaded {
    /// It was not loaded before.
    New,
    /// It was loaded already; counted as a cached dispatch of its program.
    Cached,
}
