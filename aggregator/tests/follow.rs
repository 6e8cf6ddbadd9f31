//! What an aggregator makes of real segments in /dev/shm.

mod common;

use common::{Scene, TestProcess, buffer, chip};
use shm_layout::table::{device_flags, notice_kind, process_flags, process_state};
use shm_layout::{Class, Counters, Event, EventKind, UNKNOWN};
use tt_shm_aggregator::{Aggregator, Config};
use tt_shm_reader::{DeviceStats, TableSnapshot};

const MIB: u64 = 1 << 20;

fn device(snapshot: &TableSnapshot, chip_id: u64) -> DeviceStats {
    let found = snapshot.devices.iter().find(|(_, device)| device.entry.chip_id == chip_id);
    found.expect("the device is shown").1
}

fn settled(aggregator: &mut Aggregator) -> TableSnapshot {
    aggregator.settle();
    aggregator.snapshot()
}

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
    assert_eq!((shown.dram_peak.low, shown.dram_peak.high), (8 * MIB, 8 * MIB));
    assert_eq!((shown.flags, snapshot.missed, snapshot.late, snapshot.refused), (0, 0, 0, 0));
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
    assert_eq!((shown.l1_peak.low, shown.l1_peak.high, shown.l1_peak.count), (301, 301, 150));
    assert_eq!(shown.l1_composition.holders[0].pid, processes[0].pid());
    assert_eq!(shown.l1_composition.others, 2 * (processes.len() as u64 - 8));
}

#[test]
fn a_peak_of_two_processes_is_exact_and_says_who_held_what() {
    let scene = Scene::new();
    let (mut one, mut two) = (scene.process(), scene.process());
    let (a, b) = (one.register(chip(1)), two.register(chip(1)));
    let mut aggregator = scene.aggregator();
    one.alloc(a, Class::Dram, 10 * MIB);
    two.alloc(b, Class::Trace, 20 * MIB);
    one.free(a, Class::Dram, 10 * MIB);
    two.alloc(b, Class::Dram, 5 * MIB);
    two.free(b, Class::Trace, 20 * MIB);
    one.alloc(a, Class::Dram, 12 * MIB);

    let shown = device(&settled(&mut aggregator), 1);
    let peak = shown.dram_peak;
    assert_eq!((peak.low, peak.high, peak.count), (30 * MIB, 30 * MIB, 2));
    assert!(peak.time > 0 && peak.time <= tt_shm_os::monotonic_ns());
    let made = shown.dram_composition;
    assert_eq!(made.classes[Class::Dram as usize], 10 * MIB);
    assert_eq!(made.classes[Class::Trace as usize], 20 * MIB);
    let holders: Vec<(u64, u64)> = made.holders.iter().map(|holder| (holder.pid, holder.bytes)).collect();
    assert_eq!(holders[..3], [(two.pid(), 20 * MIB), (one.pid(), 10 * MIB), (0, 0)]);
    assert_eq!(shown.classes[Class::Dram as usize].peak.low, 17 * MIB);
    assert_eq!(shown.classes[Class::Dram as usize].alloc_count, 3);
}

#[test]
fn a_lapped_ring_keeps_totals_exact() {
    let scene = Scene::new();
    let mut process = TestProcess::new(&scene.namespace, 64);
    let mut other = scene.process();
    let (alone, shared) = (process.register(chip(1)), process.register(chip(2)));
    let others = other.register(chip(2));
    let mut aggregator = scene.aggregator();
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
    assert_eq!(one.classes[0].alloc_count, 500);
    process.free(alone, Class::Dram, 10);
    assert_eq!(device(&settled(&mut aggregator), 1).dram_used_bytes, 3990);
}

#[test]
fn attaching_late_to_two_processes_gives_a_range() {
    let scene = Scene::new();
    let mut processes: Vec<TestProcess> = (0..2).map(|_| TestProcess::new(&scene.namespace, 64)).collect();
    for process in &mut processes {
        let device = process.register(chip(3));
        for _ in 0..100 {
            process.alloc(device, Class::Dram, 100);
            process.free(device, Class::Dram, 100);
        }
    }
    let mut aggregator = scene.aggregator();
    let shown = device(&settled(&mut aggregator), 3);
    assert_eq!((shown.dram_peak.low, shown.dram_peak.high), (100, 200));
    aggregator.reset_window();
    let snapshot = settled(&mut aggregator);
    let shown = device(&snapshot, 3);
    assert_eq!((shown.dram_peak.low, shown.dram_peak.high), (0, 0));
    assert_eq!((snapshot.windows, shown.exact_since), (1, snapshot.window_since));
}

#[test]
fn what_was_resident_before_we_came_is_at_most_what_was_loaded() {
    let scene = Scene::new();
    let mut process = TestProcess::new(&scene.namespace, 64);
    let index = process.register(chip(3));
    process.emit(buffer(EventKind::CbAlloc, index, Class::Cb, 900));
    let dispatch = |cb| Event {
        address: cb,
        size: 0,
        aux: 0,
        flags: shm_layout::flags::RESIDENT,
        ..Event::new(EventKind::KernelDispatch, index)
    };
    process.emit(dispatch(900));
    (0..100).for_each(|_| process.emit(dispatch(50)));
    let mut aggregator = scene.aggregator();
    let shown = device(&settled(&mut aggregator), 3);
    assert_eq!(
        (shown.cb_resident_bytes, shown.cb_resident_peak.low, shown.cb_resident_peak.high),
        (50, 50, 900)
    );
    process.emit(dispatch(60));
    process.emit(dispatch(20));
    let shown = device(&settled(&mut aggregator), 3);
    assert_eq!((shown.cb_resident_bytes, shown.cb_resident_peak.low), (20, 60));
    aggregator.reset_window();
    let shown = device(&settled(&mut aggregator), 3);
    assert_eq!((shown.cb_resident_peak.low, shown.cb_resident_peak.high), (20, 20));
}

#[test]
fn a_late_event_makes_the_peak_a_range() {
    let scene = Scene::new();
    let (mut one, mut two) = (scene.process(), scene.process());
    let (a, b) = (one.register(chip(1)), two.register(chip(1)));
    let mut aggregator = scene.aggregator();
    let before = one.clock.ticks();
    two.alloc(b, Class::Dram, 10);
    two.free(b, Class::Dram, 10);
    aggregator.settle();
    one.emit_raw(shm_layout::Event { time: before, ..buffer(EventKind::Alloc, a, Class::Dram, 7) });
    let snapshot = settled(&mut aggregator);
    let shown = device(&snapshot, 1);
    assert_eq!(shown.dram_used_bytes, 7);
    assert_eq!((shown.dram_peak.low, shown.dram_peak.high), (10, 17));
    assert_eq!(snapshot.late, 1);
    let late: Vec<u64> = snapshot.processes.iter().map(|(_, process)| process.late).collect();
    assert_eq!(late, [1, 0]);
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
    let path = process.path.clone();
    drop(process);
    let snapshot = scene.aggregator().snapshot();
    assert!(snapshot.devices.is_empty() && snapshot.processes.is_empty());
    assert_eq!(snapshot.notices[0].bytes[0], MIB);
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
    let shown = device(&scene.aggregator().snapshot(), 1);
    assert_eq!(shown.flags, device_flags::OVER_CAPACITY | device_flags::CONFLICT);
    assert_eq!(shown.entry.dram_bytes, 1 << 34, "what was said first is kept");
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
    // As a process that is stopped or killed right behind the commit point.
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

#[test]
fn peaks_from_before_a_window_bound_it_but_do_not_count_in_it() {
    let scene = Scene::new();
    let mut process = TestProcess::new(&scene.namespace, 64);
    let index = process.register(chip(1));
    process.alloc(index, Class::Dram, 100);
    process.free(index, Class::Dram, 100);
    let mut aggregator = scene.aggregator();
    aggregator.reset_window();
    for _ in 0..100 {
        process.alloc(index, Class::Dram, 10);
        process.free(index, Class::Dram, 10);
    }
    let snapshot = settled(&mut aggregator);
    let peak = device(&snapshot, 1).dram_peak;
    assert!(snapshot.missed > 0 && peak.low <= 10 && peak.high == 100, "{peak:?}");
}

/// What others did while it lived may be folded only after its end was noticed.
#[test]
fn what_a_process_held_counts_until_its_end() {
    let scene = Scene::new();
    let merge_window = std::time::Duration::from_millis(50);
    let config = Config { merge_window, ..Config::new(scene.namespace.clone()) };
    let mut aggregator = Aggregator::new(config).unwrap();
    let (mut a, mut b) = (scene.process(), scene.process());
    a.register(chip(1));
    b.register(chip(1));
    b.alloc(0, Class::Dram, 700);
    aggregator.settle();
    a.alloc(0, Class::Dram, 100);
    // It lives.
    b.emit(Event::new(EventKind::DeviceOpen, 0));
    end(b);
    // The end is seen at once, the allocation before it waits in the merge.
    aggregator.poll();
    let shown = device(&settled(&mut aggregator), 1);
    assert_eq!(aggregator.segments(), 1);
    assert_eq!(shown.dram_used_bytes, 100);
    assert_eq!((shown.dram_peak.low, shown.dram_peak.high), (800, 800));
}

fn end(process: TestProcess) {
    let closed = shm_layout::control::state::CLOSED;
    process.words().control[shm_layout::control::STATE].store(closed, std::sync::atomic::Ordering::Relaxed);
}

/// What it held may have been gone for some time when its end is noticed.
#[test]
fn what_a_process_held_need_not_be_part_of_a_peak_after_it_was_last_seen() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let (mut a, mut b) = (scene.process(), scene.process());
    a.register(chip(1));
    b.register(chip(1));
    b.alloc(0, Class::Dram, 700);
    aggregator.settle();
    end(b);
    a.alloc(0, Class::Dram, 100);
    let shown = device(&settled(&mut aggregator), 1);
    assert_eq!((aggregator.segments(), shown.dram_used_bytes), (1, 100));
    assert_eq!((shown.dram_peak.low, shown.dram_peak.high), (700, 800));
    let class = shown.classes[Class::Dram as usize].peak;
    assert_eq!((class.low, class.high), (700, 800));
}

/// What happened before a window may be folded only after it was asked for.
#[test]
fn what_happened_before_a_window_does_not_count_in_it() {
    let scene = Scene::new();
    let merge_window = std::time::Duration::from_millis(50);
    let config = Config { merge_window, ..Config::new(scene.namespace.clone()) };
    let mut aggregator = Aggregator::new(config).unwrap();
    let mut process = scene.process();
    process.register(chip(1));
    process.alloc(0, Class::Dram, 100);
    aggregator.settle();
    process.alloc(0, Class::Dram, 50);
    process.free(0, Class::Dram, 50);
    process.free(0, Class::Dram, 90);
    aggregator.poll();
    // The clocks of process and window are compared to some microseconds only.
    let apart = std::time::Duration::from_millis(2);
    std::thread::sleep(apart);
    aggregator.reset_window();
    std::thread::sleep(apart);
    process.alloc(0, Class::Dram, 7);
    process.free(0, Class::Dram, 7);
    let peak = device(&settled(&mut aggregator), 1).dram_peak;
    assert_eq!((peak.low, peak.high), (17, 17));
    process.alloc(0, Class::Dram, 25);
    let peak = device(&settled(&mut aggregator), 1).dram_peak;
    assert_eq!((peak.low, peak.high), (35, 35));
}

/// A process that reset its own peaks does not know what it had before.
#[test]
fn peaks_that_a_process_forgot_are_not_known() {
    let scene = Scene::new();
    let mut process = TestProcess::new(&scene.namespace, 64);
    let index = process.register(chip(1));
    process.alloc(index, Class::Dram, 5000);
    process.free(index, Class::Dram, 5000);
    process.emit(Event::new(EventKind::PeakReset, index));
    for _ in 0..100 {
        process.alloc(index, Class::Dram, 10);
        process.free(index, Class::Dram, 10);
    }
    let mut aggregator = scene.aggregator();
    let shown = device(&settled(&mut aggregator), 1);
    assert_eq!((shown.dram_peak.low, shown.dram_peak.high), (10, UNKNOWN));
    assert_eq!(shown.classes[Class::Dram as usize].peak.high, UNKNOWN);
    // From a window on that begins later, its own peaks reach back far enough.
    aggregator.reset_window();
    settled(&mut aggregator);
    for _ in 0..100 {
        process.alloc(index, Class::Dram, 7);
        process.free(index, Class::Dram, 7);
    }
    let snapshot = settled(&mut aggregator);
    let peak = device(&snapshot, 1).dram_peak;
    assert!(snapshot.missed > 0, "the ring went round");
    assert_eq!((peak.low, peak.high), (0, 10));
}
