//! This process's segment, opened when the first allocator is met. A forked child opens one of its own when it needs it.

use std::ptr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use tt_shm_writer::{Pools, Source, Tracker};

use crate::shield;

/// The segment of a process.
pub(crate) struct Segment {
    generation: u32,
    tracker: Tracker,
    /// Never taken in a child that was forked from whoever has it: a child has a segment of its own.
    slots: Mutex<Vec<Slot>>,
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

/// The segment of this process; `None` if it cannot be opened.
pub(crate) fn current() -> Option<&'static Segment> {
    static CURRENT: AtomicPtr<Segment> = AtomicPtr::new(ptr::null_mut());
    let generation = shield::generation();
    let there = CURRENT.load(Ordering::Acquire);
    // SAFETY: segments are never freed.
    let mine = |segment: *mut Segment| unsafe { segment.as_ref() }.filter(|one| one.generation == generation);
    if let Some(segment) = mine(there) {
        return Some(segment);
    }
    // Loading this library is what switches tracking on.
    let tracker = Tracker::builder().enabled(true).source(Source::Tap).open().ok()?;
    let segment = Box::into_raw(Box::new(Segment { generation, tracker, slots: Mutex::default() }));
    // Release: pairs with the Acquire above.
    match CURRENT.compare_exchange(there, segment, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => mine(segment),
        Err(first) => {
            // Another thread was faster; this one's segment is removed as it is dropped.
            // SAFETY: nobody else has seen it.
            drop(unsafe { Box::from_raw(segment) });
            mine(first)
        }
    }
}

impl Segment {
    pub(crate) fn tracker(&self) -> &Tracker {
        &self.tracker
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
