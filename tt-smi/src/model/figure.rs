//! The one table of figures: what each is called, what it means, how it is computed.
//!
//! Every output iterates it, or the columns made from it ([`super::column`]): JSON and its schema, CSV, Prometheus,
//! `--detail`, `ps`, thresholds, the views of a device and of a process, and the fields of queries. A figure that is added
//! here appears in all of them; only the lists of processes on the screen choose their columns by hand.

use std::sync::LazyLock;

use tt_shm_reader::{Class, Memory as Place, RowKind};

use super::class_info::{CLASSES, ClassInfo};
use super::{Held, Memory};

/// An amount of memory that is shown: a kind of memory, a class, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Key of the bytes used, without the unit: `dram_used`.
    pub key: &'static str,
    /// What the keys of the other facets begin with: `dram`, for `dram_peak_bytes`.
    pub stem: &'static str,
    /// Names of the bytes used among the metrics of devices and of processes, where others have named them already.
    pub(super) metrics: Option<[&'static str; 2]>,
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
    /// The memory whose classes it is the sum of.
    pub sum_of: Option<Place>,
    /// The class whose color its bar has, if it is no such sum.
    pub look: Class,
    /// Whether only devices have it, not the processes on them.
    pub(super) device_only: bool,
    pub(super) facets: &'static [Facet],
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
pub(super) enum Facet {
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

    /// The capacity of what it is a part of, itself unknown if the inner value is `None`; the outer `None` if it is no
    /// part of a capacity.
    pub fn capacity(self, held: &Held) -> Option<Option<u64>> {
        match self.rank {
            Rank::Whole => Some(self.of(held)?.total),
            Rank::Part(Place::Dram) => Some(held.dram.total),
            Rank::Part(_) => Some(held.l1.total),
            Rank::Apart | Rank::PartApart => None,
        }
    }

    /// Whether it is shown as a part of the one before it.
    pub fn is_part(self) -> bool {
        matches!(self.rank, Rank::Part(_) | Rank::PartApart)
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
            sum_of: None,
            look: info.class,
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
    sum_of: Some(Place::Dram),
    look: Class::Dram,
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
    sum_of: Some(Place::L1),
    look: Class::L1,
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
    sum_of: None,
    look: Class::Cb,
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
    sum_of: None,
    look: Class::KernelApplication,
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
    sum_of: None,
    look: Class::KernelApplication,
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
