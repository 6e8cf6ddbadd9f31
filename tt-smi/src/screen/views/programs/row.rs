//! Programs as rows.

use std::sync::Arc;

use crate::escape::escape;
use crate::lists::programs::{Entry, Listing};
use crate::model::ranges;
use crate::output::units::{UNKNOWN, age, bytes, count};
use crate::screen::widgets::list::Column;
use crate::segments::pid_text;

/// A program.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub listing: Arc<Listing>,
    pub place: usize,
    /// Dispatches per second.
    pub rate: Option<f64>,
}

impl Row {
    pub(super) fn entry(&self) -> &Entry {
        &self.listing.entries[self.place]
    }

    /// Its key.
    pub(super) fn number(&self) -> u64 {
        number(self.entry())
    }

    /// Its name, escaped.
    pub(super) fn name(&self) -> String {
        self.entry().program.name.as_deref().map_or_else(|| UNKNOWN.to_owned(), escape)
    }
}

/// Identifies a program.
pub(super) fn number(entry: &Entry) -> u64 {
    entry.program.id ^ u64::from(entry.pid).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn types_key(row: &Row) -> Option<&str> {
    row.entry().program.kernel_types.first().map(|kernel| kernel.label())
}

/// Sorted by dispatches per second initially: what is running now.
pub(super) const SORTED_BY: usize = 8;

pub(super) const COLUMNS: &[Column<Row>] = &[
    Column::ids(
        "PID",
        7,
        3,
        |row| pid_text(row.entry().pid, row.entry().claimed),
        |row| Some(row.entry().pid.into()),
    ),
    Column::ids(
        "ID",
        8,
        4,
        |row| format!("{:#x}", row.entry().program.id),
        |row| Some(row.entry().program.id),
    ),
    Column::words("NAME", 0, 0, Row::name, |row| row.entry().program.name.as_deref()),
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
        |row| row.rate.map_or_else(|| UNKNOWN.to_owned(), rate_text),
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
        |row| row.entry().last_dispatch_ns.map_or_else(|| UNKNOWN.to_owned(), age),
        |row| row.entry().last_dispatch_ns,
    ),
    Column::new("LATE", 4, 13, |row| if row.entry().program.late { "late" } else { "" }.to_owned()),
];

/// Low rates get a decimal, so that they do not show as 0.
fn rate_text(rate: f64) -> String {
    if rate > 0.0 && rate < 9.95 { format!("{rate:.1}") } else { count(rate) }
}
