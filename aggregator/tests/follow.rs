//! What an aggregator derives from real segments in /dev/shm.

use std::time::Duration;

use crate::common::{self, Scene, TestProcess, buffer, chip, device, settled};
use shm_layout::table::{DeviceStats, device_flags, notice_kind, process_flags, process_state, usage_flags};
use shm_layout::{Class, Counters, EventKind, Source, UNKNOWN};
use tt_shm_aggregator::{Aggregator, Claim, Config, TablePublisher};
use tt_shm_os::monotonic_ns;
use tt_shm_reader::TableSnapshot;

const MIB: u64 = 1 << 20;

/// Counters of a process, without the times, which the table converts.
fn timeless(mut counters: Counters) -> Counters {
    counters.map_times(|_| 1);
    counters
}

#[test]
fn start_order_does_not_matter() {
    let scene = Scene::new();
    let mut early = scene.process();
    let a = early.register(chip(7));
    early.alloc(a, Class::Dram, 3 * MIB);

    let mut aggregator = scene.aggregator();
    let mut late = scene.process();
    let b = late.register(chip(7));
    late.alloc(b, Class::Dram, 5 * MIB);
    late.free(b, Class::Dram, 5 * MIB);
    late.alloc(b, Class::L1, MIB);
    early.alloc(a, Class::Trace, MIB);

    let snapshot = settled(&mut aggregator);
    let shown = device(&snapshot, 7);
    assert_eq!((shown.dram_used_bytes, shown.l1_used_bytes, shown.processes), (4 * MIB, MIB, 2));
    // Which other processes were there before the aggregator started, and are gone, is not known.
    assert_eq!((shown.dram_peak.low, shown.dram_peak.high), (8 * MIB, UNKNOWN));
    let complete = shown.flags & device_flags::INCOMPLETE == 0;
    assert_eq!((complete, snapshot.missed, snapshot.late, snapshot.refused), (true, 0, 0, 0));
    assert_eq!(snapshot.events, early.position + late.position);
    let shown: Vec<Counters> = snapshot.usages.iter().map(|(_, usage)| timeless(usage.counters)).collect();
    assert_eq!(shown, [timeless(early.counters(a)), timeless(late.counters(b))]);
}

#[test]
fn every_segment_that_is_there_is_counted_from_the_beginning() {
    let scene = Scene::new();
    let mut processes: Vec<TestProcess> = (0..150).map(|_| TestProcess::new(&scene.namespace, 64)).collect();
    // The last one first: the order in which they are found is not that of their events.
    for process in processes.iter_mut().rev() {
        let device = process.register(chip(1));
        process.alloc(device, Class::L1, 3);
        process.free(device, Class::L1, 3);
        process.alloc(device, Class::L1, 2);
    }
    let snapshot = scene.aggregator().snapshot();
    let shown = device(&snapshot, 1);
    assert_eq!(snapshot.late, 0);
    assert_eq!((shown.processes, shown.l1_used_bytes), (150, 300));
    assert_eq!((shown.l1_peak.low, shown.l1_peak.high, shown.l1_peak.count), (301, UNKNOWN, 150));
    assert_eq!(shown.l1_composition.holders[0].pid, processes[0].pid());
    assert_eq!(shown.l1_composition.others, 2 * (processes.len() as u64 - 8));
}

/// Counters that were read as a whole wait for their turn when the ring is lapped again.
#[test]
fn what_was_lapped_twice_is_vouched_for_only_when_the_first_lap_is_folded() {
    let scene = Scene::new();
    let merge_window = Duration::from_millis(200);
    let mut aggregator =
        Aggregator::new(Config { merge_window, ..Config::new(scene.namespace.clone()) }).unwrap();
    let mut process = TestProcess::new(&scene.namespace, 64);
    let device = process.register(chip(1));
    process.alloc(device, Class::Dram, 1);
    aggregator.settle();
    let before = monotonic_ns();
    for pause in [150, 100] {
        (0..200).for_each(|_| process.alloc(device, Class::Dram, 1));
        std::thread::sleep(Duration::from_millis(pause));
        aggregator.poll();
    }
    let snapshot = aggregator.snapshot();
    let folded = snapshot.processes[0].1.position;
    assert!(snapshot.as_of <= before || folded >= 200, "as of {} ns later", snapshot.as_of - before);
}

/// Before a process was started it held nothing, so the figures are vouched for up to then while it is read for the
/// first time.
#[test]
fn a_new_process_takes_the_figures_back_no_further_than_its_start() {
    let scene = Scene::new();
    let merge_window = Duration::from_millis(100);
    let mut aggregator =
        Aggregator::new(Config { merge_window, ..Config::new(scene.namespace.clone()) }).unwrap();
    aggregator.settle();
    let before = monotonic_ns();
    let mut process = TestProcess::new(&scene.namespace, 64);
    let device = process.register(chip(1));
    (0..200).for_each(|_| process.alloc(device, Class::Dram, 1));
    std::thread::sleep(2 * merge_window);
    aggregator.poll();
    assert!(aggregator.snapshot().as_of >= before);
}

/// Counters that were read and are not folded yet, while others were followed past the start of their process, are missing
/// in the sums of its devices.
#[test]
fn sums_without_a_process_that_is_not_folded_yet_are_not_complete() {
    let scene = Scene::new();
    let merge_window = Duration::from_millis(100);
    let mut aggregator =
        Aggregator::new(Config { merge_window, ..Config::new(scene.namespace.clone()) }).unwrap();
    let mut other = scene.process();
    let mut anchor = (0, 0);
    other.change_header(|header| anchor = (header.anchor_ticks, header.anchor_monotonic_ns));
    for (chip_id, size) in [(1, 5), (2, 6)] {
        let device = other.register(chip(chip_id));
        other.alloc(device, Class::Dram, size);
    }
    std::thread::sleep(2 * merge_window);
    aggregator.poll();
    let shown = |aggregator: &Aggregator, chip: u64| {
        let snapshot = aggregator.snapshot();
        let DeviceStats { dram_used_bytes, flags, dram_peak, .. } = device(&snapshot, chip);
        (dram_used_bytes, flags & device_flags::INCOMPLETE == 0, dram_peak.high)
    };
    assert_eq!((shown(&aggregator, 1), shown(&aggregator, 2)), ((5, true, 5), (6, true, 6)));
    let mut process = TestProcess::new(&scene.namespace, 64);
    // As old as the other, and found only now.
    process.change_header(|header| (header.anchor_ticks, header.anchor_monotonic_ns) = anchor);
    let shared = process.register(chip(1));
    (0..200).for_each(|_| process.alloc(shared, Class::Dram, 1));
    aggregator.poll();
    assert_eq!((shown(&aggregator, 1), shown(&aggregator, 2)), ((5, false, UNKNOWN), (6, true, 6)));
    std::thread::sleep(2 * merge_window);
    aggregator.poll();
    assert_eq!((shown(&aggregator, 1), shown(&aggregator, 2)), ((205, true, 205), (6, true, 6)));
}

/// A tap does not see what the runtime launches by itself. That is remembered when it has ended, and by whoever adopts.
#[test]
fn a_device_says_that_kernels_of_the_runtime_were_not_seen() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let mut told = scene.process();
    told.register(chip(1));
    told.register(chip(2));
    let mut tap = scene.process();
    tap.change_header(|header| header.source = Source::Tap as u64);
    tap.register(chip(2));
    let unseen = |snapshot: &TableSnapshot| {
        [1, 2].map(|chip| device(snapshot, chip).flags & device_flags::SYSTEM_KERNELS_UNSEEN != 0)
    };
    assert_eq!(unseen(&settled(&mut aggregator)), [false, true]);
    tap.close();
    assert_eq!(unseen(&settled(&mut aggregator)), [false, true]);
    let publisher = TablePublisher::create(Claim::take(&scene.namespace).unwrap(), &aggregator).unwrap();
    drop((publisher, aggregator));
    let claim = Claim::take(&scene.namespace).unwrap();
    let mut next = Aggregator::resume(Config::new(scene.namespace.clone()), claim.adopt()).unwrap();
    assert_eq!(unseen(&settled(&mut next)), [false, true]);
}

#[test]
fn a_lapped_ring_keeps_totals_exact() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let mut process = TestProcess::new(&scene.namespace, 64);
    let mut other = scene.process();
    let (alone, shared) = (process.register(chip(1)), process.register(chip(2)));
    let others = other.register(chip(2));
    other.alloc(others, Class::Dram, 2 * MIB);
    process.alloc(shared, Class::Dram, MIB);
    aggregator.settle();
    for _ in 0..500 {
        process.alloc(alone, Class::Dram, 10);
        process.alloc(shared, Class::L1, 10);
    }
    for _ in 0..100 {
        process.free(alone, Class::Dram, 10);
    }
    let snapshot = settled(&mut aggregator);
    let (one, two) = (device(&snapshot, 1), device(&snapshot, 2));
    assert_eq!((one.dram_used_bytes, one.classes[0].live_count), (4000, 400));
    assert_eq!((one.dram_peak.low, one.dram_peak.high), (5000, 5000), "a process alone knows its peak");
    assert_eq!((two.l1_used_bytes, two.dram_used_bytes), (5000, 3 * MIB));
    assert_eq!(snapshot.missed, 1100);
    assert_eq!(snapshot.processes[0].1.missed, snapshot.missed);
    assert_eq!((one.classes[0].alloc_bytes, one.classes[0].alloc_count), (5000, 500));
    process.free(alone, Class::Dram, 10);
    assert_eq!(device(&settled(&mut aggregator), 1).dram_used_bytes, 3990);
}

#[test]
fn a_dead_process_is_reclaimed_and_its_file_removed() {
    let scene = Scene::new();
    let mut process = scene.process();
    let mut alive = scene.process();
    let (a, b) = (process.register(chip(1)), alive.register(chip(1)));
    process.alloc(a, Class::Dram, MIB);
    process.alloc(a, Class::KernelFabric, 917_504);
    alive.alloc(b, Class::Dram, 5);
    let mut aggregator = scene.aggregator();
    let (pid, path) = (process.pid(), process.path.clone());
    process.alloc(a, Class::Dram, MIB);
    drop(process);
    while aggregator.segments() == 2 {
        aggregator.settle();
    }
    let snapshot = settled(&mut aggregator);
    assert_eq!(device(&snapshot, 1).dram_used_bytes, 5);
    assert_eq!(device(&snapshot, 1).dram_peak.low, 2 * MIB + 5);
    assert_eq!(snapshot.usages.len(), 1);
    let [notice] = snapshot.notices[..] else { panic!("one notice") };
    assert_eq!((notice.kind, notice.pid), (notice_kind::RECLAIMED, pid));
    assert_eq!((notice.bytes[0], notice.counts[0]), (2 * MIB, 2));
    assert_eq!(notice.bytes[Class::KernelFabric as usize], 917_504);
    let (_, ended) = snapshot.processes.iter().find(|(_, p)| p.pid == pid).expect("its row stays");
    assert_eq!((ended.state, ended.flags), (process_state::ENDED, 0));
    assert!(ended.ended > 0 && !path.exists());
}

#[test]
fn a_process_that_died_before_is_reported_and_never_counted() {
    let scene = Scene::new();
    let mut process = scene.process();
    let device = process.register(chip(1));
    process.alloc(device, Class::Dram, MIB);
    let reached = tt_shm_os::monotonic_ns();
    let path = process.path.clone();
    drop(process);
    let snapshot = scene.aggregator().snapshot();
    assert!(snapshot.processes.is_empty());
    assert_eq!(snapshot.notices[0].bytes[0], MIB);
    let shown = common::device(&snapshot, 1);
    assert_eq!((shown.dram_used_bytes, shown.dram_peak.low, shown.dram_peak.high), (0, MIB, UNKNOWN));
    assert!(shown.dram_peak.time <= reached, "the time is that of the process, not of the look");
    assert!(!path.exists());
}

#[test]
fn a_vanished_name_whose_lock_is_held_still_counts() {
    let scene = Scene::new();
    let mut process = scene.process();
    let index = process.register(chip(1));
    let mut aggregator = scene.aggregator();
    std::fs::remove_file(&process.path).unwrap();
    process.alloc(index, Class::Dram, 9);
    let snapshot = settled(&mut aggregator);
    assert_eq!(device(&snapshot, 1).dram_used_bytes, 9);
    assert_eq!(snapshot.processes[0].1.flags, process_flags::UNLINKED);
    assert_eq!(snapshot.processes[0].1.state, process_state::ALIVE);
}

#[test]
fn a_broken_segment_affects_only_its_own_rows() {
    let scene = Scene::new();
    let (mut honest, mut broken) = (scene.process(), scene.process());
    let (a, b) = (honest.register(chip(1)), broken.register(chip(1)));
    honest.alloc(a, Class::Dram, 10);
    broken.alloc(b, Class::Dram, 20);
    let mut aggregator = scene.aggregator();
    assert_eq!(device(&aggregator.snapshot(), 1).dram_used_bytes, 30);
    broken.free(b, Class::Dram, 21);
    honest.alloc(a, Class::Dram, 1);
    let snapshot = settled(&mut aggregator);
    assert_eq!(device(&snapshot, 1).dram_used_bytes, 11);
    let [notice] = snapshot.notices[..] else { panic!("one notice") };
    assert_eq!((notice.kind, notice.pid), (notice_kind::BROKEN, broken.pid()));
    let flags: Vec<u64> = snapshot.processes.iter().map(|(_, process)| process.flags).collect();
    assert_eq!(flags, [0, process_flags::BROKEN]);
    broken.alloc(b, Class::Dram, 500);
    assert_eq!(device(&settled(&mut aggregator), 1).dram_used_bytes, 11);
}

#[test]
fn an_event_of_an_unlisted_device_breaks_the_segment() {
    let scene = Scene::new();
    let mut process = scene.process();
    process.register(chip(1));
    let mut aggregator = scene.aggregator();
    let words = process.words();
    let event = shm_layout::Event { stamp: 1, ..buffer(EventKind::Alloc, 77, Class::Dram, 1) };
    words.write_slot(event.to_words());
    let snapshot = settled(&mut aggregator);
    assert_eq!(snapshot.processes[0].1.flags, process_flags::BROKEN);
}

#[test]
fn a_file_that_is_no_segment_is_refused_once_with_the_reason() {
    let scene = Scene::new();
    let name = tt_shm_os::segment_file_name(&scene.namespace, 42, 42);
    let path = tt_shm_os::path_of(&name);
    std::fs::write(&path, vec![0; 8192]).unwrap();
    let mut aggregator = scene.aggregator();
    let snapshot = settled(&mut aggregator);
    assert_eq!((snapshot.refused, snapshot.notices.len()), (1, 1));
    assert_eq!(snapshot.notices[0].kind, notice_kind::REFUSED);
    assert!(shm_layout::text::decode(&snapshot.notices[0].text).contains("magic"));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(settled(&mut aggregator).refused, 0);
}

#[test]
fn impossible_claims_are_flagged() {
    let scene = Scene::new();
    let (mut one, mut two) = (scene.process(), scene.process());
    let a = one.register(chip(1));
    two.register(shm_layout::DeviceEntry { dram_bytes: 1, ..chip(1) });
    one.alloc(a, Class::Dram, 1 << 35);
    let mut aggregator = scene.aggregator();
    let flags = |shown: &DeviceStats| shown.flags & (device_flags::OVER_CAPACITY | device_flags::CONFLICT);
    let snapshot = aggregator.snapshot();
    let shown = device(&snapshot, 1);
    assert_eq!((flags(&shown), shown.entry.dram_total()), (device_flags::CONFLICT, None), "nobody knows");
    assert_eq!((shown.entry.l1_total(), shown.entry.arch), (Some(64 << 20), 2), "on that they agree");
    let says: Vec<_> =
        snapshot.usages.iter().map(|(_, usage)| (usage.flags, usage.entry.dram_bytes)).collect();
    assert_eq!(says, [(usage_flags::CONFLICT, 1 << 34), (usage_flags::CONFLICT, 1)]);
    // A claim ends with its process.
    drop(two);
    while aggregator.segments() == 2 {
        aggregator.settle();
    }
    let shown = device(&settled(&mut aggregator), 1);
    assert_eq!((flags(&shown), shown.entry.dram_total()), (device_flags::OVER_CAPACITY, Some(1 << 34)));
}

#[test]
fn totals_are_exact_after_writers_at_full_speed() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let writers: Vec<_> = (0..2)
        .map(|_| {
            let mut process = TestProcess::new(&scene.namespace, 256);
            std::thread::spawn(move || {
                let devices = [process.register(chip(1)), process.register(chip(2))];
                for round in 0..100_000_u64 {
                    let device = devices[(round % 2) as usize];
                    process.alloc(device, Class::Dram, 1 + round % 7);
                    if round % 3 != 0 {
                        process.free(device, Class::Dram, 1 + round % 7);
                    }
                }
                process
            })
        })
        .collect();
    while writers.iter().any(|writer| !writer.is_finished()) {
        aggregator.poll();
    }
    let processes: Vec<TestProcess> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
    let snapshot = settled(&mut aggregator);
    for index in 0..2 {
        let counters = || processes.iter().map(|process| process.counters(index));
        let shown = device(&snapshot, 1 + u64::from(index));
        let live = |counters: Counters| counters.class(Class::Dram).live_count;
        assert_eq!(shown.dram_used_bytes, counters().map(|counters| counters.dram_used()).sum::<u64>());
        assert_eq!(shown.classes[0].live_count, counters().map(live).sum::<u64>());
        let own = counters().map(|counters| counters.dram_peak_bytes);
        assert!(shown.dram_peak.low <= shown.dram_peak.high && shown.dram_peak.low >= shown.dram_used_bytes);
        assert!(shown.dram_peak.low >= own.clone().max().unwrap() && shown.dram_peak.high <= own.sum());
    }
    let emitted: u64 = processes.iter().map(|process| process.position).sum();
    assert!(snapshot.events + snapshot.missed <= emitted);
}

#[test]
fn an_orderly_end_with_nothing_held_is_no_news() {
    let scene = Scene::new();
    let mut process = scene.process();
    let index = process.register(chip(1));
    process.alloc(index, Class::Dram, 5);
    process.free(index, Class::Dram, 5);
    let mut aggregator = scene.aggregator();
    let closed = shm_layout::control::state::CLOSED;
    process.words().control[shm_layout::control::STATE].store(closed, std::sync::atomic::Ordering::Relaxed);
    std::fs::remove_file(&process.path).unwrap();
    drop(process);
    let snapshot = settled(&mut aggregator);
    assert_eq!(snapshot.notices, []);
    assert_eq!(snapshot.processes[0].1.state, process_state::ENDED);
    assert_eq!(snapshot.processes[0].1.flags, process_flags::CLOSED);
    assert_eq!(device(&snapshot, 1).processes, 0);
}

#[test]
fn an_event_that_was_committed_but_not_completed_counts() {
    let scene = Scene::new();
    let mut process = scene.process();
    let index = process.register(chip(1));
    process.alloc(index, Class::Dram, 5);
    let mut aggregator = scene.aggregator();
    // Like a process that is stopped or killed right after the commit point.
    let next = buffer(EventKind::Alloc, index, Class::Dram, 7);
    let time = process.clock.ticks();
    process.words().write_slot(shm_layout::Event { stamp: 2, time, ..next }.to_words());
    assert_eq!(device(&settled(&mut aggregator), 1).dram_used_bytes, 12);
    drop(process);
    while aggregator.segments() > 0 {
        aggregator.settle();
    }
    assert_eq!(aggregator.snapshot().notices[0].bytes[0], 12);
}
