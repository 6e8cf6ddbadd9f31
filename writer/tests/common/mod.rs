//! A tracker in a namespace of its own, and the segment as an observer sees it.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::sync::atomic::{AtomicU32, Ordering};
use tt_shm_reader::{Counters, Segment};
use tt_shm_writer::{Builder, CoreMemory, Device, DeviceInfo, Pool, Pools, Record, Tracker};

pub(crate) fn namespace() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("w-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The segment is removed when the tracker is dropped, even when a test panics.
pub(crate) fn open_with(setting: impl FnOnce(Builder) -> Builder) -> Tracker {
    setting(Tracker::builder().enabled(true).namespace(namespace())).open().unwrap()
}

pub(crate) fn open() -> Tracker {
    open_with(|builder| builder)
}

pub(crate) fn info(chip_id: u64) -> DeviceInfo {
    DeviceInfo {
        chip_id,
        logical_id: Some(chip_id as u32),
        dram_bytes: Some(12 << 30),
        dram_channels: Some(6),
        l1: Some(CoreMemory { cores: 64, bytes_per_core: 1464 << 10 }),
        eth: Some(CoreMemory { cores: 16, bytes_per_core: 256 << 10 }),
        pools: Pools {
            dram: Some(Pool { banks: 12, bank_bytes: 1 << 30, alignment: 32 }),
            l1: Some(Pool { banks: 64, bank_bytes: 1400 << 10, alignment: 16 }),
            l1_small: Some(Pool { banks: 64, bank_bytes: 32 << 10, alignment: 16 }),
            ..Pools::default()
        },
        ..Default::default()
    }
}

pub(crate) fn device(tracker: &impl Record) -> Device {
    tracker.register_device(&info(1)).unwrap()
}

pub(crate) fn observe(tracker: &impl Record) -> Segment {
    Segment::open(&tracker.segment_path().unwrap()).unwrap()
}

/// The first device's counters, as an observer and as the process itself see them.
pub(crate) fn counters(tracker: &impl Record, device: Device) -> Counters {
    let own = tracker.counters(device).unwrap();
    let seen = observe(tracker).counters().unwrap();
    assert!(seen.counters.contains(&own), "an observer sees {seen:?}, the process itself {own:?}");
    own
}
