//! What a process reports about its devices, at once or step by step, and about itself.

use crate::common::{counters, info, observe, open, open_with};
use shm_layout::control::Anomaly;
use tt_shm_reader::Class;
use tt_shm_writer::{Alloc, Arch, BufferType, CoreMemory, DeviceInfo, Pool, Pools, Record, Source, Tracker};

fn pool(banks: u32, bank_bytes: u64) -> Option<Pool> {
    Some(Pool { banks, bank_bytes, alignment: 32 })
}

/// An n150 as tt-metal sees it.
fn n150() -> DeviceInfo {
    DeviceInfo {
        chip_id: 7,
        dram_bytes: Some(12 << 30),
        l1: Some(CoreMemory { cores: 64, bytes_per_core: 1464 << 10 }),
        pools: Pools {
            dram: pool(12, 1000 << 20),
            trace: pool(12, 20 << 20),
            l1: pool(64, 1300 << 10),
            l1_small: pool(64, 32 << 10),
        },
        ..DeviceInfo::default()
    }
}

#[test]
fn ten_small_buffers_occupy_what_the_allocator_gives_them() {
    let tracker = open();
    let device = tracker.register_device(&n150()).unwrap();
    for id in 0..10 {
        let alloc = Alloc::new(BufferType::L1, id, 2048).bytes_per_bank(2048);
        tracker.alloc(device, alloc).unwrap();
    }
    let ten = counters(&tracker, device);
    assert_eq!(
        (ten.l1_used(), ten.l1_requested(), ten.l1_peak_bytes),
        (10 * 2048 * 64, 20_480, 10 * 2048 * 64)
    );
    assert_eq!(ten.requested_basis_bytes, [0; Class::COUNT]);
    (0..10).for_each(|id| tracker.free_sized(device, id, 2048).unwrap());
    let none = counters(&tracker, device);
    assert_eq!((none.l1_used(), none.l1_requested()), (0, 0));
}

#[test]
fn what_nobody_told_is_marked_as_what_was_asked_for() {
    let tracker = open();
    let device = tracker.register_device(&DeviceInfo { chip_id: 1, ..DeviceInfo::default() }).unwrap();
    // Bytes per bank say nothing without banks.
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 100).bytes_per_bank(64)).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 2, 10)).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 3, 5).occupied(4096)).unwrap();
    let some = counters(&tracker, device);
    assert_eq!((some.dram_used(), some.dram_requested()), (4206, 115));
    assert_eq!(some.requested_basis_bytes[Class::Dram as usize], 110);
    (1..4).for_each(|id| tracker.free(device, id).unwrap());
    assert_eq!(counters(&tracker, device).requested_basis_bytes, [0; Class::COUNT]);
}

#[test]
fn capacity_is_that_of_the_pools_and_the_rest_is_reserved() {
    let tracker = open();
    tracker.register_device(&n150()).unwrap();
    let entry = observe(&tracker).devices()[0];
    assert_eq!(entry.dram_total(), Some(12 * (1020 << 20)));
    assert_eq!(entry.dram_reserved(), Some((12 << 30) - 12 * (1020 << 20)));
    assert_eq!((entry.l1_total(), entry.l1_reserved()), (Some(64 * (1332 << 10)), Some(64 * (132 << 10))));
}

#[test]
fn what_is_learned_of_a_device_later_is_added() {
    let tracker = open();
    let first = DeviceInfo { chip_id: 7, logical_id: Some(3), ..DeviceInfo::default() };
    let device = tracker.register_device(&first).unwrap();
    let reader = observe(&tracker);
    assert_eq!((reader.devices()[0].dram_total(), reader.devices()[0].board_name()), (None, None));
    let later = DeviceInfo { board: Some("n150".into()), arch: Arch::Wormhole, ..n150() };
    assert_eq!(tracker.register_device(&later).unwrap(), device);
    let entry = reader.devices()[0];
    assert_eq!((entry.logical(), entry.board_name().as_deref()), (Some(3), Some("n150")));
    assert_eq!((entry.architecture(), entry.dram_total()), (Arch::Wormhole, Some(12 * (1020 << 20))));
    // The banks are known from now on.
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 100).bytes_per_bank(32)).unwrap();
    assert_eq!(counters(&tracker, device).dram_used(), 12 * 32);
    assert_eq!(reader.anomalies()[Anomaly::DeviceConflict as usize], 0);
}

#[test]
fn what_was_said_first_of_a_device_stays() {
    let tracker = open();
    let device = tracker.register_device(&n150()).unwrap();
    let other =
        DeviceInfo { dram_bytes: Some(1), eth: Some(CoreMemory { cores: 16, bytes_per_core: 1 }), ..n150() };
    assert_eq!(tracker.register_device(&other).unwrap(), device);
    let (reader, entry) = (observe(&tracker), observe(&tracker).devices()[0]);
    assert_eq!((entry.dram_bytes, entry.eth_l1_total()), (12 << 30, Some(16)));
    assert_eq!(reader.anomalies()[Anomaly::DeviceConflict as usize], 1);
}

#[test]
fn two_allocators_on_a_chip_are_two_entries() {
    let tracker = open();
    let first = tracker.register_device(&n150()).unwrap();
    let half = DeviceInfo { allocator: 9, sub_device: Some(1), hybrid: Some(true), ..n150() };
    let second = tracker.register_device(&half).unwrap();
    assert_ne!(first, second);
    assert_eq!(tracker.register_device(&half).unwrap(), second);
    let entries = observe(&tracker).devices();
    assert_eq!(
        entries.iter().map(|entry| (entry.chip_id, entry.allocator)).collect::<Vec<_>>(),
        [(7, 0), (7, 9)]
    );
    assert_eq!((entries[1].is_hybrid(), entries[0].is_hybrid()), (Some(true), None));
    tracker.alloc(second, Alloc::new(BufferType::Dram, 1, 100)).unwrap();
    assert_eq!(tracker.counters(first).unwrap().dram_used(), 0);
}

#[test]
fn in_hybrid_mode_only_what_is_told_is_occupied() {
    let tracker = open();
    let device = tracker.register_device(&DeviceInfo { hybrid: Some(true), ..n150() }).unwrap();
    let alloc = |id| Alloc::new(BufferType::L1, id, 100).bytes_per_bank(32);
    // Which banks it is in is not known.
    tracker.alloc(device, alloc(1)).unwrap();
    let l1 = Class::L1 as usize;
    let seen = counters(&tracker, device);
    assert_eq!((seen.classes[l1].live_bytes, seen.requested_basis_bytes[l1]), (100, 100));
    tracker.alloc(device, alloc(2).occupied(3 * 32)).unwrap();
    let seen = counters(&tracker, device);
    assert_eq!((seen.classes[l1].live_bytes, seen.requested_basis_bytes[l1]), (196, 100));
    (1..3).for_each(|id| tracker.free(device, id).unwrap());
    let seen = counters(&tracker, device);
    assert_eq!((seen.classes[l1].live_bytes, seen.requested_basis_bytes[l1]), (0, 0));
}

#[test]
fn that_the_mode_is_hybrid_may_be_told_later() {
    let tracker = open();
    let device = tracker.register_device(&n150()).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 100).bytes_per_bank(32)).unwrap();
    tracker.register_device(&DeviceInfo { hybrid: Some(true), ..n150() }).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 2, 100).bytes_per_bank(32)).unwrap();
    assert_eq!(counters(&tracker, device).dram_used(), 12 * 32 + 100);
}

#[test]
fn a_segment_says_who_writes_it_and_what_was_checked() {
    let tracker = open_with(|builder| builder.source(Source::Tap).on_behalf_of(4711).process_name("train"));
    let reader = observe(&tracker);
    assert_eq!((reader.source(), reader.header().on_behalf_of), (Some(Source::Tap), 4711));
    assert_eq!(reader.process_name(), "train");
    assert_eq!(reader.self_checks(), [0, 0]);
    tracker.self_checks(3, 0).unwrap();
    tracker.self_checks(1, 1).unwrap();
    assert_eq!(reader.self_checks(), [4, 1]);
    let plain = observe(&open_with(|builder| builder)).source();
    assert_eq!(plain, Some(Source::Ring));
    // The device makes no difference to that.
    tracker.register_device(&info(1)).unwrap();
    assert_eq!(reader.self_checks(), [4, 1]);
}

#[test]
fn a_process_may_say_that_it_holds_more_than_it_can_report() {
    let tracker = open();
    let reader = observe(&tracker);
    assert!(!reader.is_partial());
    tracker.partial().unwrap();
    assert!(reader.is_partial() && !reader.is_degraded());
    tracker.complete().unwrap();
    assert!(!reader.is_partial());
}

#[test]
fn a_closed_tracker_has_no_segment_and_its_calls_do_nothing() {
    let tracker = open();
    let (clone, path) = (tracker.clone(), tracker.segment_path().unwrap());
    let device = tracker.register_device(&info(1)).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 100)).unwrap();
    let reader = observe(&tracker);
    tracker.close();
    assert!(!path.exists() && reader.closed_at().is_some());
    clone.alloc(device, Alloc::new(BufferType::Dram, 2, 100)).unwrap();
    clone.free(device, 1).unwrap();
    assert_eq!((clone.segment_path(), clone.counters(device)), (None, None));
    clone.close();
}

#[test]
fn an_exclusive_tracker_is_closed_in_the_same_way() {
    let tracker = open().into_exclusive().unwrap();
    let path = tracker.segment_path().unwrap();
    let device = tracker.register_device(&info(1)).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 100)).unwrap();
    let reader = observe(&tracker);
    tracker.close();
    assert!(!path.exists() && reader.closed_at().is_some());
    tracker.alloc(device, Alloc::new(BufferType::Dram, 2, 100)).unwrap();
    tracker.free(device, 99).unwrap();
    assert_eq!((tracker.segment_path(), tracker.counters(device)), (None, None));
    tracker.close();
    Tracker::disabled().into_exclusive().unwrap().close();
}
