//! The live list against rows that change while it is read.

use crate::word::{KIND, Memory, ModelWord, SIZE, SOUND, Tally, event, explore};
use loom::thread;
use shm_layout::protocol::commit::Accounts;
use shm_layout::protocol::live::LiveList;
use shm_layout::{Event, EventKind, Row, SegmentWords};
use std::sync::Arc;

type Segment<'a, const V: u8> = SegmentWords<'a, ModelWord<V>>;

/// What happens to a live list, event by event, and how the list looks after each.
#[derive(Clone, Copy)]
pub(crate) struct Story {
    slots: usize,
    /// Words of an event that differ.
    differing: &'static [usize],
    rows: usize,
    /// Events that are complete before anybody looks.
    before: u64,
    last: u64,
    preemptions: usize,
    /// Sizes in the list after each event.
    sizes: &'static [&'static [u64]],
}

pub(crate) fn walk<const V: u8>(
    tally: &Arc<Tally>,
    story: Story,
    commit: impl Fn(&Segment<'_, V>, u64) + Copy + Send + Sync + 'static,
) {
    let tally = tally.clone();
    explore(Some(story.preemptions), move || {
        let memory: Arc<Memory<V>> = Arc::new(Memory::new(story.slots, story.differing, story.rows, 0));
        (1..=story.before).for_each(|position| commit(&memory.segment(), position));
        let observer = {
            let (memory, tally) = (memory.clone(), tally.clone());
            thread::spawn(move || {
                let list = LiveList::read(&memory.segment());
                tally.count(list.position == story.last);
                if !list.exact {
                    assert!(story.last > story.slots as u64, "the ring holds every event");
                    return;
                }
                let sizes: Vec<u64> = list.rows.iter().map(|row| row.size).collect();
                assert_eq!(sizes, story.sizes[list.position as usize], "at {}", list.position);
            })
        };
        (story.before + 1..=story.last).for_each(|position| commit(&memory.segment(), position));
        observer.join().unwrap();
    });
}

/// One row: allocated, freed, allocated again.
pub(crate) fn reuse(last: u64) -> Story {
    let sizes: &[&[u64]] = &[&[], &[2], &[], &[8]];
    Story { slots: 4, differing: &[KIND, SIZE], rows: 1, before: 1, last, preemptions: 2, sizes }
}

pub(crate) fn reuse_event(position: u64) -> Event {
    match position {
        2 => event(2, EventKind::Free, 2),
        _ => event(position, EventKind::Alloc, 1 << position),
    }
}

pub(crate) fn commit_reuse<const V: u8>(segment: &Segment<'_, V>, position: u64) {
    segment.publish(&reuse_event(position), None, &mut Accounts::new(4));
}

#[test]
fn a_list_is_that_of_its_position() {
    for last in [2, 3] {
        let tally = Arc::default();
        walk::<SOUND>(&tally, reuse(last), commit_reuse);
        tally.assert_both();
    }
}

/// The event that emptied a row is overwritten while its slot is read: it has happened, even if the head that
/// includes it is not seen yet.
#[test]
fn a_list_does_not_take_an_overwritten_event_for_one_to_come() {
    let sizes: &[&[u64]] = &[&[], &[2], &[], &[], &[]];
    let tally = Arc::default();
    let story = Story { slots: 2, differing: &[KIND], rows: 2, before: 1, last: 4, preemptions: 2, sizes };
    walk::<SOUND>(&tally, story, |segment, position| {
        let kinds = [EventKind::Alloc, EventKind::Free, EventKind::Marker, EventKind::Marker];
        // Row 1, not 0: the walk drains the ring after row 0, and again at the end.
        let event = Event { row: 1, ..event(position, kinds[position as usize - 1], 2) };
        segment.publish(&event, None, &mut Accounts::new(2));
    });
    tally.assert_both();
}

/// Dispatches of one program, which write the two rows of its pair in turn. The size is their count. As
/// the ring is even, a slot always names the same row: its events differ in nothing but the stamp.
fn commit_dispatch<const V: u8>(segment: &Segment<'_, V>, position: u64) {
    let row = (position % 2) as u32;
    let address = 1 | u64::from(1 - row) << 32;
    let event = Event { row, address, ..event(position, EventKind::KernelDispatch, 0) };
    let row = Row { size: position, ..Row::after_dispatch(None, &event) };
    segment.publish(&event, Some(&row), &mut Accounts::new(4));
}

/// Both rows of a pair may be caught in the middle of being written, one after the other: then the count
/// before the first of the two dispatches is lost, and the walk must notice.
fn dispatches(before: u64, last: u64) {
    let sizes: &[&[u64]] = &[&[], &[1], &[2], &[3], &[4], &[5]];
    let tally = Arc::default();
    let story = Story { slots: 4, differing: &[], rows: 2, before, last, preemptions: 2, sizes };
    walk::<SOUND>(&tally, story, commit_dispatch);
    tally.assert_both();
}

#[test]
fn dispatches_are_not_lost_with_both_rows_in_flux() {
    dispatches(1, 3);
}

#[test]
fn dispatches_are_not_lost_with_the_newer_row_in_flux() {
    dispatches(3, 5);
}

/// A buffer that gets two names while it lives.
pub(crate) fn naming_event(position: u64) -> Event {
    match position {
        1 => event(1, EventKind::Alloc, 2),
        _ => Event { name: position as u16, ..event(position, EventKind::Name, 2) },
    }
}

/// The list has the name that was given last before its position, whatever was read when.
pub(crate) fn name_list<const V: u8>(
    tally: &Arc<Tally>,
    commit: impl Fn(&Segment<'_, V>, &Event) + Copy + Send + Sync + 'static,
) {
    let tally = tally.clone();
    explore(Some(2), move || {
        let memory: Arc<Memory<V>> = Arc::new(Memory::new(4, &[KIND], 1, 0).with_names());
        commit(&memory.segment(), &naming_event(1));
        let observer = {
            let (memory, tally) = (memory.clone(), tally.clone());
            thread::spawn(move || {
                let list = LiveList::read(&memory.segment());
                tally.count(list.position == 3);
                assert!(list.exact, "the ring holds every event");
                let names: Vec<u64> = list.rows.iter().map(|row| u64::from(row.name)).collect();
                let name = if list.position == 1 { 0 } else { list.position };
                assert_eq!(names, [name], "name at {}", list.position);
            })
        };
        (2..=3).for_each(|position| commit(&memory.segment(), &naming_event(position)));
        observer.join().unwrap();
    });
}

pub(crate) fn commit_name<const V: u8>(segment: &Segment<'_, V>, event: &Event) {
    segment.publish(event, None, &mut Accounts::new(4));
}

#[test]
fn a_name_is_in_the_list_from_its_position_on() {
    let tally = Arc::default();
    name_list::<SOUND>(&tally, commit_name);
    tally.assert_both();
}
