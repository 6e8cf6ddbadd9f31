//! Following events, including those of a process that is faster than its follower.

use crate::common::segment::{SLOTS, Writer};
use tt_shm_reader::{Class, EventKind};

fn positions(follow: &mut tt_shm_reader::Follow<'_>) -> Vec<u64> {
    follow.map(|event| event.stamp).collect()
}

#[test]
fn events_arrive_once_and_in_order() {
    let mut writer = Writer::new(1);
    writer.alloc(0, Class::Dram, 1, 10);
    let segment = writer.open();
    let mut follow = segment.follow();
    assert_eq!(follow.next(), None, "what was before is not followed");
    assert_eq!(follow.position(), 1);

    let alloc = writer.alloc(0, Class::Dram, 2, 20);
    let free = writer.free(0, Class::Dram, 2, 20);
    assert_eq!(free.kind(), Some(EventKind::Free));
    assert_eq!(follow.next(), Some(alloc));
    assert_eq!(follow.next(), Some(free));
    assert_eq!(follow.next(), None);
    let again = writer.alloc(0, Class::Dram, 2, 30);
    for event in &mut follow {
        assert_eq!(event, again, "goes on after it was idle");
    }
    assert_eq!((follow.position(), follow.missed()), (4, 0));
}

#[test]
fn an_event_of_a_writer_stopped_before_its_head_is_seen() {
    let mut writer = Writer::new(1);
    let segment = writer.open();
    let mut follow = segment.follow();
    let event = writer.stamp(tt_shm_reader::Event::new(EventKind::Marker, tt_shm_reader::NO_DEVICE));
    writer.words().write_slot(event.to_words());
    assert_eq!(follow.next(), Some(event));
    assert_eq!(segment.follow().next(), Some(event), "not complete yet, so it is new");
}

#[test]
fn who_is_lapped_counts_what_was_missed() {
    let mut writer = Writer::new(1);
    let segment = writer.open();
    let mut follow = segment.follow();
    for round in 1..=3_u64 {
        let before = (follow.position(), follow.missed());
        for id in 0..200 {
            writer.alloc(0, Class::Dram, id, 1);
        }
        let read = positions(&mut follow);
        let missed = follow.missed() - before.1;
        assert_eq!(read.len() as u64 + missed, 200, "nothing is lost without being counted");
        assert!(read.is_sorted_by(|a, b| a + 1 == *b));
        assert_eq!((read.last(), follow.position()), (Some(&(200 * round)), 200 * round));
        assert_eq!(read.len() as u64, SLOTS / 2, "half of the ring is kept as a lead");
    }
}

#[test]
fn not_lapped_is_nothing_missed() {
    let mut writer = Writer::new(1);
    let segment = writer.open();
    let mut follow = segment.follow();
    for _ in 0..10 {
        for id in 0..SLOTS {
            writer.alloc(0, Class::Dram, id, 1);
        }
        assert_eq!(positions(&mut follow).len() as u64, SLOTS);
    }
    assert_eq!(follow.missed(), 0);
}

#[test]
fn from_the_start_is_from_the_first_that_is_left() {
    let mut writer = Writer::new(1);
    let segment = writer.open();
    assert_eq!(segment.follow_from_start().next(), None);
    for id in 0..5 {
        writer.alloc(0, Class::Dram, id, 1);
    }
    let mut follow = segment.follow_from_start();
    assert_eq!((positions(&mut follow), follow.missed()), (vec![1, 2, 3, 4, 5], 0));

    for id in 5..200 {
        writer.alloc(0, Class::Dram, id, 1);
    }
    let mut follow = segment.follow_from_start();
    assert_eq!(follow.missed(), 200 - SLOTS);
    assert_eq!(positions(&mut follow), (201 - SLOTS..=200).collect::<Vec<_>>());

    // The next event has begun to overwrite the oldest slot.
    let words = writer.words();
    words.slot(201 - SLOTS).unwrap()[0].store(0, std::sync::atomic::Ordering::Relaxed);
    let mut follow = segment.follow_from_start();
    assert_eq!(follow.missed(), 201 - SLOTS);
    assert_eq!(positions(&mut follow).len() as u64, SLOTS - 1);
}
