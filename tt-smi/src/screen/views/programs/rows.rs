//! Programs as rows, and their dispatches per second.

use std::collections::HashMap;
use std::sync::Arc;

use tt_shm_reader::{Program, ProgramDevice};

use crate::escape::escape;
use crate::lists::fold::devices_text;
use crate::lists::programs::{Entry, Listing};
use crate::query::{Field, Record, Value};
use crate::screen::widgets::list::Column;
use crate::screen::widgets::text::{hex, or_unknown};
use crate::segments::pid_text;
use crate::units::{age, bytes, count};

/// A program on those of its devices where its kernels and circular buffers are the same.
#[derive(Clone, Debug)]
pub(super) struct ProgramRow {
    pub listing: Arc<Listing>,
    pub place: usize,
    /// Places among the devices of the program.
    parts: Vec<usize>,
    /// Dispatches per second.
    pub rate: Option<f64>,
}

/// The lines of a program: one for all devices on which it is the same, or one for each.
pub(super) fn program_rows(
    listing: &Arc<Listing>,
    place: usize,
    is_folded: bool,
    rates: &DispatchRates,
) -> Vec<ProgramRow> {
    let entry = &listing.entries[place];
    let devices = &entry.program.devices;
    let held = |part: usize| {
        let device = &devices[part];
        (device.kernel_bytes, device.cb_bytes, device.cb_count, &device.kernels)
    };
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for part in 0..devices.len() {
        match sets.iter_mut().find(|parts| is_folded && held(parts[0]) == held(part)) {
            Some(parts) => parts.push(part),
            None => sets.push(vec![part]),
        }
    }
    if sets.is_empty() {
        sets.push(Vec::new());
    }
    let row = |parts: Vec<usize>| {
        let rate = rates.of(entry, &parts);
        ProgramRow { listing: listing.clone(), place, parts, rate }
    };
    sets.into_iter().map(row).collect()
}

impl ProgramRow {
    /// The program on all of its devices.
    pub(super) fn whole(listing: &Arc<Listing>, place: usize) -> ProgramRow {
        let parts = (0..listing.entries[place].program.devices.len()).collect();
        ProgramRow { listing: listing.clone(), place, parts, rate: None }
    }

    pub(super) fn entry(&self) -> &Entry {
        &self.listing.entries[self.place]
    }

    pub(super) fn number(&self) -> u64 {
        number(self.entry()) ^ (self.parts.first().copied().unwrap_or(0) as u64).rotate_right(8)
    }

    /// Its name, escaped.
    pub(super) fn name(&self) -> String {
        or_unknown(self.entry().program.name.as_deref(), escape)
    }

    fn is_whole(&self) -> bool {
        self.parts.len() == self.entry().program.devices.len()
    }

    /// The program on its first device: the same on the others of this line.
    fn first(&self) -> Option<&ProgramDevice> {
        self.entry().program.devices.get(*self.parts.first()?)
    }

    fn indices(&self) -> Vec<usize> {
        let entry = self.entry();
        match self.is_whole() {
            true => entry.devices.clone(),
            false => self.parts.iter().filter_map(|part| *entry.indices.get(*part)?).collect(),
        }
    }

    /// `2`, `0-3 x4`.
    fn devices(&self) -> String {
        devices_text(self.indices())
    }

    /// Bytes of its kernels on each device.
    fn kernel_bytes(&self) -> u64 {
        self.first().map_or(self.entry().program.kernel_bytes, |device| device.kernel_bytes)
    }

    /// Bytes of its circular buffers on each device: allocated, whether or not the program is resident.
    fn cb_bytes(&self) -> u64 {
        self.first().map_or(self.entry().program.cb_bytes, |device| device.cb_bytes)
    }

    /// A count on all devices of this line.
    fn sum(&self, whole: fn(&Program) -> u64, part: fn(&ProgramDevice) -> u64) -> u64 {
        let program = &self.entry().program;
        match self.is_whole() {
            true => whole(program),
            false => {
                self.parts.iter().map(|place| part(&program.devices[*place])).fold(0, u64::saturating_add)
            }
        }
    }

    fn dispatches(&self) -> u64 {
        self.sum(|program| program.dispatches, |device| device.dispatches)
    }

    fn hits(&self) -> u64 {
        self.sum(|program| program.cache_hits, |device| device.cache_hits)
    }

    fn misses(&self) -> u64 {
        self.sum(|program| program.cache_misses, |device| device.cache_misses)
    }
}

impl Record for ProgramRow {
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Device => Value::Numbers(self.indices().into_iter().map(|device| device as u64).collect()),
            Field::Size => Value::Number(
                self.sum(|program| program.kernel_bytes, |device| device.kernel_bytes)
                    .saturating_add(self.sum(|program| program.cb_bytes, |device| device.cb_bytes)),
            ),
            Field::Dispatches => Value::Number(self.dispatches()),
            Field::Hits => Value::Number(self.hits()),
            Field::Misses => Value::Number(self.misses()),
            _ => self.entry().value(field),
        }
    }
}

/// Identifies a program.
pub(super) fn number(entry: &Entry) -> u64 {
    entry.program.id ^ u64::from(entry.pid).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn types_key(row: &ProgramRow) -> Option<&str> {
    row.entry().program.kernel_types.first().map(|kernel| kernel.label())
}

/// Sorted by dispatches per second initially: what is running now.
pub(super) const SORTED_BY: usize = 8;

pub(super) const COLUMNS: &[Column<ProgramRow>] = &[
    Column::ids(
        "PID",
        7,
        3,
        |row| pid_text(row.entry().pid, row.entry().claimed),
        |row| Some(row.entry().pid.into()),
    ),
    Column::ids("ID", 8, 7, |row| hex(row.entry().program.id), |row| Some(row.entry().program.id)),
    Column::words("NAME", 0, 0, ProgramRow::name, |row| row.entry().program.name.as_deref()),
    Column::words("TYPES", 12, 9, |row| row.entry().types(), types_key),
    Column::ids("DEV", 8, 4, ProgramRow::devices, |row| row.indices().first().map(|device| *device as u64)),
    Column::number("KERNELS/DEV", 11, 5, |row| bytes(row.kernel_bytes()), |row| Some(row.kernel_bytes())),
    Column::number("BINARY x CORES", 15, 11, |row| row.entry().binaries(), |row| Some(row.kernel_bytes())),
    Column::number("CB ALLOC/DEV", 12, 6, |row| bytes(row.cb_bytes()), |row| Some(row.cb_bytes())),
    Column::number(
        "DISP/S",
        7,
        1,
        |row| or_unknown(row.rate, rate_text),
        |row| row.rate.map(|rate| (rate * 1000.0) as u64),
    ),
    Column::number("DISPATCHES", 10, 2, |row| row.dispatches().to_string(), |row| Some(row.dispatches())),
    Column::number("HITS", 8, 10, |row| row.hits().to_string(), |row| Some(row.hits())),
    Column::number("MISSES", 7, 12, |row| row.misses().to_string(), |row| Some(row.misses())),
    Column::ids(
        "LAST",
        6,
        8,
        |row| or_unknown(row.entry().last_dispatch_ns, age),
        |row| row.entry().last_dispatch_ns,
    ),
    Column::new("LATE", 4, 13, |row| if row.entry().program.late { "late" } else { "" }.to_owned()),
];

/// Low rates get a decimal, so that they do not show as 0.
fn rate_text(rate: f64) -> String {
    if rate > 0.0 && rate < 9.95 { format!("{rate:.1}") } else { count(rate) }
}

/// Shortest meaningful time between two lists.
const LEAST_NS: u64 = 200_000_000;

/// Process, program, and its device among those of the program.
type Counted = (u32, u64, usize);

/// Dispatches per second, from two lists: the last counts, and the rates computed from them.
#[derive(Debug, Default)]
pub(super) struct DispatchRates {
    counted: HashMap<Counted, u64>,
    counted_ns: Option<u64>,
    rates: HashMap<Counted, f64>,
}

/// The dispatches of a program on all devices, and on each.
fn counts(entry: &Entry) -> impl Iterator<Item = (Counted, u64)> {
    let (pid, program) = (entry.pid, &entry.program);
    let each = program.devices.iter().map(|device| device.dispatches);
    let parts = (0..).zip(each).map(move |(part, dispatches)| ((pid, program.id, part), dispatches));
    parts.chain([((pid, program.id, ALL), program.dispatches)])
}

/// All devices of a program.
const ALL: usize = usize::MAX;

impl DispatchRates {
    /// Takes in a new list.
    pub(super) fn take(&mut self, entries: &[Entry], now_ns: u64) {
        let time_ns = self.counted_ns.map(|counted| now_ns.saturating_sub(counted));
        if time_ns.is_some_and(|time_ns| time_ns < LEAST_NS) {
            return;
        }
        let rate = |(key, dispatches): (Counted, u64)| {
            // A lower count means another program with the same id.
            let more = dispatches.checked_sub(*self.counted.get(&key)?)?;
            Some((key, more as f64 * 1e9 / time_ns? as f64))
        };
        self.rates = entries.iter().flat_map(counts).filter_map(rate).collect();
        self.counted = entries.iter().flat_map(counts).collect();
        self.counted_ns = Some(now_ns);
    }

    /// A program's dispatches per second on these of its devices; `None` if it was seen only once.
    pub(super) fn of(&self, entry: &Entry, parts: &[usize]) -> Option<f64> {
        let of = |part: usize| self.rates.get(&(entry.pid, entry.program.id, part)).copied();
        match parts.len() == entry.program.devices.len() {
            true => of(ALL),
            false => parts.iter().map(|part| of(*part)).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_reader::ClockKind;

    const SECOND: u64 = 1_000_000_000;

    fn entry(id: u64, dispatches: u64) -> Entry {
        let program = Program { id, dispatches, ..Program::default() };
        Entry {
            pid: 1,
            claimed: false,
            identity: 1,
            clock: ClockKind::Monotonic,
            program,
            devices: vec![0],
            indices: vec![Some(0)],
            last_dispatch_ns: None,
        }
    }

    #[test]
    fn a_rate_needs_two_lists() {
        let mut rates = DispatchRates::default();
        rates.take(&[entry(1, 100)], SECOND);
        assert_eq!(rates.of(&entry(1, 100), &[]), None);
        rates.take(&[entry(1, 300), entry(2, 5)], 3 * SECOND);
        assert_eq!(rates.of(&entry(1, 300), &[]), Some(100.0));
        assert_eq!(rates.of(&entry(2, 5), &[]), None, "new");
        rates.take(&[entry(1, 300), entry(2, 4)], 4 * SECOND);
        assert_eq!(rates.of(&entry(1, 300), &[]), Some(0.0), "known to be none");
        assert_eq!(rates.of(&entry(2, 4), &[]), None, "another program");
    }

    #[test]
    fn a_program_is_one_line_unless_its_devices_differ() {
        let device = |device, cb_bytes, dispatches| ProgramDevice {
            device,
            cb_bytes,
            dispatches,
            ..Default::default()
        };
        let devices = vec![device(0, 10, 5), device(1, 10, 6), device(2, 11, 7), device(3, 10, 8)];
        let program = Program { devices, cb_bytes: 41, dispatches: 26, ..Program::default() };
        let indices = vec![Some(4), Some(5), Some(6), None];
        let entry = Entry { program, devices: vec![4, 5, 6], indices, ..entry(1, 26) };
        let mut listing = Listing::default();
        listing.entries.push(entry);
        let listing = Arc::new(listing);
        let rows = |is_folded| program_rows(&listing, 0, is_folded, &DispatchRates::default());
        let told = |row: &ProgramRow| (row.devices(), row.cb_bytes(), row.dispatches());
        let folded: Vec<_> = rows(true).iter().map(told).collect();
        assert_eq!(folded, [("4-5 x2".to_owned(), 10, 19), ("6".to_owned(), 11, 7)]);
        assert_eq!(rows(false).len(), 4);
        let numbers: Vec<u64> = rows(false).iter().map(ProgramRow::number).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
