//! A region and its processes as rows of the table.

use bytemuck::Zeroable;
use shm_layout::table::{RegionStats, region_flags, region_kind, region_state};
use shm_layout::{UNKNOWN, text};
use tt_shm_region::{Bytes, Content, Liveness, Process, Region};

use crate::driver::holders::Reporters;

/// The rows of a region, which are not joined with a device yet.
pub(super) fn region_rows(region: &Region, reporters: &Reporters) -> Vec<RegionStats> {
    let base = RegionStats {
        device: UNKNOWN,
        chip_id: region.chip_id,
        uid: region.owner.unwrap_or(0).into(),
        ..RegionStats::zeroed()
    };
    let content = match &region.content {
        Ok(content) => content,
        Err(absence) => {
            return vec![RegionStats {
                kind: region_kind::UNREAD,
                note: text::encode(&absence.to_string()),
                ..base
            }];
        }
    };
    let base = RegionStats {
        version: content.version.into(),
        flags: if content.is_steady { 0 } else { region_flags::UNSTEADY },
        ..base
    };
    let of_process = |process: &Process| process_row(process, &base, reporters);
    [whole(content, &base)].into_iter().chain(content.processes.iter().map(of_process)).collect()
}

fn whole(content: &Content, base: &RegionStats) -> RegionStats {
    let faults: Vec<String> = content.faults.iter().map(ToString::to_string).collect();
    RegionStats {
        kind: region_kind::REGION,
        updated_realtime_ns: content.updated_ns,
        note: text::encode(&faults.join("; ")),
        ..with(content.totals, base)
    }
}

fn process_row(process: &Process, base: &RegionStats, reporters: &Reporters) -> RegionStats {
    let pid_here = process.pid_here();
    let (state, note) = match &process.liveness {
        Liveness::Alive { .. } => (region_state::ALIVE, String::new()),
        Liveness::Ghost | Liveness::Reused => (region_state::GHOST, process.liveness.to_string()),
        Liveness::Uncertain(_) => (region_state::UNCERTAIN, process.liveness.to_string()),
    };
    let mut flags = base.flags;
    if pid_here.is_some_and(|pid| reporters.has(pid)) {
        flags |= region_flags::REPORTS;
    }
    if process.is_duplicate {
        flags |= region_flags::DUPLICATE;
    }
    RegionStats {
        kind: region_kind::PROCESS,
        flags,
        state,
        slot: process.slot as u64,
        pid: u64::try_from(process.pid).unwrap_or(0),
        pid_here: pid_here.unwrap_or(0).into(),
        updated_realtime_ns: process.updated_ns,
        name: text::encode(&process.name_lossy()),
        note: text::encode(&note),
        ..with(process.bytes, base)
    }
}

fn with(bytes: Bytes, base: &RegionStats) -> RegionStats {
    RegionStats {
        dram_bytes: bytes.dram,
        l1_bytes: bytes.l1,
        l1_small_bytes: bytes.l1_small,
        trace_bytes: bytes.trace,
        cb_bytes: bytes.cb,
        ..*base
    }
}
