//! What a process has on each device, as rows.

use tt_shm_reader::Class;

use crate::model::{ClassFigure, Clock, Memory, Process, Usage};
use crate::output::units::{UNKNOWN, age, bytes};
use crate::screen::widgets::list::Column;

/// A kind of memory, or a class, on a device.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    device: usize,
    what: &'static str,
    /// A sum of classes, not a class.
    pub is_sum: bool,
    live: u64,
    count: Option<u64>,
    peak: u64,
    peak_age_ns: Option<u64>,
    place: u64,
}

pub(super) const COLUMNS: &[Column<Figure>] = &[
    Column::ids("DEV", 3, 1, |figure| figure.device.to_string(), |figure| Some(figure.place)),
    Column::new("WHAT", 20, 0, |figure| match figure.is_sum {
        true => figure.what.to_owned(),
        false => format!("  {}", figure.what),
    }),
    Column::number("LIVE", 10, 2, |figure| bytes(figure.live), |figure| Some(figure.live)),
    Column::number("COUNT", 7, 4, |figure| or_unknown(figure.count), |figure| figure.count),
    Column::number("PEAK", 10, 3, |figure| bytes(figure.peak), |figure| Some(figure.peak)),
    Column::number("PEAK WAS", 12, 5, |figure| ago(figure.peak_age_ns), |figure| figure.peak_age_ns),
];

fn or_unknown(number: Option<u64>) -> String {
    number.map_or_else(|| UNKNOWN.to_owned(), |number| number.to_string())
}

fn ago(age_ns: Option<u64>) -> String {
    age_ns.map_or_else(|| UNKNOWN.to_owned(), |age_ns| format!("{} ago", age(age_ns)))
}

impl Figure {
    /// Tells it apart from others.
    pub(super) fn number(&self) -> u64 {
        self.place
    }
}

/// All figures of a process, by device; classes that it never had anything of are left out.
pub(super) fn of(process: &Process, clock: Clock) -> Vec<Figure> {
    process.usages.iter().flat_map(|usage| of_device(usage, clock)).collect()
}

fn of_device(usage: &Usage, clock: Clock) -> Vec<Figure> {
    let sum = |place, what, memory: &Memory| Figure {
        device: usage.device,
        what,
        is_sum: true,
        live: memory.used,
        count: None,
        peak: memory.peak.low,
        peak_age_ns: memory.peak.time.map(|time| clock.age_ns(time)),
        place: (usage.device as u64) << 8 | place,
    };
    let part = |place, class: Class, figure: &ClassFigure| Figure {
        device: usage.device,
        what: class.name(),
        is_sum: false,
        live: figure.bytes,
        count: Some(figure.count),
        peak: figure.peak.low,
        peak_age_ns: figure.peak.time.map(|time| clock.age_ns(time)),
        place: (usage.device as u64) << 8 | place,
    };
    let sums = [
        sum(0, "DRAM", &usage.dram),
        sum(1, "L1, resident", &usage.l1),
        sum(2, "L1 of ethernet cores", &usage.eth_l1),
    ];
    let is_used = |figure: &ClassFigure| figure.count > 0 || figure.bytes > 0 || figure.peak.low > 0;
    let parts = (3..).zip(Class::ALL).filter(|(_, class)| is_used(usage.class(*class)));
    let parts = parts.map(|(place, class)| part(place, class, usage.class(class)));
    sums.into_iter().chain(parts).collect()
}
