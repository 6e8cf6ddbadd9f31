//! Liveness, flags, counters and names of a segment.

use std::mem::offset_of;
use std::sync::atomic::Ordering;

use crate::common::segment::{SLOTS, Writer};
use shm_layout::control::{self, Anomaly, state};
use tt_shm_reader::{
    Class, ClockKind, Counters, Event, EventKind, ReadError, Segment, SegmentHeader, monotonic_ns,
};

#[test]
fn the_lock_tells_who_lives() {
    let mut writer = Writer::new(1);
    let segment = writer.open();
    assert!(segment.is_alive().unwrap());
    std::fs::remove_file(writer.path()).unwrap();
    assert!(segment.is_alive().unwrap(), "unlinked is not dead");
    writer.kill();
    assert!(!segment.is_alive().unwrap());
}

#[test]
fn a_dead_process_is_still_read() {
    let mut writer = Writer::new(1);
    let segment = writer.open();
    writer.alloc(0, Class::Dram, 1, 100);
    let truth = writer.truth();
    writer.kill();
    assert_eq!(segment.counters().unwrap().counters, truth);
    let reopened = Segment::open(writer.path()).unwrap();
    assert_eq!(reopened.allocations().list.len(), 1);
}

#[test]
fn flags_and_anomalies() {
    let writer = Writer::new(1);
    let segment = writer.open();
    assert!(!segment.is_closed() && !segment.is_degraded());
    assert_eq!((segment.anomalies(), segment.unlisted()), ([0; Anomaly::ALL.len()], 0));
    writer.set(control::STATE, state::DEGRADED);
    assert!(!segment.is_closed() && segment.is_degraded());
    writer.set(control::STATE, state::CLOSED);
    assert!(segment.is_closed() && !segment.is_degraded());
    writer.set(control::ANOMALIES + Anomaly::DoubleAlloc as usize, 3);
    writer.set(control::UNLISTED, 9);
    assert_eq!(segment.anomalies()[Anomaly::DoubleAlloc as usize], 3);
    assert_eq!(segment.anomalies().iter().sum::<u64>(), 3);
    assert_eq!(segment.unlisted(), 9);
}

#[test]
fn counters_are_those_of_the_process() {
    let mut writer = Writer::new(2);
    let segment = writer.open();
    // Several times around the ring.
    for id in 0..4 * SLOTS {
        writer.alloc((id % 2) as u8, Class::Dram, id, 100 + id);
        if id % 3 == 0 {
            writer.free((id % 2) as u8, Class::Dram, id, 100 + id);
        }
        let snapshot = segment.counters().unwrap();
        assert_eq!((snapshot.position, snapshot.counters), (writer.head, writer.truth()));
    }
}

#[test]
fn an_event_whose_writer_was_stopped_behind_the_commit_point_counts() {
    let mut writer = Writer::new(1);
    let segment = writer.open();
    writer.alloc(0, Class::L1, 1, 64);
    let event =
        Event { class: Class::L1 as u8, size: 36, aux: 36, row: 2, ..Event::new(EventKind::Alloc, 0) };
    let event = writer.stamp(event);
    writer.words().write_slot(event.to_words());
    let snapshot = segment.counters().unwrap();
    assert_eq!((snapshot.position, snapshot.counters[0].l1_used()), (2, 100));
    assert_eq!(segment.allocations().list.len(), 2);
}

#[test]
fn impossible_figures_are_refused() {
    let mut writer = Writer::new(2);
    let segment = writer.open();
    writer.alloc(1, Class::Dram, 1, 100);
    let words = writer.words();
    // Every word of device 1's counters: whichever copy is read, its counts are beyond all bounds.
    for word in &words.counters[1][16..] {
        word.store(u64::MAX - 1, Ordering::Relaxed);
    }
    let error = segment.counters().unwrap_err();
    assert!(matches!(&error, ReadError::ImplausibleCounters { device: 1, .. }), "{error}");
    assert!(error.to_string().contains(segment.file_name()));
}

#[test]
fn impossible_counters_are_refused_before_they_are_added_to() {
    let mut writer = Writer::new(1);
    let segment = writer.open();
    let dispatches = offset_of!(Counters, dispatches) / 8;
    for copy in writer.words().counters[0][16..].chunks(size_of::<Counters>() / 8).take(2) {
        copy[dispatches].store(u64::MAX, Ordering::Relaxed);
    }
    // One more than that: it overflows if it is counted.
    let event = Event { address: 1, aux: 0, ..Event::new(EventKind::KernelDispatch, 0) };
    let event = writer.stamp(event);
    writer.words().write_slot(event.to_words());
    assert!(matches!(segment.counters(), Err(ReadError::ImplausibleCounters { device: 0, .. })));
}

/// An event of a device after the last one listed, and of one that no segment can list.
#[test]
fn events_of_devices_that_are_not_listed_are_refused() {
    for (device, listable) in [(1, true), (200, false)] {
        let mut writer = Writer::new(1);
        let segment = writer.open();
        let alloc =
            Event { class: Class::Dram as u8, size: 1, aux: 1, ..Event::new(EventKind::Alloc, device) };
        let alloc = writer.stamp(alloc);
        writer.words().write_slot(alloc.to_words());
        match segment.counters() {
            Err(ReadError::UnlistedDevice { listed: 1, .. }) => assert!(listable),
            Err(ReadError::ImplausibleEvent { cause, .. }) => assert!(!listable && cause.position == 1),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn impossible_events_are_refused() {
    let mut writer = Writer::new(1);
    let segment = writer.open();
    let free = Event { class: Class::Dram as u8, size: 1, ..Event::new(EventKind::Free, 0) };
    let free = writer.stamp(free);
    writer.words().write_slot(free.to_words());
    assert!(
        matches!(segment.counters(), Err(ReadError::ImplausibleEvent { cause, .. }) if cause.position == 1)
    );
}

#[test]
fn a_head_that_cannot_be_caught_up_with_is_an_error_and_no_hang() {
    let writer = Writer::new(1);
    let segment = writer.open();
    writer.set(control::HEAD, 1 << 40);
    for slot in writer.words().ring {
        slot[0].store(u64::MAX, Ordering::Relaxed);
    }
    assert!(matches!(segment.counters(), Err(ReadError::Busy { .. })));
    assert!(!segment.allocations().exact);
    assert_eq!(segment.follow().take(100_000).count(), 0);
    // The last possible position: its event would be the next one forever.
    writer.set(control::HEAD, u64::MAX - 1);
    assert!(segment.follow().take(100_000).count() < 100_000);
}

#[test]
fn extreme_control_words_do_not_panic() {
    let writer = Writer::new(3);
    let segment = writer.open();
    for word in writer.words().control {
        word.store(u64::MAX, Ordering::Relaxed);
    }
    assert_eq!(segment.devices().len(), tt_shm_reader::MAX_DEVICES);
    let _ = segment.counters();
    let _ = segment.allocations();
    assert_eq!(segment.follow().count(), 0);
    assert_eq!(segment.follow_from_start().count(), 0);
    assert_eq!(segment.name(u16::MAX), None);
    assert!(segment.is_lost(), "nothing is behind most of what it counts");
}

#[test]
fn ticks_become_times() {
    let writer = Writer::new(1);
    let segment = writer.open();
    let (before, clock, after) = (monotonic_ns(), segment.calibration(), monotonic_ns());
    assert_eq!(clock.kind, ClockKind::Monotonic);
    let SegmentHeader { anchor_ticks, anchor_monotonic_ns, anchor_realtime_ns, .. } = writer.header;
    let first = clock.first;
    assert_eq!(
        (first.ticks, first.monotonic_ns, first.realtime_ns),
        (anchor_ticks, anchor_monotonic_ns, anchor_realtime_ns)
    );
    assert!((before..=after).contains(&clock.second.monotonic_ns), "one taken now");
}

#[test]
fn names_are_read_at_any_offset() {
    let mut writer = Writer::new(1);
    let texts = ["matmul", "", "größe", "a name that is longer than one word", "x"];
    let ids = texts.map(|text| writer.name(text.as_bytes()));
    let segment = writer.open();
    for (id, text) in ids.into_iter().zip(texts) {
        assert_eq!(segment.name(id).as_deref(), Some(text));
        assert_eq!(segment.name_bytes_of(id).as_deref(), Some(text.as_bytes()));
    }
    assert_eq!(segment.name(0), None);
    assert_eq!(segment.name(ids[4] + 1), None, "not given out");
}

#[test]
fn hostile_names() {
    let mut writer = Writer::new(1);
    let broken = writer.name(b"a\xffb");
    let area = 8 * writer.header.name_bytes.capacity;
    let last = writer.index_name((area - 1) << 32 | 1);
    let hostile = [
        area << 32 | 1,
        (area - 1) << 32 | 2,
        u64::from(u32::MAX) << 32 | 1,
        u64::from(u32::MAX),
        1025,
        u64::MAX,
    ];
    let hostile = hostile.map(|word| writer.index_name(word));
    let longest = writer.index_name(1024);
    let segment = writer.open();
    assert_eq!(segment.name_bytes_of(broken).as_deref(), Some(&b"a\xffb"[..]), "as it was given");
    assert_eq!(segment.name(broken).as_deref(), Some("a\u{fffd}b"));
    assert_eq!(segment.name(last).as_deref(), Some("\0"), "the last byte is still inside");
    assert_eq!(hostile.map(|id| segment.name(id)), [const { None }; 6]);
    assert!(segment.name(longest).is_some_and(|name| name.len() >= 1024));
}
