//! What versions before 0.79 do not export: the kind and the device of a buffer.
//!
//! There a [`Buffer`] holds its device, its size and its kind in three words that follow each other. Where they are was
//! found in the wheels 0.66 to 0.78, and is taken for true only after a look at a real buffer: the first has to point to
//! an object with the functions of tt-metal's devices, the second has to be the size, and the third the kind that the
//! exported functions say as well. Whatever is not known to be an object is read through the kernel, which refuses to
//! read what is not there.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use tt_shm_writer::BufferType;

use crate::metal::{Allocator, Buffer, Device, Statistics, Symbol, functions};
use crate::notes;

const WORD: usize = size_of::<usize>();
/// Where the device is in a buffer. The size and the kind follow it.
const DEVICE: usize = 2;
const SIZE: usize = DEVICE + 1;
const KIND: usize = SIZE + 1;

/// Whether a buffer was looked at, and the kind was where it should be.
static IS_KNOWN: AtomicBool = AtomicBool::new(false);

functions! {
    is_dram(Buffer) -> bool = c"_ZNK2tt8tt_metal6Buffer7is_dramEv";
    is_l1(Buffer) -> bool = c"_ZNK2tt8tt_metal6Buffer5is_l1Ev";
    is_trace(Buffer) -> bool = c"_ZNK2tt8tt_metal6Buffer8is_traceEv";
}

/// Whether this version has what is needed here.
pub(crate) fn is_supported() -> bool {
    is_dram().is_some() && is_l1().is_some()
}

/// The kind of a buffer; `None` if it cannot be told.
pub(crate) fn kind(buffer: Buffer) -> Option<BufferType> {
    // Acquire: pairs with the Release in `device`, which looks at a buffer first.
    if !IS_KNOWN.load(Ordering::Acquire) {
        device(buffer)?;
    }
    let word = buffer.0.wrapping_byte_add(KIND * WORD);
    // SAFETY: a buffer that lives, of which one was looked at as far as that.
    let code = unsafe { word.cast::<c_int>().read() };
    agreed(buffer, code)
}

/// What a code means, if the exported functions agree. They do not tell L1 and L1_SMALL apart.
fn agreed(buffer: Buffer, code: c_int) -> Option<BufferType> {
    let kind = BufferType::from_code(u8::try_from(code).ok()?)?;
    // SAFETY: a buffer that lives, as in all of these.
    let is_dram = is_dram().map(|is_dram| unsafe { is_dram(buffer) })?;
    // SAFETY: as above.
    let is_l1 = is_l1().map(|is_l1| unsafe { is_l1(buffer) })?;
    // SAFETY: as above.
    let is_trace = is_trace().map(|is_trace| unsafe { is_trace(buffer) });
    let agrees = match kind {
        BufferType::Dram => is_dram && is_trace != Some(true),
        BufferType::Trace => is_dram && is_trace != Some(false),
        BufferType::L1 | BufferType::L1Small => is_l1,
        BufferType::SystemMemory => !is_dram && !is_l1,
    };
    agrees.then_some(kind)
}

/// The device of a buffer; `None` unless everything is where it should be.
pub(crate) fn device(buffer: Buffer) -> Option<Device> {
    let memory = File::open("/proc/self/mem").ok()?;
    let word = |address: usize| {
        let mut bytes = [0; WORD];
        let aligned = address.is_multiple_of(WORD);
        // What is not there cannot be read, and gives an error.
        aligned.then(|| memory.read_exact_at(&mut bytes, address as u64).ok())??;
        Some(usize::from_ne_bytes(bytes))
    };
    let member = |index: usize| word(buffer.0 as usize + index * WORD);
    let device = member(DEVICE)?;
    let functions = word(device)?;
    let is_device = [&MESH_FUNCTIONS, &DEVICE_FUNCTIONS].into_iter().any(|table| {
        // An object points behind the first two words of the table: an offset and the type.
        table.get().is_some_and(|table| table as usize + 2 * WORD == functions)
    });
    // Of the word of the kind, the lower half; a code is small and not negative.
    let kind = member(KIND)? as u32 as c_int;
    if !is_device || member(SIZE)? as u64 != buffer.size() || agreed(buffer, kind).is_none() {
        notes::unobserved(
            "libtt_metal.so lacks Buffer::device or Buffer::buffer_type, and they are not where versions before 0.79 have them",
        );
        return None;
    }
    // Release: pairs with the Acquire in `kind`.
    if !IS_KNOWN.swap(true, Ordering::AcqRel) {
        notes::note(
            "libtt_metal.so has no Buffer::device, Buffer::buffer_type, Buffer::size and Buffer::unique_id: devices and \
             kinds are read from the buffers, whose layout was checked",
        );
    }
    Some(Device(device as *mut c_void))
}

static MESH_FUNCTIONS: Symbol = Symbol::new(c"_ZTVN2tt8tt_metal11distributed10MeshDeviceE");
static DEVICE_FUNCTIONS: Symbol = Symbol::new(c"_ZTVN2tt8tt_metal6DeviceE");

/// `tt::tt_metal::Statistics` up to 0.69: with a vector, which the caller has to free.
#[repr(C)]
#[derive(Default)]
struct LongStatistics {
    total: u64,
    allocated: u64,
    free: u64,
    largest_free: u64,
    begin: usize,
    end: usize,
    capacity: usize,
    more: [u64; 25],
}

// The address for the result is the first argument, as on x86-64 every function has it that returns something this
// large. There are no wheels for others.
#[cfg(target_arch = "x86_64")]
functions! {
    statistics_into(*mut LongStatistics, Allocator, *const c_int) =
        c"_ZNK2tt8tt_metal13AllocatorImpl14get_statisticsERKNS0_10BufferTypeE";
}

/// What is used and free of a kind of memory, in each bank, as [`Allocator::statistics`].
#[cfg(target_arch = "x86_64")]
pub(crate) fn statistics(allocator: Allocator, kind: BufferType) -> Option<Statistics> {
    let (kind, mut room) = (kind as c_int, LongStatistics::default());
    // SAFETY: an allocator that lives; the result, short or long, fits in the room.
    statistics_into().map(|statistics| unsafe { statistics(&raw mut room, allocator, &raw const kind) })?;
    let LongStatistics { total, allocated, free, largest_free, begin, end, capacity, .. } = room;
    // Versions with the short one have left the rest as it was.
    if begin != 0 && begin <= end && end <= capacity {
        // SAFETY: the memory of a vector that was returned by value, in the versions that come here.
        unsafe { libc::free(begin as *mut c_void) };
    }
    Some(Statistics { total, allocated, free, largest_free })
}
