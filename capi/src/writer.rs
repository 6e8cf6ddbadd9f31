//! The calls by which a host reports.
//!
//! Each is a call of `tt_shm_writer::Record`, whose documentation says more. Those that hosts make most often take one
//! device and plain numbers; the others take any number of devices, and are recorded on all of them or on none.

use std::ffi::c_char;

use tt_shm_writer::{
    Alloc, Allocation, BufferType, Device, Dispatch, Launch, Loaded, MarkerPhase, NameId, OpenError,
    ProgramBinaryStatus, Record, RecordError, Tracker,
};

use crate::code::{Done, Failure, TT_SHM_ERR_HANDLE, TT_SHM_ERR_VALUE, call};
use crate::handle::{self, Writer, tt_shm_tracker};
use crate::raw::{Handle, In, Items, Out, OutItems, OutStruct};
use crate::tap;
use crate::types::{
    TT_SHM_KIND_BUFFER, TT_SHM_KIND_CB, TT_SHM_KIND_KERNEL, TT_SHM_OPEN_BACKTRACE, TT_SHM_OPEN_BESIDE_TAP,
    TT_SHM_OPEN_DISABLED, TT_SHM_OPEN_ENABLED, TT_SHM_OPEN_EXCLUSIVE, TT_SHM_UNKNOWN, buffer_type, no_such,
    tt_shm_buffer, tt_shm_cb, tt_shm_counters, tt_shm_device, tt_shm_device_info, tt_shm_dispatch_info,
    tt_shm_failure, tt_shm_kernel, tt_shm_name, tt_shm_options,
};

/// The version of this interface: the major number in the high 16 bits, which changes when a caller would have to be
/// compiled again, and the minor in the low ones, which grows when something is added.
pub const TT_SHM_ABI_VERSION: u32 = 1 << 16;

/// Devices that a call may name: a segment lists half as many.
const MOST_DEVICES: usize = 256;

/// Runs a call on the tracker of a handle, with or without waiting for others.
macro_rules! on {
    ($handle:expr, |$record:ident| $work:expr) => {
        call(|| match handle::waiting($handle).map(|opened| &opened.writer) {
            Some(Writer::Shared($record)) => $work,
            Some(Writer::Exclusive(exclusive)) => {
                let $record = exclusive.get()?;
                $work
            }
            None => {
                let $record = &handle::not_waiting($handle)?.without_waiting();
                $work
            }
        })
    };
}

/// The same on devices, by their numbers.
macro_rules! on_each {
    ($handle:expr, $devices:expr, $count:expr, |$record:ident, $target:ident| $work:expr) => {
        on!($handle, |$record| with_devices($devices, $count, |$target| $work))
    };
}

/// Calls `work` with the devices. Uses no heap, so that it may be used by crash handlers.
fn with_devices(devices: Items<tt_shm_device>, count: usize, work: impl FnOnce(&[Device]) -> Done) -> Done {
    match devices.get(count)? {
        [device] => work(&[Device::from_raw(*device)]),
        devices if devices.len() <= MOST_DEVICES => {
            let mut list = [Device::from_raw(0); MOST_DEVICES];
            for (place, device) in list.iter_mut().zip(devices) {
                *place = Device::from_raw(*device);
            }
            work(&list[..devices.len()])
        }
        devices => {
            let text = format_args!("{} devices in one call: at most {MOST_DEVICES}", devices.len());
            Err(Failure::new(TT_SHM_ERR_VALUE, None, text))
        }
    }
}

#[inline(always)]
fn done(result: Result<(), RecordError>) -> Done {
    Ok(result?)
}

/// A size to compare with, unless it is unknown.
fn given(bytes: u64) -> Option<u64> {
    Some(bytes).filter(|bytes| *bytes != TT_SHM_UNKNOWN)
}

/// The version of this library's interface, `TT_SHM_ABI_VERSION` of the header that it was built with. A host may compare
/// the high 16 bits with those of its own header.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_abi_version() -> u32 {
    TT_SHM_ABI_VERSION
}

/// The version of this library, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Opens a tracker, which makes a segment of its own if tracking is enabled: monitors add up all trackers of a process.
/// Most hosts want `tt_shm_tracker_for_process`. `options` may be null. If tracking is disabled (see
/// `TT_ALLOC_TRACKING_ENABLED`), the tracker's calls do nothing and succeed.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_tracker_open(options: In<tt_shm_options>, tracker: Out<*mut tt_shm_tracker>) -> i32 {
    call(|| {
        tracker.check()?;
        let options = options.optional()?;
        let is_beside_tap = options.is_some_and(|options| options.flags & TT_SHM_OPEN_BESIDE_TAP != 0);
        let is_exclusive = options.is_some_and(|options| options.flags & TT_SHM_OPEN_EXCLUSIVE != 0);
        let opened = builder(options.as_ref())?.open()?;
        let is_enabled = opened.is_enabled();
        let open = if is_exclusive { handle::open_exclusive } else { handle::open };
        let number = open(opened, is_beside_tap)?;
        if is_enabled && !is_beside_tap {
            tap::stand_back();
        }
        tracker.set(handle::pointer(number))
    })
}

/// The settings of a tracker.
fn builder(options: Option<&tt_shm_options>) -> Done<tt_shm_writer::Builder> {
    let mut builder = Tracker::builder();
    let Some(options) = options else { return Ok(builder) };
    let known = TT_SHM_OPEN_ENABLED
        | TT_SHM_OPEN_DISABLED
        | TT_SHM_OPEN_BACKTRACE
        | TT_SHM_OPEN_BESIDE_TAP
        | TT_SHM_OPEN_EXCLUSIVE;
    match options.flags & (TT_SHM_OPEN_ENABLED | TT_SHM_OPEN_DISABLED) {
        _ if options.flags & !known != 0 => {
            return Err(no_such("option with the bits", options.flags.into()));
        }
        0 => {}
        TT_SHM_OPEN_ENABLED => builder = builder.enabled(true),
        TT_SHM_OPEN_DISABLED => builder = builder.enabled(false),
        _ => return Err(Failure::argument(TT_SHM_ERR_VALUE, "both enabled and disabled")),
    }
    if let Some(namespace) = options.name_space.get("the namespace")? {
        builder = builder.namespace(namespace);
    }
    if let Some(name) = options.process_name.get("the name of the process")? {
        builder = builder.process_name(name);
    }
    if options.flags & TT_SHM_OPEN_BACKTRACE != 0 {
        builder = builder.backtrace(true);
    }
    for (value, set) in [
        (options.ring_slots, tt_shm_writer::Builder::ring_slots as fn(_, _) -> _),
        (options.live_capacity, tt_shm_writer::Builder::live_capacity),
        (options.name_bytes, tt_shm_writer::Builder::name_bytes),
    ] {
        if value != 0 {
            builder = set(builder, value);
        }
    }
    Ok(builder)
}

/// The one tracker of this process, opened by the environment at the first call; later calls give the same handle. For
/// all libraries and threads of the process. If it was closed, it stays closed.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_tracker_for_process(tracker: Out<*mut tt_shm_tracker>) -> i32 {
    call(|| {
        tracker.check()?;
        tracker.set(handle::pointer(of_process()?))
    })
}

/// The handle of the process's tracker.
pub(crate) fn of_process() -> Done<u64> {
    use once_cell::race::OnceBox;
    use std::convert::Infallible;

    static NUMBER: OnceBox<u64> = OnceBox::new();
    let known = |number: u64| {
        let is_open = handle::trackers().any(|opened| opened.has_number(number));
        let closed = || Failure::argument(TT_SHM_ERR_HANDLE, "this process's tracker was closed");
        is_open.then_some(number).ok_or_else(closed)
    };
    if let Some(number) = NUMBER.get() {
        return known(*number);
    }
    let tracker = Tracker::for_process().map_err(|error: OpenError| Failure::from(error))?;
    let is_enabled = tracker.is_enabled();
    let number = handle::open(tracker, false)?;
    let first = NUMBER.get_or_try_init(|| Ok::<_, Infallible>(Box::new(number)));
    let Ok(first) = first;
    if *first != number {
        // Another thread was faster; both are handles of one tracker, which stays open.
        handle::forget(number);
    } else if is_enabled {
        tap::stand_back();
    }
    Ok(*first)
}

/// Ends the tracker's reports: the segment is closed and removed. From then on the handle is refused, also while other
/// threads are in calls with it. An exclusive one is closed by the thread that it belongs to.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_tracker_close(tracker: Handle<tt_shm_tracker>) -> i32 {
    call(|| handle::tracker(tracker)?.0.close())
}

/// Another handle of the tracker, whose calls never wait for other threads: they fail with `TT_SHM_ERR_BUSY` instead. For
/// crash handlers. It is closed with the tracker.
///
/// In a signal handler only markers, failures, states and gauges of devices, resets of peaks and counters are safe, with
/// devices and names from before: they use no heap.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_tracker_without_waiting(
    tracker: Handle<tt_shm_tracker>,
    without_waiting: Out<*mut tt_shm_tracker>,
) -> i32 {
    call(|| {
        if handle::tracker(tracker)?.0.shared().is_none() {
            let text = "an exclusive tracker has nothing to wait for";
            return Err(Failure::argument(TT_SHM_ERR_VALUE, text));
        }
        without_waiting.set(handle::pointer(handle::without_waiting(tracker.number())))
    })
}

/// Whether the tracker's calls record anything; 0 also for what is no open tracker.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_tracker_is_enabled(tracker: Handle<tt_shm_tracker>) -> i32 {
    handle::tracker(tracker).map_or(0, |(opened, _)| i32::from(opened.is_enabled))
}

/// The file that this process writes, as a text with a zero at its end, cut to `capacity` bytes. `needed` (may be null) is
/// what the whole of it needs; 0 if tracking is disabled.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_tracker_path(
    tracker: Handle<tt_shm_tracker>,
    text: OutItems<c_char>,
    capacity: usize,
    needed: Out<usize>,
) -> i32 {
    use std::os::unix::ffi::OsStrExt;
    on!(tracker, |record| {
        let path = record.segment_path();
        let path = path.as_ref().map(|path| path.as_os_str().as_bytes());
        text.text(capacity, path.unwrap_or_default())?;
        needed.set_if_wanted(path.map_or(0, |path| path.len() + 1))
    })
}

/// Registers a device. One that is known already, by chip and allocator, keeps its number, and new facts are added.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_register_device(
    tracker: Handle<tt_shm_tracker>,
    info: In<tt_shm_device_info>,
    device: Out<tt_shm_device>,
) -> i32 {
    on!(tracker, |record| {
        device.check()?;
        let registered = record.register_device(&info.get()?.info()?)?;
        device.set(registered.raw())
    })
}

/// Gives a name, of `length` bytes, a number for use in later calls. Longer ones than 1024 bytes are cut; an empty one has
/// number 0.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_intern(
    tracker: Handle<tt_shm_tracker>,
    name: Items<c_char>,
    length: usize,
    number: Out<tt_shm_name>,
) -> i32 {
    on!(tracker, |record| {
        number.check()?;
        let name: &[u8] = bytemuck::cast_slice(name.get(length)?);
        number.set(record.intern(name)?.raw())
    })
}

/// Records that a buffer of this many requested bytes was allocated on a device. What it occupies is not known then: a host
/// that knows calls `tt_shm_alloc_on`.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_alloc(
    tracker: Handle<tt_shm_tracker>,
    device: tt_shm_device,
    buffer: u32,
    id: u64,
    bytes: u64,
) -> i32 {
    on!(tracker, |record| {
        done(record.alloc(Device::from_raw(device), Alloc::new(buffer_type(buffer)?, id, bytes)))
    })
}

/// Records that a buffer was allocated on devices, with everything that the host knows of it.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_alloc_on(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    buffer: In<tt_shm_buffer>,
) -> i32 {
    // As almost always: the rest is out of the way.
    if let (Some(opened), Some(device)) = (handle::waiting(tracker), devices.one(device_count))
        && let Writer::Shared(shared) = &opened.writer
        && let Some(buffer) = buffer.in_place()
        && let Some(buffer_type) = u8::try_from(buffer.type_).ok().and_then(BufferType::from_code)
    {
        // Made inside: what the call captures would be copied once more.
        return call(move || done(shared.alloc(Device::from_raw(device), buffer.alloc(buffer_type))));
    }
    alloc_on(tracker, devices, device_count, buffer)
}

#[cold]
#[inline(never)]
fn alloc_on(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    buffer: In<tt_shm_buffer>,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| {
        let buffer = buffer.get()?;
        done(record.alloc(target, buffer.alloc(buffer_type(buffer.type_)?)))
    })
}

/// Records that buffers were allocated, with the lock taken once. The first that is refused ends it: `recorded` (may be
/// null) says how many were recorded before, and those after it are not tried.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_alloc_many(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    buffers: Items<tt_shm_buffer>,
    buffer_count: usize,
    recorded: Out<usize>,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| {
        recorded.set_if_wanted(0)?;
        let allocs = buffers.copied(buffer_count)?;
        let allocs = allocs
            .iter()
            .map(|buffer| Ok(buffer.alloc(buffer_type(buffer.type_)?)))
            .collect::<Done<Vec<_>>>()?;
        let result = record.alloc_many(target, &allocs);
        recorded.set_if_wanted(result.map_or_else(|error| error.done, |()| allocs.len()))?;
        Ok(result?)
    })
}

/// Records that a buffer was freed on a device.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_free(tracker: Handle<tt_shm_tracker>, device: tt_shm_device, id: u64) -> i32 {
    on!(tracker, |record| done(record.free(Device::from_raw(device), id)))
}

/// Records that a buffer was freed on devices.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_free_on(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    id: u64,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| done(record.free(target, id)))
}

/// Records that a buffer was freed, and checks the size that was requested for it.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_free_sized(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    id: u64,
    bytes: u64,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| done(record.free_sized(target, id, bytes)))
}

/// Records that a buffer was freed because its device was closed, not by the program.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_free_dropped(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    id: u64,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| done(record.free_dropped(target, id)))
}

/// Records that buffers were freed, as `tt_shm_alloc_many` does that they were allocated.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_free_many(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    ids: Items<u64>,
    id_count: usize,
    recorded: Out<usize>,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| {
        recorded.set_if_wanted(0)?;
        let result = record.free_many(target, ids.get(id_count)?);
        recorded.set_if_wanted(result.map_or_else(|error| error.done, |()| id_count))?;
        Ok(result?)
    })
}

/// Something live, by its kind and ids.
fn allocation(kind: u32, program: u64, id: u64) -> Done<Allocation> {
    match kind {
        TT_SHM_KIND_BUFFER => Ok(Allocation::Buffer(id)),
        TT_SHM_KIND_CB => Ok(Allocation::CircularBuffer { program, id }),
        TT_SHM_KIND_KERNEL => Ok(Allocation::Kernel(id)),
        other => Err(no_such("kind", other.into())),
    }
}

/// Gives something live (`TT_SHM_KIND_...`) a name after it was reported, and a site unless that is 0. `program` is that of
/// a circular buffer.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_name_live(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    kind: u32,
    program: u64,
    id: u64,
    name: tt_shm_name,
    site: tt_shm_name,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| {
        let what = allocation(kind, program, id)?;
        done(record.name(target, what, NameId::from_raw(name), NameId::from_raw(site)))
    })
}

/// The same for something that another thread may have freed meanwhile: then nothing is done.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_name_if_live(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    kind: u32,
    program: u64,
    id: u64,
    name: tt_shm_name,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| {
        done(record.name_if_live(target, allocation(kind, program, id)?, NameId::from_raw(name)))
    })
}

/// Records that a circular buffer was allocated. It is resident from the next dispatch of its program on.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_cb_alloc(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    cb: In<tt_shm_cb>,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| {
        done(record.cb_alloc(target, cb.get()?.circular_buffer()))
    })
}

/// Records that a circular buffer was freed. `bytes` is checked unless it is `TT_SHM_UNKNOWN`.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_cb_free(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    program: u64,
    id: u64,
    bytes: u64,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| {
        done(record.cb_free(target, program, id, given(bytes)))
    })
}

/// Records that a kernel was loaded. If it was loaded already, this is a cached dispatch of a program, and `cached` (may be
/// null) becomes 1, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_kernel_load(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    kernel: In<tt_shm_kernel>,
    cached: Out<u32>,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| {
        let loaded = record.kernel_load(target, kernel.get()?.kernel()?)?;
        cached.set_if_wanted(u32::from(loaded == Loaded::Cached))
    })
}

/// Records that a kernel was unloaded, whichever programs ran it. `bytes`, on all cores, is checked unless it is
/// `TT_SHM_UNKNOWN`.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_kernel_unload(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    id: u64,
    bytes: u64,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| {
        done(record.kernel_unload(target, id, given(bytes)))
    })
}

/// Records that a program was launched: those of its kernels that were not sent before are loaded, and it is dispatched.
/// `binary_status` is `TT_SHM_BINARY_...`.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_launch(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    dispatch: In<tt_shm_dispatch_info>,
    kernels: Items<tt_shm_kernel>,
    kernel_count: usize,
    binary_status: u32,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| {
        let status = u8::try_from(binary_status).ok().and_then(ProgramBinaryStatus::from_code);
        let status = status.ok_or_else(|| no_such("status of a binary", binary_status.into()))?;
        let kernels =
            kernels.copied(kernel_count)?.iter().map(tt_shm_kernel::kernel).collect::<Done<Vec<_>>>()?;
        done(record.launch(target, Launch::of(dispatch.get()?.dispatch(), &kernels, status)))
    })
}

/// Records that a program whose binary is on the device was dispatched again, in lane 0 and by command queue 0.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_dispatch(
    tracker: Handle<tt_shm_tracker>,
    device: tt_shm_device,
    program: u64,
) -> i32 {
    on!(tracker, |record| done(record.dispatch(Device::from_raw(device), Dispatch::new(program))))
}

/// The same on devices, with everything that the host knows of it.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_dispatch_on(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    dispatch: In<tt_shm_dispatch_info>,
) -> i32 {
    if let (Some(opened), Some(device)) = (handle::waiting(tracker), devices.one(device_count))
        && let Some(dispatch) = dispatch.in_place()
    {
        let (device, dispatch) = (Device::from_raw(device), dispatch.dispatch());
        return call(|| match &opened.writer {
            Writer::Shared(tracker) => done(tracker.dispatch(device, dispatch)),
            Writer::Exclusive(exclusive) => done(exclusive.get()?.dispatch(device, dispatch)),
        });
    }
    dispatch_on(tracker, devices, device_count, dispatch)
}

#[cold]
#[inline(never)]
fn dispatch_on(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    dispatch: In<tt_shm_dispatch_info>,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| {
        done(record.dispatch(target, dispatch.get()?.dispatch()))
    })
}

/// Records that a program was destroyed: its circular buffers are freed and the kernels that it loaded are unloaded.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_program_end(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    program: u64,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| done(record.program_end(target, program)))
}

/// Records that an allocation failed.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_alloc_failed(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    failure: In<tt_shm_failure>,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| {
        done(record.alloc_failed(target, failure.get()?.failed()?))
    })
}

/// Records the beginning or end of a step, or a moment (`TT_SHM_MARKER_...`).
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_marker(
    tracker: Handle<tt_shm_tracker>,
    phase: u32,
    id: u64,
    name: tt_shm_name,
) -> i32 {
    on!(tracker, |record| {
        let phase_of = u8::try_from(phase).ok().and_then(MarkerPhase::from_code);
        let phase = phase_of.ok_or_else(|| no_such("phase of a marker", phase.into()))?;
        done(record.marker(phase, id, NameId::from_raw(name)))
    })
}

/// Resets the peaks to what is used now.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_reset_peaks(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| done(record.reset_peaks(target)))
}

/// Records that the devices were opened.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_device_open(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| done(record.device_open(target)))
}

/// Records that the devices were closed. What was not freed stays reported as live.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_device_close(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| done(record.device_close(target)))
}

/// Records how full the kernel ring buffer is.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_kernel_ring(
    tracker: Handle<tt_shm_tracker>,
    devices: Items<tt_shm_device>,
    device_count: usize,
    total_bytes: u64,
    used_bytes: u64,
    programs: u64,
) -> i32 {
    on_each!(tracker, devices, device_count, |record, target| {
        done(record.kernel_ring(target, total_bytes, used_bytes, programs))
    })
}

/// Records that the sums were compared with those of the device's allocator `made` times, of which `different` found a
/// difference.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_self_checks(tracker: Handle<tt_shm_tracker>, made: u64, different: u64) -> i32 {
    on!(tracker, |record| done(record.self_checks(made, different)))
}

/// Records that this process holds memory that it cannot report (`partial` not 0), so that none of its figures is exact, or
/// that it does no longer.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_partial(tracker: Handle<tt_shm_tracker>, partial: u32) -> i32 {
    on!(tracker, |record| done(if partial != 0 { record.partial() } else { record.complete() }))
}

/// This process's own counters of a device, exact as of the last call. `TT_SHM_ERR_UNKNOWN_DEVICE` if tracking is disabled
/// or the device is not registered.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_own_counters(
    tracker: Handle<tt_shm_tracker>,
    device: tt_shm_device,
    counters: OutStruct<tt_shm_counters>,
) -> i32 {
    on!(tracker, |record| {
        let own = record.counters(Device::from_raw(device));
        let own = own.ok_or(RecordError::UnknownDevice { device })?;
        counters.set(&tt_shm_counters::from(&own))
    })
}
