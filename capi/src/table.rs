//! Reading what an aggregator publishes of all processes.

use std::ffi::c_char;
use std::sync::Arc;

use tt_shm_reader::{ClassStats, DeviceStats, Peak, ProcessStats, Table, TableSnapshot, UsageStats};

use crate::code::{Done, Failure, TT_SHM_ERR_NOT_FOUND, call};
use crate::handle;
use crate::objects::{self, Object, tt_shm_snapshot, tt_shm_table};
use crate::raw::{Handle, Out, OutStruct, OutStructs, Text, duplicate, versioned};
use crate::segment::namespace;
use crate::types::{TT_SHM_CLASSES, fixed, tt_shm_counters, tt_shm_device_info};

/// How old a table is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_freshness {
    /// `sizeof(tt_shm_freshness)`.
    pub size: u32,
    /// 1 if the aggregator counts as running.
    pub fresh: u32,
    /// 1 if the aggregator has closed the table.
    pub closed: u32,
    /// 1 if the path names another table by now: open it again.
    pub replaced: u32,
    /// The last heartbeat of the aggregator, CLOCK_MONOTONIC.
    pub heartbeat_ns: u64,
    /// How long ago that was; `TT_SHM_UNKNOWN` if it is from another boot.
    pub age_ns: u64,
    /// The longest that the aggregator sleeps at present.
    pub interval_ns: u64,
}

/// What a snapshot is of.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_snapshot_info {
    /// `sizeof(tt_shm_snapshot_info)`.
    pub size: u32,
    /// 1 if all rows are of one generation.
    pub consistent: u32,
    /// The last generation included.
    pub generation: u64,
    /// Everything that processes had reported by this time is included, CLOCK_MONOTONIC.
    pub as_of_ns: u64,
    /// Devices.
    pub devices: u64,
    /// Processes.
    pub processes: u64,
    /// Usages.
    pub usages: u64,
    /// Events folded.
    pub events: u64,
    /// Events missed because they were overwritten.
    pub missed: u64,
    /// Files refused at this moment.
    pub refused: u64,
    /// Processes that are alive, or may be, and cannot be read.
    pub unseen: u64,
    /// The start of the window that peaks refer to, CLOCK_MONOTONIC.
    pub window_since_ns: u64,
}

/// A peak. It is exact if `low` = `high`, otherwise it lies between them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct tt_shm_peak {
    /// The largest value that is certain.
    pub low: u64,
    /// The largest value that is possible; `TT_SHM_UNKNOWN` if it has no bound.
    pub high: u64,
    /// When `low` was first reached, CLOCK_MONOTONIC; 0 if not known.
    pub time_ns: u64,
    /// Number of buffers at that time.
    pub count: u64,
}

/// One class on a device, all processes together.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct tt_shm_class_stats {
    /// Bytes occupied now.
    pub live_bytes: u64,
    /// Allocations live now.
    pub live_count: u64,
    /// Bytes ever allocated by the processes alive now.
    pub alloc_bytes: u64,
    /// Allocations ever made by the processes alive now.
    pub alloc_count: u64,
    /// Largest `live_bytes`.
    pub peak: tt_shm_peak,
    /// Bytes requested for what is live now.
    pub requested_bytes: u64,
    /// The part of `live_bytes` for which only the requested size is known.
    pub requested_basis_bytes: u64,
}

/// Bits of `tt_shm_device_stats.flags`: buffers occupy more than there is.
pub const TT_SHM_DEVICE_OVER_CAPACITY: u64 = 1 << 0;
/// Processes disagree about the device.
pub const TT_SHM_DEVICE_CONFLICT: u64 = 1 << 1;
/// A process that could not be read may hold memory on it: figures are lower bounds.
pub const TT_SHM_DEVICE_INCOMPLETE: u64 = 1 << 2;
/// Fabric and dispatch kernels are lower bounds.
pub const TT_SHM_DEVICE_SYSTEM_KERNELS_UNSEEN: u64 = 1 << 5;
/// A process that does not report holds it: figures are lower bounds.
pub const TT_SHM_DEVICE_UNREPORTED_HOLDER: u64 = 1 << 6;

/// A device, all processes together.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_device_stats {
    /// `sizeof(tt_shm_device_stats)`.
    pub size: u32,
    /// Its row, which usages name.
    pub row: u32,
    /// `TT_SHM_DEVICE_...` bits.
    pub flags: u64,
    /// Stable id of the chip. `tt_shm_snapshot_device_info` has more.
    pub chip_id: u64,
    /// Processes that use it.
    pub processes: u64,
    /// DRAM that the allocators can provide; `TT_SHM_UNKNOWN` if not known.
    pub dram_total_bytes: u64,
    /// DRAM used.
    pub dram_used_bytes: u64,
    /// L1 that the allocators can provide; `TT_SHM_UNKNOWN` if not known.
    pub l1_total_bytes: u64,
    /// L1 of Tensix cores used.
    pub l1_used_bytes: u64,
    /// L1 of ethernet cores used.
    pub eth_used_bytes: u64,
    /// Circular buffer bytes of resident programs.
    pub cb_resident_bytes: u64,
    /// Application kernel bytes of resident programs on Tensix cores.
    pub kernel_resident_bytes: u64,
    /// Application kernel bytes of resident programs on ethernet cores.
    pub kernel_resident_eth_bytes: u64,
    /// Fabric and dispatch kernels on Tensix cores.
    pub system_kernel_bytes: u64,
    /// Fabric and dispatch kernels on ethernet cores.
    pub system_kernel_eth_bytes: u64,
    /// Dispatches of the processes alive now.
    pub dispatches: u64,
    /// Of those, the ones that found the binary cached.
    pub cached_dispatches: u64,
    /// Allocations that failed, of the processes alive now.
    pub failed_allocs: u64,
    /// Kernel ring buffer: size, 0 if never reported.
    pub kernel_ring_total_bytes: u64,
    /// Kernel ring buffer: bytes used.
    pub kernel_ring_used_bytes: u64,
    /// Kernel ring buffer: programs in it.
    pub kernel_ring_programs: u64,
    /// Largest DRAM used.
    pub dram_peak: tt_shm_peak,
    /// Largest L1 used.
    pub l1_peak: tt_shm_peak,
    /// Largest ethernet L1 used.
    pub eth_peak: tt_shm_peak,
    /// Largest `cb_resident_bytes`; has no count.
    pub cb_resident_peak: tt_shm_peak,
    /// Largest sum of resident and system kernels on Tensix cores; has no count.
    pub kernel_resident_peak: tt_shm_peak,
    /// By `TT_SHM_CLASS_...`.
    pub classes: [tt_shm_class_stats; TT_SHM_CLASSES],
}

/// Values of `tt_shm_process_stats.state`: the process is alive.
pub const TT_SHM_STATE_ALIVE: u32 = 1;
/// The process ended; its row stays for a while.
pub const TT_SHM_STATE_ENDED: u32 = 2;

/// Bits of `tt_shm_process_stats.flags`: totals are exact, lists are incomplete.
pub const TT_SHM_STATS_DEGRADED: u64 = 1 << 0;
/// Its events are impossible: it is part of no total.
pub const TT_SHM_STATS_BROKEN: u64 = 1 << 1;
/// Its file was unlinked while it is alive.
pub const TT_SHM_STATS_UNLINKED: u64 = 1 << 2;
/// It closed its segment.
pub const TT_SHM_STATS_CLOSED: u64 = 1 << 3;
/// It is alive, or may be, and cannot be read any more.
pub const TT_SHM_STATS_UNSEEN: u64 = 1 << 4;
/// It holds memory that it cannot report.
pub const TT_SHM_STATS_PARTIAL: u64 = 1 << 5;

/// A process, as the aggregator sees it. Times are CLOCK_MONOTONIC.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_process_stats {
    /// `sizeof(tt_shm_process_stats)`.
    pub size: u32,
    /// Its row, which usages name.
    pub row: u32,
    /// `TT_SHM_STATE_...`.
    pub state: u32,
    /// `TT_SHM_SOURCE_...`.
    pub source: u32,
    /// `TT_SHM_STATS_...` bits.
    pub flags: u64,
    /// Identity of its segment.
    pub identity: u64,
    /// Process id as the process sees it.
    pub pid: u64,
    /// Owner of the segment.
    pub uid: u64,
    /// Pid of the process that it is written on behalf of; 0 if that is the writer.
    pub on_behalf_of: u64,
    /// When the segment was created.
    pub started_ns: u64,
    /// When its end was noticed; 0 while it is alive.
    pub ended_ns: u64,
    /// Time of its last event, 0 if there was none.
    pub last_event_ns: u64,
    /// Position of that event.
    pub position: u64,
    /// Events missed because they were overwritten.
    pub missed: u64,
    /// Live allocations without a row.
    pub unlisted: u64,
    /// Number of devices that it registered.
    pub devices: u64,
    /// Its name. Not trusted.
    pub name: [c_char; 72],
}

/// One process's use of one device.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_usage {
    /// `sizeof(tt_shm_usage)`.
    pub size: u32,
    /// 1 if what the process claims about the device contradicts what is taken as true.
    pub conflict: u32,
    /// Row of the process.
    pub process: u64,
    /// Row of the device.
    pub device: u64,
    /// The process's own number for the device; `TT_SHM_UNKNOWN` if it has none.
    pub logical_id: u64,
    /// The allocator of the device that it uses.
    pub allocator: u64,
    /// Its counters, with times in CLOCK_MONOTONIC nanoseconds.
    pub counters: tt_shm_counters,
}

versioned!(tt_shm_freshness, tt_shm_snapshot_info, tt_shm_device_stats, tt_shm_process_stats, tt_shm_usage,);

const _: () = {
    // The sizes of the first version, which callers may have been compiled with.
    assert!(size_of::<tt_shm_freshness>() == 40);
    assert!(size_of::<tt_shm_snapshot_info>() == 88);
    assert!(size_of::<tt_shm_device_stats>() == 1600);
    assert!(size_of::<tt_shm_process_stats>() == 184);
    assert!(size_of::<tt_shm_usage>() == 1672);
};

/// Opens root's table of a namespace (null: that of the environment), or else the caller's own. `TT_SHM_ERR_NOT_FOUND` if no
/// aggregator has published one.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_table_open(name_space: Text, table: Out<*mut tt_shm_table>) -> i32 {
    call(|| {
        table.check()?;
        opened(Table::open(&namespace(name_space)?)?, table)
    })
}

/// Opens a table by a descriptor, with the same checks. The caller keeps the descriptor.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_table_open_fd(descriptor: i32, table: Out<*mut tt_shm_table>) -> i32 {
    call(|| {
        table.check()?;
        opened(Table::open_fd(duplicate(descriptor)?)?, table)
    })
}

fn opened(table: Table, handle: Out<*mut tt_shm_table>) -> Done {
    handle.set(handle::pointer(objects::open(Object::Table(Arc::new(table)))?))
}

/// Closes a table.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_table_close(table: Handle<tt_shm_table>) -> i32 {
    call(|| objects::close(table))
}

/// Whether the aggregator is running, and since when not. An aggregator that was stopped or killed leaves its table as it
/// was: only this tells.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_table_freshness(
    table: Handle<tt_shm_table>,
    freshness: OutStruct<tt_shm_freshness>,
) -> i32 {
    call(|| {
        let table = objects::get(table)?;
        let found = table.freshness();
        freshness.set(&tt_shm_freshness {
            size: size_of::<tt_shm_freshness>() as u32,
            fresh: u32::from(found.is_fresh()),
            closed: u32::from(found.closed),
            replaced: u32::from(table.is_replaced()),
            heartbeat_ns: found.heartbeat_ns,
            age_ns: found.age_ns,
            interval_ns: found.interval_ns,
        })
    })
}

/// Copies all rows, of one generation if that succeeds. Close the copy.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_table_snapshot(
    table: Handle<tt_shm_table>,
    snapshot: Out<*mut tt_shm_snapshot>,
) -> i32 {
    call(|| {
        snapshot.check()?;
        give(objects::get(table)?.snapshot(), snapshot)
    })
}

pub(crate) fn give(snapshot: TableSnapshot, handle: Out<*mut tt_shm_snapshot>) -> Done {
    handle.set(handle::pointer(objects::open(Object::Snapshot(Arc::new(snapshot)))?))
}

/// Closes a copy.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_snapshot_close(snapshot: Handle<tt_shm_snapshot>) -> i32 {
    call(|| objects::close(snapshot))
}

/// What the copy is of.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_snapshot_describe(
    snapshot: Handle<tt_shm_snapshot>,
    info: OutStruct<tt_shm_snapshot_info>,
) -> i32 {
    call(|| {
        let snapshot = objects::get(snapshot)?;
        info.set(&tt_shm_snapshot_info {
            size: size_of::<tt_shm_snapshot_info>() as u32,
            consistent: u32::from(snapshot.consistent),
            generation: snapshot.generation,
            as_of_ns: snapshot.as_of,
            devices: snapshot.devices.len() as u64,
            processes: snapshot.processes.len() as u64,
            usages: snapshot.usages.len() as u64,
            events: snapshot.events,
            missed: snapshot.missed,
            refused: snapshot.refused,
            unseen: snapshot.unseen,
            window_since_ns: snapshot.window_since,
        })
    })
}

/// The devices.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_snapshot_devices(
    snapshot: Handle<tt_shm_snapshot>,
    devices: OutStructs<tt_shm_device_stats>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        let snapshot = objects::get(snapshot)?;
        devices.fill(capacity, snapshot.devices.iter().map(|(row, stats)| device_stats(*row, stats)))?;
        total.set_if_wanted(snapshot.devices.len())
    })
}

/// What is taken as true of the device in a row. `TT_SHM_ERR_NOT_FOUND` if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_snapshot_device_info(
    snapshot: Handle<tt_shm_snapshot>,
    row: u32,
    info: OutStruct<tt_shm_device_info>,
) -> i32 {
    call(|| {
        let snapshot = objects::get(snapshot)?;
        let device = snapshot.devices.iter().find(|(number, _)| *number == row as usize);
        let none = || Failure::new(TT_SHM_ERR_NOT_FOUND, None, format_args!("no device has row {row}"));
        info.set(&tt_shm_device_info::from(&device.ok_or_else(none)?.1.entry))
    })
}

/// The processes; those that ended stay for a while.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_snapshot_processes(
    snapshot: Handle<tt_shm_snapshot>,
    processes: OutStructs<tt_shm_process_stats>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        let snapshot = objects::get(snapshot)?;
        processes.fill(capacity, snapshot.processes.iter().map(|(row, stats)| process_stats(*row, stats)))?;
        total.set_if_wanted(snapshot.processes.len())
    })
}

/// The usage of each device by each process.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_snapshot_usages(
    snapshot: Handle<tt_shm_snapshot>,
    usages: OutStructs<tt_shm_usage>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        let snapshot = objects::get(snapshot)?;
        usages.fill(capacity, snapshot.usages.iter().map(|(_, stats)| usage(stats)))?;
        total.set_if_wanted(snapshot.usages.len())
    })
}

fn peak(peak: Peak) -> tt_shm_peak {
    let Peak { low, high, time, count } = peak;
    tt_shm_peak { low, high, time_ns: time, count }
}

fn class_stats(stats: &ClassStats) -> tt_shm_class_stats {
    let ClassStats { live_bytes, live_count, alloc_bytes, alloc_count, .. } = *stats;
    let ClassStats { requested_bytes, requested_basis_bytes, .. } = *stats;
    let peak = peak(stats.peak);
    tt_shm_class_stats {
        live_bytes,
        live_count,
        alloc_bytes,
        alloc_count,
        peak,
        requested_bytes,
        requested_basis_bytes,
    }
}

fn device_stats(row: usize, stats: &DeviceStats) -> tt_shm_device_stats {
    let mut classes = [tt_shm_class_stats::default(); TT_SHM_CLASSES];
    for (place, class) in classes.iter_mut().zip(&stats.classes) {
        *place = class_stats(class);
    }
    let known = |bytes: Option<u64>| bytes.unwrap_or(crate::types::TT_SHM_UNKNOWN);
    tt_shm_device_stats {
        size: size_of::<tt_shm_device_stats>() as u32,
        row: row as u32,
        flags: stats.flags,
        chip_id: stats.entry.chip_id,
        processes: stats.processes,
        dram_total_bytes: known(stats.entry.dram_total()),
        dram_used_bytes: stats.dram_used_bytes,
        l1_total_bytes: known(stats.entry.l1_total()),
        l1_used_bytes: stats.l1_used_bytes,
        eth_used_bytes: stats.eth_used_bytes,
        cb_resident_bytes: stats.cb_resident_bytes,
        kernel_resident_bytes: stats.kernel_resident_bytes,
        kernel_resident_eth_bytes: stats.kernel_resident_eth_bytes,
        system_kernel_bytes: stats.system_kernel_bytes,
        system_kernel_eth_bytes: stats.system_kernel_eth_bytes,
        dispatches: stats.dispatches,
        cached_dispatches: stats.cached_dispatches,
        failed_allocs: stats.failed_allocs,
        kernel_ring_total_bytes: stats.kernel_ring_total_bytes,
        kernel_ring_used_bytes: stats.kernel_ring_used_bytes,
        kernel_ring_programs: stats.kernel_ring_programs,
        dram_peak: peak(stats.dram_peak),
        l1_peak: peak(stats.l1_peak),
        eth_peak: peak(stats.eth_peak),
        cb_resident_peak: peak(stats.cb_resident_peak),
        kernel_resident_peak: peak(stats.kernel_resident_peak),
        classes,
    }
}

fn process_stats(row: usize, stats: &ProcessStats) -> tt_shm_process_stats {
    tt_shm_process_stats {
        size: size_of::<tt_shm_process_stats>() as u32,
        row: row as u32,
        state: stats.state as u32,
        source: stats.source as u32,
        flags: stats.flags,
        identity: stats.identity,
        pid: stats.pid,
        uid: stats.uid,
        on_behalf_of: stats.on_behalf_of,
        started_ns: stats.started,
        ended_ns: stats.ended,
        last_event_ns: stats.last_event,
        position: stats.position,
        missed: stats.missed,
        unlisted: stats.unlisted,
        devices: stats.devices,
        name: fixed(&stats.name),
    }
}

fn usage(stats: &UsageStats) -> tt_shm_usage {
    tt_shm_usage {
        size: size_of::<tt_shm_usage>() as u32,
        conflict: u32::from(stats.flags & tt_shm_reader::usage_flags::CONFLICT != 0),
        process: stats.process,
        device: stats.device,
        logical_id: stats.logical_id,
        allocator: stats.allocator,
        counters: tt_shm_counters::from(&stats.counters),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_reader::{device_flags, process_flags, process_state};

    #[test]
    fn numbers_are_those_of_the_layout() {
        assert_eq!(
            [
                TT_SHM_DEVICE_OVER_CAPACITY,
                TT_SHM_DEVICE_CONFLICT,
                TT_SHM_DEVICE_INCOMPLETE,
                TT_SHM_DEVICE_SYSTEM_KERNELS_UNSEEN,
                TT_SHM_DEVICE_UNREPORTED_HOLDER
            ],
            [
                device_flags::OVER_CAPACITY,
                device_flags::CONFLICT,
                device_flags::INCOMPLETE,
                device_flags::SYSTEM_KERNELS_UNSEEN,
                device_flags::UNREPORTED_HOLDER
            ]
        );
        assert_eq!(
            [
                TT_SHM_STATS_DEGRADED,
                TT_SHM_STATS_BROKEN,
                TT_SHM_STATS_UNLINKED,
                TT_SHM_STATS_CLOSED,
                TT_SHM_STATS_UNSEEN,
                TT_SHM_STATS_PARTIAL
            ],
            [
                process_flags::DEGRADED,
                process_flags::BROKEN,
                process_flags::UNLINKED,
                process_flags::CLOSED,
                process_flags::UNSEEN,
                process_flags::PARTIAL
            ]
        );
        let states = [TT_SHM_STATE_ALIVE, TT_SHM_STATE_ENDED].map(u64::from);
        assert_eq!(states, [process_state::ALIVE, process_state::ENDED]);
    }
}
