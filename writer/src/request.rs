//! What a host says of an allocation.

use shm_layout::{Class, CoreType, KernelType, UNKNOWN};

/// An interned name; [`NameId::NONE`] for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct NameId(pub(crate) u16);

impl NameId {
    /// No name.
    pub const NONE: NameId = NameId(0);
}

/// Where a buffer lies. Discriminants are tt-metal's.
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
    /// The type with tt-metal's code.
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
    pub(crate) class: Class,
    pub(crate) id: u64,
    pub(crate) size: u64,
    pub(crate) address: u64,
    pub(crate) bytes_per_bank: u64,
    pub(crate) cores: u32,
    pub(crate) name: NameId,
    pub(crate) site: NameId,
}

impl Alloc {
    /// A buffer of `size` bytes in all on each device it is reported for. Ids are the host's own; one
    /// names one live buffer per device.
    #[inline]
    pub fn new(buffer_type: BufferType, id: u64, size: u64) -> Alloc {
        Alloc {
            class: buffer_type.class(),
            id,
            size,
            address: UNKNOWN,
            bytes_per_bank: UNKNOWN,
            cores: 0,
            name: NameId::NONE,
            site: NameId::NONE,
        }
    }

    /// Its address on the device.
    #[inline]
    pub fn address(self, address: u64) -> Alloc {
        Alloc { address, ..self }
    }

    /// The number of cores it is spread over.
    #[inline]
    pub fn cores(self, cores: u32) -> Alloc {
        Alloc { cores, ..self }
    }

    /// Bytes in each bank.
    #[inline]
    pub fn bytes_per_bank(self, bytes_per_bank: u64) -> Alloc {
        Alloc { bytes_per_bank, ..self }
    }

    /// What it is for: a tensor, a layer, an operation.
    #[inline]
    pub fn name(self, name: NameId) -> Alloc {
        Alloc { name, ..self }
    }

    /// Where in the host's code it was allocated.
    #[inline]
    pub fn site(self, site: NameId) -> Alloc {
        Alloc { site, ..self }
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
}

impl CircularBuffer {
    /// A circular buffer of a program; ids (often addresses) need to differ within a program only.
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
        }
    }

    /// Its address in L1.
    pub fn address(self, address: u64) -> CircularBuffer {
        CircularBuffer { address, ..self }
    }

    /// It lies inside an L1 buffer that is reported by itself, so it has no bytes of its own.
    pub fn globally_allocated(self) -> CircularBuffer {
        CircularBuffer { globally_allocated: true, ..self }
    }

    /// What it is for.
    pub fn name(self, name: NameId) -> CircularBuffer {
        CircularBuffer { name, ..self }
    }
}

/// A kernel binary, as loaded to a number of cores.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    pub(crate) id: u64,
    pub(crate) program: u64,
    pub(crate) kernel_type: KernelType,
    pub(crate) core_type: CoreType,
    pub(crate) binary_bytes: u64,
    pub(crate) cores: u32,
    pub(crate) hash: u64,
    pub(crate) name: NameId,
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
        Kernel { id, program: id, kernel_type, core_type, binary_bytes, cores, hash: 0, name: NameId::NONE }
    }

    /// The program it belongs to, if a program has several kernels.
    pub fn program(self, program: u64) -> Kernel {
        Kernel { program, ..self }
    }

    /// A hash of the binary (not 0), from which bytes shared between kernels are reported.
    pub fn hash(self, hash: u64) -> Kernel {
        Kernel { hash, ..self }
    }

    /// What it is for.
    pub fn name(self, name: NameId) -> Kernel {
        Kernel { name, ..self }
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

/// What loading a kernel came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loaded {
    /// It was not loaded before.
    New,
    /// It was loaded already: counted as a cached dispatch of its program.
    Cached,
}
