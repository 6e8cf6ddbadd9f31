//! Peaks over several processes: exact, or a range that contains the true one.

use crate::common::{Scene, TestProcess, buffer, chip, device, settled};
use shm_layout::{Class, Event, EventKind, UNKNOWN};
use tt_shm_aggregator::{Aggregator, Config};

const MIB: u64 = 1 << 20;

#[test]
fn a_peak_of_two_processes_is_exact_and_says_who_held_what() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let (mut one, mut two) = (scene.process(), scene.process());
    let (a, b) = (one.register(chip(1)), two.register(chip(1)));
    aggregator.settle();
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
    assert_eq!(shown.classes[Class::Dram as usize].alloc_count, 3, "of both processes");
}

#[test]
fn what_was_there_before_we_came_is_not_bounded() {
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
    assert_eq!((shown.dram_peak.low, shown.dram_peak.high), (100, UNKNOWN));
    aggregator.reset_window();
    let snapshot = settled(&mut aggregator);
    let shown = device(&snapshot, 3);
    assert_eq!((shown.dram_peak.low, shown.dram_peak.high), (0, 0));
    assert_eq!(snapshot.windows, 1);
}

#[test]
fn what_was_resident_before_we_found_it_is_at_most_what_was_loaded() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let mut process = TestProcess::new(&scene.namespace, 64);
    let index = process.register(chip(3));
    process.emit(buffer(EventKind::CbAlloc, index, Class::Cb, 900));
    let dispatch = |cb| Event {
        address: 1,
        size: cb,
        aux: 0,
        flags: shm_layout::flags::RESIDENT,
        ..Event::new(EventKind::KernelDispatch, index)
    };
    process.emit(dispatch(900));
    (0..100).for_each(|_| process.emit(dispatch(50)));
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
fn a_late_event_changes_what_was_merged_after_it() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let (mut one, mut two) = (scene.process(), scene.process());
    let (a, b) = (one.register(chip(1)), two.register(chip(1)));
    aggregator.settle();
    let before = one.clock.ticks();
    two.alloc(b, Class::Dram, 10);
    two.free(b, Class::Dram, 10);
    aggregator.settle();
    one.emit_raw(shm_layout::Event { time: before, ..buffer(EventKind::Alloc, a, Class::Dram, 7) });
    let snapshot = settled(&mut aggregator);
    let shown = device(&snapshot, 1);
    assert_eq!(shown.dram_used_bytes, 7);
    assert_eq!((shown.dram_peak.low, shown.dram_peak.high), (17, 17), "all later sums were more by 7");
    assert_eq!(snapshot.late, 1);
    let late: Vec<u64> = snapshot.processes.iter().map(|(_, process)| process.late).collect();
    assert_eq!(late, [1, 0]);
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

/// What others did while it was alive may be folded only after its end was noticed.
#[test]
fn what_a_process_held_counts_until_its_end() {
    let scene = Scene::new();
    let merge_window = std::time::Duration::from_millis(50);
    let config = Config { merge_window, ..Config::new(scene.namespace.clone()) };
    let mut aggregator = Aggregator::new(config).unwrap();
    let (mut a, mut b) = scene.pair(1);
    b.alloc(0, Class::Dram, 700);
    aggregator.settle();
    a.alloc(0, Class::Dram, 100);
    // It is alive.
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
    let (mut a, mut b) = scene.pair(1);
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

/// What happened before a window may be folded only after it was requested.
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
    // In a window that begins later, its own peaks reach back far enough.
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
