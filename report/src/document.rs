//! The data of a page, as JSON. Times are nanoseconds from the first one; long lists are arrays of numbers.

use serde::Serialize;

use crate::figure::FIGURES;
use crate::text::Texts;

/// Everything that a page shows.
#[derive(Debug, Serialize)]
pub(crate) struct Document {
    pub(crate) title: String,
    pub(crate) file: String,
    pub(crate) host: String,
    pub(crate) namespace: String,
    pub(crate) command: String,
    pub(crate) tool: String,
    pub(crate) record_bytes: u64,
    /// The wall-clock time of the first moment, in milliseconds since 1970.
    pub(crate) start_ms: f64,
    pub(crate) span_ns: u64,
    pub(crate) begin_ns: u64,
    pub(crate) bucket_ns: u64,
    pub(crate) events: u64,
    pub(crate) lost: u64,
    pub(crate) gap_count: u64,
    pub(crate) refused: u64,
    pub(crate) out_of_order: u64,
    pub(crate) is_finished: bool,
    pub(crate) complete_ns: u64,
    pub(crate) figures: [(&'static str, &'static str); FIGURES],
    pub(crate) classes: Vec<&'static str>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) devices: Vec<Device>,
    pub(crate) processes: Vec<Process>,
    pub(crate) snapshots: Vec<Snapshot>,
    /// Device, process, class, name, bytes, requested, count, new, oldest, what became of it, rises.
    pub(crate) left: Vec<[u64; 11]>,
    /// With those that are not listed.
    pub(crate) left_count: u64,
    pub(crate) failures: Vec<Failure>,
    pub(crate) failure_count: u64,
    /// Device, process, name, dispatches, cached, CB bytes, kernel bytes, first, last.
    pub(crate) programs: Vec<[u64; 9]>,
    pub(crate) program_count: u64,
    /// Time, process, name, phase, id.
    pub(crate) markers: Vec<[u64; 5]>,
    pub(crate) marker_count: u64,
    pub(crate) unlisted_groups: u64,
    pub(crate) texts: Texts,
}

/// What is wrong, as a sentence.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    /// `bad`, `warn` or `note`.
    pub(crate) level: &'static str,
    pub(crate) text: String,
    pub(crate) ns: Option<u64>,
    pub(crate) device: Option<usize>,
    /// The section that has more.
    pub(crate) section: &'static str,
}

/// Devices that are alike; figures are those of the first.
#[derive(Debug, Serialize)]
pub(crate) struct Device {
    pub(crate) label: String,
    pub(crate) chips: Vec<String>,
    pub(crate) arch: Option<&'static str>,
    pub(crate) board: Option<String>,
    pub(crate) totals: [Option<u64>; 2],
    /// The bytes of the pools of DRAM, trace, L1 and L1_SMALL.
    pub(crate) pools: [Option<u64>; 4],
    /// Where the map of DRAM and of L1 begins and ends, if known.
    pub(crate) extents: [(Option<u64>, Option<u64>); 2],
    /// Allocations, frees, dispatches, failures.
    pub(crate) counts: [u64; 4],
    /// Certain, possible (`null` if nothing bounds it), time.
    pub(crate) peaks: Vec<(u64, Option<u64>, u64)>,
    pub(crate) last: Vec<u64>,
    pub(crate) is_last_exact: bool,
    pub(crate) curves: Vec<Curve>,
    pub(crate) gaps: Vec<(u64, u64)>,
    pub(crate) doubts: Vec<(u64, u64)>,
    pub(crate) usages: Vec<Usage>,
}

/// A figure over time.
#[derive(Debug, Serialize)]
pub(crate) struct Curve {
    pub(crate) shift: u32,
    pub(crate) cells: String,
}

/// A process on a device.
#[derive(Debug, Serialize)]
pub(crate) struct Usage {
    pub(crate) process: usize,
    /// Bytes and time of DRAM and of L1.
    pub(crate) peaks: [(u64, u64); 2],
    pub(crate) last: [u64; 2],
    pub(crate) counts: [u64; 4],
    pub(crate) curves: Vec<Curve>,
}

/// A process.
#[derive(Debug, Serialize)]
pub(crate) struct Process {
    pub(crate) pid: u64,
    pub(crate) name: String,
    pub(crate) user: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) container: Option<String>,
    pub(crate) job: Option<String>,
    pub(crate) since: u64,
    pub(crate) until: Option<u64>,
    /// `alive`, `closed`, `died`, `lost` or `unknown`.
    pub(crate) how: &'static str,
    pub(crate) events: u64,
    pub(crate) lost: u64,
    pub(crate) is_partial: bool,
    pub(crate) differences: u64,
    pub(crate) unlisted: u64,
    pub(crate) unknown: Vec<(u64, u64)>,
    /// Last time before, first time after (0 if not known), events lost.
    pub(crate) gaps: Vec<(u64, u64, u64)>,
}

/// What devices held at a moment.
#[derive(Debug, Serialize)]
pub(crate) struct Snapshot {
    pub(crate) ns: u64,
    pub(crate) kind: &'static str,
    pub(crate) label: String,
    /// The device and the figure whose peak it is.
    pub(crate) of: Option<(usize, usize)>,
    pub(crate) devices: Vec<Holding>,
}

/// What a device held at a moment.
#[derive(Debug, Serialize)]
pub(crate) struct Holding {
    pub(crate) device: usize,
    pub(crate) is_exact: bool,
    pub(crate) figures: [u64; FIGURES],
    /// Class, name, process, bytes, requested, count: largest first.
    pub(crate) groups: Vec<[u64; 6]>,
    /// Groups that are left out, and their bytes; of DRAM and of L1.
    pub(crate) others: [(u64, u64); 2],
    /// What is used in DRAM and in L1 and in no list.
    pub(crate) unlisted: [u64; 2],
    /// Start, length, class, name, process, count; of DRAM and of L1.
    pub(crate) blocks: [Vec<[u64; 6]>; 2],
    /// Blocks that are left out.
    pub(crate) hidden: [u64; 2],
    pub(crate) unplaced: u64,
}

/// A failed allocation. What the process did not know is `null`.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    pub(crate) ns: u64,
    pub(crate) device: usize,
    /// Which one of devices that are alike.
    pub(crate) on: String,
    pub(crate) process: usize,
    pub(crate) class: &'static str,
    pub(crate) name: u32,
    pub(crate) size: Option<u64>,
    pub(crate) needed: Option<u64>,
    pub(crate) banks: Option<u64>,
    pub(crate) free: Option<u64>,
    pub(crate) largest: Option<u64>,
    pub(crate) is_per_bank: bool,
    /// Exhausted, fragmented or unknown.
    pub(crate) why: &'static str,
    pub(crate) held: [u64; 2],
    pub(crate) is_exact: bool,
    pub(crate) snapshot: Option<usize>,
}
