//! Memory of a process on each device, as rows.

use tt_shm_reader::Class;

use crate::model::{ClassFigure, Clock, Memory, Process, Usage};
use crate::output::units::{UNKNOWN, age, bytes};
use crate::screen::widgets::list::Column;

/// A kind of memory, or a class, on a device.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    device: usize,
    what: &'static str,
    /// Whether it is a sum of classes.
    pub is_sum: bool,
    /// Whether it is part of the sum before it.
    is_part: bool,
    live: u64,
    count: Option<u64>,
    peak: u64,
    peak_age_ns: Option<u64>,
    place: u64,
}

pub(super) const COLUMNS: &[Column<Figure>] = &[
    Column::ids("DEV", 4, 1, |figure| figure.device.to_string(), |figure| Some(figure.place)),
    Column::new("WHAT", 20, 0, |figure| match figure.is_part {
        true => format!("  {}", figure.what),
        false => figure.what.to_owned(),
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
    /// Its key.
    pub(super) fn number(&self) -> u64 {
        self.place
    }
}

/// The rows of a device, in order: sums, each followed by its classes, then classes that count what is loaded or
/// allocated, wherever it lies.
const SHOWN: [What; 12] = [
    What::Sum("DRAM", |usage| &usage.dram),
    What::Part(Class::Dram),
    What::Part(Class::Trace),
    What::Sum("L1, resident", |usage| &usage.l1),
    What::Part(Class::L1),
    What::Part(Class::L1Small),
    What::Sum("L1 of ethernet cores", |usage| &usage.eth_l1),
    What::Other(Class::Cb),
    What::Other(Class::KernelApplication),
    What::Other(Class::KernelDispatch),
    What::Other(Class::KernelFabric),
    What::Other(Class::SystemMemory),
];

#[derive(Clone, Copy)]
enum What {
    Sum(&'static str, fn(&Usage) -> &Memory),
    Part(Class),
    Other(Class),
}

/// All figures of a process, by device; classes it never used are omitted.
pub(super) fn of(process: &Process, clock: Clock) -> Vec<Figure> {
    let all = process.usages.iter().flat_map(|usage| (0..).zip(SHOWN).map(move |shown| (usage, shown)));
    all.filter_map(|(usage, (place, what))| figure(usage, place, what, clock)).collect()
}

fn figure(usage: &Usage, place: u64, what: What, clock: Clock) -> Option<Figure> {
    let (name, live, count, peak) = match what {
        What::Sum(name, of) => (name, of(usage).used, None, of(usage).peak),
        What::Part(class) | What::Other(class) => {
            let ClassFigure { bytes, count, peak, .. } = *usage.class(class);
            if bytes == 0 && count == 0 && peak.range.low == 0 {
                return None;
            }
            (class.name(), bytes, Some(count), peak)
        }
    };
    Some(Figure {
        device: usage.device,
        what: name,
        is_sum: matches!(what, What::Sum(..)),
        is_part: matches!(what, What::Part(_)),
        live,
        count,
        peak: peak.range.low,
        peak_age_ns: peak.time.map(|time| clock.age_ns(time)),
        place: (usage.device as u64) << 8 | place,
    })
}
