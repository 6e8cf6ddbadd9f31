//! The one table of figures: what each is called, what it means, how it is computed.
//!
//! Every output iterates it: JSON and its schema, CSV, Prometheus, `--detail`, `ps`, the views and the fields of
//! queries. A figure that is added here appears in all of them.

use std::sync::LazyLock;

use tt_shm_reader::{Class, Memory as Place, RowKind};

use super::class_info::{CLASSES, ClassInfo};
use super::{Clock, Device, Held, Memory};

/// An amount of memory that is shown: a kind of memory, a class, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Key of the bytes used, without the unit: `dram_used`.
    pub key: &'static str,
    /// What the keys of the other facets begin with: `dram`, for `dram_peak_bytes`.
    pub stem: &'static str,
    /// Names of the bytes used among the metrics of devices and of processes, where others have named them already.
    metrics: Option<[&'static str; 2]>,
    /// Name in tables and views.
    pub label: &'static str,
    /// Heading in tables of processes; `None` leaves it to JSON, CSV and the detailed views.
    pub heading: Option<&'static str>,
    /// One sentence on what it is.
    pub help: &'static str,
    /// What it is a part of.
    pub rank: Rank,
    /// What its count is of.
    pub item: &'static str,
    /// Whether only devices have it, not the processes on them.
    device_only: bool,
    facets: &'static [Facet],
    amount: Amount,
}

/// How a figure stands to the one before it in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// A memory with a capacity of its own.
    Whole,
    /// A part of the whole before it, which has the capacity.
    Part(Place),
    /// No part of a capacity: what is loaded or allocated need not be resident.
    Apart,
    /// A part of the figure before it that is [`Rank::Apart`].
    PartApart,
}

/// Where the amount comes from.
#[derive(Clone, Copy, Debug)]
enum Amount {
    Held(fn(&Held) -> Option<&Memory>),
    Class(Class),
}

/// What is known of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Facet {
    Used,
    Requested,
    Total,
    Reserved,
    /// With its key, if that is not the stem and `_count`.
    Count(Option<&'static str>),
    Peak,
}

impl Figure {
    /// What is held of it; `None` where it is not reported.
    pub fn of(self, held: &Held) -> Option<&Memory> {
        match self.amount {
            Amount::Held(of) => of(held),
            Amount::Class(class) => Some(held.class(class)),
        }
    }

    /// The class, if it is one.
    pub fn class(self) -> Option<Class> {
        match self.amount {
            Amount::Class(class) => Some(class),
            Amount::Held(_) => None,
        }
    }

    /// Whether its peak is counted.
    pub fn has_peak(self) -> bool {
        self.facets.contains(&Facet::Peak)
    }

    const fn of_class(info: &'static ClassInfo) -> Figure {
        Figure {
            key: info.key,
            stem: info.stem,
            metrics: None,
            label: info.label,
            heading: info.heading,
            help: info.help,
            rank: match info.class.memory() {
                place @ (Place::Dram | Place::L1) if !info.class.needs_dispatch() => Rank::Part(place),
                Place::Kernels => Rank::PartApart,
                _ => Rank::Apart,
            },
            item: match info.class.row_kind() {
                RowKind::Kernel => "kernel",
                _ => "buffer",
            },
            device_only: false,
            facets: &[Facet::Used, Facet::Requested, Facet::Count(None), Facet::Peak],
            amount: Amount::Class(info.class),
        }
    }
}

const DRAM: Figure = Figure {
    key: "dram_used",
    stem: "dram",
    metrics: Some(["dram_used", "dram"]),
    label: "DRAM",
    heading: Some("DRAM"),
    help: "DRAM used: buffers and traces.",
    rank: Rank::Whole,
    item: "buffer",
    device_only: false,
    facets: &[Facet::Used, Facet::Requested, Facet::Total, Facet::Reserved, Facet::Peak],
    amount: Amount::Held(|held| Some(&held.dram)),
};
const L1: Figure = Figure {
    key: "l1_used",
    stem: "l1",
    metrics: Some(["l1_used", "l1"]),
    label: "L1",
    heading: Some("L1"),
    help: "L1 of Tensix cores used: buffers and resident circular buffers.",
    amount: Amount::Held(|held| Some(&held.l1)),
    ..DRAM
};
const CB_RESIDENT: Figure = Figure {
    key: "cb_resident",
    stem: "cb_resident",
    metrics: Some(["cb_used", "cb"]),
    label: "CBs resident",
    heading: Some("CB RES."),
    help: "Circular buffers of the programs dispatched last; part of the L1 used.",
    rank: Rank::Part(Place::L1),
    item: "buffer",
    device_only: false,
    facets: &[Facet::Used, Facet::Peak],
    amount: Amount::Held(|held| Some(&held.cb_resident)),
};
const ETH_L1: Figure = Figure {
    key: "eth_l1_used",
    stem: "eth_l1",
    metrics: Some(["eth_l1_used", "eth_l1"]),
    label: "ethernet L1",
    heading: None,
    help: "L1 of ethernet cores used: resident kernels.",
    facets: &[Facet::Used, Facet::Total, Facet::Peak],
    amount: Amount::Held(|held| Some(&held.eth_l1)),
    ..DRAM
};
const KERNEL_RESIDENT: Figure = Figure {
    key: "kernel_resident",
    stem: "kernel_resident",
    metrics: Some(["kernel_used", "kernel"]),
    label: "kernels res.",
    heading: None,
    help: "Kernels resident on Tensix cores, in reserved memory.",
    rank: Rank::Apart,
    item: "kernel",
    device_only: false,
    facets: &[Facet::Used, Facet::Peak],
    amount: Amount::Held(|held| Some(&held.kernel_resident)),
};
const KERNEL_LOADED: Figure = Figure {
    key: "kernel_loaded",
    stem: "kernel_loaded",
    metrics: None,
    label: "kernels loaded",
    heading: Some("KERNELS"),
    help: "All kernels that are loaded, resident or not.",
    facets: &[Facet::Used, Facet::Count(Some("kernel_count"))],
    amount: Amount::Held(|held| Some(&held.kernel_loaded)),
    ..KERNEL_RESIDENT
};
const KERNEL_RING: Figure = Figure {
    key: "kernel_ring_used",
    stem: "kernel_ring",
    label: "kernel ring",
    heading: None,
    help: "The ring buffer that application kernels share.",
    rank: Rank::Whole,
    item: "program",
    device_only: true,
    facets: &[Facet::Used, Facet::Total, Facet::Count(Some("kernel_ring_programs"))],
    amount: Amount::Held(|held| held.kernel_ring.as_ref()),
    ..KERNEL_LOADED
};

/// Every amount of memory, each whole before its parts.
pub static FIGURES: LazyLock<Vec<Figure>> = LazyLock::new(|| {
    let classes = |rank: Rank, place: Place| {
        CLASSES.iter().map(Figure::of_class).filter(move |figure| {
            let is_there = figure.class().is_some_and(|class| class.memory() == place);
            is_there && figure.rank == rank
        })
    };
    let mut figures = vec![DRAM];
    figures.extend(classes(Rank::Part(Place::Dram), Place::Dram));
    figures.push(L1);
    figures.extend(classes(Rank::Part(Place::L1), Place::L1));
    figures.extend([CB_RESIDENT, ETH_L1]);
    figures.extend(classes(Rank::Apart, Place::L1));
    figures.extend([KERNEL_RESIDENT, KERNEL_LOADED]);
    figures.extend(classes(Rank::PartApart, Place::Kernels));
    figures.push(KERNEL_RING);
    figures.extend(classes(Rank::Apart, Place::Host));
    figures
});

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
    /// A rate.
    Rate(f64),
    /// Yes or no.
    Flag(bool),
    /// CLOCK_MONOTONIC.
    Time(u64),
    /// Not known.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
enum Read {
    Memory(Figure, fn(&Memory) -> Cell),
    Held(fn(&Held) -> u64),
    Device(fn(&Device) -> Cell),
}

impl Column {
    /// The value of a device.
    pub fn of_device(&self, device: &Device) -> Cell {
        match self.read {
            Read::Device(read) => read(device),
            _ => self.of_held(&device.held),
        }
    }

    /// The value of a process on a device.
    pub fn of_held(&self, held: &Held) -> Cell {
        match self.read {
            Read::Memory(figure, read) => figure.of(held).map_or(Cell::Unknown, read),
            Read::Held(read) => Cell::Number(read(held)),
            Read::Device(_) => Cell::Unknown,
        }
    }

    /// Whether its value may be unknown: null in JSON, empty in CSV, left out of the metrics.
    pub fn may_be_unknown(&self) -> bool {
        const UNKNOWN: [&str; 5] = ["_high_bytes", "_total_bytes", "_reserved_bytes", "_count", "_programs"];
        match self.read {
            Read::Memory(figure, _) if !figure.device_only => {
                self.unit == Unit::Time || UNKNOWN.iter().any(|suffix| self.name.ends_with(suffix))
            }
            Read::Memory(..) => true,
            Read::Held(_) => false,
            Read::Device(_) => self.unit == Unit::Rate,
        }
    }

    /// The part of a sum, unless it is only a bound.
    pub fn of_sum(&self, held: &Held) -> Option<u64> {
        let bounded = match self.read {
            Read::Memory(figure, _) if self.name.ends_with("_peak_bytes") => figure.of(held)?.peak.is_exact(),
            Read::Memory(figure, _) => figure.of(held)?.used_range().is_exact(),
            _ => true,
        };
        match self.of_held(held) {
            Cell::Number(number) if bounded => Some(number),
            _ => None,
        }
    }
}

fn known(number: Option<u64>) -> Cell {
    number.map_or(Cell::Unknown, Cell::Number)
}

/// What a facet adds to the stem, what its values are, what to say of it, and how to get it.
type FacetColumn = (&'static str, Unit, &'static str, fn(&Memory) -> Cell);

impl Facet {
    fn columns(self) -> &'static [FacetColumn] {
        match self {
            Facet::Used => &[
                ("_bytes", Unit::Bytes, "", |memory| Cell::Number(memory.used)),
                (
                    "_high_bytes",
                    Unit::Bytes,
                    "The most that can be used; left out if nothing bounds it.",
                    |memory| known(memory.used_range().high),
                ),
                ("_exact", Unit::Flag, "1 if what is used is exact, 0 if it may be more.", |memory| {
                    Cell::Flag(memory.used_range().is_exact())
                }),
            ],
            Facet::Requested => {
                &[("_requested_bytes", Unit::Bytes, "Bytes requested by what uses it.", |memory| {
                    Cell::Number(memory.requested)
                })]
            }
            Facet::Total => &[(
                "_total_bytes",
                Unit::Bytes,
                "Bytes that can be allocated, as processes report it.",
                |memory| known(memory.total),
            )],
            Facet::Reserved => {
                &[("_reserved_bytes", Unit::Bytes, "Bytes that the allocator never hands out.", |memory| {
                    known(memory.reserved)
                })]
            }
            Facet::Count(_) => {
                &[("_count", Unit::Count, "Number of allocations.", |memory| known(memory.count))]
            }
            Facet::Peak => &[
                ("_peak_bytes", Unit::Bytes, "The most that was seen to be used.", |memory| {
                    Cell::Number(memory.peak.range.low)
                }),
                (
                    "_peak_high_bytes",
                    Unit::Bytes,
                    "The most that can have been used; equal to the peak if that is exact.",
                    |memory| known(memory.peak.range.high),
                ),
                (
                    "_peak_exact",
                    Unit::Flag,
                    "1 if the peak is exact, 0 if it may have been more.",
                    |memory| Cell::Flag(memory.peak.is_exact()),
                ),
                (
                    "_peak_time",
                    Unit::Time,
                    "When the peak was first reached; left out if unknown.",
                    |memory| memory.peak.time.map_or(Cell::Unknown, Cell::Time),
                ),
                ("_peak_count", Unit::Count, "Number of allocations at the peak.", |memory| {
                    known(memory.peak.count)
                }),
            ],
        }
    }

    fn sum(self, name: &str, stem: &str, suffix: &str) -> Option<String> {
        match (self, suffix) {
            (Facet::Used, "_bytes") | (Facet::Requested | Facet::Count(_), _) => Some(name.to_owned()),
            // Of different moments, so it is not the peak of the process.
            (Facet::Peak, "_peak_bytes") => Some(format!("{stem}_device_peaks_bytes")),
            _ => None,
        }
    }
}

impl Figure {
    fn columns(self) -> impl Iterator<Item = Column> {
        let of_facet = move |facet: &Facet| {
            let facet = *facet;
            facet.columns().iter().map(move |(suffix, unit, help, read)| {
                let stem = if facet == Facet::Used { self.key } else { self.stem };
                let name = match facet {
                    Facet::Count(Some(own)) => own.to_owned(),
                    _ => format!("{stem}{suffix}"),
                };
                let metric = |stem: &str, whole: &str| match (facet, unit) {
                    (Facet::Used, _) => format!("{stem}{suffix}"),
                    (_, Unit::Time) => format!("{whole}_seconds"),
                    _ => whole.to_owned(),
                };
                let [device, process] = self.metrics.unwrap_or([self.key; 2]);
                Column {
                    metrics: [
                        format!("tt_{}", metric(device, &name)),
                        format!("tt_process_{}", metric(process, &name)),
                    ],
                    help: if help.is_empty() {
                        self.help.to_owned()
                    } else {
                        format!("{}: {help}", self.label)
                    },
                    unit: *unit,
                    sum: facet.sum(&name, self.stem, suffix),
                    device_only: matches!(facet, Facet::Total | Facet::Reserved) || self.device_only,
                    class: self.class(),
                    read: Read::Memory(self, *read),
                    name,
                }
            })
        };
        self.facets.iter().flat_map(of_facet)
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
];

fn rate(rate: Option<f64>) -> Cell {
    rate.map_or(Cell::Unknown, Cell::Rate)
}

/// Every value of every figure.
pub static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let numbers = NUMBERS.iter().map(|(name, unit, help, read)| {
        let is_held = matches!(read, Read::Held(_));
        let process = if *unit == Unit::Total { format!("{name}_total") } else { (*name).to_owned() };
        Column {
            name: (*name).to_owned(),
            metrics: [format!("tt_device_{name}"), format!("tt_process_{process}")],
            help: (*help).to_owned(),
            unit: *unit,
            sum: is_held.then(|| (*name).to_owned()),
            device_only: !is_held,
            class: None,
            read: *read,
        }
    });
    FIGURES.iter().flat_map(|figure| figure.columns()).chain(numbers).collect()
});

/// The columns that a process on a device has.
pub fn process_columns() -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(|column| !column.device_only)
}

impl Cell {
    /// As text: empty if unknown.
    pub fn text(self, clock: Clock) -> String {
        match self {
            Cell::Number(number) => number.to_string(),
            Cell::Rate(rate) => rate.to_string(),
            Cell::Flag(flag) => flag.to_string(),
            Cell::Time(time) => clock.rfc3339(time).unwrap_or_default(),
            Cell::Unknown => String::new(),
        }
    }

    /// As JSON: null if unknown.
    pub fn json(self, clock: Clock) -> serde_json::Value {
        match self {
            Cell::Number(number) => number.into(),
            Cell::Rate(rate) => rate.into(),
            Cell::Flag(flag) => flag.into(),
            Cell::Time(time) => clock.rfc3339(time).into(),
            Cell::Unknown => serde_json::Value::Null,
        }
    }

    /// As a metric: `None` if unknown.
    pub fn number(self, clock: Clock) -> Option<f64> {
        match self {
            Cell::Number(number) => Some(number as f64),
            Cell::Rate(rate) => Some(rate),
            Cell::Flag(flag) => Some(f64::from(u8::from(flag))),
            Cell::Time(time) => clock.unix_seconds(time),
            Cell::Unknown => None,
        }
    }
}
