//! What memory is used for, and the kinds of cores that hold it.

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
    /// Circular buffers.
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

    /// Whether two classes lie in the same memory: DRAM, the L1 of Tensix cores, or the host's.
    pub fn shares_memory(self, other: Class) -> bool {
        let memory = |class: Class| match class {
            Class::Dram | Class::Trace => 0,
            Class::SystemMemory => 2,
            _ => 1,
        };
        memory(self) == memory(other)
    }

    /// Whether it is that of kernels which are resident while loaded.
    #[inline]
    pub fn is_system_kernel(self) -> bool {
        matches!(self, Class::KernelFabric | Class::KernelDispatch)
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
