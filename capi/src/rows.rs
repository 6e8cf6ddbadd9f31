//! The rows of devices, of processes, and of what each process uses of each device.

use std::ffi::c_char;

use tt_shm_reader::{ClassStats, DeviceStats, Failure as Failed, Peak, ProcessStats, UsageStats};

use crate::code::{Done, Failure, TT_SHM_ERR_NOT_FOUND, call};
use crate::objects::{self, tt_shm_snapshot, tt_shm_table};
use crate::raw::{Handle, Out, OutStruct, OutStructs, versioned};
use crate::types::{TT_SHM_CLASSES, TT_SHM_UNKNOWN, fixed, tt_shm_counters, tt_shm_device_info};

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
/// What `tt_shm_snapshot_composition` says of the DRAM peak is all of it.
pub const TT_SHM_DEVICE_DRAM_COMPOSITION_EXACT: u64 = 1 << 3;
/// What it says of the L1 peak is all of it.
pub const TT_SHM_DEVICE_L1_COMPOSITION_EXACT: u64 = 1 << 4;
/// Fabric and dispatch kernels are lower bounds.
pub const TT_SHM_DEVICE_SYSTEM_KERNELS_UNSEEN: u64 = 1 << 5;
/// A process that does not report holds it: figures are lower bounds.
pub const TT_SHM_DEVICE_UNREPORTED_HOLDER: u64 = 1 << 6;

/// The last allocation that failed on a device. All zero if there was none. `tt_shm_snapshot_failures` has more.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct tt_shm_last_failure {
    /// When, CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Pid of the process, as it sees it.
    pub pid: u64,
    /// `TT_SHM_CLASS_...`.
    pub class_: u64,
    /// Bytes requested.
    pub request_bytes: u64,
    /// Bytes free then; `TT_SHM_UNKNOWN` if the process did not know.
    pub free_bytes: u64,
    /// Largest free block then; `TT_SHM_UNKNOWN` if the process did not know.
    pub largest_free_bytes: u64,
    /// Bytes needed in each bank; `TT_SHM_UNKNOWN` if the process did not know.
    pub needed_per_bank_bytes: u64,
    /// Banks; 0 if the process did not know.
    pub banks: u64,
    /// 1 if free bytes and the largest free block are those of one bank, 0 if of all.
    pub per_bank: u64,
}

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
    /// The last failure.
    pub last_failure: tt_shm_last_failure,
    /// Events folded since the aggregator attached.
    pub events: u64,
    /// Events of the last second, in thousandths per second.
    pub events_per_1000s: u64,
    /// Dispatches of the last second, in thousandths per second.
    pub dispatches_per_1000s: u64,
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
    /// Inode of its PID namespace; 0 if unknown.
    pub pid_namespace: u64,
    /// When the process was started, in clock ticks since boot; 0 if unknown.
    pub start_time: u64,
    /// Events that came too late to be merged by time.
    pub late: u64,
    /// Events of the last second, in thousandths per second.
    pub events_per_1000s: u64,
    /// How often it compared its sums with those of the device's allocator.
    pub self_checks: u64,
    /// How often such a comparison found a difference.
    pub self_checks_different: u64,
    /// Number of misuses, as in `tt_shm_process`.
    pub anomalies: [u64; 16],
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
    /// Its row, for `tt_shm_snapshot_usage_info`.
    pub row: u64,
}

versioned!(tt_shm_device_stats, tt_shm_process_stats, tt_shm_usage);

const _: () = {
    // The sizes of the first version, which callers may have been compiled with.
    assert!(size_of::<tt_shm_device_stats>() == 1696);
    assert!(size_of::<tt_shm_process_stats>() == 360);
    assert!(size_of::<tt_shm_usage>() == 1680);
};

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

/// The row with a number.
pub(crate) fn row_of<'a, T>(rows: &'a [(usize, T)], number: u64, what: &str) -> Done<&'a T> {
    let found = rows.iter().find(|(row, _)| *row as u64 == number);
    found.map(|(_, stats)| stats).ok_or_else(|| no_row(what, number))
}

#[cold]
fn no_row(what: &str, number: u64) -> Failure {
    Failure::new(TT_SHM_ERR_NOT_FOUND, None, format_args!("no {what} has row {number}"))
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
        info.set(&tt_shm_device_info::from(&row_of(&snapshot.devices, row.into(), "device")?.entry))
    })
}

/// One device of a table, without a copy of all rows. `TT_SHM_ERR_NOT_FOUND` if the row is not in use, or if the
/// aggregator wrote it in every attempt to read it.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_table_device(
    table: Handle<tt_shm_table>,
    row: u32,
    device: OutStruct<tt_shm_device_stats>,
) -> i32 {
    call(|| {
        let table = objects::get(table)?;
        let number = row as usize;
        let stats = table.device(number).copy().ok_or_else(|| no_row("device", row.into()))?;
        device.set(&device_stats(number, &stats))
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
        usages.fill(capacity, snapshot.usages.iter().map(|(row, stats)| usage(*row, stats)))?;
        total.set_if_wanted(snapshot.usages.len())
    })
}

/// What the process of a usage claims about the device. `TT_SHM_ERR_NOT_FOUND` if there is no such row.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_snapshot_usage_info(
    snapshot: Handle<tt_shm_snapshot>,
    row: u64,
    info: OutStruct<tt_shm_device_info>,
) -> i32 {
    call(|| {
        let snapshot = objects::get(snapshot)?;
        info.set(&tt_shm_device_info::from(&row_of(&snapshot.usages, row, "usage")?.entry))
    })
}

impl From<Peak> for tt_shm_peak {
    fn from(peak: Peak) -> tt_shm_peak {
        let Peak { low, high, time, count } = peak;
        tt_shm_peak { low, high, time_ns: time, count }
    }
}

fn class_stats(stats: &ClassStats) -> tt_shm_class_stats {
    let ClassStats { live_bytes, live_count, alloc_bytes, alloc_count, .. } = *stats;
    let ClassStats { requested_bytes, requested_basis_bytes, .. } = *stats;
    let peak = stats.peak.into();
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

fn last_failure(failure: &Failed) -> tt_shm_last_failure {
    let Failed { time, pid, class, request_bytes, free_bytes, .. } = *failure;
    let Failed { largest_free_bytes, needed_per_bank_bytes, banks, per_bank, .. } = *failure;
    tt_shm_last_failure {
        time_ns: time,
        pid,
        class_: class,
        request_bytes,
        free_bytes,
        largest_free_bytes,
        needed_per_bank_bytes,
        banks,
        per_bank,
    }
}

fn device_stats(row: usize, stats: &DeviceStats) -> tt_shm_device_stats {
    let mut classes = [tt_shm_class_stats::default(); TT_SHM_CLASSES];
    for (place, class) in classes.iter_mut().zip(&stats.classes) {
        *place = class_stats(class);
    }
    let known = |bytes: Option<u64>| bytes.unwrap_or(TT_SHM_UNKNOWN);
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
        dram_peak: stats.dram_peak.into(),
        l1_peak: stats.l1_peak.into(),
        eth_peak: stats.eth_peak.into(),
        cb_resident_peak: stats.cb_resident_peak.into(),
        kernel_resident_peak: stats.kernel_resident_peak.into(),
        classes,
        last_failure: last_failure(&stats.failure),
        events: stats.events,
        events_per_1000s: stats.events_per_1000s,
        dispatches_per_1000s: stats.dispatches_per_1000s,
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
        pid_namespace: stats.pid_namespace,
        start_time: stats.start_time,
        late: stats.late,
        events_per_1000s: stats.events_per_1000s,
        self_checks: stats.self_checks,
        self_checks_different: stats.self_checks_different,
        anomalies: stats.anomalies,
    }
}

fn usage(row: usize, stats: &UsageStats) -> tt_shm_usage {
    tt_shm_usage {
        size: size_of::<tt_shm_usage>() as u32,
        conflict: u32::from(stats.flags & tt_shm_reader::usage_flags::CONFLICT != 0),
        process: stats.process,
        device: stats.device,
        logical_id: stats.logical_id,
        allocator: stats.allocator,
        counters: tt_shm_counters::from(&stats.counters),
        row: row as u64,
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
                TT_SHM_DEVICE_DRAM_COMPOSITION_EXACT,
                TT_SHM_DEVICE_L1_COMPOSITION_EXACT,
                TT_SHM_DEVICE_SYSTEM_KERNELS_UNSEEN,
                TT_SHM_DEVICE_UNREPORTED_HOLDER
            ],
            [
                device_flags::OVER_CAPACITY,
                device_flags::CONFLICT,
                device_flags::INCOMPLETE,
                device_flags::DRAM_COMPOSITION_EXACT,
                device_flags::L1_COMPOSITION_EXACT,
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
