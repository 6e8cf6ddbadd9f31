//! What unmodified tt-metal publishes about its memory, in regions of its own: one for each chip.

use std::ffi::c_char;

use tt_shm_reader::RegionStats;

use crate::code::call;
use crate::objects::{self, tt_shm_snapshot};
use crate::raw::{Handle, Out, OutStructs, versioned};
use crate::types::fixed;

/// Values of `tt_shm_region_stats.kind`: a region, with the totals that it has.
pub const TT_SHM_REGION: u32 = 1;
/// A process in a region.
pub const TT_SHM_REGION_PROCESS: u32 = 2;
/// A region that could not be read; `note` says why.
pub const TT_SHM_REGION_UNREAD: u32 = 3;

/// Values of `tt_shm_region_stats.state`: the process is alive.
pub const TT_SHM_REGION_ALIVE: u32 = 1;
/// It has ended, and its bytes stayed behind.
pub const TT_SHM_REGION_GHOST: u32 = 2;
/// It is not certain whether it is alive; `note` says why.
pub const TT_SHM_REGION_UNCERTAIN: u32 = 3;

/// Bits of `tt_shm_region_stats.flags`: the process reports by itself, so that what the region says of it is not used.
pub const TT_SHM_REGION_REPORTS: u64 = 1 << 0;
/// Another slot has the same pid.
pub const TT_SHM_REGION_DUPLICATE: u64 = 1 << 1;
/// The region was written whenever it was read: its figures need not belong together.
pub const TT_SHM_REGION_UNSTEADY: u64 = 1 << 2;

/// A region of tt-metal, or a process in it. Bytes are those that were requested, and never exact.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_region_stats {
    /// `sizeof(tt_shm_region_stats)`.
    pub size: u32,
    /// Its row.
    pub row: u32,
    /// `TT_SHM_REGION...`.
    pub kind: u32,
    /// Of a process, `TT_SHM_REGION_ALIVE` and so on.
    pub state: u32,
    /// Bits of `TT_SHM_REGION_REPORTS` and so on.
    pub flags: u64,
    /// Row of the device; `TT_SHM_UNKNOWN` if there is none.
    pub device: u64,
    /// The chip.
    pub chip_id: u64,
    /// Version of the region's layout.
    pub version: u64,
    /// Place of the process in the region.
    pub slot: u64,
    /// Pid of the process, as it sees it.
    pub pid: u64,
    /// Its pid as the aggregator sees it; 0 if unknown.
    pub pid_here: u64,
    /// Owner of the file.
    pub uid: u64,
    /// When it was written last, CLOCK_REALTIME.
    pub updated_realtime_ns: u64,
    /// DRAM.
    pub dram_bytes: u64,
    /// L1.
    pub l1_bytes: u64,
    /// L1_SMALL.
    pub l1_small_bytes: u64,
    /// Trace.
    pub trace_bytes: u64,
    /// Circular buffers.
    pub cb_bytes: u64,
    /// Name of the process. Not trusted.
    pub name: [c_char; 72],
    /// What is wrong with it. Not trusted.
    pub note: [c_char; 192],
}

versioned!(tt_shm_region_stats);

// The size of the first version, which callers may have been compiled with.
const _: () = assert!(size_of::<tt_shm_region_stats>() == 392);

/// The regions of tt-metal and their processes.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_snapshot_regions(
    snapshot: Handle<tt_shm_snapshot>,
    regions: OutStructs<tt_shm_region_stats>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        let snapshot = objects::get(snapshot)?;
        regions.fill(capacity, snapshot.regions.iter().map(|(row, stats)| region(*row, stats)))?;
        total.set_if_wanted(snapshot.regions.len())
    })
}

fn region(row: usize, stats: &RegionStats) -> tt_shm_region_stats {
    tt_shm_region_stats {
        size: size_of::<tt_shm_region_stats>() as u32,
        row: row as u32,
        kind: stats.kind as u32,
        state: stats.state as u32,
        flags: stats.flags,
        device: stats.device,
        chip_id: stats.chip_id,
        version: stats.version,
        slot: stats.slot,
        pid: stats.pid,
        pid_here: stats.pid_here,
        uid: stats.uid,
        updated_realtime_ns: stats.updated_realtime_ns,
        dram_bytes: stats.dram_bytes,
        l1_bytes: stats.l1_bytes,
        l1_small_bytes: stats.l1_small_bytes,
        trace_bytes: stats.trace_bytes,
        cb_bytes: stats.cb_bytes,
        name: fixed(&stats.name),
        note: fixed(&stats.note),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_reader::{region_flags, region_kind, region_state};

    #[test]
    fn numbers_are_those_of_the_layout() {
        let kinds = [TT_SHM_REGION, TT_SHM_REGION_PROCESS, TT_SHM_REGION_UNREAD].map(u64::from);
        assert_eq!(kinds, [region_kind::REGION, region_kind::PROCESS, region_kind::UNREAD]);
        let states = [TT_SHM_REGION_ALIVE, TT_SHM_REGION_GHOST, TT_SHM_REGION_UNCERTAIN].map(u64::from);
        assert_eq!(states, [region_state::ALIVE, region_state::GHOST, region_state::UNCERTAIN]);
        assert_eq!(
            [TT_SHM_REGION_REPORTS, TT_SHM_REGION_DUPLICATE, TT_SHM_REGION_UNSTEADY],
            [region_flags::REPORTS, region_flags::DUPLICATE, region_flags::UNSTEADY]
        );
    }
}
