//! What may be reported as exact: each case was once reported as exact and was not.

use crate::common::{Scene, TestProcess, buffer, chip, device, settled};
use shm_layout::table::{Peak, bucket_flags, device_flags};
use shm_layout::{Class, Event, EventKind, UNKNOWN};
use tt_shm_aggregator::{Aggregator, Claim, Config, TablePublisher};
use tt_shm_os::monotonic_ns;

const GIB: u64 = 1 << 30;

fn range(peak: Peak) -> (u64, u64) {
    (peak.low, peak.high)
}

/// The daemon is killed, a process comes and goes, the daemon starts again.
#[test]
fn a_process_that_lived_between_two_aggregators_counts() {
    let scene = Scene::new();
    let mut first = scene.aggregator();
    let mut small = scene.process();
    small.register(chip(1));
    small.alloc(0, Class::Dram, 1 << 20);
    first.settle();
    let publisher = TablePublisher::create(Claim::take(&scene.namespace).unwrap(), &first).unwrap();
    drop((publisher, first));

    let mut large = scene.process();
    large.register(chip(1));
    large.alloc(0, Class::Dram, 10 * GIB);
    large.free(0, Class::Dram, 10 * GIB);
    let reached = monotonic_ns();
    drop(large);

    let claim = Claim::take(&scene.namespace).unwrap();
    let mut second = Aggregator::resume(Config::new(scene.namespace.clone()), claim.adopt()).unwrap();
    let peak = device(&settled(&mut second), 1).dram_peak;
    // Others may have come and gone without a trace.
    assert_eq!(range(peak), (10 * GIB, UNKNOWN));
    assert!(peak.time != 0 && peak.time <= reached, "when the process reached it");
}

/// A file that was there and is gone when it is opened.
#[test]
fn a_process_that_nobody_could_read_widens_every_peak() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let mut process = scene.process();
    process.register(chip(1));
    process.alloc(0, Class::Dram, 100);
    assert_eq!(range(device(&settled(&mut aggregator), 1).dram_peak), (100, 100));
    let brief = scene.process();
    std::fs::remove_file(&brief.path).unwrap();
    drop(brief);
    let snapshot = settled(&mut aggregator);
    assert_eq!(snapshot.lost, 1);
    assert_eq!(range(device(&snapshot, 1).dram_peak), (100, UNKNOWN));
    aggregator.reset_window();
    assert_eq!(range(device(&settled(&mut aggregator), 1).dram_peak), (100, 100), "not in a later window");
}

/// An event whose thread slept between reading the clock and committing the event.
#[test]
fn a_late_event_counts_beside_a_process_that_ended_meanwhile() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let (mut a, mut b) = scene.pair(1);
    b.alloc(0, Class::Dram, 700);
    aggregator.settle();
    let slept = a.clock.ticks();
    std::thread::sleep(std::time::Duration::from_millis(2));
    b.close();
    aggregator.settle();
    assert_eq!(aggregator.segments(), 1);
    a.emit_raw(Event { time: slept, ..buffer(EventKind::Alloc, 0, Class::Dram, 100) });
    let shown = device(&settled(&mut aggregator), 1);
    assert_eq!(shown.dram_used_bytes, 100);
    // The slice of time in which it slept had 700 before; whether it had as much with it is not known.
    assert_eq!(range(shown.dram_peak), (700, 800));
}

#[test]
fn what_was_freed_before_a_window_does_not_count_in_it() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let (mut a, mut b) = scene.pair(1);
    a.alloc(0, Class::Dram, 100);
    b.alloc(0, Class::Dram, 7);
    aggregator.settle();
    let slept = a.clock.ticks();
    std::thread::sleep(std::time::Duration::from_millis(2));
    aggregator.reset_window();
    aggregator.settle();
    b.alloc(0, Class::Dram, 3);
    aggregator.settle();
    a.emit_raw(Event { time: slept, ..buffer(EventKind::Free, 0, Class::Dram, 100) });
    assert_eq!(range(device(&settled(&mut aggregator), 1).dram_peak), (10, 10));
}

/// Overwritten events are made up for by the counters, which are read after another process has ended.
#[test]
fn what_was_missed_counts_beside_a_process_that_ended_meanwhile() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let mut a = TestProcess::new(&scene.namespace, 64);
    let mut b = scene.process();
    a.register(chip(1));
    b.register(chip(1));
    b.alloc(0, Class::Dram, 700);
    a.alloc(0, Class::Dram, 1);
    aggregator.settle();
    // Together they have 1200 for a moment.
    a.alloc(0, Class::Dram, 499);
    a.free(0, Class::Dram, 499);
    b.close();
    for _ in 0..100 {
        a.alloc(0, Class::L1, 1);
        a.free(0, Class::L1, 1);
    }
    let snapshot = settled(&mut aggregator);
    assert!(snapshot.missed > 0);
    let peak = device(&snapshot, 1).dram_peak;
    assert!(peak.low < 1200 && peak.high >= 1200, "{peak:?}");
}

/// An impossible claim is removed from everything that it was counted in.
#[test]
fn what_a_broken_process_said_is_in_no_figure() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let (mut honest, mut broken) = scene.pair(1);
    honest.alloc(0, Class::Dram, 10);
    broken.alloc(0, Class::Dram, 1 << 49);
    aggregator.settle();
    broken.free(0, Class::Dram, (1 << 49) + 1);
    let shown = device(&settled(&mut aggregator), 1);
    assert_eq!(shown.dram_used_bytes, 10);
    assert_eq!(range(shown.dram_peak), (10, UNKNOWN), "what it really had, nobody knows");
    assert_eq!(range(shown.classes[Class::Dram as usize].peak), (10, UNKNOWN));
    assert!(shown.flags & device_flags::INCOMPLETE != 0, "nor what it has");
    assert!(shown.flags & device_flags::DRAM_COMPOSITION_EXACT == 0);
    drop(broken);
    while aggregator.segments() == 2 {
        aggregator.settle();
    }
    aggregator.reset_window();
    let shown = device(&settled(&mut aggregator), 1);
    assert_eq!((range(shown.dram_peak), shown.flags & device_flags::INCOMPLETE), ((10, 10), 0));
}

/// The time of a peak is when it was reached, not when it was read.
#[test]
fn a_peak_has_the_time_at_which_its_process_reached_it() {
    let scene = Scene::new();
    // Too small a ring to still have the event.
    let mut process = TestProcess::new(&scene.namespace, 64);
    process.register(chip(1));
    process.alloc(0, Class::Dram, 500);
    let reached = monotonic_ns();
    (0..100).for_each(|_| process.emit(Event::new(EventKind::DeviceOpen, 0)));
    std::thread::sleep(std::time::Duration::from_millis(5));
    let mut aggregator = scene.aggregator();
    let peak = device(&settled(&mut aggregator), 1).dram_peak;
    assert_eq!(peak.low, 500);
    assert!(peak.time != 0 && peak.time <= reached + 1_000_000);
    // Together with what was there already: when that was, nobody watched.
    let mut other = TestProcess::new(&scene.namespace, 64);
    other.register(chip(1));
    (0..100).for_each(|_| other.alloc(0, Class::Dram, 1));
    let shown = device(&settled(&mut aggregator), 1);
    assert_eq!((shown.dram_used_bytes, shown.dram_peak.low, shown.dram_peak.time), (600, 600, 0));
}

/// While segments are attached one by one, the sums are partial: no bucket has them.
#[test]
fn the_first_bucket_of_a_history_is_no_partial_sum() {
    let scene = Scene::new();
    let mut processes: Vec<TestProcess> = (0..40).map(|_| TestProcess::new(&scene.namespace, 64)).collect();
    for process in &mut processes {
        process.register(chip(1));
        (0..100).for_each(|_| process.alloc(0, Class::Dram, 1));
    }
    let mut aggregator = scene.aggregator();
    aggregator.settle();
    for resolution in 0..3 {
        let history = aggregator.history(0, resolution);
        assert!(!history.is_empty());
        let partial = history.iter().find(|bucket| bucket.dram_min != 4000);
        assert!(partial.is_none(), "{partial:?}");
        assert!(history[0].flags & bucket_flags::INEXACT != 0, "only a part of its time was seen");
    }
}

/// A process that holds memory dies, and another one allocates before that is noticed: no table ever says that they
/// had it together.
#[test]
fn nobody_dead_is_part_of_a_peak_that_is_published() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let (mut a, mut b) = scene.pair(1);
    b.alloc(0, Class::Dram, 700);
    aggregator.settle();
    // It was alive just now; its lock is checked again in a quarter of a second.
    drop(b);
    a.alloc(0, Class::Dram, 100);
    std::thread::sleep(std::time::Duration::from_millis(2));
    aggregator.poll();
    let shown = device(&aggregator.snapshot(), 1);
    assert_eq!(shown.dram_used_bytes, 100);
    assert_eq!(range(shown.dram_peak), (700, 800));
}

/// It ended between its first event and the next look at the folder.
#[test]
fn a_process_that_ended_before_it_was_opened_is_replayed() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let mut brief = scene.process();
    brief.register(chip(1));
    brief.alloc(0, Class::Dram, 100);
    brief.free(0, Class::Dram, 100);
    brief.close();
    let shown = device(&settled(&mut aggregator), 1);
    let dram = shown.classes[Class::Dram as usize];
    assert_eq!((shown.events, range(shown.dram_peak), shown.dram_used_bytes), (2, (100, 100), 0));
    assert_eq!((dram.alloc_bytes, dram.alloc_count), (0, 0), "of those alive now");
}
