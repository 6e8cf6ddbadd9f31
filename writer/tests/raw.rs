//! Numbers of devices and names that came by way of another language, right or wrong.

use crate::common::{device, info, observe, open};
use tt_shm_writer::{
    Alloc, Allocation, BufferType, CircularBuffer, Class, CoreType, Device, FailedAlloc, Kernel, KernelType,
    Launch, NameId, ProgramBinaryStatus, Record, RecordError, Target,
};

#[test]
fn a_device_and_a_name_are_their_numbers() {
    let tracker = open();
    device(&tracker);
    let second = tracker.register_device(&info(2)).unwrap();
    let name = tracker.intern("weights").unwrap();
    assert_eq!((second.raw(), name.raw(), NameId::NONE.raw()), (1, 1, 0));
    let (device, name) = (Device::from_raw(second.raw()), NameId::from_raw(name.raw()));
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 100).name(name)).unwrap();
    let list = observe(&tracker).allocations();
    assert_eq!((list.list[0].row.device, list.list[0].name.as_deref()), (1, Some("weights")));
}

/// Every call that takes devices, on these.
fn all_calls(tracker: &impl Record, target: &[Device]) -> Vec<Result<(), RecordError>> {
    let alloc = Alloc::new(BufferType::Dram, 7, 100).bytes_per_bank(64);
    let kernel = [Kernel::new(7, KernelType::Application, CoreType::Tensix, 5, 1)];
    let none = NameId::NONE;
    vec![
        tracker.alloc(target, alloc),
        tracker.alloc_guard(target, alloc).map(drop),
        tracker.alloc_many(target, &[alloc]).map_err(|stopped| stopped.error),
        tracker.free(target, 7),
        tracker.free_sized(target, 7, 100),
        tracker.free_dropped(target, 7),
        tracker.free_many(target, &[7]).map_err(|stopped| stopped.error),
        tracker.name(target, Allocation::Buffer(7), none, none),
        tracker.name_if_live(target, Allocation::Kernel(7), none),
        tracker.cb_alloc(target, CircularBuffer::new(7, 7, 10, 1)),
        tracker.cb_free(target, 7, 7, None),
        tracker.kernel_load(target, kernel[0]).map(drop),
        tracker.kernel_unload(target, 7, None),
        tracker.launch(target, Launch::new(7, &kernel, ProgramBinaryStatus::NotSent)),
        tracker.dispatch(target, 7),
        tracker.program_end(target, 7),
        tracker.alloc_failed(target, FailedAlloc::new(Class::L1, 10)),
        tracker.reset_peaks(target),
        tracker.device_open(target),
        tracker.device_close(target),
        tracker.kernel_ring(target, 3, 2, 1),
    ]
}

#[test]
fn a_number_that_was_never_given_out_is_an_unknown_device() {
    let tracker = open();
    let known = device(&tracker);
    // 255 is what events without a device have.
    for number in [1, 2, 127, 128, 254, 255] {
        let unknown = Device::from_raw(number);
        for result in all_calls(&tracker, &[unknown]) {
            assert_eq!(result, Err(RecordError::UnknownDevice { device: number }));
        }
        assert_eq!(tracker.counters(unknown), None);
        // With one that is known, nothing is recorded there either. (What is not live there is refused for that.)
        assert!(all_calls(&tracker, &[known, unknown]).iter().all(Result::is_err));
        assert!(all_calls(&tracker, &[unknown, known]).iter().all(Result::is_err));
    }
    let segment = observe(&tracker);
    assert_eq!(tracker.counters(known).unwrap().position, 0);
    assert_eq!((segment.follow_from_start().count(), segment.allocations().list.len()), (0, 0));
    // A marker has no device.
    tracker.marker(tt_shm_writer::MarkerPhase::Instant, 1, NameId::NONE).unwrap();
    assert_eq!(segment.follow_from_start().count(), 1);
}

#[test]
fn without_devices_nothing_is_recorded_and_nothing_refused() {
    let tracker = open();
    device(&tracker);
    assert!(all_calls(&tracker, &[]).iter().all(Result::is_ok));
    assert_eq!(observe(&tracker).follow_from_start().count(), 0);
    assert_eq!(observe(&tracker).anomalies().iter().sum::<u64>(), 0);
}

#[test]
fn a_slice_is_a_mesh() {
    let tracker = open();
    let devices = [1, 2, 3].map(|chip| tracker.register_device(&info(chip)).unwrap());
    let used = || devices.map(|device| tracker.counters(device).unwrap().dram_used());
    let alloc = |id| Alloc::new(BufferType::Dram, id, 10);
    tracker.alloc(&devices[..2], alloc(1)).unwrap();
    tracker.alloc(devices, alloc(2)).unwrap();
    assert_eq!(used(), [20, 20, 10]);
    // One that is named twice is meant once, however long the slice is.
    let [first, second, third] = devices;
    tracker.alloc(&[third, first, third, third][..], alloc(3)).unwrap();
    tracker.alloc(&vec![second; 100_000][..], alloc(4)).unwrap();
    assert_eq!(used(), [30, 30, 20]);
    // One of them refuses.
    tracker.free(&devices[..], 1).unwrap_err();
    tracker.alloc(&devices[..], alloc(3)).unwrap_err();
    assert_eq!(used(), [30, 30, 20]);
    assert_eq!(devices[..2].devices(), &devices[..2]);
}

#[test]
fn a_name_that_was_never_given_out_is_none() {
    let tracker = open();
    let device = device(&tracker);
    for (id, number) in [1, 2, u16::MAX].into_iter().enumerate() {
        let name = NameId::from_raw(number);
        let alloc = Alloc::new(BufferType::Dram, id as u64, 10).name(name).site(name).core_ranges(name);
        tracker.alloc(device, alloc).unwrap();
    }
    let segment = observe(&tracker);
    assert!(segment.allocations().list.iter().all(|found| found.name.is_none() && found.site.is_none()));
    assert_eq!(tracker.counters(device).unwrap().dram_used(), 30);
    // What has the number from then on.
    assert_eq!(tracker.intern("later").unwrap().raw(), 1);
    assert_eq!(segment.allocations().list[0].name.as_deref(), Some("later"));
}

#[test]
fn codes_of_binaries_are_tt_metals() {
    use ProgramBinaryStatus::{Committed, InFlight, NotSent};
    let codes = [0, 1, 2, 3, 255].map(ProgramBinaryStatus::from_code);
    assert_eq!(codes, [Some(NotSent), Some(InFlight), Some(Committed), None, None]);
}
