//! What is asked of programs, their kernels, and the meshes and command queues that run them.

use std::ffi::{c_int, c_void};

use tt_shm_writer::CoreType;

use super::{Allocator, Device, Symbol};
use crate::cxx::{CxxString, Span, Tree, Vector};
use crate::rectangles::{self, Rectangle};

handles! {
    /// `tt::tt_metal::detail::ProgramImpl*`.
    Program;
    /// `tt::tt_metal::distributed::MeshWorkloadImpl*`: programs that are launched together, each on a part of a mesh.
    Workload;
    /// `tt::tt_metal::Kernel*`.
    Kernel;
    /// `tt::tt_metal::distributed::MeshCommandQueue&`.
    Queue;
    /// `const tt::tt_metal::CoreRangeSet&`.
    CoreRanges;
    /// `const tt::tt_metal::distributed::MeshCoordinateRange&`.
    MeshRange;
    /// `tt::tt_metal::WorkerConfigBufferMgr*`.
    Ring;
}

/// `const std::shared_ptr<tt::tt_metal::Kernel>&`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct SharedKernel(*const Kernel);

/// `tt::tt_metal::Program&&`: a shared pointer to what it consists of.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct ProgramHandle(*const Program);

/// `std::optional<uint64_t>`.
#[repr(C)]
struct Maybe {
    value: u64,
    is_there: bool,
}

functions! {
    program_id(Program) -> u64 = c"_ZNK2tt8tt_metal6detail11ProgramImpl6get_idEv";
    core_count(CoreRanges) -> u32 = c"_ZNK2tt8tt_metal12CoreRangeSet9num_coresEv";
    packed_size(Kernel, Device, c_int) -> u32 = c"_ZNK2tt8tt_metal6Kernel22get_binary_packed_sizeEPNS0_7IDeviceEi";
    kernel_core_type(Kernel) -> c_int = c"_ZNK2tt8tt_metal6Kernel20get_kernel_core_typeEv";
    range_start(MeshRange) -> *const c_void = c"_ZNK2tt8tt_metal11distributed19MeshCoordinateRange11start_coordEv";
    range_end(MeshRange) -> *const c_void = c"_ZNK2tt8tt_metal11distributed19MeshCoordinateRange9end_coordEv";
    coordinates(*const c_void) -> Span<u32> = c"_ZNK2tt8tt_metal11distributed14MeshCoordinate6coordsEv";
    mesh_shape(Device) -> *const c_void = c"_ZNK2tt8tt_metal11distributed10MeshDevice5shapeEv";
    stride(*const c_void, usize) -> u32 = c"_ZNK2tt8tt_metal11distributed9MeshShape10get_strideEm";
    queue_count(Device) -> u8 = c"_ZNK2tt8tt_metal11distributed10MeshDevice10num_hw_cqsEv";
    queue(Device, u16) -> *mut c_void = c"_ZNK2tt8tt_metal11distributed10MeshDevice18mesh_command_queueESt8optionalIhE";
    sub_devices(Device) -> u64 = c"_ZNK2tt8tt_metal11distributed10MeshDevice32get_active_sub_device_manager_idEv";
    mesh_allocator(Device) -> *const *mut c_void = c"_ZNK2tt8tt_metal11distributed10MeshDevice14allocator_implEv";
    lowest_l1(Allocator, u32) -> Maybe = c"_ZNK2tt8tt_metal13AllocatorImpl30get_lowest_occupied_l1_addressEj";
}

/// A function that does nothing but return a reference to a member: where in the object that is. What a function returns
/// is not part of its name, and one that returned a copy would write to the address of the object.
fn member(symbol: &Symbol) -> Option<usize> {
    let code = symbol.get()?.cast::<[u8; 8]>();
    // SAFETY: the first bytes of a function; functions are followed by others, or by padding.
    let code = unsafe { code.read_unaligned() };
    match code {
        // lea disp32(%rdi),%rax; ret
        [0x48, 0x8d, 0x87, a, b, c, d, 0xc3] => usize::try_from(i32::from_le_bytes([a, b, c, d])).ok(),
        // mov %rdi,%rax; ret
        [0x48, 0x89, 0xf8, 0xc3, ..] => Some(0),
        // lea disp8(%rdi),%rax; ret
        [0x48, 0x8d, 0x47, offset, 0xc3, ..] if offset < 0x80 => Some(usize::from(offset)),
        _ => None,
    }
}

impl Program {
    /// The number that tt-metal gave it; no other program of the process has it.
    pub(crate) fn id(self) -> Option<u64> {
        // SAFETY: a program that lives, as in all of these: tt-metal has just handed it to a hook.
        program_id().map(|id| unsafe { id(self) })
    }
}

impl ProgramHandle {
    /// What it consists of: the first word of a shared pointer.
    pub(crate) fn program(self) -> Program {
        // SAFETY: a reference to a program that lives.
        unsafe { *self.0 }
    }
}

impl SharedKernel {
    pub(crate) fn kernel(self) -> Kernel {
        // SAFETY: a reference to a shared pointer, of which the object is the first word.
        unsafe { *self.0 }
    }
}

impl Kernel {
    /// Its name, with the hash of what it was compiled with behind it.
    pub(crate) fn full_name(self) -> Option<String> {
        static NAME: Symbol = Symbol::new(c"_ZNK2tt8tt_metal6Kernel20get_full_kernel_nameB5cxx11Ev");
        let name = self.0.wrapping_byte_add(member(&NAME)?).cast::<CxxString>();
        // SAFETY: a string of a kernel that lives and is not changed meanwhile.
        Some(unsafe { CxxString::copy(name) })
    }

    /// The number of cores that it is on.
    pub(crate) fn cores(self) -> Option<u32> {
        static CORES: Symbol = Symbol::new(c"_ZNK2tt8tt_metal6Kernel13logical_coresEv");
        let cores = self.0.wrapping_byte_add(member(&CORES)?).cast::<Tree>();
        // SAFETY: the set of cores of a kernel that lives and is not changed meanwhile.
        u32::try_from(unsafe { Tree::count(cores) }).ok()
    }

    /// The bytes of its binaries, of which there are so many, on each core.
    pub(crate) fn bytes(self, device: Device, binaries: u32) -> Option<u64> {
        let size = packed_size()?;
        // SAFETY: a kernel and a device that live, and the number of a binary that was just read.
        let sizes = (0..binaries).map(|binary| u64::from(unsafe { size(self, device, binary as c_int) }));
        Some(sizes.sum())
    }

    pub(crate) fn core_type(self) -> CoreType {
        /// `CoreType::ETH`.
        const ETHERNET: c_int = 9;
        // SAFETY: a kernel that lives.
        match kernel_core_type().map(|core_type| unsafe { core_type(self) }) {
            Some(ETHERNET) => CoreType::Ethernet,
            _ => CoreType::Tensix,
        }
    }
}

impl CoreRanges {
    /// The number of cores.
    pub(crate) fn count(self) -> Option<u32> {
        // SAFETY: core ranges that live as long as the call that they were passed to.
        core_count().map(|count| unsafe { count(self) })
    }

    /// The rectangles that it consists of, if they have that many cores: otherwise they are something else.
    pub(crate) fn rectangles(self, count: u32) -> Option<Vec<Rectangle>> {
        static RANGES: Symbol = Symbol::new(c"_ZNK2tt8tt_metal12CoreRangeSet6rangesEv");
        let ranges = self.0.wrapping_byte_add(member(&RANGES)?).cast::<Vector<Rectangle>>();
        // SAFETY: the vector of core ranges that live as long as the call that they were passed to.
        let rectangles = unsafe { (*ranges).copy() };
        (rectangles::cores_in(&rectangles) == count).then_some(rectangles)
    }
}

/// A part of a mesh: the first and the last coordinate, both in it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Part {
    start: Vec<u32>,
    end: Vec<u32>,
}

impl MeshRange {
    pub(crate) fn part(self) -> Option<Part> {
        let (first, last, coordinates) = (range_start()?, range_end()?, coordinates()?);
        let copy = |coordinate: *const c_void| {
            // SAFETY: a coordinate inside a range that lives as long as the call that it was passed to.
            let span = unsafe { coordinates(coordinate) };
            // SAFETY: as above.
            unsafe { span.copy() }
        };
        // SAFETY: a range that lives as long as the call that it was passed to.
        let start = copy(unsafe { first(self) });
        // SAFETY: as above.
        let end = copy(unsafe { last(self) });
        Some(Part { start, end })
    }
}

impl Device {
    /// The numbers of the chips in a part of the mesh that this is.
    pub(crate) fn chips_in(self, part: &Part) -> Option<Vec<u32>> {
        let chips = self.chips()?;
        if !self.is_mesh() || part.start.len() != part.end.len() {
            return None;
        }
        // SAFETY: a mesh that lives, whose shape lives as long.
        let shape = mesh_shape().map(|shape| unsafe { shape(self) })?;
        let stride = stride()?;
        let mut places = vec![0];
        for (dimension, (start, end)) in part.start.iter().zip(&part.end).enumerate() {
            // SAFETY: a shape that lives; a dimension that a range on it has.
            let stride = unsafe { stride(shape, dimension) } as usize;
            let steps = (*start..=*end).map(|step| step as usize * stride);
            places = places.iter().flat_map(|place| steps.clone().map(move |step| place + step)).collect();
        }
        places.into_iter().map(|place| chips.get(place).copied()).collect()
    }

    /// The number of a command queue of this mesh.
    pub(crate) fn queue_number(self, wanted: Queue) -> Option<u8> {
        // SAFETY: a mesh that lives.
        let count = queue_count().map(|count| unsafe { count(self) })?;
        let queue = queue()?;
        /// An optional byte that is there.
        const THERE: u16 = 0x100;
        // SAFETY: a mesh that lives, and the number of a queue that it has.
        (0..count).find(|number| unsafe { queue(self, THERE | u16::from(*number)) } == wanted.0)
    }

    /// Which division into sub-devices is in force.
    pub(crate) fn sub_devices(self) -> u64 {
        // SAFETY: a mesh that lives.
        sub_devices().filter(|_| self.is_mesh()).map_or(0, |number| unsafe { number(self) })
    }

    /// The allocator of the mesh that this is.
    pub(crate) fn allocator(self) -> Option<Allocator> {
        // SAFETY: a mesh that lives.
        let owner =
            mesh_allocator().filter(|_| self.is_mesh()).map(|allocator| unsafe { allocator(self) })?;
        // SAFETY: a reference to the unique pointer that owns it.
        let allocator = (!owner.is_null()).then(|| unsafe { *owner })?;
        (!allocator.is_null()).then_some(Allocator(allocator))
    }
}

impl Allocator {
    /// The lowest address that a buffer occupies in L1; `None` if there is none.
    pub(crate) fn lowest_l1(self) -> Option<u64> {
        // SAFETY: an allocator that lives; all banks are in step.
        let lowest = lowest_l1().map(|lowest| unsafe { lowest(self, 0) })?;
        lowest.is_there.then_some(lowest.value)
    }
}

/// The first element of a vector that is only lent, and whether it is the only one.
///
/// # Safety
///
/// `vector` must be such a vector, and not change meanwhile.
pub(crate) unsafe fn first_of<T: Copy>(vector: *const Vector<T>) -> Option<(T, bool)> {
    // SAFETY: the caller's promise.
    if vector.is_null() { None } else { unsafe { (*vector).first() } }
}
