//! Loaded programs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;
use tt_shm_reader::{ClockKind, Kernel, Program, Row, RowKind, Segment, kernel_sharing};

use super::bounds::{MOST_ROWS, Names, left_out};
use crate::directory::Directory;
use crate::segments::{Called, called, lost};
use crate::units::{UNKNOWN, bytes, plural};
use crate::unread::Unread;

/// A program of a process.
#[derive(Debug)]
pub struct Entry {
    /// Pid of its process in this namespace.
    pub pid: u32,
    /// Whether that pid is only claimed.
    pub claimed: bool,
    /// Identity of its segment.
    pub identity: u64,
    /// The clock of its ticks.
    pub clock: ClockKind,
    /// Its rows.
    pub program: Program,
    /// Indices of its devices.
    pub devices: Vec<usize>,
    /// The index of each device of `program`; `None` if it is not listed.
    pub indices: Vec<Option<usize>>,
    /// Time since its last dispatch.
    pub last_dispatch_ns: Option<u64>,
}

/// Kernel bytes of a device, by the hash of the binary.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sharing {
    /// Index of the device.
    pub device: usize,
    /// Everything that is loaded.
    pub kernel_loaded_bytes: u64,
    /// One copy of each binary.
    pub kernel_unique_bytes: u64,
    /// Further copies of the same binaries.
    pub kernel_shared_bytes: u64,
    /// Binaries without a hash.
    pub kernel_unhashed_bytes: u64,
}

/// The programs of some processes.
#[derive(Debug, Default)]
pub struct Listing {
    /// Most recently dispatched first, once finished.
    pub entries: Vec<Entry>,
    /// Kernel rows of all processes, with the index of the device in place of the process's own.
    kernels: BTreeMap<usize, Vec<Row>>,
    /// By device, once finished.
    pub sharing: Vec<Sharing>,
    /// What the list lacks, in words.
    pub errors: Vec<String>,
    /// Whether a process is missing, was too busy for a consistent read, or had no room for all rows.
    pub is_inexact: bool,
}

impl Listing {
    /// Records what could not be read.
    pub fn lack(&mut self, unread: &Unread) {
        self.is_inexact |= unread.is_missing;
        self.errors.extend(unread.errors());
    }

    /// Adds the programs of a process that are on these devices.
    pub fn add(&mut self, segment: &Segment, directory: &Directory, wanted: &[usize]) {
        let index: Vec<Option<usize>> =
            segment.devices().iter().map(|entry| directory.index_of(entry.chip_id)).collect();
        let index = |device: u8| index.get(usize::from(device)).copied().flatten();
        let mut list = segment.live_list();
        let Called { pid, claimed } = called(segment);
        let lost = lost(segment);
        self.is_inexact |= lost.is_some() || !list.exact;
        self.errors.extend(lost);
        if !list.exact {
            self.errors.push(format!("pid {pid}: too busy to be read exactly; its list may lack programs"));
        }
        if list.unlisted > 0 {
            self.is_inexact = true;
            let unlisted = plural(list.unlisted, "live allocation");
            self.errors
                .push(format!("pid {pid}: {unlisted} not listed: it had no room; programs may lack parts"));
        }
        let more = list.rows.len().saturating_sub(MOST_ROWS) as u64;
        list.rows.truncate(MOST_ROWS);
        self.is_inexact |= more > 0;
        let clock = segment.calibration();
        let mut names = Names::default();
        for program in segment.programs_of(&list.rows) {
            let indices: Vec<Option<usize>> = program.device_indices().map(index).collect();
            let mut devices: Vec<usize> = indices.iter().copied().flatten().collect();
            devices.sort_unstable();
            if devices.iter().any(|device| wanted.contains(device)) {
                let ago = |ticks| clock.second.monotonic_ns.saturating_sub(clock.to_monotonic_ns(ticks));
                let last_dispatch_ns = program.last_dispatch.map(ago);
                let name = program.name.map(|name| names.fit(name.into()));
                let program = Program { name: name.map(|name| name.raw().to_owned()), ..program };
                let (identity, clock) = (segment.identity(), clock.kind);
                let entry =
                    Entry { pid, claimed, identity, clock, program, devices, indices, last_dispatch_ns };
                self.entries.push(entry);
            }
        }
        self.errors.extend(left_out(pid, more).into_iter().chain(names.doubt(pid)));
        for row in list.rows.into_iter().filter(|row| row.kind() == Some(RowKind::Kernel)) {
            if let Some(device) = index(row.device).filter(|device| wanted.contains(device)) {
                self.kernels.entry(device).or_default().push(Row { device: 0, ..row });
            }
        }
    }

    /// Most recently dispatched first; unique and shared bytes over all processes.
    pub fn finish(&mut self) {
        sort(&mut self.entries);
        for (device, rows) in &self.kernels {
            self.sharing.extend(kernel_sharing(rows).first().map(|sharing| Sharing {
                device: *device,
                kernel_loaded_bytes: sharing.loaded,
                kernel_unique_bytes: sharing.unique,
                kernel_shared_bytes: sharing.shared,
                kernel_unhashed_bytes: sharing.unhashed,
            }));
        }
    }
}

/// Most recently dispatched first, in one order however often it is asked for.
///
/// An age is measured anew for each process at each reading, so ages of dispatches that were close together come in
/// different orders. Ticks do not change. They can be compared if all are of one clock, as is usual.
fn sort(entries: &mut [Entry]) {
    let has_one_clock = entries.windows(2).all(|pair| pair[0].clock == pair[1].clock);
    let key = |entry: &Entry| {
        let ticks = entry.program.last_dispatch.filter(|_| has_one_clock);
        let age = entry.last_dispatch_ns.filter(|_| !has_one_clock);
        let never = entry.last_dispatch_ns.is_none();
        (never, age, Reverse(ticks), entry.pid, entry.program.id, entry.identity)
    };
    entries.sort_by_key(key);
}

impl Entry {
    /// The types of its kernels: `Fabric+Dispatch`.
    pub fn types(&self) -> String {
        let program = &self.program;
        let labels: Vec<&str> = program.kernel_types.iter().map(|kernel| kernel.label()).collect();
        if labels.is_empty() { UNKNOWN.to_owned() } else { labels.join("+") }
    }

    /// The kernels on the first of its devices: `57344 x 16`.
    pub fn binaries(&self) -> String {
        let program = &self.program;
        let kernels = program.devices.first().map_or(&[][..], |device| &device.kernels);
        let one = |kernel: &Kernel| match kernel.binary_bytes() {
            Some(binary) => format!("{binary} x {}", kernel.cores),
            None => bytes(kernel.bytes),
        };
        match kernels {
            [] => UNKNOWN.to_owned(),
            [kernel] => one(kernel),
            [first, rest @ ..] => format!("{} +{}", one(first), rest.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(pid: u32, id: u64, ticks: Option<u64>, last_dispatch_ns: Option<u64>) -> Entry {
        let program = Program { id, last_dispatch: ticks, ..Program::default() };
        Entry {
            pid,
            claimed: false,
            identity: u64::from(pid) * 10,
            clock: ClockKind::Tsc,
            program,
            devices: vec![0],
            indices: vec![Some(0)],
            last_dispatch_ns,
        }
    }

    /// The order of these entries, from whatever order they are found in.
    #[track_caller]
    fn assert_order(expected: &[(u64, u64)], entries: impl Fn() -> Vec<Entry>) {
        let count = entries().len();
        for turn in 0..count {
            for is_reversed in [false, true] {
                let mut entries = entries();
                entries.rotate_left(turn);
                if is_reversed {
                    entries.reverse();
                }
                sort(&mut entries);
                let order: Vec<_> = entries.iter().map(|entry| (entry.identity, entry.program.id)).collect();
                assert_eq!(order, expected, "from turn {turn}, reversed: {is_reversed}");
            }
        }
    }

    #[test]
    fn ticks_decide_and_not_how_late_a_process_was_read() {
        for late in [0, 100] {
            assert_order(&[(20, 1), (10, 2), (10, 1), (20, 3), (10, 7), (10, 8), (20, 7)], || {
                vec![
                    entry(1, 1, Some(1000), Some(50)),
                    entry(1, 2, Some(1001), Some(50)),
                    // Read later: its ages are higher.
                    entry(2, 1, Some(1002), Some(49 + late)),
                    entry(2, 3, Some(999), Some(51 + late)),
                    entry(1, 8, None, None),
                    entry(1, 7, None, None),
                    entry(2, 7, None, None),
                ]
            });
        }
    }

    #[test]
    fn equal_rows_have_one_order() {
        let of = |identity| Entry { identity, ..entry(1, 1, Some(1000), Some(50)) };
        assert_order(&[(3, 1), (4, 1), (5, 1)], || vec![of(4), of(3), of(5)]);
    }

    #[test]
    fn ticks_of_different_clocks_are_not_compared() {
        assert_order(&[(20, 1), (10, 1), (10, 2)], || {
            let other = Entry { clock: ClockKind::Monotonic, ..entry(2, 1, Some(7), Some(40)) };
            vec![entry(1, 1, Some(1000), Some(50)), other, entry(1, 2, None, None)]
        });
    }
}
