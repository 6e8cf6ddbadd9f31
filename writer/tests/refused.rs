//! A refused call leaves nothing behind: no row, no entry in the index, no bytes.

mod common;

use common::{device, info, observe, open, open_with};
use shm_layout::MAX_BYTES;
use tt_shm_writer::{Alloc, BufferType, Record, RecordError};

fn too_large(id: u64) -> Alloc {
    Alloc::new(BufferType::Dram, id, MAX_BYTES + 1)
}

fn small(id: u64) -> Alloc {
    Alloc::new(BufferType::Dram, id, 10)
}

#[test]
fn a_refused_allocation_gives_its_row_back() {
    let tracker = open_with(|builder| builder.live_capacity(4));
    let device = device(&tracker);
    for id in 0..10 {
        let error = tracker.alloc(device, too_large(id)).unwrap_err();
        assert_eq!(error, RecordError::SizeOutOfRange { bytes: MAX_BYTES + 1 });
    }
    tracker.alloc(device, small(100)).unwrap();
    let list = observe(&tracker).allocations();
    assert_eq!((list.list.len(), list.unlisted), (1, 0));
}

#[test]
fn it_may_be_reported_right_afterwards() {
    let tracker = open();
    let device = device(&tracker);
    tracker.alloc(device, small(1)).unwrap();
    tracker.free(device, 1).unwrap();
    tracker.alloc(device, too_large(2)).unwrap_err();
    tracker.alloc(device, small(2)).unwrap();
    tracker.free(device, 2).unwrap();
    tracker.free(device, 2).unwrap_err();
}

/// The rows that refused allocations were given still hold what was freed before. If they were left in the
/// index, it would find them when its pages are split, and free them once more.
#[test]
fn what_was_freed_stays_freed() {
    const COUNT: u64 = 4000;
    let tracker = open();
    let device = device(&tracker);
    (0..COUNT).for_each(|id| tracker.alloc(device, small(id)).unwrap());
    (0..COUNT).for_each(|id| tracker.free(device, id).unwrap());
    (0..COUNT).for_each(|id| _ = tracker.alloc(device, too_large(1_000_000 + id)).unwrap_err());
    (0..20_000).for_each(|id| tracker.alloc(device, small(2_000_000 + id)).unwrap());
    assert!((0..COUNT).all(|id| tracker.free(device, id).is_err()));
    assert_eq!(tracker.counters(device).unwrap().dram_used(), 200_000);
}

/// Refused again and again under one key, in rows that were never written: all of them would collide.
#[test]
fn refusing_costs_no_memory() {
    let tracker = open();
    let other = open();
    let known = device(&tracker);
    device(&other);
    let unknown = other.register_device(&info(2)).unwrap();
    let before = resident_kib();
    for id in 0..3000 {
        tracker.alloc(known, too_large(5)).unwrap_err();
        let error = tracker.alloc(unknown, small(id)).unwrap_err();
        assert!(matches!(error, RecordError::UnknownDevice { .. }));
    }
    assert!(resident_kib() < before + 16 * 1024, "{before} KiB became {}", resident_kib());
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
