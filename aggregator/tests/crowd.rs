//! Many processes of another user: counted beyond the rows of the table, and moved into it once there is
//! room. Needs root, which can create files of other users.

mod common;

use std::os::unix::fs::chown;

use common::{Scene, TestProcess, chip, device, settled};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use shm_layout::Class;
use shm_layout::table::{MAX_PROCESSES, MAX_USAGES};
use tt_shm_aggregator::Aggregator;
use tt_shm_reader::TableSnapshot;

/// Usually `nobody`.
const STRANGER: u32 = 65534;
/// Rows of the table that the processes of one other user may have.
const FOREIGN_ROWS: usize = MAX_USAGES / 4;
/// Segments of one other user that are followed.
const FOREIGN_SEGMENTS: usize = MAX_PROCESSES / 2;
const CHIPS: u64 = 32;
const CROWD: usize = 1000;
/// Those who stay: few enough to have a row each.
const STAY: usize = FOREIGN_ROWS / CHIPS as usize / 2;

/// Whether a crowd can be made: each segment is an open file of the aggregator's.
fn can_crowd() -> bool {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let enough = limit.maximum.is_none_or(|limit| limit >= 2 * FOREIGN_SEGMENTS as u64);
    let can = enough && rustix::process::geteuid().is_root();
    if !can {
        eprintln!("skipped, needs root and {} open files", 2 * FOREIGN_SEGMENTS);
    }
    can
}

/// A process of the other user with this many bytes on each of this many chips.
fn stranger(scene: &Scene, chips: u64, bytes: u64) -> TestProcess {
    let mut process = TestProcess::lean(&scene.namespace, chips);
    chown(&process.path, Some(STRANGER), Some(STRANGER)).unwrap();
    for id in 0..chips {
        let device = process.register(chip(id));
        process.alloc(device, Class::Dram, bytes);
    }
    process
}

#[track_caller]
fn await_segments(aggregator: &mut Aggregator, segments: usize) -> TableSnapshot {
    // The folder is scanned every second.
    for _ in 0..2000 {
        if aggregator.segments() == segments {
            return settled(aggregator);
        }
        aggregator.settle();
    }
    panic!("{} segments are followed, not {segments}", aggregator.segments());
}

fn assert_totals(snapshot: &TableSnapshot, total: u64) {
    for id in 0..CHIPS {
        assert_eq!(device(snapshot, id).dram_used_bytes, total, "chip {id}");
    }
}

#[test]
fn a_thousand_processes_on_32_chips_are_counted_and_those_who_stay_get_rows() {
    if !can_crowd() {
        return;
    }
    let scene = Scene::new();
    let mut crowd: Vec<TestProcess> =
        (1..=CROWD).map(|bytes| stranger(&scene, CHIPS, bytes as u64)).collect();
    let mut aggregator = scene.aggregator();
    let snapshot = settled(&mut aggregator);
    assert_totals(&snapshot, (CROWD * (CROWD + 1) / 2) as u64);
    let pairs = CROWD * CHIPS as usize;
    assert_eq!((snapshot.usages.len(), snapshot.overflow), (FOREIGN_ROWS, (pairs - FOREIGN_ROWS) as u64));

    // Processes without a row stay: their own counters tell.
    let has_row = |process: &TestProcess| {
        let shown = snapshot.usages.iter().map(|(_, usage)| usage.counters.classes[0].live_bytes);
        let own = process.counters(0).classes[0].live_bytes;
        shown.into_iter().any(|bytes| bytes == own)
    };
    let mut staying: Vec<TestProcess> = Vec::new();
    while staying.len() < STAY {
        let without = crowd.iter().position(|process| !has_row(process)).unwrap();
        staying.push(crowd.swap_remove(without));
    }
    drop(crowd);
    let mut snapshot = await_segments(&mut aggregator, STAY);
    // Some get a row with each poll.
    while snapshot.overflow > 0 && snapshot.usages.len() < STAY * CHIPS as usize {
        let before = snapshot.usages.len();
        snapshot = settled(&mut aggregator);
        assert!(snapshot.usages.len() > before, "nobody gets a row");
    }
    assert_eq!((snapshot.usages.len(), snapshot.overflow), (STAY * CHIPS as usize, 0));
    let held = |process: &TestProcess| process.counters(0).classes[0].live_bytes;
    assert_totals(&snapshot, staying.iter().map(held).sum());
    // Each row is that of its process.
    let mut shown: Vec<u64> =
        snapshot.usages.iter().map(|(_, usage)| usage.counters.classes[0].live_bytes).collect();
    let mut truth: Vec<u64> =
        staying.iter().flat_map(|process| vec![held(process); CHIPS as usize]).collect();
    shown.sort_unstable();
    truth.sort_unstable();
    assert_eq!(shown, truth);
}

#[test]
fn segments_beyond_the_cap_are_followed_once_the_crowd_has_gone() {
    if !can_crowd() {
        return;
    }
    let scene = Scene::new();
    let crowd: Vec<TestProcess> = (0..FOREIGN_SEGMENTS).map(|_| stranger(&scene, 0, 0)).collect();
    let mut aggregator = scene.aggregator();
    assert_eq!((aggregator.segments(), aggregator.snapshot().refused), (FOREIGN_SEGMENTS, 0));
    let late: Vec<TestProcess> = (0..3).map(|_| stranger(&scene, CHIPS, 5)).collect();
    let mut own = scene.process();
    own.register(chip(99));
    let snapshot = await_segments(&mut aggregator, FOREIGN_SEGMENTS + 1);
    assert_eq!((snapshot.refused, snapshot.devices.len()), (3, 1), "our own is followed all the same");
    drop(crowd);
    let snapshot = await_segments(&mut aggregator, 1 + late.len());
    assert_totals(&snapshot, 15);
    assert_eq!((snapshot.refused, snapshot.overflow), (0, 0));
}
