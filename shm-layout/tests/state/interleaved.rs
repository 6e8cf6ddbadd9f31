//! Changes between any two loads of an observer, on one thread: at every single place, with more changes
//! there than a model checker can handle.

use crate::support::{Memory, Watched, Writer, before_load, counters_at, life, list_at, never_happened};
use shm_layout::Event;
use shm_layout::control::{ROWS_PUBLISHED, UNLISTED};
use shm_layout::protocol::live::LiveList;
use shm_layout::protocol::observe::{Attached, CatchUpError, Cursor, Step};
use shm_layout::{Word, protocol::commit::Accounts};
use std::rc::Rc;

/// A segment in which `before` events have happened, and what lets the rest happen.
fn segment(events: &[Event], before: usize, slots: usize) -> (Rc<Memory<Watched>>, impl FnOnce() + 'static) {
    let memory: Rc<Memory<Watched>> = Rc::new(Memory::new(slots, 5, 1));
    let mut writer = Writer::new(slots, 1);
    events[..before].iter().for_each(|event| writer.commit(&memory.segment(), event));
    let (memory2, rest) = (memory.clone(), events[before..].to_vec());
    (memory, move || rest.iter().for_each(|event| writer.commit(&memory2.segment(), event)))
}

/// Runs `observe` once for each place where the rest of a life can happen.
fn at_every_load(slots: usize, observe: impl Fn(&Memory<Watched>)) {
    let events = life();
    for before in 0..events.len() {
        for after in before + 1..=events.len() {
            for load in 0.. {
                let (memory, rest) = segment(&events[..after], before, slots);
                before_load(load, rest);
                observe(&memory);
                if never_happened() {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_list_is_exact_whatever_happens_while_it_is_read() {
    let events = life();
    at_every_load(32, |memory| {
        let list = LiveList::read(&memory.segment());
        assert!(list.exact, "{list:?}");
        assert_eq!(list.rows, list_at(&events, list.position), "at {}", list.position);
    });
}

#[test]
fn a_lapped_list_starts_over() {
    let events = life();
    at_every_load(2, |memory| {
        let list = LiveList::read(&memory.segment());
        assert!(list.exact, "everything happened at once, so the second walk is undisturbed: {list:?}");
        assert_eq!(list.rows, list_at(&events, list.position), "at {}", list.position);
    });
}

#[test]
fn counters_are_exact_whatever_happens_while_one_attaches() {
    let events = life();
    for slots in [32, 4] {
        at_every_load(slots, |memory| {
            let mut attached = Attached::new(&memory.segment()).unwrap();
            match attached.catch_up(&memory.segment()) {
                Ok(()) => {
                    let position = attached.cursor.position();
                    assert_eq!(attached.devices[0].0, counters_at(&events, position), "at {position}");
                }
                Err(error) => assert!(matches!(error, CatchUpError::Lapped { missed: 1.. }) && slots == 4),
            }
        });
    }
}

#[test]
fn a_cursor_returns_or_counts_every_event() {
    let events = life();
    at_every_load(4, |memory| {
        let (mut cursor, mut passed) = (Cursor::after(0), 0);
        for _ in 0..2 * events.len() {
            match cursor.next(&memory.segment()) {
                Step::Event(event) => {
                    assert_eq!(event, events[passed as usize]);
                    passed += 1;
                }
                Step::Lapped { missed } => passed += missed,
                Step::Idle => {}
            }
            assert_eq!(cursor.position(), passed);
        }
    });
}

/// Rows published after the walk began are named by events that it follows.
#[test]
fn rows_may_grow_while_they_are_read() {
    let alloc = |stamp: u64, row| Event {
        stamp,
        row,
        size: stamp,
        aux: stamp,
        ..Event::new(shm_layout::EventKind::Alloc, 0)
    };
    for load in 0.. {
        let memory: Rc<Memory<Watched>> = Rc::new(Memory::new(16, 600, 0));
        memory.control[ROWS_PUBLISHED].store(2);
        memory.control[UNLISTED].store(3);
        let mut accounts = Accounts::new(16);
        memory.segment().publish(&alloc(1, 0), None, &mut accounts);
        let grown = memory.clone();
        before_load(load, move || {
            grown.segment().publish(&alloc(2, 1), None, &mut accounts);
            grown.control[ROWS_PUBLISHED].store_release(600);
            grown.segment().publish(&alloc(3, 599), None, &mut accounts);
        });
        let list = LiveList::read(&memory.segment());
        let sizes: Vec<u64> = list.rows.iter().map(|row| row.size).collect();
        assert!(list.exact && list.unlisted == 3);
        assert_eq!(sizes, (1..=list.position).collect::<Vec<_>>());
        if never_happened() {
            break;
        }
    }
}
