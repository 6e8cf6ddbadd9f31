//! Reading what one process reports.

use std::ffi::{OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use shm_layout::{Event, Row, RowKind};
use tt_shm_os::{Anchor, Calibration, ClockKind, Namespace};
use tt_shm_reader::{KernelSharing, KernelType, Program, Segment, kernel_sharing, segment_paths};

use crate::code::{Done, Failure, TT_SHM_ERR_NOT_FOUND, TT_SHM_ERR_NULL, call};
use crate::handle;
use crate::objects::{self, Object, tt_shm_segment};
use crate::raw::{
    Handle, In, Items, Out, OutItems, OutStruct, OutStructs, Text, duplicate, plain, versioned,
};
use crate::types::{
    fixed, no_such, tt_shm_allocation, tt_shm_counters, tt_shm_device_info, tt_shm_event, tt_shm_name,
};

/// A path, with a zero at its end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_path {
    /// The text.
    pub text: [c_char; 256],
}

/// Kinds of writers: the process that uses the device.
pub const TT_SHM_SOURCE_RING: u32 = 1;
/// A library in that process that listens to its allocator.
pub const TT_SHM_SOURCE_TAP: u32 = 2;
/// Another process, on behalf of that process.
pub const TT_SHM_SOURCE_BRIDGE: u32 = 3;

/// Bits of `tt_shm_process.flags`: the process closed its segment.
pub const TT_SHM_PROCESS_CLOSED: u32 = 1 << 0;
/// It had no room for all rows or names: totals are exact, lists incomplete.
pub const TT_SHM_PROCESS_DEGRADED: u32 = 1 << 1;
/// It holds memory that it cannot report.
pub const TT_SHM_PROCESS_PARTIAL: u32 = 1 << 2;
/// The segment can no longer be read.
pub const TT_SHM_PROCESS_LOST: u32 = 1 << 3;
/// Its ticks can be converted to times here.
pub const TT_SHM_PROCESS_TIME_KNOWN: u32 = 1 << 4;
/// Its CLOCK_MONOTONIC is that of this process: it is not in another time namespace.
pub const TT_SHM_PROCESS_SHARES_CLOCK: u32 = 1 << 5;

/// A process, as its segment describes it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_process {
    /// `sizeof(tt_shm_process)`.
    pub size: u32,
    /// `TT_SHM_SOURCE_...`.
    pub source: u32,
    /// Identity of the segment, which no other one has.
    pub identity: u64,
    /// Process id as the process sees it. For display: pids are reused.
    pub pid: u32,
    /// Process id as seen from here, if it is alive and the system confirms it; otherwise 0.
    pub pid_here: u32,
    /// Owner of the file.
    pub uid: u32,
    /// `TT_SHM_PROCESS_...` bits.
    pub flags: u32,
    /// Pid of the process that it is written on behalf of; 0 if that is the writer.
    pub on_behalf_of: u64,
    /// When the process was started, in clock ticks since boot; 0 if unknown.
    pub start_time: u64,
    /// When the segment was created, CLOCK_MONOTONIC of the process.
    pub created_ns: u64,
    /// When it was closed, in ticks; 0 if it was not, or if that is not known.
    pub closed_at: u64,
    /// Slots of its ring.
    pub ring_slots: u64,
    /// Position of its last event.
    pub head: u64,
    /// Number of its devices.
    pub devices: u64,
    /// Live allocations that are not listed because there was no room.
    pub unlisted: u64,
    /// How often it compared its sums with those of the device's allocator.
    pub self_checks: u64,
    /// How often such a comparison found a difference.
    pub self_checks_different: u64,
    /// Number of misuses: unmatched free, double alloc, size mismatch, unlisted, unknown device, device list full, names
    /// full, size out of range, unknown program, device conflict, no room, lane out of range.
    pub anomalies: [u64; 16],
    /// Its name. Not trusted: escape control characters before displaying it.
    pub name: [c_char; 72],
    /// The name of the file.
    pub file_name: [c_char; 256],
    /// Inode of its PID namespace; 0 if unknown.
    pub pid_namespace: u64,
}

/// How a list of live allocations was read.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_listing {
    /// `sizeof(tt_shm_listing)`.
    pub size: u32,
    /// 1 if the list is exactly that of `position`; 0 if the process was too fast to be read.
    pub exact: u32,
    /// Position of the last event included.
    pub position: u64,
    /// Events missed in the last attempt.
    pub missed: u64,
    /// Live allocations that are not listed because the process had no room.
    pub unlisted: u64,
}

/// A program on one device.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_program {
    /// `sizeof(tt_shm_program)`.
    pub size: u32,
    /// Index of the device.
    pub device: u32,
    /// The process's id for it.
    pub program: u64,
    /// Kernels loaded.
    pub kernel_count: u64,
    /// Their bytes.
    pub kernel_bytes: u64,
    /// Circular buffers.
    pub cb_count: u64,
    /// Their bytes.
    pub cb_bytes: u64,
    /// Dispatches.
    pub dispatches: u64,
    /// Dispatches that found the binary on the device.
    pub cache_hits: u64,
    /// Dispatches that did not.
    pub cache_misses: u64,
    /// Ticks of the last dispatch; 0 if there was none.
    pub last_dispatch: u64,
    /// A bit `1 << TT_SHM_KERNEL_...` for each type of its kernels.
    pub kernel_types: u32,
    /// 1 if tracking began after some of it was loaded.
    pub late: u32,
    /// Its name, or that of one of its kernels; cut if it is longer. Not trusted.
    pub name: [c_char; 128],
}

/// Kernel bytes on a device by whether the binary is also loaded elsewhere. `loaded_bytes` is the sum of the others.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_kernel_sharing {
    /// `sizeof(tt_shm_kernel_sharing)`.
    pub size: u32,
    /// Index of the device.
    pub device: u32,
    /// Bytes of all loaded kernels.
    pub loaded_bytes: u64,
    /// Bytes if every binary were loaded once, on the most cores that one of its kernels has.
    pub unique_bytes: u64,
    /// Bytes of further copies of those binaries.
    pub shared_bytes: u64,
    /// Bytes of kernels without a hash: whether they are copies is not known.
    pub unhashed_bytes: u64,
}

/// One moment, on three clocks.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct tt_shm_anchor {
    /// The segment's clock.
    pub ticks: u64,
    /// CLOCK_MONOTONIC, in nanoseconds.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME, in nanoseconds.
    pub realtime_ns: u64,
    /// How long the machine had been suspended by then.
    pub suspended_ns: u64,
}

/// The conversion of a segment's ticks to times: the line through two moments.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_calibration {
    /// `sizeof(tt_shm_calibration)`.
    pub size: u32,
    /// The clock: 1 TSC, 2 virtual counter, 3 CLOCK_MONOTONIC.
    pub clock: u32,
    /// When the segment was created.
    pub first: tt_shm_anchor,
    /// When the conversion was made.
    pub second: tt_shm_anchor,
}

versioned!(tt_shm_process, tt_shm_listing, tt_shm_program, tt_shm_kernel_sharing, tt_shm_calibration);
plain!(tt_shm_path);

const _: () = {
    // The sizes of the first version, which callers may have been compiled with.
    assert!(size_of::<tt_shm_process>() == 576);
    assert!(size_of::<tt_shm_listing>() == 32);
    assert!(size_of::<tt_shm_program>() == 216);
    assert!(size_of::<tt_shm_kernel_sharing>() == 40);
    assert!(size_of::<tt_shm_calibration>() == 72);
};

/// A namespace by its name, or by the environment if that is null.
pub(crate) fn namespace(name: Text) -> Done<Namespace> {
    Ok(match name.get("the namespace")? {
        Some(name) => Namespace::new(name)?,
        None => Namespace::from_env()?,
    })
}

/// The files in /dev/shm that are named as segments of a namespace (null: that of the environment), sorted. Nothing is
/// opened: by the time it is, a file may be gone or unreadable.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_segment_list(
    name_space: Text,
    paths: OutItems<tt_shm_path>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        let found = segment_paths(&namespace(name_space)?)?;
        let path = |path: &std::path::PathBuf| tt_shm_path { text: fixed(path.as_os_str().as_bytes()) };
        paths.fill(capacity, found.iter().map(path))?;
        total.set_if_wanted(found.len())
    })
}

/// Opens a segment. A file that is not one, or not an honest one, is refused.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_segment_open(path: Text, segment: Out<*mut tt_shm_segment>) -> i32 {
    call(|| {
        segment.check()?;
        let path = path.bytes().ok_or_else(|| Failure::argument(TT_SHM_ERR_NULL, "the path is null"))?;
        opened(Segment::open(Path::new(OsStr::from_bytes(path)))?, segment)
    })
}

/// Opens a segment by a descriptor, with the same checks. The caller keeps the descriptor.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_segment_open_fd(descriptor: i32, segment: Out<*mut tt_shm_segment>) -> i32 {
    call(|| {
        segment.check()?;
        opened(Segment::open_fd(duplicate(descriptor)?)?, segment)
    })
}

fn opened(segment: Segment, handle: Out<*mut tt_shm_segment>) -> Done {
    let number = objects::open(Object::Segment(Arc::new(segment)))?;
    handle.set(handle::pointer(number))
}

/// Closes a segment.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_segment_close(segment: Handle<tt_shm_segment>) -> i32 {
    call(|| objects::close(segment))
}

/// The process, as its segment describes it.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_segment_process(
    segment: Handle<tt_shm_segment>,
    process: OutStruct<tt_shm_process>,
) -> i32 {
    call(|| process.set(&describe(&*objects::get(segment)?)))
}

fn describe(segment: &Segment) -> tt_shm_process {
    let header = segment.header();
    let flag = |bit: u32, is_set: bool| if is_set { bit } else { 0 };
    let mut anomalies = [0; 16];
    for (place, count) in anomalies.iter_mut().zip(segment.anomalies()) {
        *place = count;
    }
    let [self_checks, self_checks_different] = segment.self_checks();
    tt_shm_process {
        size: size_of::<tt_shm_process>() as u32,
        source: header.source as u32,
        identity: segment.identity(),
        pid: segment.pid(),
        pid_here: segment.pid_here().unwrap_or(0),
        uid: segment.uid(),
        flags: flag(TT_SHM_PROCESS_CLOSED, segment.is_closed())
            | flag(TT_SHM_PROCESS_DEGRADED, segment.is_degraded())
            | flag(TT_SHM_PROCESS_PARTIAL, segment.is_partial())
            | flag(TT_SHM_PROCESS_LOST, segment.is_lost())
            | flag(TT_SHM_PROCESS_TIME_KNOWN, segment.is_time_known())
            | flag(TT_SHM_PROCESS_SHARES_CLOCK, segment.shares_clock()),
        on_behalf_of: header.on_behalf_of,
        start_time: header.start_time,
        created_ns: header.anchor_monotonic_ns,
        closed_at: segment.closed_at().unwrap_or(0),
        ring_slots: header.ring.capacity,
        head: segment.head(),
        devices: segment.words().device_count() as u64,
        unlisted: segment.unlisted(),
        self_checks,
        self_checks_different,
        anomalies,
        name: fixed(&header.process_name),
        file_name: fixed(segment.file_name().as_bytes()),
        pid_namespace: header.pid_namespace,
    }
}

/// Whether the process is alive, running or stopped: `alive` becomes 1 or 0. The kernel tells, not a pid.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_segment_is_alive(segment: Handle<tt_shm_segment>, alive: Out<u32>) -> i32 {
    call(|| alive.set(u32::from(objects::get(segment)?.is_alive()?)))
}

/// The devices that the process registered, by the index that events and allocations carry.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_segment_devices(
    segment: Handle<tt_shm_segment>,
    devices: OutStructs<tt_shm_device_info>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        let found = objects::get(segment)?.devices();
        devices.fill(capacity, found.iter().map(tt_shm_device_info::from))?;
        total.set_if_wanted(found.len())
    })
}

/// The exact counters of all devices at one position, by their index. `position` may be null.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_segment_counters(
    segment: Handle<tt_shm_segment>,
    counters: OutStructs<tt_shm_counters>,
    capacity: usize,
    total: Out<usize>,
    position: Out<u64>,
) -> i32 {
    call(|| {
        let snapshot = objects::get(segment)?.counters()?;
        counters.fill(capacity, snapshot.counters.iter().map(tt_shm_counters::from))?;
        position.set_if_wanted(snapshot.position)?;
        total.set_if_wanted(snapshot.counters.len())
    })
}

/// Everything that is live in the process, oldest first. `listing` (may be null) says how exact that is. What is live may
/// change between two calls: where `total` is more than there was room for, call again with more.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_segment_allocations(
    segment: Handle<tt_shm_segment>,
    allocations: OutItems<tt_shm_allocation>,
    capacity: usize,
    total: Out<usize>,
    listing: OutStruct<tt_shm_listing>,
) -> i32 {
    call(|| {
        let mut rows = Vec::new();
        let listed = objects::get(segment)?.rows_into(&mut rows);
        rows.retain(|row| row.kind() != Some(RowKind::Program));
        allocations.fill(capacity, rows.iter().copied().map(|row: Row| row.into()))?;
        total.set_if_wanted(rows.len())?;
        listing.set_if_wanted(&tt_shm_listing {
            size: size_of::<tt_shm_listing>() as u32,
            exact: u32::from(listed.exact),
            position: listed.position,
            missed: listed.missed,
            unlisted: listed.unlisted,
        })
    })
}

/// The programs that have something loaded, allocated or dispatched: one element for each of its devices.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_segment_programs(
    segment: Handle<tt_shm_segment>,
    programs: OutStructs<tt_shm_program>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        let found: Vec<tt_shm_program> =
            objects::get(segment)?.programs().iter().flat_map(by_device).collect();
        programs.fill(capacity, found.iter().copied())?;
        total.set_if_wanted(found.len())
    })
}

fn by_device(program: &Program) -> impl Iterator<Item = tt_shm_program> {
    let name = fixed(program.name.as_deref().unwrap_or_default().as_bytes());
    let type_bit = |kernel_type: KernelType| match kernel_type {
        KernelType::Application => 1 << 0,
        KernelType::Fabric => 1 << 1,
        KernelType::Dispatch => 1 << 2,
    };
    program.devices.iter().map(move |device| tt_shm_program {
        size: size_of::<tt_shm_program>() as u32,
        device: device.device.into(),
        program: program.id,
        kernel_count: device.kernels.len() as u64,
        kernel_bytes: device.kernel_bytes,
        cb_count: device.cb_count,
        cb_bytes: device.cb_bytes,
        dispatches: device.dispatches,
        cache_hits: device.cache_hits,
        cache_misses: device.cache_misses,
        last_dispatch: device.last_dispatch.unwrap_or(0),
        kernel_types: device
            .kernels
            .iter()
            .filter_map(|kernel| kernel.kernel_type)
            .fold(0, |bits, t| bits | type_bit(t)),
        late: u32::from(device.kernels.iter().any(|kernel| kernel.late)),
        name,
    })
}

/// How many bytes of loaded kernels are copies of a binary that is also loaded elsewhere: one element for each device that has
/// kernels.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_segment_kernel_sharing(
    segment: Handle<tt_shm_segment>,
    devices: OutStructs<tt_shm_kernel_sharing>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        let found = kernel_sharing(&objects::get(segment)?.live_list().rows);
        let sharing = |found: &KernelSharing| tt_shm_kernel_sharing {
            size: size_of::<tt_shm_kernel_sharing>() as u32,
            device: found.device.into(),
            loaded_bytes: found.loaded,
            unique_bytes: found.unique,
            shared_bytes: found.shared,
            unhashed_bytes: found.unhashed,
        };
        devices.fill(capacity, found.iter().map(sharing))?;
        total.set_if_wanted(found.len())
    })
}

/// The position of the process's last event. Reading from there is reading what happens from now on.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_segment_head(segment: Handle<tt_shm_segment>, position: Out<u64>) -> i32 {
    call(|| position.set(objects::get(segment)?.head()))
}

/// Copies the events after `position` (0: from the oldest that is kept). `read` is how many there were, `missed` (may be
/// null) how many were overwritten before the first of them, `next` where to read from next. Never waits.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_segment_read_from(
    segment: Handle<tt_shm_segment>,
    position: u64,
    events: OutItems<tt_shm_event>,
    capacity: usize,
    read: Out<usize>,
    missed: Out<u64>,
    next: Out<u64>,
) -> i32 {
    call(|| {
        let segment = objects::get(segment)?;
        read.check()?;
        next.check()?;
        // No more than there may be: what is not filled is left as it is.
        let there = segment.head().saturating_sub(position).saturating_add(2);
        let room = events.zeroed(capacity.min(usize::try_from(there).unwrap_or(usize::MAX)))?;
        let result = segment.read_from(position, bytemuck::cast_slice_mut::<tt_shm_event, Event>(room));
        missed.set_if_wanted(result.missed)?;
        next.set(result.next)?;
        read.set(result.read)
    })
}

/// The name with this number, as bytes with a zero after them, cut to `capacity`. `needed` (may be null) is what the whole of
/// it needs. `TT_SHM_ERR_NOT_FOUND` if there is none. Not trusted: escape control characters before displaying it.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_segment_name(
    segment: Handle<tt_shm_segment>,
    number: tt_shm_name,
    text: OutItems<c_char>,
    capacity: usize,
    needed: Out<usize>,
) -> i32 {
    call(|| {
        let none = || Failure::new(TT_SHM_ERR_NOT_FOUND, None, format_args!("there is no name {number}"));
        let name = objects::get(segment)?.name_bytes_of(number).ok_or_else(none)?;
        text.text(capacity, &name)?;
        needed.set_if_wanted(name.len() + 1)
    })
}

/// The conversion of the segment's ticks to times, of this moment: the later it is made, the more precise it is.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_segment_calibration(
    segment: Handle<tt_shm_segment>,
    calibration: OutStruct<tt_shm_calibration>,
) -> i32 {
    call(|| {
        let Calibration { kind, first, second, .. } = objects::get(segment)?.calibration();
        let anchor = |anchor: Anchor| {
            let Anchor { ticks, monotonic_ns, realtime_ns, suspended_ns } = anchor;
            tt_shm_anchor { ticks, monotonic_ns, realtime_ns, suspended_ns }
        };
        calibration.set(&tt_shm_calibration {
            size: size_of::<tt_shm_calibration>() as u32,
            clock: kind.code(),
            first: anchor(first),
            second: anchor(second),
        })
    })
}

impl tt_shm_calibration {
    fn line(&self) -> Done<Calibration> {
        let kind = ClockKind::from_code(self.clock).ok_or_else(|| no_such("clock", self.clock.into()))?;
        let anchor = |anchor: tt_shm_anchor| {
            let tt_shm_anchor { ticks, monotonic_ns, realtime_ns, suspended_ns } = anchor;
            Anchor { ticks, monotonic_ns, realtime_ns, suspended_ns }
        };
        Ok(Calibration::new(kind, anchor(self.first), anchor(self.second)))
    }
}

/// Converts ticks to CLOCK_MONOTONIC nanoseconds.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_to_monotonic_ns(
    calibration: In<tt_shm_calibration>,
    ticks: Items<u64>,
    times: OutItems<u64>,
    count: usize,
) -> i32 {
    call(|| {
        let line = calibration.get()?.line()?;
        // Copied first: both may be one array.
        let ticks = ticks.get(count)?.to_vec();
        times.fill(count, ticks.into_iter().map(|ticks| line.to_monotonic_ns(ticks)))
    })
}

/// Converts ticks to nanoseconds since 1970; `TT_SHM_UNKNOWN` for what cannot be converted, because the machine was suspended
/// meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_to_realtime_ns(
    calibration: In<tt_shm_calibration>,
    ticks: Items<u64>,
    times: OutItems<u64>,
    count: usize,
) -> i32 {
    call(|| {
        let line = calibration.get()?.line()?;
        let ticks = ticks.get(count)?.to_vec();
        let realtime = |ticks| line.to_realtime_ns(ticks).unwrap_or(crate::types::TT_SHM_UNKNOWN);
        times.fill(count, ticks.into_iter().map(realtime))
    })
}
