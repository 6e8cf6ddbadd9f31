//! What contradicts itself in a region. Nothing is corrected: what is right is not known.

use std::fmt;

use crate::bytes::{Bytes, Kind};
use crate::content::{Content, bytes_of_free_slots};
use crate::layout::Image;

/// Something in a region that cannot be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The region is of another chip than its name says.
    ChipId {
        /// In the name.
        named: u64,
        /// Inside.
        told: u64,
    },
    /// A total is not the sum of the processes.
    Total {
        /// Of which memory.
        kind: Kind,
        /// The total.
        told: u64,
        /// The sum over the used slots.
        sum: u64,
    },
    /// The chip's own figure is not the total.
    Chip {
        /// Of which memory.
        kind: Kind,
        /// The sum over the chip slots.
        told: u64,
        /// The total.
        total: u64,
    },
    /// A counter is larger than any memory: it was decreased below zero.
    Absurd {
        /// Whose.
        place: Place,
        /// Of which memory.
        kind: Kind,
        /// The counter.
        bytes: u64,
    },
    /// The number of processes is not that of the used slots.
    ProcessCount {
        /// The number.
        told: u32,
        /// Used slots.
        used: u32,
    },
    /// Several slots have one pid: two processes of different containers, or a race.
    DuplicatePid {
        /// The pid.
        pid: i32,
        /// The slots.
        slots: Vec<usize>,
    },
    /// A pid that no process can have.
    BadPid {
        /// The slot.
        slot: usize,
        /// The number.
        pid: i32,
    },
    /// A slot that nobody uses has bytes.
    FreeSlot {
        /// The slot.
        slot: usize,
        /// The bytes.
        bytes: Bytes,
    },
    /// Other users may write it, which tt-metal does not let them: figures may be anybody's.
    WritableByOthers {
        /// Bits of the file's mode.
        mode: u32,
    },
}

/// Where a counter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A total.
    Total,
    /// A chip's slot.
    Chip {
        /// Number of the slot.
        slot: usize,
    },
    /// A process's slot.
    Process {
        /// Number of the slot.
        slot: usize,
        /// Its pid.
        pid: i32,
    },
}

impl Fault {
    /// A short name, for machines.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Fault::ChipId { .. } => "chip_id_differs",
            Fault::Total { .. } => "total_differs_from_processes",
            Fault::Chip { .. } => "chip_differs_from_total",
            Fault::Absurd { .. } => "absurd_counter",
            Fault::ProcessCount { .. } => "process_count_differs",
            Fault::DuplicatePid { .. } => "duplicate_pid",
            Fault::BadPid { .. } => "bad_pid",
            Fault::FreeSlot { .. } => "free_slot_has_bytes",
            Fault::WritableByOthers { .. } => "writable_by_others",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::ChipId { named, told } => {
                write!(f, "the region of chip {named} says that it is of chip {told}")
            }
            Fault::Total { kind: Kind::Cb, told, sum } => {
                write!(
                    f,
                    "total cb is {told} B and the processes have {sum} B: it is that of the last writer"
                )
            }
            Fault::Total { kind, told, sum } => {
                write!(f, "total {} is {told} B and the processes have {sum} B", kind.name())
            }
            Fault::Chip { kind, told, total } => {
                write!(f, "{} of the chip is {told} B and the total is {total} B", kind.name())
            }
            Fault::Absurd { place, kind, bytes } => {
                write!(f, "{} of {place} is {bytes} B: more was freed than counted", kind.name())
            }
            Fault::ProcessCount { told, used } => {
                write!(f, "{told} processes are told and {used} slots are used")
            }
            Fault::DuplicatePid { pid, slots } => write!(f, "pid {pid} has {} slots: {slots:?}", slots.len()),
            Fault::BadPid { slot, pid } => write!(f, "slot {slot} has pid {pid}, which is none"),
            Fault::FreeSlot { slot, bytes } => {
                let kinds = Kind::ALL.iter().filter(|kind| bytes.of(**kind) != 0);
                let held: Vec<_> =
                    kinds.map(|kind| format!("{} {} B", kind.name(), bytes.of(*kind))).collect();
                write!(f, "slot {slot} is free and has {}", held.join(", "))
            }
            Fault::WritableByOthers { mode } => {
                write!(f, "other users may write it (mode {:04o}): figures may be anybody's", mode & 0o7777)
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Total => f.write_str("the total"),
            Place::Chip { slot } => write!(f, "chip slot {slot}"),
            Place::Process { slot, pid } => write!(f, "pid {pid} (slot {slot})"),
        }
    }
}

/// Finds what is wrong. Comparisons between counters count only when nobody was writing (`is_at_rest`): a writer that is
/// between two of its stores is no fault.
pub(crate) fn find(content: &Content, image: &Image, named: u64, mode: u32, is_at_rest: bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    if content.chip_id != named {
        faults.push(Fault::ChipId { named, told: content.chip_id });
    }
    if mode & 0o022 != 0 {
        faults.push(Fault::WritableByOthers { mode });
    }
    absurd(content, &mut faults);
    pids(content, &mut faults);
    if is_at_rest {
        sums(content, &mut faults);
        faults.extend(bytes_of_free_slots(image).map(|(slot, bytes)| Fault::FreeSlot { slot, bytes }));
    }
    faults
}

fn absurd(content: &Content, faults: &mut Vec<Fault>) {
    let chips = content.chips.iter().map(|chip| (Place::Chip { slot: chip.slot }, chip.bytes));
    let processes = content
        .processes
        .iter()
        .map(|process| (Place::Process { slot: process.slot, pid: process.pid }, process.bytes));
    for (place, bytes) in [(Place::Total, content.totals)].into_iter().chain(chips).chain(processes) {
        let wrapped = Kind::ALL.into_iter().filter(|kind| bytes.of(*kind) > Bytes::ABSURD);
        faults.extend(wrapped.map(|kind| Fault::Absurd { place, kind, bytes: bytes.of(kind) }));
    }
}

fn pids(content: &Content, faults: &mut Vec<Fault>) {
    for process in &content.processes {
        let slots =
            || content.processes.iter().filter(|other| other.pid == process.pid).map(|other| other.slot);
        if process.pid < 0 {
            faults.push(Fault::BadPid { slot: process.slot, pid: process.pid });
        } else if process.is_duplicate && slots().next() == Some(process.slot) {
            faults.push(Fault::DuplicatePid { pid: process.pid, slots: slots().collect() });
        }
    }
}

fn sums(content: &Content, faults: &mut Vec<Fault>) {
    let (total, sum, chips) = (content.totals, content.sum(|_| true), content.chip_sum());
    let used = content.processes.len() as u32;
    // A slot that is being released may be counted or not.
    if !(used..=used + content.releasing).contains(&content.process_count) {
        faults.push(Fault::ProcessCount { told: content.process_count, used });
    }
    for kind in Kind::ALL {
        if content.releasing == 0 && total.of(kind) != sum.of(kind) {
            faults.push(Fault::Total { kind, told: total.of(kind), sum: sum.of(kind) });
        }
        if !content.chips.is_empty() && chips.of(kind) != total.of(kind) {
            faults.push(Fault::Chip { kind, told: chips.of(kind), total: total.of(kind) });
        }
    }
}
