//! What stands in a region.

use std::borrow::Cow;

use crate::bytes::{Bytes, Kind};
use crate::fault::Fault;
use crate::layout::{self, CHIPS, Image, PROCESSES, chip, i32_at, process, u32_at, u64_at};
use crate::liveness::{Doubt, Liveness};

/// What stands in a region. Numbers are as they were read: what is wrong with them is in [`Content::faults`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Version of the layout.
    pub version: u32,
    /// Id of the chip, as the region tells it.
    pub chip_id: u64,
    /// The number that the process which attached last has for the chip.
    pub device_id: u32,
    /// When anybody wrote it last, in nanoseconds since 1970 by the system clock.
    pub updated_ns: u64,
    /// How often it was opened and not closed; processes that were killed stay in it.
    pub reference_count: u32,
    /// Used process slots, as the region tells it.
    pub process_count: u32,
    /// Bytes of all processes, as the region tells them.
    pub totals: Bytes,
    /// The slots for chips that are used: mostly one, since each chip has a region of its own.
    pub chips: Vec<ChipStats>,
    /// The slots for processes that are used, in their order.
    pub processes: Vec<Process>,
    /// Slots that are being released.
    pub releasing: u32,
    /// Whether two readings in succession were equal. If not, processes write all the time: each number is one that
    /// was written, but they need not belong together.
    pub is_steady: bool,
    /// What contradicts itself.
    pub faults: Vec<Fault>,
}

/// A chip's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChipStats {
    /// Which slot.
    pub slot: usize,
    /// Logical number of the chip.
    pub chip: u32,
    /// Whether the chip has no host link of its own.
    pub is_remote: bool,
    /// Its bytes.
    pub bytes: Bytes,
}

/// A process's slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Which slot.
    pub slot: usize,
    /// What the process calls itself: in a container not what it is called here. Negative ones are [`Fault::BadPid`].
    pub pid: i32,
    /// Its bytes.
    pub bytes: Bytes,
    /// When the slot was written last, in nanoseconds since 1970 by the system clock.
    pub updated_ns: u64,
    /// Its name, up to the first NUL, at most 64 bytes. Chosen by the process: escape it.
    pub name: Vec<u8>,
    /// Whether another slot has the same pid.
    pub is_duplicate: bool,
    /// Whether the process lives.
    pub liveness: Liveness,
}

impl Process {
    /// The name, with replacement characters where it is not UTF-8. May hold control characters.
    #[must_use]
    pub fn name_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.name)
    }

    /// What the living process is called here; `None` unless it is certain.
    #[must_use]
    pub fn pid_here(&self) -> Option<u32> {
        match self.liveness {
            Liveness::Alive { pid_here } => Some(pid_here),
            _ => None,
        }
    }
}

impl Content {
    /// Bytes of the processes for which a predicate holds, by their slots. Saturates where counters are absurd: a
    /// predicate may leave those out ([`Bytes::is_plausible`]).
    pub fn sum(&self, mut is_counted: impl FnMut(&Process) -> bool) -> Bytes {
        let counted = self.processes.iter().filter(|process| is_counted(process));
        counted.fold(Bytes::default(), |sum, process| sum.saturating_add(process.bytes))
    }

    /// Bytes of all chip slots.
    #[must_use]
    pub fn chip_sum(&self) -> Bytes {
        self.chips.iter().fold(Bytes::default(), |sum, chip| sum.saturating_add(chip.bytes))
    }

    /// Reads an image of a known version. Nothing in it can be out of range.
    pub(crate) fn parse(image: &Image) -> Content {
        let version = u32_at(image, layout::VERSION);
        let is_releasing = |pid: i32| pid == layout::RELEASING && version >= layout::WITH_STATES;
        let pids = || PROCESSES.places().map(|(_, place)| i32_at(image, place + process::PID));
        let used = PROCESSES.places().map(|(slot, place)| parse_process(image, slot, place));
        let mut processes: Vec<_> =
            used.filter(|process| process.pid != 0 && !is_releasing(process.pid)).collect();
        mark_duplicates(&mut processes);
        Content {
            version,
            chip_id: u64_at(image, layout::CHIP_ID),
            device_id: u32_at(image, layout::DEVICE_ID),
            updated_ns: u64_at(image, layout::UPDATED),
            reference_count: u32_at(image, layout::REFERENCES),
            process_count: u32_at(image, layout::PROCESS_COUNT),
            totals: Bytes::at(image, layout::TOTALS),
            chips: CHIPS.places().filter_map(|(slot, place)| parse_chip(image, slot, place)).collect(),
            processes,
            releasing: pids().filter(|pid| is_releasing(*pid)).count() as u32,
            is_steady: true,
            faults: Vec::new(),
        }
    }
}

fn parse_chip(image: &Image, slot: usize, place: usize) -> Option<ChipStats> {
    let chip = u32_at(image, place + chip::ID);
    (chip != layout::NO_CHIP).then(|| ChipStats {
        slot,
        chip,
        is_remote: u32_at(image, place + chip::IS_REMOTE) != 0,
        bytes: Bytes::at(image, place + chip::BYTES),
    })
}

fn parse_process(image: &Image, slot: usize, place: usize) -> Process {
    let name = &image[place + process::NAME..][..process::NAME_LEN];
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Process {
        slot,
        pid: i32_at(image, place + process::PID),
        bytes: Bytes::at(image, place + process::BYTES),
        updated_ns: u64_at(image, place + process::UPDATED),
        name: name[..end].to_vec(),
        is_duplicate: false,
        liveness: Liveness::Uncertain(Doubt::NotLookedYet),
    }
}

fn mark_duplicates(processes: &mut [Process]) {
    let pids: Vec<i32> = processes.iter().map(|process| process.pid).collect();
    for process in processes {
        process.is_duplicate = pids.iter().filter(|pid| **pid == process.pid).count() > 1;
    }
}

/// Bytes in slots that nobody uses, with their numbers: what was released is zero, apart from its name.
pub(crate) fn bytes_of_free_slots(image: &Image) -> impl Iterator<Item = (usize, Bytes)> {
    let free = PROCESSES.places().filter(|(_, place)| i32_at(image, place + process::PID) == 0);
    free.map(|(slot, place)| (slot, Bytes::at(image, place + process::BYTES)))
        .filter(|(_, bytes)| Kind::ALL.iter().any(|kind| bytes.of(*kind) != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::find;

    /// No bytes make the parser panic, and everything it returns is bounded by the number of slots.
    #[test]
    fn random_bytes_are_read_without_harm() {
        let mut random = fastrand::Rng::with_seed(1);
        for round in 0..2000 {
            let mut image = [0; layout::LEN];
            // Dense noise, and noise in a few places.
            match round % 2 {
                0 => random.fill(&mut image),
                _ => (0..random.usize(..40)).for_each(|_| image[random.usize(..layout::LEN)] = random.u8(..)),
            }
            let content = Content::parse(&image);
            assert!(content.processes.len() + content.releasing as usize <= 64 && content.chips.len() <= 16);
            assert!(content.processes.iter().all(|process| process.name.len() <= 64));
            let faults = find(&content, &image, 7, 0o666, true);
            assert!(faults.len() < 1000, "{}", faults.len());
            faults.iter().for_each(|fault| assert!(fault.to_string().len() < 300, "{fault}"));
            std::hint::black_box(content.sum(|process| process.bytes.is_plausible()));
        }
    }
}
