//! More devices and usages than there is room for: who is affected, who is not, and what happens when there
//! is room again. Needs root, which can create files of other users.

use std::os::unix::fs::chown;
use std::time::{Duration, Instant};

use crate::common::{Scene, TestProcess, chip, device, settled};
use shm_layout::table::device_flags;
use shm_layout::{Class, MAX_DEVICES, UNKNOWN};
use tt_shm_aggregator::{Aggregator, Config};
use tt_shm_reader::{ProcessStats, TableSnapshot, notice_kind};

/// Usually `nobody`.
const STRANGER: u32 = 65534;
/// Chips that the stranger claims, from this one on.
const CLAIMED: u64 = 10_000;
/// A chip of root.
const OWN: u64 = 7;

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped, needs root to have files of another user");
    }
    root
}

fn stranger(scene: &Scene) -> TestProcess {
    let process = scene.process();
    chown(&process.path, Some(STRANGER), Some(STRANGER)).unwrap();
    process
}

/// A process of the other user on as many chips as a process can list, with a byte on each.
fn greedy(scene: &Scene, first: u64) -> TestProcess {
    let mut process = stranger(scene);
    for number in 0..MAX_DEVICES as u64 {
        let device = process.register(chip(first + number));
        process.alloc(device, Class::Dram, 1);
    }
    process
}

fn own(scene: &Scene) -> TestProcess {
    let mut process = scene.process();
    process.register(chip(OWN));
    process.alloc(0, Class::Dram, 100);
    process
}

fn is_shown(snapshot: &TableSnapshot, chip_id: u64) -> bool {
    snapshot.devices.iter().any(|(_, device)| device.entry.chip_id == chip_id)
}

fn is_complete(snapshot: &TableSnapshot, chip_id: u64) -> bool {
    device(snapshot, chip_id).flags & device_flags::INCOMPLETE == 0
}

fn complaints(snapshot: &TableSnapshot) -> usize {
    snapshot.notices.iter().filter(|notice| notice.kind == notice_kind::UNCOUNTED).count()
}

#[track_caller]
fn bury(aggregator: &mut Aggregator, left: usize) {
    for _ in 0..2000 {
        if aggregator.segments() <= left {
            return aggregator.settle();
        }
        aggregator.settle();
    }
    panic!("{} segments are followed, not {left}", aggregator.segments());
}

#[test]
fn a_stranger_on_as_many_chips_as_can_be_is_shown_and_harms_nobody() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let (_own, first) = (own(&scene), greedy(&scene, CLAIMED));
    let snapshot = settled(&mut aggregator);
    assert_eq!((snapshot.devices.len(), snapshot.overflow), (MAX_DEVICES + 1, 0));
    // Unused rows do not count against their user.
    drop(first);
    bury(&mut aggregator, 1);
    let _next = greedy(&scene, 2 * CLAIMED);
    let snapshot = settled(&mut aggregator);
    assert_eq!((snapshot.overflow, complaints(&snapshot)), (0, 0));
    for number in 0..MAX_DEVICES as u64 {
        assert_eq!(device(&snapshot, 2 * CLAIMED + number).dram_used_bytes, 1);
    }
    let shown = device(&snapshot, OWN);
    assert_eq!((shown.dram_peak.low, shown.dram_peak.high, is_complete(&snapshot, OWN)), (100, 100, true));
}

/// A chip without a row affects nobody else; it gets one, with everything on it, when there is room.
#[test]
fn a_chip_without_a_row_concerns_no_other_and_gets_one_later() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let (_own, greedy) = (own(&scene), greedy(&scene, CLAIMED));
    aggregator.settle();
    let mut late = stranger(&scene);
    late.register(chip(3));
    late.alloc(0, Class::Dram, 40);
    late.free(0, Class::Dram, 15);
    let snapshot = settled(&mut aggregator);
    assert_eq!((is_shown(&snapshot, 3), snapshot.overflow, complaints(&snapshot)), (false, 1, 1));
    // A process with fewer rows than devices is distinguishable from one that has none.
    let rows = |row: usize| snapshot.usages.iter().filter(|(_, usage)| usage.process == row as u64).count();
    let short = |(row, process): &&(usize, ProcessStats)| rows(*row) < process.devices as usize;
    let short: Vec<u64> =
        snapshot.processes.iter().filter(short).map(|(_, process)| process.identity).collect();
    assert_eq!(short, [late.header.identity]);
    assert!(snapshot.devices.iter().all(|(_, shown)| is_complete(&snapshot, shown.entry.chip_id)));
    assert_eq!(device(&snapshot, OWN).dram_peak.high, 100);

    drop(greedy);
    bury(&mut aggregator, 2);
    let snapshot = settled(&mut aggregator);
    assert_eq!((snapshot.overflow, complaints(&snapshot)), (0, 0));
    let shown = device(&snapshot, 3);
    assert_eq!((shown.dram_used_bytes, is_complete(&snapshot, 3)), (25, true));
    assert_eq!((shown.dram_peak.low, shown.dram_peak.high), (40, 40), "it was alone, and knows its peak");
    late.free(0, Class::Dram, 25);
    assert_eq!(device(&settled(&mut aggregator), 3).dram_used_bytes, 0);
}

/// Its counters are read between events that wait to be folded: each of them counts once.
#[test]
fn a_process_that_never_rests_is_counted_once_there_is_room() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    let (greedy, mut busy) = (greedy(&scene, CLAIMED), stranger(&scene));
    // Long enough that the last event in those counters waits, too.
    let merge_window = Duration::from_millis(50);
    let config = Config { merge_window, ..Config::new(scene.namespace.clone()) };
    let mut aggregator = Aggregator::new(config).unwrap();
    busy.register(chip(3));
    aggregator.settle();
    drop(greedy);
    let begun = Instant::now();
    while aggregator.segments() > 1 || !is_shown(&aggregator.snapshot(), 3) {
        assert!(begun.elapsed() < Duration::from_secs(20), "it is not counted");
        for _ in 0..3 {
            busy.alloc(0, Class::Dram, 5);
            busy.free(0, Class::Dram, 3);
        }
        aggregator.poll();
        // So that what waits finds room in the queue.
        std::thread::sleep(Duration::from_millis(1));
    }
    let classes = busy.counters(0).classes;
    let truth = (classes[0].live_bytes, classes[0].alloc_bytes, classes[0].alloc_count);
    let snapshot = settled(&mut aggregator);
    assert_eq!((snapshot.missed, snapshot.overflow), (0, 0));
    let shown = device(&snapshot, 3).classes[0];
    assert_eq!((shown.live_bytes, shown.alloc_bytes, shown.alloc_count), truth);
}

/// A process that was never counted may have held any amount on a chip that is shown only afterwards.
#[test]
fn a_chip_that_somebody_used_unseen_has_no_certain_peak() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    let (_greedy, mut unseen) = (greedy(&scene, CLAIMED), stranger(&scene));
    let mut aggregator = scene.aggregator();
    unseen.register(chip(3));
    unseen.alloc(0, Class::Dram, 1000);
    aggregator.settle();
    drop(unseen);
    bury(&mut aggregator, 1);
    let mut honest = scene.process();
    honest.register(chip(3));
    honest.alloc(0, Class::Dram, 10);
    let snapshot = settled(&mut aggregator);
    let peak = device(&snapshot, 3).dram_peak;
    assert_eq!((peak.low, peak.high, is_complete(&snapshot, 3)), (10, UNKNOWN, true));
    aggregator.reset_window();
    let peak = device(&settled(&mut aggregator), 3).dram_peak;
    assert_eq!((peak.low, peak.high), (10, 10), "not in a later window");
}

/// Many other users together leave rows for our own chips.
#[test]
fn rows_are_kept_for_our_own_chips() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    let crowd: Vec<TestProcess> = (0..3)
        .map(|number| {
            let process = greedy(&scene, CLAIMED * (number + 1));
            chown(&process.path, Some(STRANGER - number as u32), Some(STRANGER)).unwrap();
            process
        })
        .collect();
    let mut aggregator = scene.aggregator();
    assert_eq!(aggregator.snapshot().devices.len(), MAX_DEVICES * 3 / 2);
    let _own = own(&scene);
    let snapshot = settled(&mut aggregator);
    assert_eq!((device(&snapshot, OWN).dram_used_bytes, is_complete(&snapshot, OWN)), (100, true));
    assert_eq!((snapshot.overflow, complaints(&snapshot)), (MAX_DEVICES as u64 * 3 / 2, 2));
    drop(crowd);
    bury(&mut aggregator, 1);
    assert_eq!(settled(&mut aggregator).overflow, 0);
}
