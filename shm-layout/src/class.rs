//! What memory is used for, and the kinds of cores that hold it.

use crate::row::RowKind;

/// Where a class lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// The device's DRAM.
    Dram,
    /// What the allocator gives of the L1 of Tensix cores.
    L1,
    /// Kernel binaries: reserved memory of the cores they run on, no part of L1 used.
    Kernels,
    /// The host's memory.
    Host,
}

/// A memory class; the discriminant is its code in events, rows and counters.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Buffers in DRAM.
    Dram = 0,
    /// Trace buffers. They lie in DRAM and count towards DRAM used.
    Trace = 1,
    /// Buffers in the L1 of Tensix cores.
    L1 = 2,
    /// Buffers in the small-buffer region of L1.
    L1Small = 3,
    /// Program-local L1: circular buffers, dataflow buffers, scratchpads.
    Cb = 4,
    /// Binaries of application kernels.
    KernelApplication = 5,
    /// Binaries of fabric (inter-device routing) kernels.
    KernelFabric = 6,
    /// Binaries of dispatch (command queue) kernels.
    KernelDispatch = 7,
    /// Host memory: recorded, never part of a device total.
    SystemMemory = 8,
}

impl Class {
    /// How many classes there are.
    pub const COUNT: usize = 9;
    /// Every class, by code.
    pub const ALL: [Class; Class::COUNT] = [
        Class::Dram,
        Class::Trace,
        Class::L1,
        Class::L1Small,
        Class::Cb,
        Class::KernelApplication,
        Class::KernelFabric,
        Class::KernelDispatch,
        Class::SystemMemory,
    ];

    /// The class with this code.
    pub fn from_code(code: u8) -> Option<Class> {
        use Class::*;
        // Not a table: this compiles to a comparison.
        Some(match code {
            0 => Dram,
            1 => Trace,
            2 => L1,
            3 => L1Small,
            4 => Cb,
            5 => KernelApplication,
            6 => KernelFabric,
            7 => KernelDispatch,
            8 => SystemMemory,
            _ => return None,
        })
    }

    /// The name used in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Class::Dram => "dram",
            Class::Trace => "trace",
            Class::L1 => "l1",
            Class::L1Small => "l1_small",
            Class::Cb => "cb",
            Class::KernelApplication => "kernel_application",
            Class::KernelFabric => "kernel_fabric",
            Class::KernelDispatch => "kernel_dispatch",
            Class::SystemMemory => "system_memory",
        }
    }

    /// The class with this name.
    pub fn from_name(name: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Where it lies, as far as "used" is concerned.
    pub const fn memory(self) -> Memory {
        match self {
            Class::Dram | Class::Trace => Memory::Dram,
            Class::L1 | Class::L1Small | Class::Cb => Memory::L1,
            Class::KernelApplication | Class::KernelFabric | Class::KernelDispatch => Memory::Kernels,
            Class::SystemMemory => Memory::Host,
        }
    }

    /// Whether two classes lie in the same memory.
    pub fn shares_memory(self, other: Class) -> bool {
        self.memory() == other.memory()
    }

    // The questions that the counters ask for every event are patterns of their own: each compiles to one or
    // two comparisons, where `memory()` would be a load from a table.

    /// Whether it lies in DRAM.
    #[inline(always)]
    pub const fn is_dram(self) -> bool {
        matches!(self, Class::Dram | Class::Trace)
    }

    /// Whether its buffers lie in the L1 pools of the allocator.
    #[inline(always)]
    pub const fn is_l1_buffer(self) -> bool {
        matches!(self, Class::L1 | Class::L1Small)
    }

    /// Whether it is memory of a program: circular buffers and kernels.
    #[inline(always)]
    pub const fn is_program_memory(self) -> bool {
        self.needs_dispatch() || self.is_system_kernel()
    }

    /// Whether a dispatch of its program makes it resident.
    #[inline(always)]
    pub const fn needs_dispatch(self) -> bool {
        matches!(self, Class::Cb | Class::KernelApplication)
    }

    /// Whether it is that of kernels which are resident while loaded.
    #[inline(always)]
    pub const fn is_system_kernel(self) -> bool {
        matches!(self, Class::KernelFabric | Class::KernelDispatch)
    }

    /// The pool of the device's allocator that it is taken from, if any: an index into
    /// [`crate::DeviceEntry::pools`].
    #[inline]
    pub const fn pool(self) -> Option<usize> {
        match self {
            Class::Dram => Some(0),
            Class::Trace => Some(1),
            Class::L1 => Some(2),
            Class::L1Small => Some(3),
            _ => None,
        }
    }

    /// What kind of row its allocations have in the live list.
    pub const fn row_kind(self) -> RowKind {
        match self {
            Class::Cb => RowKind::Cb,
            Class::KernelApplication | Class::KernelFabric | Class::KernelDispatch => RowKind::Kernel,
            _ => RowKind::Buffer,
        }
    }

    /// Which type of kernel this class holds, if any.
    pub fn kernel_type(self) -> Option<KernelType> {
        match self {
            Class::KernelApplication => Some(KernelType::Application),
            Class::KernelFabric => Some(KernelType::Fabric),
            Class::KernelDispatch => Some(KernelType::Dispatch),
            _ => None,
        }
    }
}

/// What a kernel is for. Always said by the producer, never guessed from a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KernelType {
    /// A kernel of a user's program.
    Application,
    /// Routes traffic between devices; resident while loaded.
    Fabric,
    /// Serves a command queue; resident while loaded.
    Dispatch,
}

impl KernelType {
    /// The memory class of such a kernel's binary.
    pub fn class(self) -> Class {
        match self {
            KernelType::Application => Class::KernelApplication,
            KernelType::Fabric => Class::KernelFabric,
            KernelType::Dispatch => Class::KernelDispatch,
        }
    }

    /// The word used in log lines.
    pub fn label(self) -> &'static str {
        match self {
            KernelType::Application => "Application",
            KernelType::Fabric => "Fabric",
            KernelType::Dispatch => "Dispatch",
        }
    }
}

/// The kind of core whose L1 holds something. Ethernet L1 is counted apart from Tensix L1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum CoreType {
    /// A compute core.
    #[default]
    Tensix,
    /// An ethernet core.
    Ethernet,
}
