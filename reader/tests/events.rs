//! Following events, including those of a process that is faster than its follower.

use std::sync::Arc;

use crate::common::segment::{SLOTS, Writer};
use tt_shm_reader::{Class, Event, EventKind, Follower, ReadFrom, Segment};

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

/// Reads everything there is from a position, in buffers of `len`.
fn read_all(segment: &Segment, mut position: u64, len: usize) -> (Vec<u64>, u64, u64) {
    let (mut read, mut missed) = (Vec::new(), 0);
    let mut events = vec![Event::NONE; len];
    loop {
        let got = segment.read_from(position, &mut events);
        assert_eq!(got.next, position + got.missed + got.read as u64, "{got:?}");
        assert!(events[..got.read].is_sorted_by(|a, b| a.stamp + 1 == b.stamp), "no gap within a buffer");
        read.extend(events[..got.read].iter().map(|event| event.stamp));
        (missed, position) = (missed + got.missed, got.next);
        if got.read == 0 {
            return (read, missed, position);
        }
    }
}

#[test]
fn a_buffer_is_filled_from_a_position_on() {
    let mut writer = Writer::new(1);
    let segment = writer.open();
    assert_eq!((segment.head(), read_all(&segment, 0, 4)), (0, (vec![], 0, 0)));
    for id in 0..10 {
        writer.alloc(0, Class::Dram, id, 1);
    }
    assert_eq!(segment.head(), 10);
    for len in [1, 3, 10, 64] {
        assert_eq!(read_all(&segment, 0, len), ((1..=10).collect(), 0, 10));
        assert_eq!(read_all(&segment, 7, len), (vec![8, 9, 10], 0, 10));
    }
    assert_eq!(read_all(&segment, segment.head(), 4), (vec![], 0, 10), "only what comes");
    let nothing = ReadFrom { read: 0, missed: 0, next: 3 };
    assert_eq!(segment.read_from(3, &mut []), nothing, "without a buffer nothing is passed");
    for beyond in [11, 1 << 60, u64::MAX] {
        let read = segment.read_from(beyond, &mut [Event::NONE]);
        assert_eq!((read.read, read.next), (0, beyond), "nobody is moved back");
    }
}

#[test]
fn what_was_overwritten_is_counted_by_whoever_asks_for_it() {
    let mut writer = Writer::new(1);
    let segment = writer.open();
    for id in 0..200 {
        writer.alloc(0, Class::Dram, id, 1);
    }
    let kept: Vec<u64> = (201 - SLOTS..=200).collect();
    assert_eq!(read_all(&segment, 0, 16), (kept, 200 - SLOTS, 200), "from the oldest that is kept");
    // As for a follower: in the middle of what is kept, so that it is not overtaken at once.
    let (read, missed, next) = read_all(&segment, 1, 16);
    assert_eq!((read.len() as u64, missed, next), (SLOTS / 2, 199 - SLOTS / 2, 200));
}

#[test]
fn an_owned_follower_is_moved_to_another_thread() {
    let mut writer = Writer::new(1);
    let segment = Arc::new(writer.open());
    writer.alloc(0, Class::Dram, 1, 1);
    let mut late = Follower::new(Arc::clone(&segment));
    let mut early = Follower::new(segment).from(0);
    writer.alloc(0, Class::Dram, 2, 1);
    let mut events = [Event::NONE; 8];
    assert_eq!((late.read(&mut events), events[0].id), (1, 2));
    assert_eq!((late.read(&mut events), late.position(), late.missed()), (0, 2, 0));
    let early = std::thread::spawn(move || {
        let read = early.read(&mut [Event::NONE; 8]);
        (read, early)
    });
    let (read, mut early) = early.join().unwrap();
    assert_eq!((read, early.position(), early.missed()), (2, 2, 0));
    for id in 0..200 {
        writer.alloc(0, Class::Dram, id, 1);
    }
    let mut count = 0;
    while let read @ 1.. = early.read(&mut events) {
        count += read as u64;
    }
    assert_eq!((count + early.missed(), early.position()), (200, 202));
    assert_eq!(early.segment().head(), 202);
}
