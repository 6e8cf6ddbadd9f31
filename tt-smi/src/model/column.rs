//! The columns: every single value of every figure, made from the table of figures.
//!
//! A column is a column of CSV, a key of JSON and a metric. What a facet of a figure (bytes used, peak, count) adds to
//! the figure's name, and how it is read, stands here once for all figures.

use std::sync::LazyLock;

use serde::{Serialize, Serializer};
use tt_shm_reader::Class;

use super::figure::{FIGURES, Facet, Figure, Rank};
use super::{Device, Held, Memory, Moment, RegionBytes};
use crate::driver::{MEASURES, Measure};

/// One value of a figure, or of a device: a column of CSV, a key of JSON, a metric.
#[derive(Clone, Debug)]
pub struct Column {
    /// With its unit: `dram_used_bytes`.
    pub name: String,
    /// Names of the metric: of a device, and of a process on a device.
    pub metrics: [String; 2],
    /// What it is, in a sentence.
    pub help: String,
    /// What its values are.
    pub unit: Unit,
    /// Name of the sum over all devices of a process, if a sum makes sense.
    pub sum: Option<String>,
    /// Only devices have it.
    pub device_only: bool,
    /// The class that it is a figure of.
    pub class: Option<Class>,
    /// Whether it stands beside the others in JSON. A class has its figures in `classes`; beside the others stands only
    /// what is live of it.
    pub is_flat: bool,
    read: Read,
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// A number.
    Count,
    /// A number that only grows while a process lives.
    Total,
    /// Per second.
    Rate,
    /// What a sensor measures, in the unit of the name.
    Measure,
    /// Yes or no.
    Flag,
    /// A moment.
    Time,
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    /// Bytes, or a number.
    Number(u64),
    /// A rate, or what a sensor measures.
    Rate(f64),
    /// Yes or no.
    Flag(bool),
    /// A moment.
    Time(Moment),
    /// Not known.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
enum Read {
    Memory(Figure, &'static FacetColumn),
    Held(fn(&Held) -> u64),
    Device(fn(&Device) -> Cell),
    /// What may be unknown.
    Perhaps(fn(&Device) -> Cell),
    Measure(&'static Measure),
    Limit(&'static Measure),
}

impl Column {
    /// The value of a device.
    pub fn of_device(&self, device: &Device) -> Cell {
        match self.read {
            Read::Device(read) | Read::Perhaps(read) => read(device),
            Read::Measure(measure) => measured(device, |stats| measure.value(stats)),
            Read::Limit(measure) => measured(device, |stats| measure.limit(stats)),
            _ => self.of_held(&device.held),
        }
    }

    /// The value of a process on a device.
    pub fn of_held(&self, held: &Held) -> Cell {
        match self.read {
            Read::Memory(figure, of) => figure.of(held).map_or(Cell::Unknown, of.read),
            Read::Held(read) => Cell::Number(read(held)),
            Read::Device(_) | Read::Perhaps(_) | Read::Measure(_) | Read::Limit(_) => Cell::Unknown,
        }
    }

    /// Whether its value may be unknown: null in JSON, empty in CSV, left out of the metrics.
    pub fn may_be_unknown(&self) -> bool {
        match self.read {
            Read::Memory(figure, of) => figure.device_only || of.may_be_unknown,
            Read::Held(_) => false,
            Read::Device(_) => self.unit == Unit::Rate,
            Read::Perhaps(_) | Read::Measure(_) | Read::Limit(_) => true,
        }
    }

    /// Whether the values of several processes add up to a value of the same kind: neither peaks, which are of different
    /// moments, nor counts that end with their process.
    pub fn adds_up(&self) -> bool {
        self.sum.as_ref() == Some(&self.name) && self.unit != Unit::Total
    }

    /// Whether it belongs to what is told of very many devices: of memory, what each has in all, and its peak.
    pub fn is_brief(&self) -> bool {
        match self.read {
            Read::Memory(figure, of) => {
                let is_told =
                    matches!(of.suffix, "_bytes" | "_exact" | "_total_bytes" | "_peak_bytes" | "_peak_exact");
                figure.rank == Rank::Whole && is_told
            }
            Read::Held(_) | Read::Device(_) | Read::Perhaps(_) | Read::Measure(_) => true,
            Read::Limit(_) => false,
        }
    }

    /// The part of a sum, unless it is only a bound.
    pub fn of_sum(&self, held: &Held) -> Option<u64> {
        let is_exact = match self.read {
            Read::Memory(figure, of) if of.sum == Sum::DevicePeaks => figure.of(held)?.peak.is_exact(),
            Read::Memory(figure, _) => figure.of(held)?.used_range().is_exact(),
            _ => true,
        };
        match self.of_held(held) {
            Cell::Number(number) if is_exact => Some(number),
            _ => None,
        }
    }
}

/// What the driver measures, if it has the device.
fn measured(device: &Device, read: impl Fn(&tt_shm_reader::DriverStats) -> Option<f64>) -> Cell {
    rate(device.driver.as_ref().and_then(|driver| read(&driver.stats)))
}

fn known(number: Option<u64>) -> Cell {
    number.map_or(Cell::Unknown, Cell::Number)
}

/// One value of a facet.
#[derive(Debug)]
struct FacetColumn {
    /// What it adds to the name of the figure.
    suffix: &'static str,
    unit: Unit,
    /// What to say of it; empty if the figure's own text says it.
    help: &'static str,
    may_be_unknown: bool,
    sum: Sum,
    read: fn(&Memory) -> Cell,
}

/// What the sum of a column over all devices of a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sum {
    /// The figure of the process.
    Figure,
    /// Peaks of different moments, so it is not the peak of the process, and has a name of its own.
    DevicePeaks,
    /// Nothing that makes sense.
    Nothing,
}

const USED: &[FacetColumn] = &[
    FacetColumn {
        suffix: "_bytes",
        unit: Unit::Bytes,
        help: "",
        may_be_unknown: false,
        sum: Sum::Figure,
        read: |memory| Cell::Number(memory.used),
    },
    FacetColumn {
        suffix: "_high_bytes",
        unit: Unit::Bytes,
        help: "The most that can be used; left out if nothing bounds it.",
        may_be_unknown: true,
        sum: Sum::Nothing,
        read: |memory| known(memory.used_range().high),
    },
    FacetColumn {
        suffix: "_exact",
        unit: Unit::Flag,
        help: "1 if what is used is exact, 0 if it may be more.",
        may_be_unknown: false,
        sum: Sum::Nothing,
        read: |memory| Cell::Flag(memory.used_range().is_exact()),
    },
];
const REQUESTED: &[FacetColumn] = &[FacetColumn {
    suffix: "_requested_bytes",
    unit: Unit::Bytes,
    help: "Bytes requested by what uses it.",
    may_be_unknown: false,
    sum: Sum::Figure,
    read: |memory| Cell::Number(memory.requested),
}];
const TOTAL: &[FacetColumn] = &[FacetColumn {
    suffix: "_total_bytes",
    unit: Unit::Bytes,
    help: "Bytes that can be allocated, as processes report it.",
    may_be_unknown: true,
    sum: Sum::Nothing,
    read: |memory| known(memory.total),
}];
const RESERVED: &[FacetColumn] = &[FacetColumn {
    suffix: "_reserved_bytes",
    unit: Unit::Bytes,
    help: "Bytes that the allocator never hands out.",
    may_be_unknown: true,
    sum: Sum::Nothing,
    read: |memory| known(memory.reserved),
}];
const COUNT: &[FacetColumn] = &[FacetColumn {
    suffix: "_count",
    unit: Unit::Count,
    help: "Number of allocations.",
    may_be_unknown: true,
    sum: Sum::Figure,
    read: |memory| known(memory.count),
}];
const PEAK: &[FacetColumn] = &[
    FacetColumn {
        suffix: "_peak_bytes",
        unit: Unit::Bytes,
        help: "The most that was seen to be used.",
        may_be_unknown: false,
        sum: Sum::DevicePeaks,
        read: |memory| Cell::Number(memory.peak.range.low),
    },
    FacetColumn {
        suffix: "_peak_high_bytes",
        unit: Unit::Bytes,
        help: "The most that can have been used; equal to the peak if that is exact.",
        may_be_unknown: true,
        sum: Sum::Nothing,
        read: |memory| known(memory.peak.range.high),
    },
    FacetColumn {
        suffix: "_peak_exact",
        unit: Unit::Flag,
        help: "1 if the peak is exact, 0 if it may have been more.",
        may_be_unknown: false,
        sum: Sum::Nothing,
        read: |memory| Cell::Flag(memory.peak.is_exact()),
    },
    FacetColumn {
        suffix: "_peak_time",
        unit: Unit::Time,
        help: "When the peak was first reached; left out if unknown.",
        may_be_unknown: true,
        sum: Sum::Nothing,
        read: |memory| memory.peak.time.map_or(Cell::Unknown, Cell::Time),
    },
    FacetColumn {
        suffix: "_peak_count",
        unit: Unit::Count,
        help: "Number of allocations at the peak.",
        may_be_unknown: true,
        sum: Sum::Nothing,
        read: |memory| known(memory.peak.count),
    },
];

impl Facet {
    fn columns(self) -> &'static [FacetColumn] {
        match self {
            Facet::Used => USED,
            Facet::Requested => REQUESTED,
            Facet::Total => TOTAL,
            Facet::Reserved => RESERVED,
            Facet::Count(_) => COUNT,
            Facet::Peak => PEAK,
        }
    }
}

impl Column {
    fn of_facet(figure: Figure, facet: Facet, of: &'static FacetColumn) -> Column {
        let stem = if facet == Facet::Used { figure.key } else { figure.stem };
        let name = match facet {
            Facet::Count(Some(own)) => own.to_owned(),
            _ => format!("{stem}{}", of.suffix),
        };
        let metric = |stem: &str| match (facet, of.unit) {
            (Facet::Used, _) => format!("{stem}{}", of.suffix),
            (_, Unit::Time) => format!("{name}_seconds"),
            // There `_count` belongs to histograms.
            (_, Unit::Count) => name.replace("_count", "_allocations"),
            _ => name.clone(),
        };
        let [device, process] = figure.metrics.unwrap_or([figure.key; 2]);
        let help = match of.help {
            "" => figure.help.to_owned(),
            help => format!("{}: {help}", figure.label),
        };
        let sum = match of.sum {
            Sum::Figure => Some(name.clone()),
            Sum::DevicePeaks => Some(format!("{}_device_peaks_bytes", figure.stem)),
            Sum::Nothing => None,
        };
        Column {
            metrics: [format!("tt_{}", metric(device)), format!("tt_process_{}", metric(process))],
            help,
            unit: of.unit,
            sum,
            device_only: matches!(facet, Facet::Total | Facet::Reserved) || figure.device_only,
            class: figure.class(),
            is_flat: figure.class().is_none() || facet == Facet::Used && of.sum == Sum::Figure,
            read: Read::Memory(figure, of),
            name,
        }
    }
}

/// A number that is no memory: key, unit, help text, how it is read.
type NumberColumn = (&'static str, Unit, &'static str, Read);

const NUMBERS: &[NumberColumn] = &[
    ("dispatches", Unit::Total, "Programs dispatched.", Read::Held(|held| held.dispatches)),
    (
        "cached_dispatches",
        Unit::Total,
        "Programs dispatched with a cached binary.",
        Read::Held(|held| held.cached_dispatches),
    ),
    ("failed_allocs", Unit::Total, "Allocations that failed.", Read::Held(|held| held.failed_allocs)),
    (
        "processes",
        Unit::Count,
        "Processes that hold something on the device.",
        Read::Device(|device| Cell::Number(device.processes)),
    ),
    (
        "events_per_second",
        Unit::Rate,
        "Events of the last second.",
        Read::Device(|device| rate(device.events_per_second)),
    ),
    (
        "dispatches_per_second",
        Unit::Rate,
        "Dispatches of the last second.",
        Read::Device(|device| rate(device.dispatches_per_second)),
    ),
    (
        "over_capacity",
        Unit::Flag,
        "1 if more is used than there is: a process reports wrongly.",
        Read::Device(|device| Cell::Flag(device.over_capacity)),
    ),
    (
        "conflict",
        Unit::Flag,
        "1 if processes disagree about the device.",
        Read::Device(|device| Cell::Flag(device.conflict)),
    ),
    (
        "incomplete",
        Unit::Flag,
        "1 if a process that could not be read may hold something on the device.",
        Read::Device(|device| Cell::Flag(device.incomplete)),
    ),
    (
        "unreported_holder",
        Unit::Flag,
        "1 if a process holds the device, as the driver or tt-metal says, and does not report what it uses.",
        Read::Device(|device| Cell::Flag(device.unreported_holder)),
    ),
    (
        "heartbeat_moves",
        Unit::Flag,
        "1 if the heartbeat of the firmware moves, 0 if it stands still; left out until that is known.",
        Read::Perhaps(|device| {
            let moves = device.driver.as_ref().and_then(|driver| driver.heartbeat_moves);
            moves.map_or(Cell::Unknown, Cell::Flag)
        }),
    ),
    (
        "tt_metal_dram_bytes",
        Unit::Bytes,
        "DRAM that processes requested that do not report, as tt-metal's region has it: never exact.",
        Read::Perhaps(|device| in_region(device, |bytes| bytes.dram_bytes)),
    ),
    (
        "tt_metal_trace_bytes",
        Unit::Bytes,
        "Trace buffers of processes that do not report, as tt-metal's region has it: never exact.",
        Read::Perhaps(|device| in_region(device, |bytes| bytes.trace_bytes)),
    ),
    (
        "tt_metal_l1_bytes",
        Unit::Bytes,
        "L1 that processes requested that do not report, as tt-metal's region has it: never exact.",
        Read::Perhaps(|device| in_region(device, |bytes| bytes.l1_bytes)),
    ),
    (
        "tt_metal_l1_small_bytes",
        Unit::Bytes,
        "L1_SMALL that processes requested that do not report, as tt-metal's region has it: never exact.",
        Read::Perhaps(|device| in_region(device, |bytes| bytes.l1_small_bytes)),
    ),
    (
        "tt_metal_cb_bytes",
        Unit::Bytes,
        "Circular buffers of processes that do not report, as tt-metal's region has it: never exact.",
        Read::Perhaps(|device| in_region(device, |bytes| bytes.cb_bytes)),
    ),
];

/// What tt-metal's region says of processes that do not report.
fn in_region(device: &Device, read: fn(&RegionBytes) -> u64) -> Cell {
    known(device.region.as_ref().map(|region| read(&region.silent)))
}

fn rate(rate: Option<f64>) -> Cell {
    rate.map_or(Cell::Unknown, Cell::Rate)
}

impl Column {
    fn of_number(name: &str, unit: Unit, help: &str, read: Read) -> Column {
        let is_held = matches!(read, Read::Held(_));
        let process = if unit == Unit::Total { format!("{name}_total") } else { name.to_owned() };
        Column {
            name: name.to_owned(),
            metrics: [format!("tt_device_{name}"), format!("tt_process_{process}")],
            help: help.to_owned(),
            unit,
            sum: is_held.then(|| name.to_owned()),
            device_only: !is_held,
            class: None,
            is_flat: true,
            read,
        }
    }
}

/// Every value of every figure.
pub static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let numbers = NUMBERS.iter().map(|(name, unit, help, read)| Column::of_number(name, *unit, help, *read));
    let measures = MEASURES.iter().flat_map(|measure| {
        let value = Column::of_number(measure.key, Unit::Measure, measure.help, Read::Measure(measure));
        let limit = measure.limit_key.map(|key| {
            let help = format!("{}: the limit.", measure.label);
            Column::of_number(key, Unit::Measure, &help, Read::Limit(measure))
        });
        [Some(value), limit].into_iter().flatten()
    });
    let of_figure = |figure: &'static Figure| {
        let columns =
            |facet: &'static Facet| facet.columns().iter().map(|of| Column::of_facet(*figure, *facet, of));
        figure.facets.iter().flat_map(columns)
    };
    FIGURES.iter().flat_map(of_figure).chain(numbers).chain(measures).collect()
});

/// The columns that a process on a device has.
pub fn process_columns() -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(|column| !column.device_only)
}

impl Cell {
    /// As text: empty if unknown.
    pub fn text(self) -> String {
        match self {
            Cell::Number(number) => number.to_string(),
            Cell::Rate(rate) => rate.to_string(),
            Cell::Flag(flag) => flag.to_string(),
            Cell::Time(time) => time.rfc3339().unwrap_or_default(),
            Cell::Unknown => String::new(),
        }
    }

    /// As a metric: `None` if unknown.
    pub fn number(self) -> Option<f64> {
        match self {
            Cell::Number(number) => Some(number as f64),
            Cell::Rate(rate) => Some(rate),
            Cell::Flag(flag) => Some(f64::from(u8::from(flag))),
            Cell::Time(time) => time.unix_seconds(),
            Cell::Unknown => None,
        }
    }
}

/// Null if unknown.
impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Number(number) => number.serialize(serializer),
            Cell::Rate(rate) => rate.serialize(serializer),
            Cell::Flag(flag) => flag.serialize(serializer),
            Cell::Time(time) => time.serialize(serializer),
            Cell::Unknown => serializer.serialize_none(),
        }
    }
}
