//! What a chip can hold according to processes with pools, and what exceeds it.

use std::os::unix::fs::chown;

use crate::common::{Scene, TestProcess, buffer, chip, device, settled};
use shm_layout::{Class, DeviceEntry, Event, EventKind, Pool, flags as flag, known};
use tt_shm_reader::{DeviceStats, TableSnapshot, device_flags, usage_flags};

const STRANGER: u32 = 65_534;
const DRAM: usize = 0;
const TRACE: usize = 1;
const L1: usize = 2;
const L1_SMALL: usize = 3;

/// Chip 1 with these pools of one bank: place and bytes.
fn pooled(pools: &[(usize, u64)]) -> DeviceEntry {
    let mut entry = chip(1);
    for (place, bank_bytes) in pools {
        entry.known |= known::POOL << place;
        entry.pools[*place] = Pool { banks: 1, bank_bytes: *bank_bytes, alignment: 32 };
    }
    entry
}

/// Whether more is used than exists, and whether processes disagree.
fn flags(shown: &DeviceStats) -> (bool, bool) {
    let has = |flag: u64| shown.flags & flag != 0;
    (has(device_flags::OVER_CAPACITY), has(device_flags::CONFLICT))
}

/// Whether that process is shown with a claim that is not taken as true, by its place in the table.
fn conflicts(snapshot: &TableSnapshot, process: &TestProcess) -> Vec<bool> {
    let (row, _) = snapshot.processes.iter().find(|(_, stats)| stats.pid == process.pid()).unwrap();
    let own = snapshot.usages.iter().filter(|(_, usage)| usage.process == *row as u64);
    own.map(|(_, usage)| usage.flags & usage_flags::CONFLICT != 0).collect()
}

#[test]
fn a_strangers_pool_does_not_replace_what_root_says() {
    let scene = Scene::new();
    let (mut root, mut stranger) = (scene.process(), scene.process());
    if chown(&stranger.path, Some(STRANGER), Some(STRANGER)).is_err() {
        eprintln!("left out, needs root: a process of another user");
        return;
    }
    let index = root.register(chip(1));
    root.alloc(index, Class::Dram, 4096);
    let lie = DeviceEntry { known: 0, ..pooled(&[]) };
    stranger.register(DeviceEntry { known: known::POOL, pools: pooled(&[(DRAM, 17)]).pools, ..lie });
    let mut aggregator = scene.aggregator();
    let snapshot = settled(&mut aggregator);
    let shown = device(&snapshot, 1);
    assert_eq!((shown.entry.dram_total(), flags(&shown)), (Some(1 << 34), (false, true)));
    assert_eq!((conflicts(&snapshot, &root), conflicts(&snapshot, &stranger)), (vec![false], vec![true]));
}

#[test]
fn disputed_pools_leave_the_capacity_unknown() {
    let scene = Scene::new();
    let (mut one, mut two) = (scene.process(), scene.process());
    let index = one.register(pooled(&[(DRAM, 100), (TRACE, 10)]));
    two.register(pooled(&[(DRAM, 100), (TRACE, 50)]));
    one.alloc(index, Class::Dram, 100);
    one.alloc(index, Class::Trace, 10);
    let mut aggregator = scene.aggregator();
    let snapshot = settled(&mut aggregator);
    let shown = device(&snapshot, 1);
    assert_eq!((shown.entry.dram_total(), shown.entry.dram_reserved()), (None, None));
    assert_eq!((flags(&shown), shown.entry.l1_total()), ((false, true), Some(64 << 20)));
    assert_eq!((conflicts(&snapshot, &one), conflicts(&snapshot, &two)), (vec![true], vec![true]));
    // The doubt ends with the process that raised it.
    drop(two);
    while aggregator.segments() == 2 {
        aggregator.settle();
    }
    let shown = device(&settled(&mut aggregator), 1);
    assert_eq!((shown.entry.dram_total(), flags(&shown)), (Some(110), (false, false)));
}

#[test]
fn allocators_of_one_process_are_no_conflict() {
    let scene = Scene::new();
    let mut process = scene.process();
    process.register(DeviceEntry { allocator: 1, ..pooled(&[(DRAM, 100)]) });
    let second = process.register(DeviceEntry { allocator: 2, ..pooled(&[(DRAM, 30)]) });
    process.alloc(second, Class::Dram, 30);
    let snapshot = settled(&mut scene.aggregator());
    let shown = device(&snapshot, 1);
    assert_eq!((shown.entry.dram_total(), flags(&shown)), (None, (false, false)));
    assert_eq!(conflicts(&snapshot, &process), [false, false]);
}

/// Chip 1 with a pool of 100 bytes for each of DRAM, trace, L1 and L1_SMALL, and ethernet cores of 16 bytes in all.
fn small_chip() -> DeviceEntry {
    let entry = pooled(&[(DRAM, 100), (TRACE, 100), (L1, 100), (L1_SMALL, 100)]);
    DeviceEntry { known: entry.known | known::ETH, eth_cores: 1, eth_l1_per_core: 16, ..entry }
}

/// Whether more is used than exists, if a process on such a chip emits these.
fn is_over(entry: DeviceEntry, events: &[Event]) -> bool {
    let scene = Scene::new();
    let mut process = scene.process();
    let index = process.register(entry);
    events.iter().for_each(|event| process.emit(Event { device: index, ..*event }));
    flags(&device(&settled(&mut scene.aggregator()), 1)).0
}

fn alloc(class: Class, bytes: u64) -> Event {
    buffer(EventKind::Alloc, 0, class, bytes)
}

#[test]
fn a_pool_that_holds_more_than_it_has_is_flagged() {
    for class in [Class::Dram, Class::Trace, Class::L1, Class::L1Small] {
        assert!(!is_over(small_chip(), &[alloc(class, 100)]), "{class:?}");
        assert!(is_over(small_chip(), &[alloc(class, 101)]), "{class:?}");
    }
}

#[test]
fn pools_that_are_full_side_by_side_are_not_flagged() {
    let full = [Class::Dram, Class::Trace, Class::L1, Class::L1Small].map(|class| alloc(class, 100));
    assert!(!is_over(small_chip(), &full));
    // A trace pool that nobody reports cannot be said to be full.
    let untold = pooled(&[(DRAM, 100)]);
    assert!(!is_over(untold, &[alloc(Class::Dram, 100), alloc(Class::Trace, 1)]));
    assert!(is_over(untold, &[alloc(Class::Dram, 101)]));
}

#[test]
fn programs_are_no_share_of_capacity() {
    let cb = Event { aux: 7, ..buffer(EventKind::CbAlloc, 0, Class::Cb, 1000) };
    let kernel = buffer(EventKind::KernelLoad, 0, Class::KernelFabric, 1000);
    let dispatch = Event {
        address: 1,
        size: 1000,
        aux: 0,
        flags: flag::RESIDENT,
        ..Event::new(EventKind::KernelDispatch, 0)
    };
    assert!(!is_over(small_chip(), &[cb, dispatch, alloc(Class::L1, 100)]), "circular buffers");
    assert!(
        !is_over(small_chip(), &[Event { flags: flag::ETHERNET, ..kernel }]),
        "kernels on ethernet cores"
    );
    assert!(!is_over(small_chip(), &[kernel]), "kernels");
}

#[test]
fn without_pools_what_the_chip_has_counts() {
    let has = |dram_bytes| DeviceEntry { dram_bytes, tensix_cores: 1, l1_per_core: dram_bytes, ..chip(1) };
    for classes in [[Class::Dram, Class::Trace], [Class::L1, Class::L1Small]] {
        let both = classes.map(|class| alloc(class, 50));
        assert!(!is_over(has(100), &both) && is_over(has(99), &both), "{classes:?}");
    }
}
