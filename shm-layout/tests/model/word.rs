//! Words that loom watches, and the memory that is made of them.

use loom::sync::atomic::{AtomicU64, Ordering, fence};
use shm_layout::control::{CONTROL_WORDS, DEVICE_COUNT, HEAD, ROWS_PUBLISHED};
use shm_layout::{DEVICE_COUNTER_WORDS, Event, EventKind, SLOT_WORDS, SegmentWords, Word};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64 as Plain, AtomicUsize, Ordering::Relaxed};

/// What a word lacks; `SOUND` is what production has.
pub(crate) const SOUND: u8 = 0;
pub(crate) const NO_RELEASE_FENCE: u8 = 1;
pub(crate) const NO_ACQUIRE_FENCE: u8 = 2;
pub(crate) const RELAXED_STORE: u8 = 3;

thread_local! {
    /// The number of stores that the writer still performs. loom's threads are coroutines of one thread, and
    /// only the writer stores, so one number per test is enough.
    static STORES_LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Lets the writer die after this many stores: all later ones are lost.
pub(crate) fn kill_writer_after(stores: usize) {
    STORES_LEFT.set(stores);
}

/// How many stores of the budget given to [`kill_writer_after`] are left.
pub(crate) fn stores_left() -> usize {
    STORES_LEFT.get()
}

fn writer_lives() -> bool {
    let left = STORES_LEFT.get();
    STORES_LEFT.set(left.saturating_sub(1));
    left > 0
}

/// A word of the model. Each access to a `Watched` one multiplies the interleavings, so words that no
/// assertion depends on, or that never change, are `Ignored`.
pub(crate) enum ModelWord<const V: u8> {
    Watched(AtomicU64),
    Ignored(Plain),
}

impl<const V: u8> ModelWord<V> {
    pub(crate) fn watched() -> Self {
        ModelWord::Watched(AtomicU64::new(0))
    }

    fn watched_if(watched: bool) -> Self {
        if watched { Self::watched() } else { ModelWord::Ignored(Plain::new(0)) }
    }

    fn put(&self, value: u64, ordering: Ordering) {
        match self {
            ModelWord::Watched(word) => {
                if writer_lives() {
                    word.store(value, ordering);
                }
            }
            ModelWord::Ignored(word) => word.store(value, Relaxed),
        }
    }
}

impl<const V: u8> Word for ModelWord<V> {
    fn load(&self) -> u64 {
        match self {
            ModelWord::Watched(word) => word.load(Ordering::Relaxed),
            ModelWord::Ignored(word) => word.load(Relaxed),
        }
    }
    fn store(&self, value: u64) {
        self.put(value, Ordering::Relaxed);
    }
    fn store_release(&self, value: u64) {
        self.put(value, if V == RELAXED_STORE { Ordering::Relaxed } else { Ordering::Release });
    }
    fn fence_acquire() {
        if V != NO_ACQUIRE_FENCE {
            fence(Ordering::Acquire);
        }
    }
    fn fence_release() {
        if V != NO_RELEASE_FENCE {
            fence(Ordering::Release);
        }
    }
}

/// A latch that publishes a few words; its padding is not watched.
pub(crate) fn latch_memory<const V: u8>(copy_words: usize) -> Vec<ModelWord<V>> {
    let words = shm_layout::protocol::latch::latch_words(copy_words);
    let padding = 1..words - 2 * copy_words;
    (0..words).map(|word| ModelWord::watched_if(!padding.contains(&word))).collect()
}

/// A segment small enough to be checked. In a slot the words that differ between a check's events are
/// watched, in a row the stamp and the size, in counters the position and the live DRAM bytes: no assertion
/// depends on anything else that changes.
pub(crate) struct Memory<const V: u8> {
    control: Vec<ModelWord<V>>,
    counters: Vec<[ModelWord<V>; DEVICE_COUNTER_WORDS]>,
    ring: Vec<[ModelWord<V>; SLOT_WORDS]>,
    rows: Vec<[ModelWord<V>; SLOT_WORDS]>,
}

/// Words of an event, and of the row it writes, for [`Memory::new`].
pub(crate) const KIND: usize = 2;
pub(crate) const SIZE: usize = 4;

/// Words of the latch that are watched; of the rest, nothing is asserted.
const COUNTER_WORDS: [usize; 5] = {
    let copy_words = (DEVICE_COUNTER_WORDS - 16) / 2;
    let live_dram = 64;
    [0, 16, 16 + live_dram, 16 + copy_words, 16 + copy_words + live_dram]
};

impl<const V: u8> Memory<V> {
    pub(crate) fn new(slots: usize, differing: &[usize], rows: usize, devices: usize) -> Memory<V> {
        let cell = |words: &[usize]| std::array::from_fn(|word| ModelWord::watched_if(words.contains(&word)));
        let memory = Memory {
            control: (0..CONTROL_WORDS).map(|word| ModelWord::watched_if(word == HEAD)).collect(),
            counters: (0..devices)
                .map(|_| std::array::from_fn(|word| ModelWord::watched_if(COUNTER_WORDS.contains(&word))))
                .collect(),
            ring: (0..slots).map(|_| cell(&[&[0], differing].concat())).collect(),
            rows: (0..rows).map(|_| cell(&[0, SIZE])).collect(),
        };
        memory.control[DEVICE_COUNT].store(devices as u64);
        memory.control[ROWS_PUBLISHED].store(rows as u64);
        memory
    }

    /// With this many rows published, and more to come.
    pub(crate) fn with_published(mut self, rows: u64) -> Memory<V> {
        self.control[ROWS_PUBLISHED] = ModelWord::watched();
        self.control[ROWS_PUBLISHED].store(rows);
        self
    }

    /// With the names in the rows watched instead of the sizes.
    pub(crate) fn with_names(mut self) -> Memory<V> {
        let cell = || std::array::from_fn(|word| ModelWord::watched_if([0, KIND].contains(&word)));
        self.rows = self.rows.iter().map(|_| cell()).collect();
        self
    }

    pub(crate) fn segment(&self) -> SegmentWords<'_, ModelWord<V>> {
        SegmentWords {
            control: &self.control,
            devices: &[],
            counters: &self.counters,
            name_index: &[],
            name_bytes: &[],
            ring: &self.ring,
            rows: &self.rows,
        }
    }
}

/// An event on device 0 and row 0. Sizes are powers of two, so that a sum tells which events are included.
pub(crate) fn event(position: u64, kind: EventKind, size: u64) -> Event {
    Event { stamp: position, size, aux: 0, row: 0, ..Event::new(kind, 0) }
}

/// The outcomes of all schedules together.
#[derive(Default)]
pub(crate) struct Tally {
    hits: AtomicUsize,
    misses: AtomicUsize,
}

impl Tally {
    pub(crate) fn count(&self, hit: bool) {
        let counter = if hit { &self.hits } else { &self.misses };
        counter.fetch_add(1, Relaxed);
    }

    /// Both outcomes must have happened, or the check checked nothing.
    pub(crate) fn assert_both(&self) {
        let (hits, misses) = (self.hits.load(Relaxed), self.misses.load(Relaxed));
        assert!(hits > 0 && misses > 0, "{hits} hits, {misses} misses: too few schedules");
    }
}

/// Runs a model. The main thread writes and a spawned one reads: with the reader in the main thread, loom
/// has been seen to explore a single schedule. `preemptions` bounds how often a thread may be interrupted, `None` leaves it open.
pub(crate) fn explore(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 5_000;
    builder.check(model);
}
