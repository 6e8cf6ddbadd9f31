//! This process's segment, opened when the first allocator is met. A forked child opens one of its own when it needs it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tt_shm_writer::{OpenError, Pools, Record, Source, Tracker};

use crate::host;
use crate::notes;
use crate::shield::{self, PerProcess};

/// The segment of a process.
pub(crate) struct Segment {
    tracker: Tracker,
    slots: Mutex<Vec<Slot>>,
    gaps: Mutex<Gaps>,
}

/// Why this process may hold more than it reports.
#[derive(Default)]
struct Gaps {
    /// Something cannot be reported, now or ever.
    for_good: bool,
    /// Allocators that were in use before this library came, and of which it is not sure yet that all is known.
    unsettled: u32,
}

/// The place of an allocator among those of its chips.
#[derive(Clone)]
pub(crate) struct Slot {
    /// 0 for the first allocator of a chip.
    pub(crate) number: u64,
    chips: Arc<[u32]>,
    pools: Pools,
    in_use: Arc<AtomicBool>,
}

impl Slot {
    /// Another allocator of the same chips and pools may have it.
    pub(crate) fn release(&self) {
        self.in_use.store(false, Ordering::Release);
    }
}

static SEGMENT: PerProcess<Segment> = PerProcess::new();

/// The segment of this process; `None` if it cannot be opened, or if the process reports by itself.
pub(crate) fn current() -> Option<&'static Segment> {
    // A call that began before reports ended must not begin anew.
    if shield::is_detached() {
        return None;
    }
    SEGMENT.try_get_or_make(|| {
        if host::reports_by_itself() {
            notes::note("the process reports by itself, through tt_shm: nothing is added to that");
            return None;
        }
        // Loading this library is what switches tracking on.
        let opened = Tracker::builder().enabled(true).source(Source::Tap).backtrace(false).open();
        let say = |error: &OpenError| notes::unobserved(&format!("no segment could be made: {error}"));
        let tracker = opened.inspect_err(say).ok()?;
        Some(Segment { tracker, slots: Mutex::default(), gaps: Mutex::default() })
    })
}

/// The segment of this process, if it has one.
pub(crate) fn existing() -> Option<&'static Segment> {
    SEGMENT.get().filter(|_| !shield::is_detached())
}

/// This process holds more than it reports, if it reports anything.
pub(crate) fn partial() {
    if let Some(segment) = SEGMENT.get() {
        segment.partial();
    }
}

/// Ends this process's reports; whether there were any.
pub(crate) fn close() -> bool {
    SEGMENT.get().inspect(|segment| segment.tracker.close()).is_some()
}

impl Segment {
    pub(crate) fn tracker(&self) -> &Tracker {
        &self.tracker
    }

    /// This process holds more than it reports.
    pub(crate) fn partial(&self) {
        self.change(|gaps| gaps.for_good = true);
    }

    /// It may, until all allocators of which that was said are settled.
    pub(crate) fn unsettled(&self) {
        self.change(|gaps| gaps.unsettled += 1);
    }

    pub(crate) fn settled(&self) {
        self.change(|gaps| gaps.unsettled = gaps.unsettled.saturating_sub(1));
    }

    fn change(&self, change: impl FnOnce(&mut Gaps)) {
        let mut gaps = self.gaps.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        change(&mut gaps);
        // Still locked: who comes second must not be overtaken.
        let _ = if gaps.for_good || gaps.unsettled > 0 {
            self.tracker.partial()
        } else {
            self.tracker.complete()
        };
    }

    /// A place for an allocator: that of one that is gone, if its chips and pools were the same, since a segment has
    /// room for a limited number and hosts open and close devices all day; else the next number that is free on all of
    /// its chips.
    pub(crate) fn claim(&self, chips: &[u32], pools: Pools) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let again = |slot: &&Slot| {
            *slot.chips == *chips && slot.pools == pools && !slot.in_use.swap(true, Ordering::AcqRel)
        };
        if let Some(slot) = slots.iter().find(again) {
            return slot.clone();
        }
        let shares_a_chip = |slot: &&Slot| slot.chips.iter().any(|chip| chips.contains(chip));
        let number = slots.iter().filter(shares_a_chip).map(|slot| slot.number + 1).max().unwrap_or(0);
        let slot = Slot { number, chips: chips.into(), pools, in_use: Arc::new(AtomicBool::new(true)) };
        slots.push(slot.clone());
        slot
    }
}
