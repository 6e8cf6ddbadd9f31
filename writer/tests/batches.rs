//! Many allocations in one call.

use crate::common::{counters, device, info, observe, open, open_with};
use shm_layout::MAX_BYTES;
use shm_layout::control::Anomaly;
use tt_shm_reader::EventKind;
use tt_shm_writer::{Alloc, BatchError, BufferType, NameId, Record, RecordError, Tracker};

fn dram(id: u64, size: u64) -> Alloc {
    Alloc::new(BufferType::Dram, id, size)
}

#[test]
fn a_batch_is_the_same_as_single_calls() {
    let (one_by_one, at_once) = (open(), open());
    let allocs: Vec<Alloc> = (0..3000).map(|id| dram(id, 10 + id).bytes_per_bank(32)).collect();
    let ids: Vec<u64> = (0..3000).step_by(2).collect();
    let devices = [1, 2].map(|chip| {
        at_once.register_device(&info(chip)).unwrap();
        one_by_one.register_device(&info(chip)).unwrap()
    });
    allocs.iter().for_each(|alloc| one_by_one.alloc(devices, *alloc).unwrap());
    ids.iter().for_each(|id| one_by_one.free(devices[0], *id).unwrap());
    at_once.alloc_many(devices, &allocs).unwrap();
    at_once.free_many(devices[0], &ids).unwrap();
    let events = |tracker: &Tracker| -> Vec<_> {
        let segment = observe(tracker);
        segment.follow_from_start().map(|event| (event.kind(), event.device, event.id)).collect()
    };
    assert_eq!(events(&at_once), events(&one_by_one));
    for device in devices {
        let [a, b] = [&at_once, &one_by_one].map(|tracker| counters(tracker, device));
        assert_eq!(
            (a.dram_used(), a.dram_requested(), a.position),
            (b.dram_used(), b.dram_requested(), b.position)
        );
    }
    // The times of a ring never step back.
    let times: Vec<u64> = observe(&at_once).follow_from_start().map(|event| event.time).collect();
    assert!(times.is_sorted() && times.first() < times.last());
}

#[test]
fn the_first_that_is_refused_ends_the_batch() {
    let tracker = open();
    let device = device(&tracker);
    let allocs = [dram(1, 10), dram(2, 10), dram(1, 99), dram(3, 10)];
    let stopped = tracker.alloc_many(device, &allocs).unwrap_err();
    assert!(matches!(
        stopped,
        BatchError { done: 2, error: RecordError::DoubleAlloc { id: 1, live_bytes: 10, .. } }
    ));
    assert_eq!(stopped.to_string(), format!("item 2 of a batch was refused: {}", stopped.error));
    assert_eq!(counters(&tracker, device).dram_used(), 20);
    // As the documentation says how to go on.
    tracker.alloc_many(device, &allocs[stopped.done + 1..]).unwrap();
    assert_eq!(counters(&tracker, device).dram_used(), 30);
    let stopped = tracker.alloc_many(device, &[dram(4, MAX_BYTES + 1), dram(5, 1)]).unwrap_err();
    assert_eq!(stopped, BatchError { done: 0, error: RecordError::SizeOutOfRange { bytes: MAX_BYTES + 1 } });

    let stopped = tracker.free_many(device, &[1, 1, 2]).unwrap_err();
    assert!(matches!(stopped, BatchError { done: 1, error: RecordError::UnmatchedFree { id: 1, .. } }));
    assert_eq!(counters(&tracker, device).dram_used(), 20);
    // Each refusal is counted once; what was not tried is not.
    let anomalies = observe(&tracker).anomalies();
    let counted = |anomaly: Anomaly| anomalies[anomaly as usize];
    assert_eq!(
        [Anomaly::DoubleAlloc, Anomaly::SizeOutOfRange, Anomaly::UnmatchedFree].map(counted),
        [1, 1, 1]
    );
    assert_eq!(anomalies.iter().sum::<u64>(), 3);
}

#[test]
fn each_of_a_batch_is_on_all_devices_or_on_none() {
    let tracker = open();
    let devices = [1, 2].map(|chip| tracker.register_device(&info(chip)).unwrap());
    tracker.alloc(devices[1], dram(2, 7)).unwrap();
    let stopped = tracker.alloc_many(devices, &[dram(1, 10), dram(2, 10), dram(3, 10)]).unwrap_err();
    assert!(matches!(
        stopped,
        BatchError { done: 1, error: RecordError::DoubleAlloc { device: 1, id: 2, .. } }
    ));
    let used = || devices.map(|device| counters(&tracker, device).dram_used());
    assert_eq!(used(), [10, 17]);
    let stopped = tracker.free_many(devices, &[1, 2]).unwrap_err();
    assert!(matches!(
        stopped,
        BatchError { done: 1, error: RecordError::UnmatchedFree { device: 0, id: 2, .. } }
    ));
    assert_eq!(used(), [0, 7]);
}

#[test]
fn an_empty_batch_is_nothing() {
    let tracker = open();
    let device = device(&tracker);
    tracker.alloc_many(device, &[]).unwrap();
    tracker.free_many(device, &[]).unwrap();
    tracker.alloc_many(&[][..], &[dram(1, 1)]).unwrap();
    assert_eq!(observe(&tracker).follow_from_start().count(), 0);
}

#[test]
fn every_handle_takes_batches() {
    let tracker = open();
    let device = device(&tracker);
    tracker.without_waiting().alloc_many(device, &[dram(1, 10)]).unwrap();
    let tracker = tracker.into_exclusive().unwrap();
    tracker.alloc_many(device, &[dram(2, 10)]).unwrap();
    tracker.free_many(device, &[1, 2]).unwrap();
    assert_eq!(
        observe(&tracker).follow_from_start().filter(|e| e.kind() == Some(EventKind::Free)).count(),
        2
    );
    tracker.close();
    tracker.alloc_many(device, &[dram(2, 10), dram(2, 10)]).unwrap();
    let disabled = Tracker::disabled();
    disabled.alloc_many(device, &[dram(2, 10), dram(2, 10)]).unwrap();
    disabled.free_many(device, &[9]).unwrap();
}

#[test]
fn a_batch_has_the_call_site_of_its_call() {
    let tracker = open_with(|builder| builder.backtrace(true));
    let device = device(&tracker);
    let own = tracker.intern("its own site").unwrap();
    tracker.alloc_many(device, &[dram(1, 1), dram(2, 1).site(own), dram(3, 1)]).unwrap();
    let sites: Vec<_> = observe(&tracker).allocations().list.iter().map(|a| a.site.clone()).collect();
    assert_eq!(sites[1].as_deref(), Some("its own site"));
    assert!(sites[0].is_some() && sites[0] == sites[2]);
    // Without the setting there is none.
    let tracker = open();
    tracker.alloc_many(crate::common::device(&tracker), &[dram(1, 1)]).unwrap();
    assert_eq!(observe(&tracker).allocations().list[0].row.site, NameId::NONE.raw());
}
