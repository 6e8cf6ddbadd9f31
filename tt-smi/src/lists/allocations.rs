//! Live allocations, one by one.

use std::collections::BTreeMap;

use serde::Serialize;
use tt_shm_reader::{
    Allocation, Class, CoreType, DeviceEntry, Memory, Row, RowKind, Segment, UNKNOWN as NO_ADDRESS, flags,
};

use super::bounds::{MOST_ROWS, Names, left_out};
use crate::cli::SortBy;
use crate::directory::Directory;
use crate::escape::{Foreign, fit};
use crate::model::{millis, word, word_or_null};
#[cfg(test)]
use crate::schema;
use crate::segments::{Called, called, lost};
use crate::units::{UNKNOWN, plural};
use crate::unread::Unread;

/// Something live.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Item {
    /// Index of the device.
    pub device: usize,
    /// The process's own number of the device: one for each allocator on a chip.
    #[serde(skip)]
    pub entry: u8,
    /// Identity of the segment that lists it.
    #[serde(skip)]
    pub identity: u64,
    /// Pid of its process in this namespace.
    pub pid: u32,
    /// Whether pid is only what the segment claims: /proc has no process of that pid, owner and start time.
    pub claimed: bool,
    /// Memory class.
    #[serde(serialize_with = "word")]
    #[cfg_attr(test, schemars(schema_with = "schema::words::<Class>"))]
    pub class: Class,
    /// The process's number for it: buffer, circular buffer or kernel id.
    pub id: u64,
    /// Program that it belongs to; `None` if none.
    pub program: Option<u64>,
    /// Bytes on that device.
    #[serde(rename = "size_bytes")]
    pub size: u64,
    /// Where it lies; `None` if not known.
    pub address: Option<u64>,
    /// Bytes in each bank, or in the L1 of each core, if the producer says so.
    #[serde(skip)]
    pub bank_bytes: Option<u64>,
    /// Number of cores; `None` if not known.
    pub cores: Option<u32>,
    /// Kind of its cores; `None` if it is not in cores.
    #[serde(serialize_with = "word_or_null")]
    #[cfg_attr(test, schemars(schema_with = "schema::words_or_null::<CoreType>"))]
    pub core_type: Option<CoreType>,
    /// A circular buffer inside an L1 buffer, without bytes of its own.
    pub globally_allocated: bool,
    /// What the process calls it, exactly; `None` if it has no name.
    pub name: Option<Foreign>,
    /// Where it was made; `None` unless the process records that.
    pub site: Option<Foreign>,
    /// How long it has been live; in JSON, in milliseconds.
    #[serde(rename = "age_ms", serialize_with = "millis")]
    pub age_ns: u64,
}

/// Live allocations, and what the list lacks.
#[derive(Debug, Default)]
pub struct Listing {
    pub items: Vec<Item>,
    /// By device and class: bytes and number.
    pub subtotals: BTreeMap<(usize, Class), (u64, u64)>,
    /// What the list lacks, in words.
    pub doubts: Vec<String>,
    /// Processes whose list is not a consistent snapshot.
    pub inexact: u64,
    pub inexact_pids: Vec<u32>,
    /// Number of live allocations that did not fit into a process's list.
    pub unlisted: u64,
    /// Whether a process that may be alive could not be read.
    pub is_missing: bool,
    /// Number of live allocations beyond the limit per process; subtotals include them.
    pub left_out: u64,
}

impl Listing {
    /// Whether the list is complete, and consistent for each process.
    pub fn is_exact(&self) -> bool {
        self.inexact == 0 && self.unlisted == 0 && self.left_out == 0 && !self.is_missing
    }

    /// Records what could not be read.
    pub fn lack(&mut self, unread: &Unread) {
        self.is_missing |= unread.is_missing;
        self.doubts.extend(unread.errors());
    }

    /// Adds the wanted allocations of a process.
    pub fn add(&mut self, segment: &Segment, directory: &Directory, wanted: impl Fn(&Item) -> bool) {
        let devices: Vec<Listed> = segment
            .devices()
            .into_iter()
            .map(|entry| Listed { index: directory.index_of(entry.chip_id), entry })
            .collect();
        let list = segment.allocations();
        let called = called(segment);
        let pid = called.pid;
        if let Some(lost) = lost(segment) {
            self.is_missing = true;
            self.doubts.push(lost);
        }
        if !list.exact {
            self.inexact += 1;
            self.inexact_pids.push(pid);
            self.doubts.push(format!(
                "pid {pid}: allocates faster than its list can be read; the list is not exact ({} missed)",
                plural(list.missed, "event")
            ));
        }
        if list.unlisted > 0 {
            self.unlisted += list.unlisted;
            let unlisted = plural(list.unlisted, "live allocation");
            self.doubts.push(format!("pid {pid}: {unlisted} not listed: it had no room; totals are exact"));
        }
        let (mut names, mut listed, mut more) = (Names::default(), 0, 0);
        let mut sums: Vec<[(u64, u64); Class::COUNT]> = Vec::new();
        self.items.reserve(list.list.len().min(MOST_ROWS));
        for allocation in list.list {
            let Some(item) = Item::new(allocation, segment.identity(), called, &devices).filter(&wanted)
            else {
                continue;
            };
            if item.device >= sums.len() {
                sums.resize(item.device + 1, [(0, 0); Class::COUNT]);
            }
            let (bytes, count) = &mut sums[item.device][item.class as usize];
            (*bytes, *count) = (bytes.saturating_add(item.size), *count + 1);
            if listed == MOST_ROWS {
                more += 1;
                continue;
            }
            listed += 1;
            self.items.push(item.bounded(&mut names));
        }
        self.add_sums(&sums);
        self.left_out += more;
        self.doubts.extend(left_out(pid, more).into_iter().chain(names.doubt(pid)));
    }

    /// Adds up what a process has, by device and class.
    fn add_sums(&mut self, sums: &[[(u64, u64); Class::COUNT]]) {
        for (device, classes) in sums.iter().enumerate() {
            for (class, (bytes, count)) in
                Class::ALL.into_iter().map(|class| (class, classes[class as usize]))
            {
                if count > 0 {
                    let sum = self.subtotals.entry((device, class)).or_default();
                    *sum = (sum.0.saturating_add(bytes), sum.1 + count);
                }
            }
        }
    }

    /// Sorts them.
    pub fn sort(&mut self, by: SortBy) {
        match by {
            SortBy::Size => {
                self.items.sort_by_key(|item| (std::cmp::Reverse(item.size), item.device, item.pid))
            }
            // Unknown is not low: it sorts after everything known.
            SortBy::Address => {
                let place = |item: &Item| (item.device, item.address.is_none(), item.address, item.pid);
                self.items.sort_by_key(place);
            }
            SortBy::Age => {
                self.items.sort_by_key(|item| (std::cmp::Reverse(item.age_ns), item.device, item.pid))
            }
        }
    }
}

/// A device of a process: its index, if it is listed, and its entry.
struct Listed {
    index: Option<usize>,
    entry: DeviceEntry,
}

impl Item {
    /// `None` for a row of a later version, or for a device that is not listed.
    fn new(allocation: Allocation, identity: u64, called: Called, devices: &[Listed]) -> Option<Item> {
        let Allocation { row, name, site, age_ns } = allocation;
        let is_kernel = row.kind()? == RowKind::Kernel;
        let class = row.class()?;
        let device = devices.get(usize::from(row.device))?;
        Some(Item {
            device: device.index?,
            entry: row.device,
            identity,
            pid: called.pid,
            claimed: called.claimed,
            class,
            id: row.id,
            program: row.program(),
            size: row.size,
            // A kernel's row has the hash of its binary there.
            address: Some(row.address).filter(|address| !is_kernel && *address != NO_ADDRESS),
            bank_bytes: bank_bytes(&row, &device.entry),
            cores: Some(u32::from(row.cores)).filter(|cores| *cores != 0),
            core_type: in_cores(class).then(|| row.core_type()),
            globally_allocated: row.flags & flags::GLOBAL != 0,
            name: name.map(Foreign::from),
            site: site.map(Foreign::from),
            age_ns,
        })
    }

    /// Shortens name and site if the process has used up its allowance.
    fn bounded(self, names: &mut Names) -> Item {
        let mut fit = |name: Option<Foreign>| name.map(|name| names.fit(name));
        Item { name: fit(self.name), site: fit(self.site), ..self }
    }

    /// Whether both are one allocation of a mesh, on two of its devices: alike in everything but the device. The moment
    /// does not count, because a call on a mesh is recorded on one device after the other.
    pub fn is_same_on_other_device(&self, other: &Item) -> bool {
        self.device != other.device
            && (self.id, self.size, self.address) == (other.id, other.size, other.address)
            && (self.identity, self.class, self.program) == (other.identity, other.class, other.program)
            && (self.cores, self.core_type) == (other.cores, other.core_type)
            && self.globally_allocated == other.globally_allocated
            && (&self.name, &self.site) == (&other.name, &other.site)
    }

    /// Its name, and the reason if it has no bytes.
    pub fn label(&self) -> String {
        let inside = if self.globally_allocated { " (inside an L1 buffer)" } else { "" };
        let name = self.name.as_ref().map_or_else(|| UNKNOWN.to_owned(), |name| fit(name, 40));
        format!("{name}{inside}")
    }
}

/// Bytes in each bank. A buffer occupies as much in every bank of its pool, a circular buffer is as large on each
/// of its cores.
fn bank_bytes(row: &Row, entry: &DeviceEntry) -> Option<u64> {
    match row.kind()? {
        RowKind::Buffer if row.is_requested_basis() => None,
        // In hybrid mode it may be in only some of them.
        RowKind::Buffer if entry.is_hybrid() == Some(true) => None,
        RowKind::Buffer => row.size.checked_div(entry.pool(row.class()?)?.banks),
        RowKind::Cb => row.size.checked_div(u64::from(row.cores)),
        RowKind::Kernel | RowKind::Program => None,
    }
}

/// Whether allocations of this class are in the L1 of cores.
fn in_cores(class: Class) -> bool {
    matches!(class.memory(), Memory::L1 | Memory::Kernels)
}
