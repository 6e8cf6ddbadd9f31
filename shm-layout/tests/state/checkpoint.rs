//! The checkpoint: for a reader that cannot finish reading counters that change all the time.

use crate::support::{Memory, Writer, counters_at};
use shm_layout::protocol::observe::{Attached, Busy, CatchUpError};
use shm_layout::{Event, EventKind, LATCH_WORDS, Word};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// A word that can be made to differ at every look, like the sequence of a latch that turns and turns.
#[derive(Default)]
struct Restless {
    word: AtomicU64,
    restless: AtomicBool,
}

impl Word for Restless {
    fn load(&self) -> u64 {
        if self.restless.load(Relaxed) { self.word.fetch_add(1, Relaxed) } else { self.word.load(Relaxed) }
    }
    fn store(&self, value: u64) {
        self.word.store(value, Relaxed);
    }
    fn store_release(&self, value: u64) {
        self.word.store(value, Relaxed);
    }
    fn fence_acquire() {}
    fn fence_release() {}
}

fn alloc(stamp: u64, device: u8) -> Event {
    Event { stamp, size: stamp, time: stamp, ..Event::new(EventKind::Alloc, device) }
}

/// With 64 slots there is a checkpoint after every 16 events of a device.
const SLOTS: usize = 64;

#[test]
fn the_events_after_a_checkpoint_make_it_exact() {
    for last in [0, 1, 15, 16, 17, 40, 100] {
        let events: Vec<Event> = (1..=last).map(|stamp| alloc(stamp, 0)).collect();
        let memory: Memory<Restless> = Memory::new(SLOTS, 0, 1);
        let mut writer = Writer::new(SLOTS);
        events.iter().for_each(|event| writer.commit(&memory.segment(), event));
        memory.counters[0][0].restless.store(true, Relaxed);

        let mut attached = Attached::new(&memory.segment()).unwrap();
        assert_eq!(attached.devices[0].1, last / 16 * 16);
        attached.catch_up(&memory.segment()).unwrap();
        assert_eq!(attached.devices[0].0, counters_at(&events, last));
        assert_eq!(attached.cursor.position(), last);
    }
}

#[test]
fn two_devices_follow_from_the_older_of_both() {
    let memory: Memory<Restless> = Memory::new(SLOTS, 0, 2);
    let mut writers = [Writer::new(SLOTS), Writer::new(SLOTS)];
    let mut sums = [0; 2];
    for stamp in 1..=50_u64 {
        let device = stamp as usize % 2;
        writers[device].commit(&memory.segment(), &alloc(stamp, device as u8));
        sums[device] += stamp;
    }
    memory.counters[1][0].restless.store(true, Relaxed);

    let mut attached = Attached::new(&memory.segment()).unwrap();
    // Device 1 has the odd positions, its 16th is 31; device 0 is up to date.
    assert_eq!((attached.devices[0].1, attached.devices[1].1), (50, 31));
    attached.catch_up(&memory.segment()).unwrap();
    assert_eq!([0, 1].map(|device| attached.devices[device].0.dram_used()), sums);
}

#[test]
fn a_checkpoint_older_than_the_ring_is_no_use() {
    let memory: Memory<Restless> = Memory::new(SLOTS, 0, 2);
    let mut writers = [Writer::new(SLOTS), Writer::new(SLOTS)];
    for stamp in 1..=200 {
        let device = usize::from(stamp > 20);
        writers[device].commit(&memory.segment(), &alloc(stamp, device as u8));
    }
    memory.counters[0][0].restless.store(true, Relaxed);
    let mut attached = Attached::new(&memory.segment()).unwrap();
    assert!(matches!(attached.catch_up(&memory.segment()), Err(CatchUpError::Lapped { missed: 184 })));
}

#[test]
fn with_both_latches_restless_the_device_is_busy() {
    let memory: Memory<Restless> = Memory::new(SLOTS, 0, 2);
    for latch in [0, LATCH_WORDS] {
        memory.counters[1][latch].restless.store(true, Relaxed);
    }
    assert_eq!(Attached::new(&memory.segment()).unwrap_err(), Busy { device: 1 });
}
