//! Names that come after their allocations, and lists that are complete again.

use crate::common::{counters, device, observe, open, open_with};
use shm_layout::MAX_NAME_LEN;
use tt_shm_reader::EventKind;
use tt_shm_writer::{
    Alloc, Allocation, BufferType, CircularBuffer, CoreType, Kernel, KernelType, NameId, Record, RecordError,
};

#[test]
fn a_name_may_come_after_its_allocation() {
    let tracker = open();
    let device = device(&tracker);
    let [old, new, site] = ["old", "weights", "load()"].map(|name| tracker.intern(name).unwrap());
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 100).name(old).site(site)).unwrap();
    tracker.cb_alloc(device, CircularBuffer::new(3, 1, 10, 1)).unwrap();
    tracker.kernel_load(device, Kernel::new(1, KernelType::Application, CoreType::Tensix, 5, 1)).unwrap();
    let before = counters(&tracker, device);
    tracker.name(device, Allocation::Buffer(1), new, NameId::NONE).unwrap();
    tracker.name(device, Allocation::CircularBuffer { program: 3, id: 1 }, new, site).unwrap();
    tracker.name(device, Allocation::Kernel(1), new, NameId::NONE).unwrap();
    let segment = observe(&tracker);
    let list = segment.allocations();
    let names: Vec<_> = list.list.iter().map(|a| (a.name.as_deref(), a.site.as_deref())).collect();
    let weights = Some("weights");
    assert!(list.exact);
    assert_eq!(names, [(weights, Some("load()")), (weights, Some("load()")), (weights, None)]);
    // The rows are of the events that allocated, and no figure has changed.
    assert_eq!(list.list.iter().map(|a| a.row.stamp).collect::<Vec<_>>(), [1, 2, 3]);
    let after = counters(&tracker, device);
    assert_eq!((after.classes, after.position), (before.classes, 6));
    let named: Vec<_> = segment.follow_from_start().skip(3).map(|event| (event.kind(), event.row)).collect();
    let row = |place: usize| list.list[place].row.row;
    let kind = Some(EventKind::Name);
    assert_eq!(named, [(kind, row(0)), (kind, row(1)), (kind, row(2))]);
    tracker.free(device, 1).unwrap();
    let gone = tracker.name(device, Allocation::Buffer(1), new, NameId::NONE);
    assert!(matches!(gone, Err(RecordError::UnmatchedFree { what: "buffer", id: 1, .. })));
}

#[test]
fn names_are_bytes() {
    let tracker = open();
    let device = device(&tracker);
    let latin: &[u8] = b"caf\xe9 \0 cr\xe8me";
    let names = [tracker.intern(latin).unwrap(), tracker.intern(String::from("caf\u{e9}")).unwrap()];
    assert_eq!([tracker.intern(latin), tracker.intern("caf\u{e9}".as_bytes())], names.map(Ok));
    assert_eq!((tracker.intern(""), tracker.intern([0_u8; 0])), (Ok(NameId::NONE), Ok(NameId::NONE)));
    for (id, name) in names.into_iter().enumerate() {
        tracker.alloc(device, Alloc::new(BufferType::Dram, id as u64, 1).name(name)).unwrap();
    }
    let list = observe(&tracker).allocations().list;
    assert_eq!(list[0].name.as_deref(), Some("caf\u{fffd} \0 cr\u{fffd}me"));
    assert_eq!(list[1].name.as_deref(), Some("caf\u{e9}"));
}

#[test]
fn a_long_name_is_cut_and_found_again() {
    let tracker = open();
    let long = format!("{}\u{20ac}\u{20ac}", "a".repeat(MAX_NAME_LEN - 1));
    let name = tracker.intern(&long).unwrap();
    assert_eq!(observe(&tracker).name(name.raw()), Some("a".repeat(MAX_NAME_LEN - 1)));
    assert_eq!(tracker.intern(&long), Ok(name));
    assert_eq!(tracker.intern("a".repeat(MAX_NAME_LEN - 1)), Ok(name));
    let bytes = tracker.intern(vec![0xff; 3 * MAX_NAME_LEN]).unwrap();
    assert_eq!(observe(&tracker).name(bytes.raw()), Some("\u{fffd}".repeat(MAX_NAME_LEN)));
}

#[test]
fn what_has_no_row_may_be_named_all_the_same() {
    let tracker = open_with(|builder| builder.live_capacity(1));
    let device = device(&tracker);
    let name = tracker.intern("weights").unwrap();
    (0..2).for_each(|id| tracker.alloc(device, Alloc::new(BufferType::Dram, id, 100)).unwrap());
    tracker.name(device, Allocation::Buffer(1), name, NameId::NONE).unwrap();
    let list = observe(&tracker).allocations();
    assert_eq!((list.list.len(), list.unlisted, list.list[0].name.as_deref()), (1, 1, None));
    assert_eq!(observe(&tracker).follow_from_start().last().unwrap().name, 1);
    tracker.free(device, 1).unwrap();
    assert_eq!(counters(&tracker, device).dram_used(), 100);
}

#[test]
fn lists_that_are_complete_again_are_not_called_degraded() {
    let tracker = open_with(|builder| builder.live_capacity(8).name_bytes(64));
    let device = device(&tracker);
    let degraded = || observe(&tracker).is_degraded();
    (0..9).for_each(|id| tracker.alloc(device, Alloc::new(BufferType::Dram, id, 10)).unwrap());
    assert!(degraded(), "one has no row");
    tracker.free(device, 8).unwrap();
    assert!(!degraded(), "all that live have rows");
    // A program that was dispatched needs two rows.
    tracker.free(device, 7).unwrap();
    tracker.cb_alloc(device, CircularBuffer::new(1, 1, 10, 1)).unwrap();
    tracker.dispatch(device, 1).unwrap();
    assert!(degraded(), "its dispatches are in no list");
    tracker.program_end(device, 1).unwrap();
    assert!(!degraded());
    // A name that did not fit, and one that did.
    tracker.intern("a".repeat(100)).unwrap_err();
    assert!(degraded());
    tracker.intern("b").unwrap();
    assert!(!degraded());
}
