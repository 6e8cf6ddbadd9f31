//! Cost of one event, as a multiple of the least that any event ring with timestamps can cost.

use shm_layout::{Event, EventKind};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use tt_shm_benches::{best_ns, report};
use tt_shm_os::ClockKind;
use tt_shm_writer::{
    Alloc, BufferType, CoreType, Device, DeviceInfo, Kernel, KernelType, ProgramBinaryStatus, Record, Tracker,
};

const ROUNDS: u32 = 20;
const REPETITIONS: u32 = 200_000;
const SLOTS: usize = 1 << 14;

fn main() {
    let limit = limit_ns();
    report("harness alone", best_ns(ROUNDS, REPETITIONS, |i| _ = black_box(i)), limit);
    report("limit: timestamp, 64-byte store, release head", limit, limit);
    disabled(limit);
    for live in [1_000, 10_000, 100_000, 1_000_000] {
        let (tracker, device) = tracker_with(live);
        pairs(&format!("shared, {live} live, random"), &tracker, device, live, limit);
        let exclusive = tracker.into_exclusive().expect("the only tracker");
        pairs(&format!("exclusive, {live} live, random"), &exclusive, device, live, limit);
    }
    dispatch(limit);
}

/// A timestamp, one slot and the head: no index, no counters, no rows.
fn limit_ns() -> f64 {
    let slots: Vec<[AtomicU64; 8]> = (0..SLOTS).map(|_| Default::default()).collect();
    let head = AtomicU64::new(0);
    let clock = ClockKind::best();
    best_ns(ROUNDS, REPETITIONS, |i| {
        let event = Event { time: clock.ticks(), id: u64::from(i), ..Event::new(EventKind::Alloc, 0) };
        let words: [u64; 8] = bytemuck::must_cast(event);
        for (slot, word) in slots[i as usize % SLOTS].iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
        head.store(u64::from(i), Ordering::Release);
    })
}

fn tracker_with(live: u64) -> (Tracker, Device) {
    let namespace = format!("bench-emit-{}", std::process::id());
    let tracker = Tracker::builder().enabled(true).namespace(namespace).open().expect("a segment");
    let device = tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() }).expect("a device");
    for id in 0..live {
        tracker.alloc(device, Alloc::new(BufferType::Dram, id, 4096)).expect("an allocation");
    }
    (tracker, device)
}

/// Frees a random allocation and makes it again: two events.
fn pairs(what: &str, tracker: &impl Record, device: Device, live: u64, limit: f64) {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let pair = best_ns(ROUNDS, REPETITIONS, |_| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let id = random % live;
        tracker.free(device, id).expect("live");
        tracker.alloc(device, Alloc::new(BufferType::Dram, id, 4096)).expect("free");
    });
    let counters = tracker.counters(device).expect("enabled");
    assert_eq!(counters.dram_used(), live * 4096);
    report(what, pair / 2.0, limit);
}

fn dispatch(limit: f64) {
    let (tracker, device) = tracker_with(0);
    let kernel = Kernel::new(1, KernelType::Application, CoreType::Tensix, 100 << 10, 64);
    tracker.launch(device, kernel, ProgramBinaryStatus::NotSent).expect("launched");
    let shared = best_ns(ROUNDS, REPETITIONS, |_| tracker.dispatch(device, 1).expect("loaded"));
    report("shared, cached dispatch", shared, limit);
    let counters = tracker.counters(device).expect("enabled");
    assert_eq!(counters.cached_dispatches, u64::from(ROUNDS * REPETITIONS));
}

fn disabled(limit: f64) {
    let tracker = Tracker::disabled();
    let device = tracker.register_device(&DeviceInfo::default()).expect("nothing happens");
    let ns = best_ns(ROUNDS, REPETITIONS, |i| {
        _ = black_box(tracker.free(black_box(device), u64::from(i)));
    });
    report("tracking disabled", ns, limit);
}
