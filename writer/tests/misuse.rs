//! Misuse is returned and counted, and never makes a total wrong.

use crate::common::{self, counters, device, info, observe, open, open_with};
use shm_layout::control::Anomaly;
use shm_layout::{MAX_BYTES, MAX_DEVICES};
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, CoreType, Device, Kernel, KernelType, Record, RecordError, Target,
    Tracker,
};

fn anomalies(tracker: &impl Record, anomaly: Anomaly) -> u64 {
    observe(tracker).anomalies()[anomaly as usize]
}

#[test]
fn an_unmatched_free() {
    let tracker = open();
    let device = device(&tracker);
    let free = tracker.free(device, 5);
    assert!(matches!(free, Err(RecordError::UnmatchedFree { what: "buffer", id: 5, .. })));
    assert!(matches!(tracker.cb_free(device, 1, 5, None), Err(RecordError::UnmatchedFree { .. })));
    assert!(matches!(tracker.kernel_unload(device, 5, None), Err(RecordError::UnmatchedFree { .. })));
    assert_eq!(anomalies(&tracker, Anomaly::UnmatchedFree), 3);
    assert_eq!(counters(&tracker, device).position, 0);
}

#[test]
fn a_double_alloc_keeps_the_first() {
    let tracker = open();
    let device = device(&tracker);
    tracker.alloc(device, Alloc::new(BufferType::Dram, 5, 100)).unwrap();
    let again = tracker.alloc(device, Alloc::new(BufferType::L1, 5, 999));
    assert!(matches!(again, Err(RecordError::DoubleAlloc { id: 5, live_bytes: 100, .. })));
    tracker.cb_alloc(device, CircularBuffer::new(1, 1, 10, 1)).unwrap();
    assert!(tracker.cb_alloc(device, CircularBuffer::new(1, 1, 10, 1)).is_err());
    assert_eq!(anomalies(&tracker, Anomaly::DoubleAlloc), 2);
    let counters = counters(&tracker, device);
    assert_eq!((counters.dram_used(), counters.l1_used()), (100, 0));
}

#[test]
fn a_size_mismatch_frees_what_was_allocated() {
    let tracker = open();
    let device = device(&tracker);
    tracker.alloc(device, Alloc::new(BufferType::Dram, 5, 100)).unwrap();
    let free = tracker.free_sized(device, 5, 99);
    assert!(matches!(free, Err(RecordError::SizeMismatch { live_bytes: 100, given_bytes: 99, .. })));
    assert_eq!(anomalies(&tracker, Anomaly::SizeMismatch), 1);
    assert_eq!(counters(&tracker, device).dram_used(), 0);
}

#[test]
fn an_unknown_device() {
    let (tracker, other) = (open(), open());
    device(&other);
    let foreign = other.register_device(&info(2)).unwrap();
    device(&tracker);
    let alloc = tracker.alloc(foreign, Alloc::new(BufferType::Dram, 1, 1));
    assert!(matches!(alloc, Err(RecordError::UnknownDevice { device: 1 })));
    assert_eq!(anomalies(&tracker, Anomaly::UnknownDevice), 1);
}

#[test]
fn a_full_device_list() {
    let tracker = open();
    for chip in 0..MAX_DEVICES as u64 {
        tracker.register_device(&info(chip)).unwrap();
    }
    assert_eq!(tracker.register_device(&info(9999)), Err(RecordError::DeviceListFull));
    assert_eq!(anomalies(&tracker, Anomaly::DeviceListFull), 1);
    assert_eq!(observe(&tracker).devices().len(), MAX_DEVICES);
    assert!(tracker.register_device(&info(5)).is_ok(), "a known chip keeps its handle");
}

#[test]
fn sizes_beyond_reason() {
    let tracker = open();
    let device = device(&tracker);
    for size in [u64::MAX, MAX_BYTES + 1] {
        let alloc = tracker.alloc(device, Alloc::new(BufferType::Dram, 1, size));
        assert_eq!(alloc, Err(RecordError::SizeOutOfRange { bytes: size }));
    }
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, MAX_BYTES)).unwrap();
    assert!(tracker.alloc(device, Alloc::new(BufferType::Dram, 2, 1)).is_err());
    let huge = Kernel::new(1, KernelType::Application, CoreType::Tensix, u64::MAX, 2);
    assert!(tracker.kernel_load(device, huge).is_err());
    assert_eq!(anomalies(&tracker, Anomaly::SizeOutOfRange), 4);
    assert_eq!(counters(&tracker, device).dram_used(), MAX_BYTES);
}

#[test]
fn no_room_for_names() {
    let tracker = open_with(|builder| builder.name_bytes(64));
    let device = device(&tracker);
    let first = tracker.intern("a".repeat(60)).unwrap();
    assert_eq!(tracker.intern("another"), Err(RecordError::NamesFull));
    assert_eq!(anomalies(&tracker, Anomaly::NamesFull), 1);
    assert!(observe(&tracker).is_degraded());
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 1).name(first)).unwrap();
    let name = observe(&tracker).allocations().list[0].name.clone();
    assert_eq!(name.as_deref(), Some("a".repeat(60).as_str()));
}

#[test]
fn no_room_for_call_sites_loses_no_allocation() {
    let tracker = open_with(|builder| builder.name_bytes(8).backtrace(true));
    let device = device(&tracker);
    assert_eq!(tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 100)), Ok(()));
    assert_eq!(anomalies(&tracker, Anomaly::NamesFull), 1);
    assert!(observe(&tracker).is_degraded());
    assert_eq!(counters(&tracker, device).dram_used(), 100);
    tracker.free(device, 1).unwrap();
    assert_eq!(counters(&tracker, device).dram_used(), 0);
}

#[test]
fn beyond_the_live_capacity_totals_stay_exact() {
    let tracker = open_with(|builder| builder.live_capacity(8));
    let device = device(&tracker);
    for id in 0..20 {
        tracker.alloc(device, Alloc::new(BufferType::Dram, id, 10)).unwrap();
    }
    let full = observe(&tracker).allocations();
    assert_eq!((full.list.len(), full.unlisted), (8, 12));
    assert!(observe(&tracker).is_degraded());
    assert_eq!(counters(&tracker, device).dram_used(), 200);
    for id in 0..20 {
        tracker.free(device, id).unwrap();
    }
    let empty = observe(&tracker).allocations();
    assert_eq!((empty.list.len(), empty.unlisted), (0, 0));
    assert_eq!(counters(&tracker, device).dram_used(), 0);
}

#[test]
fn settings_out_of_range_are_refused() {
    let open =
        |slots| Tracker::builder().enabled(true).namespace(common::namespace()).ring_slots(slots).open();
    for slots in [0, 63, 100, 1 << 30] {
        let message = open(slots).unwrap_err().to_string();
        assert!(message.contains("TT_SHM_RING_SLOTS") && message.contains("power of two"), "{message}");
    }
    assert!(Tracker::builder().enabled(true).namespace("not/a/name").open().is_err());
}

#[test]
fn a_disabled_tracker_does_nothing_and_fails_nothing() {
    let tracker = Tracker::builder().enabled(false).namespace(common::namespace()).open().unwrap();
    let device = device(&tracker);
    tracker.free(device, 1).unwrap();
    tracker.free(device, 1).unwrap();
    assert!(!tracker.is_enabled() && tracker.segment_path().is_none() && tracker.counters(device).is_none());
}

/// A host's own kind of target, which reports something while it is asked for its devices.
struct Curious<'a, R>(&'a R, [Device; 1]);

impl<R: Record> Target for Curious<'_, R> {
    fn devices(&self) -> &[Device] {
        let _ = self.0.alloc(self.1[0], Alloc::new(BufferType::Dram, 77, 7));
        &self.1
    }
}

#[test]
fn a_target_may_report_while_it_is_asked() {
    let tracker = open().into_exclusive().unwrap();
    let device = device(&tracker);
    tracker.alloc(Curious(&tracker, [device]), Alloc::new(BufferType::Dram, 1, 100)).unwrap();
    assert_eq!(counters(&tracker, device).dram_used(), 107);
}
