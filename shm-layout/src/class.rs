//! What memory is used for, and the kinds of cores that hold it.

use crate::describe::codes;
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

codes! {
    /// A memory class; the discriminant is its code in events, rows and counters.
    #[repr(u8)]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, bytemuck::CheckedBitPattern)]
    pub enum Class {
        /// Buffers in DRAM: part of DRAM used.
        Dram = 0,
        /// Trace buffers, which lie in DRAM: part of DRAM used.
        Trace = 1,
        /// Buffers in the L1 of Tensix cores: part of L1 used.
        L1 = 2,
        /// Buffers in the small-buffer region of L1: part of L1 used.
        L1Small = 3,
        /// Program-local L1 (circular buffers, dataflow buffers, scratchpads): part of L1 used while the
        /// program is resident.
        Cb = 4,
        /// Binaries of application kernels: on ethernet cores part of ethernet L1 used while the program is
        /// resident, on Tensix cores part of nothing.
        KernelApplication = 5,
        /// Binaries of fabric (inter-device routing) kernels: on ethernet cores part of ethernet L1 used, on
        /// Tensix cores part of nothing.
        KernelFabric = 6,
        /// Binaries of dispatch (command queue) kernels: on ethernet cores part of ethernet L1 used, on Tensix
        /// cores part of nothing.
        KernelDispatch = 7,
        /// Host memory: recorded, never part of a device total.
        SystemMemory = 8,
    }
}

/// When an allocation of a class is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resident {
    /// While it is allocated or loaded.
    Always,
    /// While its program is the one dispatched last in a lane.
    Dispatched,
}

/// Everything there is to know of a class. A new class needs its variant of [`Class`] and its entry here.
struct Description {
    class: Class,
    name: &'static str,
    memory: Memory,
    resident: Resident,
    /// The pool of the device's allocator: an index into [`crate::DeviceEntry::pools`].
    pool: Option<usize>,
    rows: RowKind,
    kernel: Option<KernelType>,
}

/// A class of buffers, to which the others are compared.
const BUFFERS: Description = Description {
    class: Class::Dram,
    name: "dram",
    memory: Memory::Dram,
    resident: Resident::Always,
    pool: Some(0),
    rows: RowKind::Buffer,
    kernel: None,
};

/// By code.
const CLASSES: [Description; Class::COUNT] = [
    BUFFERS,
    Description { class: Class::Trace, name: "trace", pool: Some(1), ..BUFFERS },
    Description { class: Class::L1, name: "l1", memory: Memory::L1, pool: Some(2), ..BUFFERS },
    Description { class: Class::L1Small, name: "l1_small", memory: Memory::L1, pool: Some(3), ..BUFFERS },
    Description {
        class: Class::Cb,
        name: "cb",
        memory: Memory::L1,
        resident: Resident::Dispatched,
        pool: None,
        rows: RowKind::Cb,
        kernel: None,
    },
    Description {
        class: Class::KernelApplication,
        name: "kernel_application",
        resident: Resident::Dispatched,
        ..kernels(KernelType::Application)
    },
    Description { class: Class::KernelFabric, name: "kernel_fabric", ..kernels(KernelType::Fabric) },
    Description { class: Class::KernelDispatch, name: "kernel_dispatch", ..kernels(KernelType::Dispatch) },
    Description {
        class: Class::SystemMemory,
        name: "system_memory",
        memory: Memory::Host,
        pool: None,
        ..BUFFERS
    },
];

const fn kernels(kernel: KernelType) -> Description {
    Description {
        memory: Memory::Kernels,
        pool: None,
        rows: RowKind::Kernel,
        kernel: Some(kernel),
        ..BUFFERS
    }
}

/// The classes in a memory, or in any, that are resident then: a bit each. Asked for every event, so that it has to be
/// a constant and not a look into the table.
const fn mask(memory: Option<Memory>, resident: Resident) -> u32 {
    let (mut mask, mut code) = (0, 0);
    while code < CLASSES.len() {
        let Description { class, memory: lies_in, resident: when, .. } = &CLASSES[code];
        assert!(*class as usize == code, "an entry of CLASSES is out of place");
        let is_there = match memory {
            Some(memory) => memory as u8 == *lies_in as u8,
            None => true,
        };
        if is_there && resident as u8 == *when as u8 {
            mask |= 1 << code;
        }
        code += 1;
    }
    mask
}

impl Class {
    /// How many classes there are.
    pub const COUNT: usize = Class::ALL.len();

    /// The class with this code.
    #[inline]
    pub fn from_code(code: u8) -> Option<Class> {
        // Compiles to a comparison.
        bytemuck::checked::try_cast(code).ok()
    }

    const fn description(self) -> &'static Description {
        &CLASSES[self as usize]
    }

    /// The name used in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        self.description().name
    }

    /// The class with this name.
    pub fn from_name(name: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == name)
    }

    /// The memory it lies in, as far as "used" is concerned.
    pub const fn memory(self) -> Memory {
        self.description().memory
    }

    /// Whether two classes lie in the same memory.
    pub fn shares_memory(self, other: Class) -> bool {
        self.memory() == other.memory()
    }

    /// The mask is a constant where this is called, so one of the two is left: of codes in a row, a comparison.
    #[inline(always)]
    const fn is_in(self, mask: u32) -> bool {
        let first = mask.trailing_zeros();
        let run = mask >> first;
        match run & (run + 1) {
            0 => (self as u32).wrapping_sub(first) < run.count_ones(),
            _ => mask >> self as u32 & 1 != 0,
        }
    }

    /// Whether it lies in DRAM.
    #[inline(always)]
    pub const fn is_dram(self) -> bool {
        self.is_in(const { mask(Some(Memory::Dram), Resident::Always) })
    }

    /// Whether its buffers lie in the L1 pools of the allocator.
    #[inline(always)]
    pub const fn is_l1_buffer(self) -> bool {
        self.is_in(const { mask(Some(Memory::L1), Resident::Always) })
    }

    /// Whether it is memory of a program: circular buffers and kernels.
    #[inline(always)]
    pub const fn is_program_memory(self) -> bool {
        self.is_in(const { mask(None, Resident::Dispatched) | mask(Some(Memory::Kernels), Resident::Always) })
    }

    /// Whether a dispatch of its program makes it resident.
    #[inline(always)]
    pub const fn needs_dispatch(self) -> bool {
        self.is_in(const { mask(None, Resident::Dispatched) })
    }

    /// Whether it is that of kernels which are resident while loaded.
    #[inline(always)]
    pub const fn is_system_kernel(self) -> bool {
        self.is_in(const { mask(Some(Memory::Kernels), Resident::Always) })
    }

    /// The pool of the device's allocator that it is taken from, if any: an index into
    /// [`crate::DeviceEntry::pools`].
    #[inline]
    pub const fn pool(self) -> Option<usize> {
        self.description().pool
    }

    /// What kind of row its allocations have in the live list.
    pub const fn row_kind(self) -> RowKind {
        self.description().rows
    }

    /// Which type of kernel this class holds, if any.
    pub const fn kernel_type(self) -> Option<KernelType> {
        self.description().kernel
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
    pub const fn class(self) -> Class {
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
