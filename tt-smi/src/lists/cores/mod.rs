//! The L1 of each Tensix core: buffers, the memory of resident programs, what is free and where.
//!
//! Buffers of an allocator that works in lock step take the same range in every core, so cores differ only in the memory
//! of programs, and in the few buffers that lie on some cores only. Where a process does not tell on which cores
//! something lies, it is counted on none: what is used is then a lower bound, and what is free an upper one.

mod chip;
mod claims;
mod gaps;
mod ranges;
pub(crate) mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use tt_shm_reader::{Class, Segment};

use self::chip::Chip;
use self::claims::Entry;
pub(crate) use self::ranges::describe;
use crate::directory::Directory;
use crate::escape::Foreign;
use crate::model::word;
#[cfg(test)]
use crate::schema;
use crate::unread::Unread;

/// The L1 of every device that processes report.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    entries: Vec<Entry>,
    /// What could not be read or is in doubt, in words.
    pub(crate) doubts: Vec<String>,
    /// Whether a process that may be alive could not be read.
    is_missing: bool,
}

/// The L1 of the cores of a device.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeviceCores {
    /// Index of the device.
    pub device: usize,
    /// Whether all that lies on its cores is known, and where. Otherwise used bytes are at least, free bytes and gaps at
    /// most what is said here.
    pub exact: bool,
    /// Columns of its grid of cores; `None` if no process reports it.
    pub grid_columns: Option<u32>,
    /// Rows of its grid of cores; `None` if no process reports it.
    pub grid_rows: Option<u32>,
    /// Cores, each of which is a bank of L1; `None` if not known.
    pub core_count: Option<u64>,
    /// Bytes on each core that L1 buffers and programs can take; `None` if not known.
    pub l1_core_bytes: Option<u64>,
    /// Address at which these begin; `None` if no process reports it.
    pub l1_address: Option<u64>,
    /// Bytes on each core that L1_SMALL buffers can take; `None` if not known.
    pub l1_small_core_bytes: Option<u64>,
    /// The largest piece that the allocator can still provide for an L1 buffer on each core: it may lie over the memory
    /// of programs, which then cannot run; `None` if not known.
    pub largest_free_block_bytes: Option<u64>,
    /// At least this much is free on every core, wherever the unplaced lies; `None` if not known.
    pub free_at_least_bytes: Option<u64>,
    /// The core that runs out first: that with least free bytes, then with the smallest gap; `None` if free bytes are not
    /// known.
    pub runs_out_first: Option<Fullest>,
    /// Each core, row by row; or, if their coordinates are not known, one for all that are alike.
    pub cores: Vec<Core>,
    /// What lies on cores that its process does not tell; no core counts it.
    pub unplaced: Vec<Unplaced>,
    /// Kernel-config rings, as each process reports them.
    pub kernel_rings: Vec<Ring>,
    /// The programs whose memory is counted: identity of the process, its number of the device, program.
    #[serde(skip)]
    pub resident: Vec<(u64, u8, Option<u64>)>,
}

/// The L1 of a core, or of several that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Core {
    /// Column; `None` if not known.
    pub x: Option<u32>,
    /// Row; `None` if not known.
    pub y: Option<u32>,
    /// Cores that this stands for; `None` if not known.
    pub count: Option<u64>,
    #[serde(flatten)]
    pub held: Held,
    /// What takes most of it, the largest first. Cores that hold the same share it.
    #[serde(skip)]
    pub occupants: Arc<[Occupant]>,
}

/// What the L1 of a core holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Held {
    /// Bytes in L1 buffers.
    pub l1_bytes: u64,
    /// Bytes in L1_SMALL buffers.
    pub l1_small_bytes: u64,
    /// Bytes of resident programs: circular buffers, dataflow buffers, scratchpads.
    pub program_bytes: u64,
    /// Bytes that neither L1 buffers nor programs take; `None` if the capacity is not known.
    pub free_bytes: Option<u64>,
    /// Largest contiguous part of these; `None` if not every address is known.
    pub largest_gap_bytes: Option<u64>,
    /// Where that begins; `None` if it is not known, or nothing is free.
    pub largest_gap_address: Option<u64>,
    /// Bytes that are claimed more than once, such as by a buffer and a program; `None` if not every address is known.
    pub overlap_bytes: Option<u64>,
}

/// The core that runs out first.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Fullest {
    /// Column; `None` if not known.
    pub x: Option<u32>,
    /// Row; `None` if not known.
    pub y: Option<u32>,
    /// Cores that are as full as this one, which is one of them; `None` if not known.
    pub count: Option<u64>,
    /// Bytes that neither L1 buffers nor programs take.
    pub free_bytes: u64,
    /// Largest contiguous part of these; `None` if not every address is known.
    pub largest_gap_bytes: Option<u64>,
    /// What takes most of it, by process, class and name; the largest first.
    pub occupants: Vec<Occupant>,
}

/// What takes memory on a core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Occupant {
    /// Pid of its process in this namespace.
    pub pid: u32,
    /// Whether pid is only what the segment claims: /proc has no process of that pid, owner and start time.
    pub claimed: bool,
    /// Memory class.
    #[serde(serialize_with = "word")]
    #[cfg_attr(test, schemars(schema_with = "schema::words::<Class>"))]
    pub class: Class,
    /// Program that it belongs to; `None` if none.
    pub program: Option<u64>,
    /// What the process calls that program; `None` if it has no name.
    pub program_name: Option<Foreign>,
    /// What the process calls it, exactly; `None` if it has no name.
    pub name: Option<Foreign>,
    /// Bytes on this core.
    pub bytes: u64,
}

/// Something on cores that its process does not tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unplaced {
    /// Pid of its process in this namespace.
    pub pid: u32,
    /// Memory class.
    #[serde(serialize_with = "word")]
    #[cfg_attr(test, schemars(schema_with = "schema::words::<Class>"))]
    pub class: Class,
    /// Cores that it lies on.
    pub core_count: u64,
    /// How many there are of that kind, on so many cores.
    pub live_count: u64,
    /// Bytes that these take on a core on which all of them lie.
    pub core_bytes: u64,
}

/// The kernel-config ring of a process: kernels and arguments of the programs launched last, in reserved memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ring {
    /// Pid of its process in this namespace.
    pub pid: u32,
    /// Bytes of the ring on each core.
    pub total_bytes: u64,
    /// Bytes used.
    pub used_bytes: u64,
    /// Programs in it.
    pub programs: u64,
}

impl Listing {
    /// Adds what a process holds on the wanted devices.
    pub(crate) fn add(&mut self, segment: &Segment, directory: &Directory, wanted: &[usize]) {
        let index = |chip_id| directory.index_of(chip_id).filter(|index| wanted.contains(index));
        let (entries, doubts) = claims::read(segment, |entry| index(entry.chip_id));
        self.entries.extend(entries);
        self.doubts.extend(doubts);
    }

    /// Records what could not be read.
    pub(crate) fn lack(&mut self, unread: &Unread) {
        self.is_missing |= unread.is_missing;
        self.doubts.extend(unread.errors());
    }

    /// The devices, by index.
    pub(crate) fn devices(&self) -> Vec<DeviceCores> {
        let mut devices: BTreeMap<usize, Vec<&Entry>> = BTreeMap::new();
        for entry in &self.entries {
            devices.entry(entry.device).or_default().push(entry);
        }
        let device =
            |(device, entries): (usize, Vec<&Entry>)| Chip::new(&entries).cores(device, self.is_missing);
        devices.into_iter().map(device).collect()
    }
}
