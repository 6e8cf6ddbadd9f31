//! Segments with arbitrary content.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Scene, TestProcess, chip};
use fastrand::Rng;
use shm_layout::table::TABLE_DEVICES;
use shm_layout::{Class, control};

/// Small numbers are as likely as large ones: those pass more checks.
fn any(random: &mut Rng) -> u64 {
    random.u64(..) >> random.u32(..64)
}

fn scribble(process: &TestProcess, random: &mut Rng) {
    let words = process.words();
    let value = any(random);
    match random.u8(..8) {
        0 => words.control[random.usize(..24)].store(value, Ordering::Relaxed),
        1 => words.control[control::HEAD].store(value % 4096, Ordering::Relaxed),
        2 => {
            let block = &words.counters[random.usize(..4)];
            block[random.usize(..block.len())].store(value, Ordering::Relaxed);
        }
        3 => {
            let entry = &words.devices[random.usize(..4)];
            entry[random.usize(..12)].store(value, Ordering::Relaxed);
        }
        4 | 5 => {
            let position = value % 4096;
            words.slot(position).unwrap()[0].store(position, Ordering::Relaxed);
        }
        _ => {
            let slot = words.slot(random.u64(..)).unwrap();
            slot[random.usize(..slot.len())].store(value, Ordering::Relaxed);
        }
    }
}

#[test]
fn scribbling_harms_nobody_else() {
    let scene = Scene::new();
    let mut honest = scene.process();
    let device = honest.register(chip(1000));
    let mut aggregator = scene.aggregator();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (scene, done) = (&scene, &done);
        scope.spawn(move || {
            let mut random = Rng::with_seed(1);
            for round in 0..200 {
                let mut process = TestProcess::new(&scene.namespace, 64);
                process.register(chip(round % 3));
                process.alloc(0, Class::Dram, 10);
                (0..2_000).for_each(|_| scribble(&process, &mut random));
            }
            done.store(true, Ordering::Relaxed);
        });
        let mut held = 0;
        while !done.load(Ordering::Relaxed) {
            honest.alloc(device, Class::Dram, 3);
            held += 3;
            aggregator.settle();
            let snapshot = aggregator.snapshot();
            let shown = snapshot.devices.iter().find(|(_, shown)| shown.entry.chip_id == 1000).unwrap().1;
            assert_eq!((shown.dram_used_bytes, shown.dram_peak.low), (held, held));
        }
    });
    while aggregator.segments() > 1 {
        aggregator.settle();
    }
    let snapshot = aggregator.snapshot();
    for (_, shown) in snapshot.devices.iter().filter(|(_, shown)| shown.entry.chip_id != 1000) {
        assert_eq!((shown.dram_used_bytes, shown.l1_used_bytes, shown.eth_used_bytes), (0, 0, 0));
    }
}

#[test]
fn more_devices_than_the_table_holds_are_counted_as_such() {
    let scene = Scene::new();
    let mut many = [scene.process(), scene.process()];
    let mut more = scene.process();
    for id in 0..TABLE_DEVICES as u64 {
        many[id as usize % 2].register(chip(id));
    }
    let (first, known) = (more.register(chip(5000)), more.register(chip(7)));
    more.alloc(first, Class::Dram, 1);
    more.alloc(known, Class::Dram, 2);
    let mut aggregator = scene.aggregator();
    let snapshot = aggregator.snapshot();
    assert_eq!((snapshot.devices.len(), snapshot.overflow), (TABLE_DEVICES, 1));
    assert_eq!(snapshot.devices.iter().map(|(_, device)| device.dram_used_bytes).sum::<u64>(), 2);

    // Unused rows are free for others.
    drop(many);
    while aggregator.segments() > 1 {
        aggregator.settle();
    }
    let mut late = scene.process();
    late.register(chip(600));
    aggregator.settle();
    let snapshot = aggregator.snapshot();
    assert!(snapshot.devices.iter().any(|(_, device)| device.entry.chip_id == 600));
    assert_eq!(snapshot.devices.len(), TABLE_DEVICES);
}
