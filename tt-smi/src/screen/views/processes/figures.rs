//! Memory of a process on each device, as rows.

use crate::model::{Clock, FIGURES, Figure, Interval, Process, Rank, Usage};
use crate::output::units::{UNKNOWN, age, bytes};
use crate::screen::widgets::list::Column;

/// A kind of memory, or a class, on a device.
#[derive(Clone, Debug)]
pub(super) struct Row {
    device: usize,
    what: &'static str,
    /// Whether it is a memory, not a part of one.
    pub is_whole: bool,
    /// Whether it is a part of the memory before it.
    is_part: bool,
    live: u64,
    count: Option<u64>,
    peak: Option<Interval>,
    peak_age_ns: Option<u64>,
    place: u64,
}

pub(super) const COLUMNS: &[Column<Row>] = &[
    Column::ids("DEV", 4, 1, |row| row.device.to_string(), |row| Some(row.place)),
    Column::new("WHAT", 20, 0, |row| match row.is_part {
        true => format!("  {}", row.what),
        false => row.what.to_owned(),
    }),
    Column::number("LIVE", 10, 2, |row| bytes(row.live), |row| Some(row.live)),
    Column::number("COUNT", 7, 4, |row| or_unknown(row.count), |row| row.count),
    Column::number("PEAK", 10, 3, |row| peak_text(row.peak), |row| row.peak.map(|peak| peak.low)),
    Column::number("PEAK WAS", 12, 5, |row| ago(row.peak_age_ns), |row| row.peak_age_ns),
];

fn or_unknown(number: Option<u64>) -> String {
    number.map_or_else(|| UNKNOWN.to_owned(), |number| number.to_string())
}

fn peak_text(peak: Option<Interval>) -> String {
    peak.map_or_else(|| UNKNOWN.to_owned(), |peak| peak.short())
}

fn ago(age_ns: Option<u64>) -> String {
    age_ns.map_or_else(|| UNKNOWN.to_owned(), |age_ns| format!("{} ago", age(age_ns)))
}

impl Row {
    /// Its key.
    pub(super) fn number(&self) -> u64 {
        self.place
    }
}

/// All figures of a process, by device; figures it never used are omitted.
pub(super) fn of(process: &Process, clock: Clock) -> Vec<Row> {
    let all =
        process.usages.iter().flat_map(|usage| (0..).zip(FIGURES.iter()).map(move |shown| (usage, shown)));
    all.filter_map(|(usage, (place, figure))| row(usage, place, figure, clock)).collect()
}

fn row(usage: &Usage, place: u64, figure: &Figure, clock: Clock) -> Option<Row> {
    let memory = figure.of(&usage.held)?;
    let is_whole = figure.rank == Rank::Whole;
    if !is_whole && memory.used == 0 && memory.peak.range.low == 0 && memory.count.unwrap_or(0) == 0 {
        return None;
    }
    let peak = figure.has_peak().then_some(memory.peak);
    Some(Row {
        device: usage.device,
        what: figure.label,
        is_whole,
        is_part: matches!(figure.rank, Rank::Part(_) | Rank::PartApart),
        live: memory.used,
        count: memory.count,
        peak: peak.map(|peak| peak.range),
        peak_age_ns: peak.and_then(|peak| peak.time).map(|time| clock.age_ns(time)),
        place: (usage.device as u64) << 8 | place,
    })
}
