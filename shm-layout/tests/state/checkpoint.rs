//! The checkpoint: what it lacks is in the ring, however much other devices do.

use crate::support::{Memory, Writer};
use proptest::prelude::*;
use shm_layout::protocol::commit::checkpoint_lag;
use shm_layout::protocol::observe::{Attached, Busy};
use shm_layout::{Counters, Event, EventKind, NO_DEVICE, Word};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// A word that can be made to differ at every load, like the sequence of a latch that keeps turning.
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
    Event { stamp, size: stamp, aux: stamp, time: stamp, ..Event::new(EventKind::Alloc, device) }
}

/// The smallest ring that a segment can have.
const SLOTS: usize = 64;
const LAG: u64 = 16;

/// Attaches after every event, and finds the counters of all devices at that event.
fn assert_exact_at_every_event(events: &[Event], devices: usize) {
    let memory: Memory<Restless> = Memory::new(SLOTS, 0, devices);
    let mut writer = Writer::new(SLOTS, devices);
    let mut truth = vec![Counters::ZERO; devices];
    for event in events {
        writer.commit(&memory.segment(), event);
        if let Some(counters) = truth.get_mut(usize::from(event.device)) {
            counters.apply(event).unwrap();
        }
        let mut attached = Attached::new(&memory.segment()).unwrap();
        let start = attached.cursor.position();
        assert!(start >= event.stamp.saturating_sub(LAG), "at {}: replayed from {start}", event.stamp);
        attached.catch_up(&memory.segment()).unwrap();
        assert_eq!(attached.cursor.position(), event.stamp);
        for (device, (counters, _)) in attached.devices.iter().enumerate() {
            assert_eq!(*counters, truth[device], "device {device} at {}", event.stamp);
        }
    }
}

#[test]
fn what_a_checkpoint_lacks_is_in_the_ring() {
    assert_eq!(checkpoint_lag(SLOTS), LAG);
    let events: Vec<Event> = (1..=200).map(|stamp| alloc(stamp, 0)).collect();
    assert_exact_at_every_event(&events, 1);
}

/// A checkpoint costs as much as the rest of an event, so it waits until it is due.
#[test]
fn a_checkpoint_is_made_when_it_is_due_and_not_before() {
    let memory: Memory<Restless> = Memory::new(SLOTS, 0, 1);
    let mut writer = Writer::new(SLOTS, 1);
    for stamp in 1..=3 * (LAG + 1) {
        writer.commit(&memory.segment(), &alloc(stamp, 0));
        let made = memory.counters[0][0].load();
        assert_eq!(made, stamp / (LAG + 1), "after {stamp} events");
    }
}

/// One event on one device, then nothing but the other, or no device at all, for many rounds of the ring.
#[test]
fn a_device_at_rest_is_not_forgotten() {
    for busy in [1, NO_DEVICE] {
        let kind = if busy == NO_DEVICE { EventKind::Marker } else { EventKind::Alloc };
        let others = (2..=300).map(|stamp| Event { kind: kind as u8, ..alloc(stamp, busy) });
        let events: Vec<Event> = [alloc(1, 0)].into_iter().chain(others).collect();
        assert_exact_at_every_event(&events, 2);
    }
}

/// With more devices than the lag has events, every event writes a checkpoint.
#[test]
fn many_devices_take_turns() {
    let events: Vec<Event> = (1..=1000).map(|stamp| alloc(stamp, (stamp * 37 % 128) as u8)).collect();
    assert_exact_at_every_event(&events, 128);
}

proptest! {
    #[test]
    fn any_order_of_devices_is_exact(devices in prop::collection::vec(0_u8..6, 1..400)) {
        let events: Vec<Event> = (1..).zip(devices).map(|(stamp, device)| alloc(stamp, device)).collect();
        assert_exact_at_every_event(&events, 6);
    }
}

#[test]
fn a_latch_that_never_rests_is_busy() {
    let memory: Memory<Restless> = Memory::new(SLOTS, 0, 2);
    memory.counters[1][0].restless.store(true, Relaxed);
    assert_eq!(Attached::new(&memory.segment()).unwrap_err(), Busy { device: 1 });
}
