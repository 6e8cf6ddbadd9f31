//! Rings made to be read forever: each look at them is short, and the last one says why.

use crate::common::{Scene, TestProcess, buffer, chip};
use shm_layout::table::process_flags;
use shm_layout::{Class, Counters, Event, EventKind, control, store_pod, words_of};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;
use tt_shm_aggregator::{Aggregator, Config};

fn marker(stamp: u64) -> Event {
    Event { stamp, ..buffer(EventKind::Marker, 0, Class::Dram, 1) }
}

/// Longer than any reader takes that terminates.
const WATCHDOG: Duration = Duration::from_secs(30);

fn polls(scene: &Scene, polls: usize) -> Vec<u64> {
    let config = Config::new(scene.namespace.clone());
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || {
        let mut aggregator = Aggregator::new(config).unwrap();
        (0..polls).for_each(|_| _ = aggregator.poll());
        let flags = aggregator.snapshot().processes.iter().map(|(_, process)| process.flags).collect();
        let _ = done.send(flags);
    });
    wait.recv_timeout(WATCHDOG).expect("it ends")
}

#[test]
fn a_ring_at_the_last_position_of_all() {
    let scene = Scene::new();
    let mut process = TestProcess::new(&scene.namespace, 64);
    process.register(chip(1));
    let words = process.words();
    let counters = Counters { position: u64::MAX, ..Counters::ZERO };
    for copy in words.counters[0][16..].chunks(words_of::<Counters>()) {
        store_pod(copy, &counters);
    }
    words.write_slot(marker(u64::MAX).to_words());
    words.control[control::HEAD].store(u64::MAX, Ordering::Release);
    assert_eq!(polls(&scene, 2), [process_flags::BROKEN]);
}

/// A head in the middle of a large ring that is full of valid events, but for one that lies: to follow
/// them all, meet the lie and begin again would take a second each time.
#[test]
fn a_large_ring_at_rest_with_a_stamp_that_lies() {
    let scene = Scene::new();
    let slots = 1_u64 << 20;
    let mut process = TestProcess::new(&scene.namespace, slots);
    process.register(chip(1));
    let words = process.words();
    let (head, lie) = (slots, slots + 100);
    for position in head - 1023..lie {
        words.write_slot(marker(position).to_words());
    }
    words.write_slot(Event { stamp: lie + slots, ..marker(0) }.to_words());
    words.control[control::HEAD].store(head, Ordering::Release);
    assert_eq!(polls(&scene, 8), [process_flags::BROKEN]);
}
