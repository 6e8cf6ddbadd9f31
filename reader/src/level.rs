//! What is used of a memory from a moment on: the most that it was, and what that was made of.
//!
//! The most is an interval. Events that were followed raise both ends. Where events were missed, the process's
//! own peak tells what it can: if it rose, that is the most of that time; if not, the most was not above it;
//! if it was reset in between, nothing bounds the time before.
//!
//! What a maximum was made of is copied only before something leaves it: while memory is filled, every
//! allocation is a new maximum.

use std::collections::BTreeMap;

use shm_layout::{Class, Counters, Event, EventKind};

use crate::holdings::{Held, Holdings, Sum};

/// A memory whose peaks are taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsedMemory {
    /// DRAM used: buffers and traces.
    Dram,
    /// L1 used: buffers and circular buffers of resident programs.
    L1,
}

impl UsedMemory {
    /// Both.
    pub const ALL: [UsedMemory; 2] = [UsedMemory::Dram, UsedMemory::L1];

    /// What is used of it.
    pub fn used(self, counters: &Counters) -> u64 {
        match self {
            UsedMemory::Dram => counters.dram_used(),
            UsedMemory::L1 => counters.l1_used(),
        }
    }

    /// Which classes are part of it.
    pub fn is_part(self) -> fn(Class) -> bool {
        match self {
            UsedMemory::Dram => Class::is_dram,
            UsedMemory::L1 => |class| class.is_l1_buffer() || class == Class::Cb,
        }
    }

    /// The memory that an event may make less used.
    pub fn lowered_by(event: &Event) -> Option<UsedMemory> {
        match event.kind()? {
            EventKind::Free if event.class()?.is_dram() => Some(UsedMemory::Dram),
            EventKind::Free if event.class()?.is_l1_buffer() => Some(UsedMemory::L1),
            EventKind::KernelDispatch | EventKind::CbFree | EventKind::ProgramEnd => Some(UsedMemory::L1),
            _ => None,
        }
    }

    /// The process's own peak, and when it was reached.
    fn own_peak(self, counters: &Counters) -> (u64, Option<u64>) {
        let (bytes, time) = match self {
            UsedMemory::Dram => (counters.dram_peak_bytes, counters.dram_peak_time),
            UsedMemory::L1 => (counters.l1_peak_bytes, counters.l1_peak_time),
        };
        // At a reset, the peak is what was held then; when that was reached is not known.
        (bytes, Some(time).filter(|time| *time != counters.peak_reset_time && *time != 0))
    }
}

/// Bytes and numbers by class and name.
pub(crate) type Parts = BTreeMap<(Class, u16), Sum>;

/// What the most was made of.
#[derive(Clone, Debug)]
enum MadeOf {
    /// Of what is held now.
    Now,
    Copied(Parts),
    Unknown,
}

/// What was used of one memory of one device.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    memory: UsedMemory,
    /// The bytes at the beginning.
    pub(crate) begin: u64,
    /// The most that is certain.
    pub(crate) low: u64,
    /// The most that is possible; `None` if nothing bounds it.
    pub(crate) high: Option<u64>,
    /// The ticks at which `low` was reached; `None` if that is not known, or was before the beginning.
    pub(crate) time: Option<u64>,
    /// The position of the event that reached it; 0 if names that come later cannot be assigned to its parts.
    reached_by: u64,
    made_of: MadeOf,
}

impl Level {
    /// A level that begins with what is held at a position.
    pub(crate) fn begin(memory: UsedMemory, position: u64, held: &Holdings, is_listed: bool) -> Level {
        let begin = memory.used(held.counters());
        let made_of = if is_listed { MadeOf::Now } else { MadeOf::Unknown };
        Level { memory, begin, low: begin, high: Some(begin), time: None, reached_by: position, made_of }
    }

    pub(crate) fn memory(&self) -> UsedMemory {
        self.memory
    }

    /// Keeps what the most was made of, before something leaves it.
    pub(crate) fn keep(&mut self, held: &Holdings) {
        if matches!(self.made_of, MadeOf::Now) {
            self.made_of = MadeOf::Copied(self.parts(held));
        }
    }

    fn parts(&self, held: &Holdings) -> Parts {
        let mut parts = Parts::new();
        for (class, name, sum) in held.parts(self.memory.is_part()) {
            parts.entry((class, name)).or_default().add(sum);
        }
        parts
    }

    /// Takes in the state after an event.
    pub(crate) fn after(&mut self, event: &Event, held: &Holdings, is_listed: bool) {
        let used = self.memory.used(held.counters());
        if used > self.low {
            let made_of = if is_listed { MadeOf::Now } else { MadeOf::Unknown };
            self.raise(used, Some(event.time), event.stamp, made_of);
        }
    }

    fn raise(&mut self, low: u64, time: Option<u64>, reached_by: u64, made_of: MadeOf) {
        let high = self.high.map(|high| high.max(low));
        *self = Level { low, high, time, reached_by, made_of, ..*self };
    }

    /// Takes in the state at a position after events that were missed, given the counters before them. What the
    /// most was made of has to be kept before.
    pub(crate) fn after_gap(&mut self, before: &Counters, position: u64, held: &Holdings, is_listed: bool) {
        // What was renamed in the gap is not known: names that come now may not be those of a copy.
        self.reached_by = 0;
        let after = held.counters();
        let used = self.memory.used(after);
        let (own_before, _) = self.memory.own_peak(before);
        let (own, own_time) = self.memory.own_peak(after);
        let was_reset = before.peak_reset_time != after.peak_reset_time || own < own_before;
        let (certain, time) = match own > own_before || was_reset {
            // Reached after the last reset, or above the peak before: in the gap in either case.
            true => (own, own_time),
            false => (used, None),
        };
        if certain > self.low {
            let is_held_now = is_listed && used == certain;
            let made_of = if is_held_now { MadeOf::Now } else { MadeOf::Unknown };
            self.raise(certain, time, position, made_of);
        }
        let bound = if was_reset { None } else { Some(own) };
        self.high = self.high.zip(bound).map(|(high, bound)| high.max(bound));
    }

    /// Renames a buffer in what the most was made of, if it was part of it: names come after the allocation.
    pub(crate) fn rename(&mut self, held: &Held, name: u16) {
        let was_there = held.since <= self.reached_by && self.memory.is_part()(held.class);
        let MadeOf::Copied(parts) = &mut self.made_of else { return };
        if !was_there {
            return;
        }
        if let Some(sum) = parts.get_mut(&(held.class, held.name)) {
            sum.subtract(held.sum());
            parts.entry((held.class, name)).or_default().add(held.sum());
        }
    }

    /// What the most was made of, if that is known. It adds up to `low`.
    pub(crate) fn made_of(&self, held: &Holdings) -> Option<Parts> {
        let mut parts = match &self.made_of {
            MadeOf::Now => self.parts(held),
            MadeOf::Copied(parts) => parts.clone(),
            MadeOf::Unknown => return None,
        };
        parts.retain(|_, sum| sum.bytes > 0);
        let bytes = parts.values().fold(0, |all: u64, sum| all.saturating_add(sum.bytes));
        (bytes == self.low).then_some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(used: u64, peak: u64, reset: u64) -> Counters {
        let mut counters = Counters { dram_peak_bytes: peak, dram_peak_time: 5, ..Counters::ZERO };
        counters.classes[Class::Dram as usize].live_bytes = used;
        counters.peak_reset_time = reset;
        counters
    }

    /// Low, high and time after a gap between two states.
    fn after(before: Counters, after: Counters) -> (u64, Option<u64>, Option<u64>) {
        let mut level = Level::begin(UsedMemory::Dram, 1, &Holdings::new(before), true);
        level.keep(&Holdings::new(before));
        level.after_gap(&before, 9, &Holdings::new(after), true);
        (level.low, level.high, level.time)
    }

    #[test]
    fn the_own_peak_decides_about_a_gap() {
        let before = counters(10, 100, 0);
        assert_eq!(after(before, counters(20, 100, 0)), (20, Some(100), None), "not risen");
        assert_eq!(after(before, counters(20, 101, 0)), (101, Some(101), Some(5)), "risen");
        assert_eq!(after(before, counters(20, 101, 3)), (101, None, Some(5)), "reset, and risen since");
        assert_eq!(after(before, counters(20, 30, 3)), (30, None, Some(5)), "reset");
        assert_eq!(after(before, counters(20, 30, 0)), (30, None, Some(5)), "fallen, so it was reset");
        assert_eq!(after(before, counters(20, 30, 5)), (30, None, None), "what was held at the reset");
        let at_peak = counters(100, 100, 0);
        assert_eq!(after(at_peak, counters(0, 100, 0)), (100, Some(100), None), "no room above it");
    }
}
