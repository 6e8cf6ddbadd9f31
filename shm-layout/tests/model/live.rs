//! The live list against rows that change while it is read.

use crate::word::{KIND, Memory, ModelWord, ROW, SIZE, SOUND, Tally, event, explore};
use loom::thread;
use shm_layout::protocol::commit::DeviceCounters;
use shm_layout::protocol::live::LiveList;
use shm_layout::{Event, EventKind, Row, SegmentWords};
use std::sync::Arc;

type Segment<'a, const V: u8> = SegmentWords<'a, ModelWord<V>>;

/// What happens to a live list, event by event, and how the list looks after each.
#[derive(Clone, Copy)]
pub(crate) struct Story {
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
        let memory: Arc<Memory<V>> = Arc::new(Memory::new(4, story.differing, story.rows, 0));
        (1..=story.before).for_each(|position| commit(&memory.segment(), position));
        let observer = {
            let (memory, tally) = (memory.clone(), tally.clone());
            thread::spawn(move || {
                let list = LiveList::read(&memory.segment());
                tally.count(list.position == story.last);
                assert!(list.exact, "the ring holds every event");
                let sizes: Vec<u64> = list.rows.iter().map(|row| row.size).collect();
                assert_eq!(sizes, story.sizes[list.position as usize], "at {}", list.position);
            })
        };
        let writer = thread::spawn(move || {
            (story.before + 1..=story.last).for_each(|position| commit(&memory.segment(), position));
        });
        observer.join().unwrap();
        writer.join().unwrap();
    });
}

/// One row: allocated, freed, allocated again.
pub(crate) fn reuse(last: u64) -> Story {
    let sizes: &[&[u64]] = &[&[], &[2], &[], &[8]];
    Story { differing: &[KIND, SIZE], rows: 1, before: 1, last, preemptions: 2, sizes }
}

pub(crate) fn reuse_event(position: u64) -> Event {
    match position {
        2 => event(2, EventKind::Free, 2),
        _ => event(position, EventKind::Alloc, 1 << position),
    }
}

pub(crate) fn commit_reuse<const V: u8>(segment: &Segment<'_, V>, position: u64) {
    segment.commit(&reuse_event(position), None, &mut DeviceCounters::new(4));
}

#[test]
fn a_list_is_that_of_its_position() {
    for last in [2, 3] {
        let tally = Arc::default();
        walk::<SOUND>(&tally, reuse(last), commit_reuse);
        tally.assert_both();
    }
}

/// Dispatches of one program, which write the two rows of its pair in turn. The size is their count.
fn commit_dispatch<const V: u8>(segment: &Segment<'_, V>, position: u64) {
    let row = (position % 2) as u32;
    let event = Event { row, cores: 1 - row, ..event(position, EventKind::KernelDispatch, 0) };
    let row = Row { size: position, ..Row::after_dispatch(None, &event) };
    segment.commit(&event, Some(&row), &mut DeviceCounters::new(4));
}

/// Both rows of a pair may be caught in the middle of being written, one after the other: then the count
/// before the first of the two dispatches is lost, and the walk must notice.
#[test]
fn the_dispatches_of_a_program_are_never_lost() {
    let sizes: &[&[u64]] = &[&[], &[1], &[2], &[3], &[4], &[5]];
    for (before, last) in [(1, 3), (3, 5)] {
        let tally = Arc::default();
        let story = Story { differing: &[ROW], rows: 2, before, last, preemptions: 2, sizes };
        walk::<SOUND>(&tally, story, commit_dispatch);
        tally.assert_both();
    }
}
