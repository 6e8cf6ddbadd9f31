//! Reading what an aggregator publishes of all processes.

use std::ffi::c_char;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use tt_shm_reader::{Table, TableSnapshot};

use crate::code::{Done, call};
use crate::handle;
use crate::objects::{self, Object, tt_shm_snapshot, tt_shm_table};
use crate::raw::{Handle, Out, OutStruct, Text, duplicate, versioned};
use crate::segment::namespace;
use crate::types::fixed;

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
    /// Windows opened.
    pub windows: u64,
    /// Events that came too late to be merged by time.
    pub late: u64,
    /// Processes whose file was gone before it could be opened.
    pub lost: u64,
    /// Notices.
    pub notices: u64,
    /// Failed allocations that are kept.
    pub failures: u64,
    /// Devices that the driver tells of.
    pub driver: u64,
    /// Devices of the driver that there is no row for.
    pub driver_left_out: u64,
    /// Regions of tt-metal and their processes.
    pub regions: u64,
    /// Rows of regions that there is no room for.
    pub regions_left_out: u64,
    /// Usages that there is no row for.
    pub overflow: u64,
    /// Generations for which /dev/shm had no room.
    pub publish_errors: u64,
    /// Since when rows are missing because /dev/shm has no room for them, CLOCK_MONOTONIC; 0 if none are.
    pub incomplete_since_ns: u64,
    /// How often a clock stepped. Times and order of events around a step are not known.
    pub clock_steps: u64,
    /// Since when the machine is known not to have been suspended, CLOCK_MONOTONIC; 0 if it never was.
    pub awake_since_ns: u64,
    /// If history was adopted from an earlier table: the beginning of the time that neither saw, CLOCK_MONOTONIC; else 0.
    pub gap_start_ns: u64,
    /// The end of that time.
    pub gap_end_ns: u64,
}

/// A table and the aggregator that writes it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_table_info {
    /// `sizeof(tt_shm_table_info)`.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Identity of the table, which no other one has.
    pub identity: u64,
    /// Process id of the aggregator, as it sees it.
    pub pid: u64,
    /// When the aggregator was started, CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// The same, CLOCK_REALTIME.
    pub started_realtime_ns: u64,
    /// The file.
    pub path: [c_char; 256],
}

versioned!(tt_shm_freshness, tt_shm_snapshot_info, tt_shm_table_info);

const _: () = {
    // The sizes of the first version, which callers may have been compiled with.
    assert!(size_of::<tt_shm_freshness>() == 40);
    assert!(size_of::<tt_shm_snapshot_info>() == 216);
    assert!(size_of::<tt_shm_table_info>() == 296);
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

/// The table, and the aggregator that writes it.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_table_describe(
    table: Handle<tt_shm_table>,
    info: OutStruct<tt_shm_table_info>,
) -> i32 {
    call(|| {
        let table = objects::get(table)?;
        let header = table.header();
        info.set(&tt_shm_table_info {
            size: size_of::<tt_shm_table_info>() as u32,
            reserved: 0,
            identity: header.identity,
            pid: header.pid,
            started_ns: header.started,
            started_realtime_ns: header.started_realtime_ns,
            path: fixed(table.path().as_os_str().as_bytes()),
        })
    })
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
            windows: snapshot.windows,
            late: snapshot.late,
            lost: snapshot.lost,
            notices: snapshot.notices.len() as u64,
            failures: snapshot.failures.len() as u64,
            driver: snapshot.driver.len() as u64,
            driver_left_out: snapshot.driver_left_out,
            regions: snapshot.regions.len() as u64,
            regions_left_out: snapshot.regions_left_out,
            overflow: snapshot.overflow,
            publish_errors: snapshot.publish_errors,
            incomplete_since_ns: snapshot.incomplete_since.unwrap_or(0),
            clock_steps: snapshot.clock_steps,
            awake_since_ns: snapshot.awake_since,
            gap_start_ns: snapshot.gap.map_or(0, |(start, _)| start),
            gap_end_ns: snapshot.gap.map_or(0, |(_, end)| end),
        })
    })
}
