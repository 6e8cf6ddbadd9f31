//! Programs as rows, and their dispatches per second.

use std::collections::HashMap;
use std::sync::Arc;

use crate::escape::escape;
use crate::lists::programs::{Entry, Listing};
use crate::model::ranges;
use crate::screen::widgets::list::Column;
use crate::screen::widgets::text::{hex, or_unknown};
use crate::segments::pid_text;
use crate::units::{age, bytes, count};

#[derive(Clone, Debug)]
pub(super) struct ProgramRow {
    pub listing: Arc<Listing>,
    pub place: usize,
    /// Dispatches per second.
    pub rate: Option<f64>,
}

impl ProgramRow {
    pub(super) fn entry(&self) -> &Entry {
        &self.listing.entries[self.place]
    }

    pub(super) fn number(&self) -> u64 {
        number(self.entry())
    }

    /// Its name, escaped.
    pub(super) fn name(&self) -> String {
        or_unknown(self.entry().program.name.as_deref(), escape)
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
    Column::ids("ID", 8, 4, |row| hex(row.entry().program.id), |row| Some(row.entry().program.id)),
    Column::words("NAME", 0, 0, ProgramRow::name, |row| row.entry().program.name.as_deref()),
    Column::words("TYPES", 12, 9, |row| row.entry().types(), types_key),
    Column::ids(
        "DEV",
        5,
        8,
        |row| ranges(row.entry().devices.iter().copied()),
        |row| row.entry().devices.first().map(|device| *device as u64),
    ),
    Column::number(
        "KERNELS",
        9,
        5,
        |row| bytes(row.entry().program.kernel_bytes),
        |row| Some(row.entry().program.kernel_bytes),
    ),
    Column::number(
        "BINARY x CORES",
        15,
        11,
        |row| row.entry().binaries(),
        |row| Some(row.entry().program.kernel_bytes),
    ),
    Column::number(
        "CB",
        9,
        6,
        |row| bytes(row.entry().program.cb_bytes),
        |row| Some(row.entry().program.cb_bytes),
    ),
    Column::number(
        "DISP/S",
        7,
        1,
        |row| or_unknown(row.rate, rate_text),
        |row| row.rate.map(|rate| (rate * 1000.0) as u64),
    ),
    Column::number(
        "DISPATCHES",
        10,
        2,
        |row| row.entry().program.dispatches.to_string(),
        |row| Some(row.entry().program.dispatches),
    ),
    Column::number(
        "HITS",
        8,
        10,
        |row| row.entry().program.cache_hits.to_string(),
        |row| Some(row.entry().program.cache_hits),
    ),
    Column::number(
        "MISSES",
        7,
        12,
        |row| row.entry().program.cache_misses.to_string(),
        |row| Some(row.entry().program.cache_misses),
    ),
    Column::ids(
        "LAST",
        6,
        7,
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

/// Dispatches per second, from two lists: the last counts, and the rates computed from them.
#[derive(Debug, Default)]
pub(super) struct DispatchRates {
    counted: HashMap<(u32, u64), u64>,
    counted_ns: Option<u64>,
    rates: HashMap<(u32, u64), f64>,
}

impl DispatchRates {
    /// Takes in a new list.
    pub(super) fn take(&mut self, entries: &[Entry], now_ns: u64) {
        let time_ns = self.counted_ns.map(|counted| now_ns.saturating_sub(counted));
        if time_ns.is_some_and(|time_ns| time_ns < LEAST_NS) {
            return;
        }
        let key = |entry: &Entry| (entry.pid, entry.program.id);
        let rate = |entry: &Entry| {
            // A lower count means another program with the same id.
            let more = entry.program.dispatches.checked_sub(*self.counted.get(&key(entry))?)?;
            Some((key(entry), more as f64 * 1e9 / time_ns? as f64))
        };
        self.rates = entries.iter().filter_map(rate).collect();
        self.counted = entries.iter().map(|entry| (key(entry), entry.program.dispatches)).collect();
        self.counted_ns = Some(now_ns);
    }

    /// A program's dispatches per second; `None` if it was seen only once.
    pub(super) fn of(&self, entry: &Entry) -> Option<f64> {
        self.rates.get(&(entry.pid, entry.program.id)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_reader::{ClockKind, Program};

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
            last_dispatch_ns: None,
        }
    }

    #[test]
    fn a_rate_needs_two_lists() {
        let mut rates = DispatchRates::default();
        rates.take(&[entry(1, 100)], SECOND);
        assert_eq!(rates.of(&entry(1, 100)), None);
        rates.take(&[entry(1, 300), entry(2, 5)], 3 * SECOND);
        assert_eq!(rates.of(&entry(1, 300)), Some(100.0));
        assert_eq!(rates.of(&entry(2, 5)), None, "new");
        rates.take(&[entry(1, 300), entry(2, 4)], 4 * SECOND);
        assert_eq!(rates.of(&entry(1, 300)), Some(0.0), "known to be none");
        assert_eq!(rates.of(&entry(2, 4)), None, "another program");
    }
}
