//! What a chip can hold, as processes with pools say it, and what is more than that.

mod common;

use std::os::unix::fs::chown;

use common::{Scene, TestProcess, chip, device, settled};
use shm_layout::{Class, DeviceEntry, Pool, known};
use tt_shm_reader::{DeviceStats, TableSnapshot, device_flags, usage_flags};

const STRANGER: u32 = 65_534;
const DRAM: usize = 0;
const TRACE: usize = 1;

/// Chip 1 with these pools of one bank: place and bytes.
fn pooled(pools: &[(usize, u64)]) -> DeviceEntry {
    let mut entry = chip(1);
    for (place, bank_bytes) in pools {
        entry.known |= known::POOL << place;
        entry.pools[*place] = Pool { banks: 1, bank_bytes: *bank_bytes, alignment: 32 };
    }
    entry
}

/// Whether more is used than there is, and whether processes disagree.
fn flags(shown: &DeviceStats) -> (bool, bool) {
    let has = |flag: u64| shown.flags & flag != 0;
    (has(device_flags::OVER_CAPACITY), has(device_flags::CONFLICT))
}

/// Whether that process is shown with a claim that is not taken for true, by its place in the table.
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
    // With the one who said it, the doubt goes.
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
