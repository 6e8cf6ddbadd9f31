//! What is used of a chip's memory by all processes of a run, the most that it was, and what that was made of.
//!
//! The composition of a maximum is copied only before something leaves it: while memory is filled, every allocation is a new
//! maximum.

use std::collections::BTreeMap;

use tt_shm_reader::{Class, Counters, Held, Sum, UsedMemory};

/// The number of a name in its process; 0 for none.
pub(super) type Name = u16;

/// What is used of each memory.
pub(super) type Used = [u64; UsedMemory::ALL.len()];

pub(super) fn all_used(counters: &Counters) -> Used {
    UsedMemory::ALL.map(|memory| memory.used(counters))
}

/// The parts of a peak, by process (its place in the list), class and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) sums: BTreeMap<(usize, Class, Name), Sum>,
    /// Whether everything is in it under its name.
    pub(super) is_complete: bool,
}

/// What is used of a memory, and its maximum.
#[derive(Default)]
struct Level {
    used: u64,
    peak: u64,
    time: u64,
    /// The number of the event that reached the peak.
    reached_by: u64,
    /// The composition of the peak; `None` while it is still what is held now.
    copied: Option<Parts>,
    /// Whether something came late that happened before the peak.
    is_doubtful: bool,
}

/// A chip of a run.
#[derive(Default)]
pub(super) struct Chip {
    /// Processes and their device indices.
    pub(super) accounts: Vec<(usize, usize)>,
    /// The latest time of an event.
    latest: u64,
    levels: [Level; UsedMemory::ALL.len()],
}

impl Chip {
    /// Records that what one process uses of a memory changed.
    pub(super) fn change(&mut self, memory: UsedMemory, (before, after): (u64, u64), time: u64, number: u64) {
        let level = &mut self.levels[memory as usize];
        if before == after {
            return;
        }
        // The composition of a peak after this moment lacks it.
        level.is_doubtful |= time < self.latest && level.time >= time;
        level.used = level.used.saturating_sub(before).saturating_add(after);
        if level.used > level.peak {
            let time = time.max(self.latest);
            *level =
                Level { used: level.used, peak: level.used, time, reached_by: number, ..Level::default() };
        }
    }

    /// Records an event, and what one process used before and after it.
    pub(super) fn event(&mut self, [before, after]: [Used; 2], time: u64, number: u64) {
        for memory in UsedMemory::ALL {
            self.change(memory, (before[memory as usize], after[memory as usize]), time, number);
        }
        self.latest = self.latest.max(time);
    }

    /// What a process reported is impossible: nothing that it was part of is certain.
    pub(super) fn doubt(&mut self) {
        self.levels.iter_mut().for_each(|level| level.is_doubtful = true);
    }

    /// Whether the composition of the peak is what is held now, and nowhere else.
    pub(super) fn is_to_copy(&self, memory: UsedMemory) -> bool {
        let level = &self.levels[memory as usize];
        level.peak > 0 && level.copied.is_none()
    }

    /// Keeps the composition of the peak, which is about to change.
    pub(super) fn copy(&mut self, memory: UsedMemory, parts: Parts) {
        self.levels[memory as usize].copied = Some(parts);
    }

    /// What the peak was made of, given what is held now, and whether that was at a moment that there was; `None` if there
    /// was no peak.
    pub(super) fn peak(&self, memory: UsedMemory, now: impl FnOnce() -> Parts) -> Option<Parts> {
        let level = &self.levels[memory as usize];
        let parts = (level.peak > 0).then(|| level.copied.clone().unwrap_or_else(now))?;
        Some(Parts { is_complete: parts.is_complete && !level.is_doubtful, ..parts })
    }

    /// The names of a process in the copies of peaks.
    pub(super) fn names_of(&self, process: usize) -> impl Iterator<Item = Name> {
        let copies = self.levels.iter().filter_map(|level| level.copied.as_ref());
        let parts = copies.flat_map(|copied| copied.sums.keys());
        parts.filter(move |(of, ..)| *of == process).map(|(.., name)| *name)
    }

    /// Renames a buffer in the copies of peaks that it is part of: names come after the allocation.
    pub(super) fn rename(&mut self, process: usize, buffer: &Held, name: Name) {
        let levels = UsedMemory::ALL.into_iter().zip(&mut self.levels);
        for (_, level) in levels.filter(|(memory, _)| memory.is_part()(buffer.class)) {
            let was_there = buffer.since <= level.reached_by;
            let Some(copied) = level.copied.as_mut().filter(|_| was_there) else { continue };
            if let Some(sum) = copied.sums.get_mut(&(process, buffer.class, buffer.name)) {
                sum.subtract(buffer.sum());
                copied.sums.entry((process, buffer.class, name)).or_default().add(buffer.sum());
            }
        }
    }

    #[cfg(test)]
    pub(super) fn used(&self, memory: UsedMemory) -> u64 {
        self.levels[memory as usize].used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAM: UsedMemory = UsedMemory::Dram;

    fn parts(sums: impl IntoIterator<Item = (usize, Name, u64)>) -> Parts {
        let sum = |(process, name, bytes)| ((process, Class::Dram, name), Sum { bytes, count: 1 });
        Parts { sums: sums.into_iter().map(sum).collect(), is_complete: true }
    }

    #[test]
    fn a_peak_is_what_is_held_until_it_is_copied() {
        let mut chip = Chip::default();
        let now = || parts([(0, 0, 10)]);
        assert!(chip.peak(DRAM, now).is_none() && !chip.is_to_copy(DRAM));
        chip.change(DRAM, (0, 10), 1, 1);
        assert!(chip.is_to_copy(DRAM) && !chip.is_to_copy(UsedMemory::L1));
        assert_eq!(chip.peak(DRAM, now), Some(now()));
        chip.copy(DRAM, now());
        chip.change(DRAM, (10, 3), 2, 2);
        chip.change(DRAM, (3, 10), 3, 3);
        assert!(!chip.is_to_copy(DRAM), "as much again is no new peak");
        assert_eq!(chip.peak(DRAM, || unreachable!("it was copied")), Some(now()));
        chip.change(DRAM, (10, 11), 4, 4);
        assert!(chip.is_to_copy(DRAM));
        assert_eq!((chip.used(DRAM), chip.used(UsedMemory::L1)), (11, 0));
    }

    #[test]
    fn what_comes_late_makes_the_peaks_after_it_doubtful() {
        let is_certain = |chip: &Chip| chip.peak(DRAM, || parts([])).unwrap().is_complete;
        let mut chip = Chip::default();
        chip.event([[0, 0], [20, 0]], 100, 1);
        assert!(is_certain(&chip));
        chip.change(DRAM, (0, 0), 50, 2);
        assert!(is_certain(&chip), "nothing changed");
        chip.change(DRAM, (5, 0), 50, 3);
        assert!(!is_certain(&chip));
        chip.change(DRAM, (0, 30), 200, 4);
        assert!(is_certain(&chip), "a new peak");
        chip.doubt();
        assert!(!is_certain(&chip));
    }

    #[test]
    fn a_name_changes_the_copies_that_its_buffer_is_in() {
        let mut chip = Chip::default();
        chip.change(DRAM, (0, 10), 1, 5);
        chip.copy(DRAM, parts([(0, 0, 10), (1, 0, 7)]));
        let buffer = |class, since| Held { class, size: 4, name: 0, site: 0, since };
        chip.rename(0, &buffer(Class::Dram, 6), 2);
        chip.rename(0, &buffer(Class::L1, 1), 2);
        assert_eq!(chip.names_of(0).collect::<Vec<_>>(), [0], "too late, and of another memory");
        chip.rename(0, &buffer(Class::Dram, 5), 2);
        assert_eq!(chip.names_of(0).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(chip.names_of(1).collect::<Vec<_>>(), [0]);
        let sums = chip.peak(DRAM, || unreachable!("it was copied")).unwrap().sums;
        let bytes: Vec<u64> = sums.values().map(|sum| sum.bytes).collect();
        assert_eq!(bytes, [6, 4, 7]);
    }
}
