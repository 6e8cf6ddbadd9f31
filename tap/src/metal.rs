//! What is called of tt-metal: its exported functions, found by name in the library that the process has loaded.
//!
//! No header and no layout of tt-metal is used. A function that this version does not have costs only what needs it.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use tt_shm_writer::{Arch, BufferType};

use crate::cxx::{self, IntMap, PointerSet, Vector};
use crate::needs;
use crate::older;
use crate::settings;

/// Declares what objects of tt-metal are here: their addresses, which only mean something to tt-metal's functions.
macro_rules! handles {
    ($($(#[$meta:meta])* $name:ident;)*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, PartialEq, Eq, Hash)]
            #[repr(transparent)]
            pub(crate) struct $name(pub(crate) *mut c_void);

            // SAFETY: an address; the object is only ever reached through tt-metal's functions, while tt-metal itself
            // works on it.
            unsafe impl Send for $name {}
            // SAFETY: as above.
            unsafe impl Sync for $name {}
        )*
    };
}

handles! {
    /// `tt::tt_metal::Buffer*`.
    Buffer;
    /// `tt::tt_metal::AllocatorImpl*`.
    Allocator;
    /// `tt::tt_metal::IDevice*`: a device, or a mesh of them.
    Device;
}

/// What an allocator says of one kind of memory: bytes in each of its banks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Statistics {
    pub(crate) total: u64,
    pub(crate) allocated: u64,
    pub(crate) free: u64,
    pub(crate) largest_free: u64,
}

/// A function of tt-metal, found when it is first needed. 0: not looked for; 1: there is none.
pub(crate) struct Symbol {
    name: &'static CStr,
    address: AtomicUsize,
}

const NOT_FOUND: usize = 1;

impl Symbol {
    pub(crate) const fn new(name: &'static CStr) -> Symbol {
        Symbol { name, address: AtomicUsize::new(0) }
    }

    /// Its address, unless this version does not have it.
    #[inline]
    pub(crate) fn get(&self) -> Option<*mut c_void> {
        // Relaxed: the address of a function; whatever it works with was there before.
        match self.address.load(Ordering::Relaxed) {
            0 => self.find(),
            NOT_FOUND => None,
            address => Some(address as *mut c_void),
        }
    }

    #[cold]
    fn find(&self) -> Option<*mut c_void> {
        let libraries = [library(), ttnn()];
        let address = libraries.into_iter().flatten().find_map(|library| {
            // SAFETY: a handle that is never closed, and a string with its end.
            let address = unsafe { libc::dlsym(library, self.name.as_ptr()) };
            Some(address).filter(|address| !address.is_null())
        });
        let address = address.filter(|_| !settings::is_hidden(self.name));
        // Not remembered before the library is loaded: it may come yet.
        if library().is_some() {
            let found = address.map_or(NOT_FOUND, |address| address as usize);
            self.address.store(found, Ordering::Relaxed);
            if address.is_none() {
                needs::missing(self.name);
            }
        }
        address
    }
}

/// The loaded libtt_metal.so, if it is loaded.
pub(crate) fn library() -> Option<*mut c_void> {
    static LIBRARY: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    loaded(c"libtt_metal.so", &LIBRARY)
}

/// The library of ttnn's operations, if it is loaded: C++ hosts may do without.
fn ttnn() -> Option<*mut c_void> {
    static LIBRARY: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    loaded(c"_ttnncpp.so", &LIBRARY)
}

/// A library that is loaded, by its name. The handle is never closed.
pub(crate) fn loaded(name: &CStr, known: &AtomicPtr<c_void>) -> Option<*mut c_void> {
    // Relaxed: a handle, of which only the dynamic linker knows the meaning.
    let mut handle = known.load(Ordering::Relaxed);
    if handle.is_null() {
        // RTLD_NEXT finds nothing where Python has loaded it for itself alone.
        // SAFETY: loads nothing, since it says so.
        handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        known.store(handle, Ordering::Relaxed);
    }
    Some(handle).filter(|handle| !handle.is_null())
}

/// Declares functions of tt-metal, each a symbol and a way to call it.
macro_rules! functions {
    ($($(#[$meta:meta])* $name:ident($($argument:ty),*) $(-> $result:ty)? = $symbol:literal;)*) => {
        $($(#[$meta])* #[inline] fn $name() -> Option<unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?> {
            static SYMBOL: $crate::metal::Symbol = $crate::metal::Symbol::new($symbol);
            // SAFETY: the function of that name has this signature in all versions that have it, which the tests of
            // each version show; both are pointers to code.
            SYMBOL.get().map(|address| unsafe { std::mem::transmute::<*mut std::ffi::c_void, _>(address) })
        })*
    };
}
pub(crate) use functions;

pub(crate) mod programs;

type Kind = c_int;

/// `tt::tt_metal::Statistics`, which was longer in earlier versions.
#[repr(C)]
struct StatisticsRoom {
    total: u64,
    allocated: u64,
    free: u64,
    largest_free: u64,
    more: MaybeUninit<[u64; 28]>,
}

/// `tt::xy_pair`: column and row.
#[repr(C)]
struct CoreCoord([usize; 2]);

functions! {
    buffer_size(Buffer) -> u64 = c"_ZNK2tt8tt_metal6Buffer4sizeEv";
    buffer_page_size(Buffer) -> u64 = c"_ZNK2tt8tt_metal6Buffer9page_sizeEv";
    buffer_pages(Buffer) -> u32 = c"_ZNK2tt8tt_metal6Buffer9num_pagesEv";
    buffer_type(Buffer) -> Kind = c"_ZNK2tt8tt_metal6Buffer11buffer_typeEv";
    buffer_device(Buffer) -> Device = c"_ZNK2tt8tt_metal6Buffer6deviceEv";
    buffer_id(Buffer) -> u64 = c"_ZNK2tt8tt_metal6Buffer9unique_idEv";
    buffer_is_allocated(Buffer) -> bool = c"_ZNK2tt8tt_metal6Buffer12is_allocatedEv";
    buffer_address(Buffer) -> u32 = c"_ZNK2tt8tt_metal6Buffer7addressEv";
    buffer_per_bank(Buffer) -> u64 = c"_ZNK2tt8tt_metal6Buffer21aligned_size_per_bankEv";
    statistics(Allocator, *const Kind) -> StatisticsRoom =
        c"_ZNK2tt8tt_metal13AllocatorImpl14get_statisticsERKNS0_10BufferTypeE";
    banks(Allocator, *const Kind) -> u32 = c"_ZNK2tt8tt_metal13AllocatorImpl13get_num_banksERKNS0_10BufferTypeE";
    alignment(Allocator, Kind) -> u32 = c"_ZNK2tt8tt_metal13AllocatorImpl13get_alignmentENS0_10BufferTypeE";
    core_bytes(Allocator) -> u64 = c"_ZNK2tt8tt_metal13AllocatorImpl18get_worker_l1_sizeEv";
    base_address(Allocator, *const u8) -> u32 =
        c"_ZNK2tt8tt_metal13AllocatorImpl23get_base_allocator_addrERKNS0_10HalMemTypeE";
    bank_core(Allocator, u32) -> CoreCoord = c"_ZNK2tt8tt_metal13AllocatorImpl29get_logical_core_from_bank_idEj";
    allocated_buffers(Allocator) -> PointerSet = c"_ZNK2tt8tt_metal13AllocatorImpl21get_allocated_buffersEv";
    mesh_chips(Device) -> Vector<c_int> = c"_ZNK2tt8tt_metal11distributed10MeshDevice14get_device_idsEv";
    mesh_arch(Device) -> c_int = c"_ZNK2tt8tt_metal11distributed10MeshDevice4archEv";
    mesh_devices(Device) -> Vector<*mut c_void> = c"_ZNK2tt8tt_metal11distributed10MeshDevice11get_devicesEv";
    context_exists(c_int) -> bool =
        c"_ZN2tt8tt_metal12MetalContext15instance_existsEN4ttsl10StrongTypeIiNS0_12ContextIdTagEEE";
    context(c_int) -> *mut c_void =
        c"_ZN2tt8tt_metal12MetalContext8instanceEN4ttsl10StrongTypeIiNS0_12ContextIdTagEEE";
    cluster(*mut c_void) -> *mut c_void = c"_ZNK2tt8tt_metal12MetalContext11get_clusterEv";
    cluster_description(*mut c_void) -> *mut c_void = c"_ZNK2tt7Cluster16get_cluster_descEv";
    chip_ids(*mut c_void) -> *const IntMap = c"_ZNK2tt3umd17ClusterDescriptor19get_chip_unique_idsEv";
    chip_arch(*mut c_void, c_int) -> c_int = c"_ZNK2tt3umd17ClusterDescriptor8get_archEi";
}

/// The kinds of buffers that an allocator has pools for.
pub(crate) const KINDS: [BufferType; 4] =
    [BufferType::Dram, BufferType::L1, BufferType::L1Small, BufferType::Trace];

/// Whether everything is there without which nothing can be counted.
pub(crate) fn is_supported() -> bool {
    let has_kinds = buffer_type().is_some() && buffer_device().is_some() || older::is_supported();
    let has_figures = statistics().is_some() && banks().is_some() && alignment().is_some();
    has_kinds && has_figures && buffer_per_bank().is_some() && mesh_chips().is_some()
}

impl Buffer {
    /// Distinguishes it from all others that live.
    pub(crate) fn id(self) -> u64 {
        match buffer_id() {
            // SAFETY: a buffer that lives, as in all of these: tt-metal has just handed it to a hook.
            Some(id) => unsafe { id(self) },
            None => self.0 as u64,
        }
    }

    /// The memory that it is in; `None` if that is not known here.
    pub(crate) fn kind(self) -> Option<BufferType> {
        let Some(kind) = buffer_type() else { return older::kind(self) };
        // SAFETY: a buffer that lives.
        let kind = unsafe { kind(self) };
        BufferType::from_code(u8::try_from(kind).ok()?)
    }

    /// Bytes requested.
    pub(crate) fn size(self) -> u64 {
        if let Some(size) = buffer_size() {
            // SAFETY: a buffer that lives.
            return unsafe { size(self) };
        }
        let (Some(page), Some(pages)) = (buffer_page_size(), buffer_pages()) else { return 0 };
        // SAFETY: a buffer that lives.
        let page = unsafe { page(self) };
        // SAFETY: a buffer that lives.
        page * u64::from(unsafe { pages(self) })
    }

    /// Bytes that it takes of each bank: its own, aligned as the allocator does it.
    pub(crate) fn per_bank(self, alignment: u64) -> Option<u64> {
        // SAFETY: a buffer that lives.
        let bytes = buffer_per_bank().map(|per_bank| unsafe { per_bank(self) })?;
        Some(bytes.max(1).next_multiple_of(alignment.max(1)))
    }

    /// Whether its allocation is complete. While it is not, tt-metal throws an exception if it is asked for its address,
    /// which nobody here could catch. As all versions tell that, one that does not is taken at its list's word.
    pub(crate) fn is_allocated(self) -> bool {
        // SAFETY: a buffer that lives.
        buffer_is_allocated().is_none_or(|is_allocated| unsafe { is_allocated(self) })
    }

    /// Where it is on the device.
    pub(crate) fn address(self) -> Option<u64> {
        // SAFETY: a buffer that lives.
        buffer_address().map(|address| u64::from(unsafe { address(self) }))
    }

    /// The device, or the mesh, that it is on.
    pub(crate) fn device(self) -> Option<Device> {
        let (Some(device), Some(_)) = (buffer_device(), buffer_type()) else { return older::device(self) };
        // SAFETY: a buffer that lives.
        let device = unsafe { device(self) };
        Some(device).filter(|device| !device.0.is_null())
    }
}

impl Allocator {
    /// What is used and free of a kind of memory, in each bank.
    pub(crate) fn statistics(self, kind: BufferType) -> Option<Statistics> {
        #[cfg(target_arch = "x86_64")]
        if buffer_type().is_none() {
            return older::statistics(self, kind);
        }
        let kind = kind as Kind;
        // SAFETY: an allocator that lives, as in all of these, and a kind that lives as long as the call.
        let room = statistics().map(|statistics| unsafe { statistics(self, &raw const kind) })?;
        let StatisticsRoom { total, allocated, free, largest_free, .. } = room;
        Some(Statistics { total, allocated, free, largest_free })
    }

    /// Number of banks of a kind of memory.
    pub(crate) fn banks(self, kind: BufferType) -> Option<u32> {
        let kind = kind as Kind;
        // SAFETY: an allocator that lives, and a kind that lives as long as the call.
        banks().map(|banks| unsafe { banks(self, &raw const kind) })
    }

    /// What all allocations are multiples of, in L1 too: the alignment of DRAM.
    pub(crate) fn alignment(self) -> Option<u64> {
        // SAFETY: an allocator that lives.
        alignment().map(|alignment| u64::from(unsafe { alignment(self, BufferType::Dram as Kind) }))
    }

    /// All L1 of a core that it hands out, and what it does not hand out of it.
    pub(crate) fn core_bytes(self) -> Option<u64> {
        // SAFETY: an allocator that lives.
        core_bytes().map(|bytes| unsafe { bytes(self) })
    }

    /// The lowest address of a core's L1 that it hands out.
    pub(crate) fn l1_base(self) -> Option<u64> {
        /// `HalMemType::L1`.
        static L1: u8 = 0;
        // SAFETY: an allocator that lives, and a kind that lives as long as the call.
        base_address().map(|address| u64::from(unsafe { address(self, &raw const L1) }))
    }

    /// The core of each bank of L1, as tt-metal numbers cores: column and row.
    pub(crate) fn bank_cores(self) -> Option<Vec<[usize; 2]>> {
        let (banks, core) = (self.banks(BufferType::L1)?, bank_core()?);
        // SAFETY: an allocator that lives, and the numbers of banks that it has.
        Some((0..banks).map(|bank| unsafe { core(self, bank) }.0).collect())
    }

    /// Every buffer that it holds now; `None` if it cannot tell.
    pub(crate) fn buffers(self) -> Option<Vec<Buffer>> {
        // SAFETY: an allocator that lives.
        let set = allocated_buffers().map(|buffers| unsafe { buffers(self) })?;
        Some(set.take().into_iter().map(Buffer).collect())
    }
}

impl Device {
    /// Whether it is a mesh: by its type_info, which stands before the functions of its class.
    fn is_mesh(self) -> bool {
        static MESH: Symbol = Symbol::new(c"_ZTIN2tt8tt_metal11distributed10MeshDeviceE");
        // SAFETY: an object with virtual functions begins with the pointer to them.
        let functions = unsafe { *self.0.cast::<*const *mut c_void>() };
        // The word before them is the type_info, as the ABI says.
        let type_info = functions.wrapping_sub(1);
        // SAFETY: as above.
        let type_info = unsafe { type_info.read() };
        MESH.get() == Some(type_info)
    }

    /// The numbers of its chips, as tt-metal counts them; `None` if that is not known.
    pub(crate) fn chips(self) -> Option<Vec<u32>> {
        if !self.is_mesh() {
            return crate::chips::number_of(self).map(|number| vec![number]);
        }
        // SAFETY: a mesh that lives.
        let chips = mesh_chips().map(|chips| unsafe { chips(self) })?.take();
        chips.into_iter().map(|chip| u32::try_from(chip).ok()).collect()
    }
}

/// The architecture of a mesh; of other devices it is not known here.
pub(crate) fn mesh_architecture(mesh: Device) -> Arch {
    let Some(arch) = mesh_arch().filter(|_| mesh.is_mesh()) else { return Arch::Unknown };
    // SAFETY: a mesh that lives.
    architecture(unsafe { arch(mesh) })
}

/// The devices of a mesh and their numbers, if it is one.
pub(crate) fn mesh_members(mesh: Device) -> Vec<(*mut c_void, u32)> {
    let Some(devices) = mesh_devices().filter(|_| mesh.is_mesh()) else { return Vec::new() };
    // SAFETY: a mesh that lives.
    let devices = unsafe { devices(mesh) }.take();
    let numbers = mesh.chips().unwrap_or_default();
    if numbers.len() == devices.len() { devices.into_iter().zip(numbers).collect() } else { Vec::new() }
}

/// What tt-metal knows of a chip: its stable id and its architecture.
pub(crate) fn chip(number: u32) -> (Option<u64>, Arch) {
    let unknown = (None, Arch::Unknown);
    let (Some(exists), Some(context), Some(cluster), Some(describe)) =
        (context_exists(), context(), cluster(), cluster_description())
    else {
        return unknown;
    };
    const DEFAULT: c_int = 0;
    // SAFETY: asks about a number.
    if !unsafe { exists(DEFAULT) } {
        return unknown;
    }
    // SAFETY: it exists, so this makes none.
    let context = unsafe { context(DEFAULT) };
    // SAFETY: the context lives as long as any device.
    let cluster = unsafe { cluster(context) };
    // SAFETY: as does its cluster.
    let description = unsafe { describe(cluster) };
    if description.is_null() {
        return unknown;
    }
    let number = number as c_int;
    let id = chip_ids().and_then(|ids| {
        // SAFETY: as does its description.
        let ids = unsafe { ids(description) };
        // SAFETY: a map of these types that is not changed while devices are open.
        unsafe { cxx::find(ids, number) }
    });
    // SAFETY: as above.
    let arch = chip_arch().map_or(0, |arch| unsafe { arch(description, number) });
    (id, architecture(arch))
}

/// tt-metal's `ARCH`.
fn architecture(code: c_int) -> Arch {
    match code {
        1 => Arch::Grayskull,
        2 => Arch::Wormhole,
        3 => Arch::Blackhole,
        4 => Arch::Quasar,
        _ => Arch::Unknown,
    }
}
