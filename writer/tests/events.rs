//! Everything that can be reported, as an observer sees it in the ring and in the counters.

use crate::common::{counters, device, info, observe, open, open_with};
use tt_shm_reader::{Event, EventKind, UNKNOWN, flags};
use tt_shm_writer::{
    Alloc, BufferType, Class, ExclusiveTracker, FailedAlloc, Kernel, KernelType, MarkerPhase, Record,
    RecordError, Tracker,
};

fn events(tracker: &impl Record) -> Vec<Event> {
    observe(tracker).follow_from_start().collect()
}

#[test]
fn a_tracker_can_be_shared_and_an_exclusive_one_moved() {
    const fn shared<T: Send + Sync + Clone>() {}
    const fn moved<T: Send>() {}
    const { shared::<Tracker>() };
    const { moved::<ExclusiveTracker>() };
}

#[test]
fn an_allocation_says_all_that_the_host_knows() {
    let tracker = open();
    let device = device(&tracker);
    let (name, site) = (tracker.intern("weights").unwrap(), tracker.intern("load()").unwrap());
    let ranges = tracker.intern("(0,0)-(7,7)").unwrap();
    let alloc = Alloc::new(BufferType::L1, 7, 4000).address(0x1000).cores(64).bytes_per_bank(64);
    tracker.alloc(device, alloc.name(name).site(site).core_ranges(ranges)).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 8, 1)).unwrap();
    let list = observe(&tracker).allocations();
    let known = &list.list[0];
    assert_eq!((known.row.address, known.row.cores), (0x1000, 64));
    assert_eq!((known.row.size, known.row.requested()), (64 * 64, 4000));
    assert!(!known.row.is_requested_basis());
    assert_eq!(observe(&tracker).name(known.row.place).as_deref(), Some("(0,0)-(7,7)"));
    assert_eq!((known.name.as_deref(), known.site.as_deref()), (Some("weights"), Some("load()")));
    let unknown = &list.list[1];
    assert_eq!((unknown.row.address, unknown.row.cores, unknown.row.place), (UNKNOWN, 0, 0));
    assert_eq!((unknown.row.size, unknown.row.requested()), (1, 1));
    assert!(unknown.row.is_requested_basis());
    assert_eq!((&unknown.name, &unknown.site), (&None, &None));
}

#[test]
fn a_free_says_what_was_freed() {
    let tracker = open();
    let device = device(&tracker);
    tracker.alloc(device, Alloc::new(BufferType::Trace, 7, 4000).occupied(4096)).unwrap();
    tracker.free(device, 7).unwrap();
    let events = events(&tracker);
    let (alloc, free) = (events[0], events[1]);
    assert_eq!(free.kind(), Some(EventKind::Free));
    assert_eq!((free.class(), free.size, free.row), (Some(Class::Trace), 4096, alloc.row));
    assert_eq!((free.requested(), alloc.requested()), (4000, 4000));
    assert!(free.time >= alloc.time && alloc.time > 0);
}

#[test]
fn a_free_says_whether_the_device_dropped_it() {
    let tracker = open();
    let device = device(&tracker);
    (1..3).for_each(|id| tracker.alloc(device, Alloc::new(BufferType::Dram, id, 100)).unwrap());
    tracker.free(device, 1).unwrap();
    tracker.free_dropped(device, 2).unwrap();
    let said: Vec<_> = events(&tracker).iter().map(|event| event.flags).collect();
    let basis = flags::REQUESTED;
    assert_eq!(said, [basis, basis, basis, basis | flags::DROPPED]);
    assert_eq!(counters(&tracker, device).dram_used(), 0);
    assert!(matches!(tracker.free_dropped(device, 2), Err(RecordError::UnmatchedFree { id: 2, .. })));
}

#[test]
fn failures_gauges_and_devices_are_counted() {
    let tracker = open();
    let device = device(&tracker);
    tracker.device_open(device).unwrap();
    let failed = FailedAlloc::new(Class::L1, 5000).needed_per_bank(80, 64).free_per_bank(4000, 300);
    tracker.alloc_failed(device, failed).unwrap();
    tracker.alloc_failed(device, FailedAlloc::new(Class::Dram, 7)).unwrap();
    tracker.kernel_ring(device, 70_000, 1000, 3).unwrap();
    let open = counters(&tracker, device);
    assert_eq!((open.open, open.failed_allocs), (1, 2));
    assert!(open.last_failed_time > 0);
    assert_eq!(
        (open.kernel_ring_total_bytes, open.kernel_ring_used_bytes, open.kernel_ring_programs),
        (70_000, 1000, 3)
    );
    tracker.device_close(device).unwrap();
    assert_eq!(counters(&tracker, device).open, 0);
    let [failed, unknown] = events(&tracker)[1..3] else { panic!("two failures") };
    assert_eq!((failed.kind(), failed.class()), (Some(EventKind::AllocFailed), Some(Class::L1)));
    assert_eq!((failed.size, failed.address, failed.aux), (5000, 4000, 300));
    assert_eq!((failed.id, failed.cores, failed.has(flags::PER_BANK)), (80, 64, true));
    assert_eq!((unknown.id, unknown.address, unknown.aux, unknown.cores), (UNKNOWN, UNKNOWN, UNKNOWN, 0));
}

#[test]
fn steps_are_marked_with_their_names() {
    let tracker = open();
    let step = tracker.intern("step").unwrap();
    tracker.marker(MarkerPhase::Begin, 3, step).unwrap();
    tracker.marker(MarkerPhase::End, 3, step).unwrap();
    let events = events(&tracker);
    let phases: Vec<_> = events.iter().map(|event| MarkerPhase::from_code(event.class)).collect();
    assert_eq!(phases, [Some(MarkerPhase::Begin), Some(MarkerPhase::End)]);
    assert_eq!(observe(&tracker).name(events[0].name).as_deref(), Some("step"));
    assert_eq!(events[0].id, 3);
}

#[test]
fn a_peak_can_be_counted_anew() {
    let tracker = open();
    let device = device(&tracker);
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 1000)).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 2, 10)).unwrap();
    tracker.free(device, 1).unwrap();
    assert_eq!(counters(&tracker, device).dram_peak_bytes, 1010);
    tracker.reset_peaks(device).unwrap();
    let reset = counters(&tracker, device);
    assert_eq!((reset.dram_peak_bytes, reset.class(Class::Dram).peak_bytes), (10, 10));
    tracker.alloc(device, Alloc::new(BufferType::Trace, 3, 5)).unwrap();
    assert_eq!(counters(&tracker, device).dram_peak_bytes, 15);
}

#[test]
fn an_exclusive_tracker_reports_the_same() {
    let tracker = open();
    let clone = tracker.clone();
    let tracker = tracker.into_exclusive().expect_err("there is a clone");
    drop(clone);
    let exclusive = tracker.into_exclusive().expect("the only one");
    let device = device(&exclusive);
    for id in 0..1000 {
        exclusive.alloc(device, Alloc::new(BufferType::L1, id, id)).unwrap();
    }
    (0..500).for_each(|id| exclusive.free(device, id).unwrap());
    let kernel = Kernel::new(1, KernelType::Application, Default::default(), 10, 2);
    exclusive.kernel_load(device, kernel).unwrap();
    exclusive.dispatch(device, 1).unwrap();
    let counters = counters(&exclusive, device);
    assert_eq!((counters.l1_used(), counters.kernels_resident()), ((500..1000).sum::<u64>(), 20));
    assert_eq!(observe(&exclusive).allocations().list.len(), 501);
}

#[test]
fn a_device_says_what_the_host_knows_of_it() {
    let tracker = open();
    let device = tracker.register_device(&info(0xabc)).unwrap();
    assert_eq!(tracker.register_device(&info(0xabc)).unwrap(), device);
    let entries = observe(&tracker).devices();
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].chip_id, entries[0].dram_total()), (0xabc, Some(12 << 30)));
    assert_eq!(entries[0].l1_total(), Some(64 * (1432 << 10)));
    assert_eq!((entries[0].l1_reserved(), entries[0].dram_reserved()), (Some(64 * (32 << 10)), Some(0)));
    assert_eq!((entries[0].pci_address(), entries[0].board_name()), (None, None));
}

#[test]
#[inline(never)]
fn backtraces_name_the_function_that_allocated() {
    let tracker = open_with(|builder| builder.backtrace(true));
    let device = device(&tracker);
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 1)).unwrap();
    let site = observe(&tracker).allocations().list[0].site.clone().expect("a call site");
    assert!(site.contains("backtraces_name_the_function_that_allocated"), "{site}");
    assert!(!site.contains("tt_shm_writer::"), "{site}");
}

#[test]
fn names_are_interned_once_and_cut_if_too_long() {
    let tracker = open();
    let name = tracker.intern("ä").unwrap();
    assert_eq!(tracker.intern("ä").unwrap(), name);
    let long = "ä".repeat(1000);
    let cut = tracker.intern(&long).unwrap();
    let device = device(&tracker);
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 1).name(cut)).unwrap();
    let seen = observe(&tracker).allocations().list[0].name.clone().unwrap();
    assert_eq!(&*seen, "ä".repeat(512));
}
