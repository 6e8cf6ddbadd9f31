//! The order of a commit: an observer that attaches at any moment, and follows, gets every event exactly
//! once.

use crate::word::{Memory, ModelWord, SIZE, SOUND, Tally, event, explore, kill_writer_after, stores_left};
use loom::thread;
use shm_layout::protocol::commit::Accounts;
use shm_layout::protocol::observe::{Attached, Cursor, Step};
use shm_layout::{Class, Event, EventKind, NO_ROW, SegmentWords};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Event p allocates 2^p bytes, so the sum of the first p is known.
pub(crate) fn alloc(position: u64) -> Event {
    event(position, EventKind::Alloc, 1 << position)
}

fn live_bytes_at(position: u64) -> u64 {
    (1..=position).map(|position| 1 << position).sum()
}

/// A ring with four slots, so a checkpoint lacks one event at most.
const SLOTS: usize = 4;

pub(crate) fn one_device(slots: usize) -> Accounts {
    let mut accounts = Accounts::new(slots);
    accounts.add_device();
    accounts
}

/// A way to commit one event, for [`attach`].
pub(crate) trait Commit<const V: u8>:
    Fn(&SegmentWords<'_, ModelWord<V>>, &Event, &mut Accounts) + Copy + Send + Sync + 'static
{
}
impl<const V: u8, F> Commit<V> for F where
    F: Fn(&SegmentWords<'_, ModelWord<V>>, &Event, &mut Accounts) + Copy + Send + Sync + 'static
{
}

pub(crate) fn in_order<const V: u8>(
    segment: &SegmentWords<'_, ModelWord<V>>,
    event: &Event,
    accounts: &mut Accounts,
) {
    segment.commit(event, None, accounts).unwrap();
}

/// Attaches and follows; returns the position whose exact state was seen.
fn observe<const V: u8>(memory: &Memory<V>) -> u64 {
    let segment = memory.segment();
    let mut attached = Attached::new(&segment).expect("fewer turns than attempts");
    attached.catch_up(&segment).expect("the ring holds every event");
    let (counters, complete) = &attached.devices[0];
    let position = attached.cursor.position();
    assert!(*complete <= position, "counted before it was committed");
    assert_eq!(counters.class(Class::Dram).live_bytes, live_bytes_at(position), "at {position}");
    position
}

/// How much a writer does before it ends.
#[derive(Clone, Copy)]
pub(crate) struct Script {
    pub(crate) events: u64,
    /// Dies after that many stores.
    pub(crate) stores: usize,
    pub(crate) preemptions: usize,
}

/// An observer attaches and follows while a writer follows its script.
pub(crate) fn attach<const V: u8>(tally: &Arc<Tally>, script: Script, commit: impl Commit<V>) {
    let tally = tally.clone();
    explore(Some(script.preemptions), move || {
        let memory: Arc<Memory<V>> = Arc::new(Memory::new(SLOTS, &[SIZE], 1, 1));
        kill_writer_after(script.stores);
        let observer = {
            let (memory, tally) = (memory.clone(), tally.clone());
            thread::spawn(move || tally.count(observe(&memory) == script.events))
        };
        let mut accounts = one_device(SLOTS);
        for position in 1..=script.events {
            commit(&memory.segment(), &alloc(position), &mut accounts);
        }
        observer.join().unwrap();
        kill_writer_after(usize::MAX);
    });
}

#[test]
fn an_observer_has_every_event_exactly_once() {
    for (events, preemptions) in [(1, 4), (2, 3), (3, 2), (4, 2)] {
        let tally = Arc::default();
        attach(&tally, Script { events, stores: usize::MAX, preemptions }, in_order::<SOUND>);
        tally.assert_both();
    }
}

/// The number of stores of the first commits.
fn stores_of(events: u64) -> usize {
    let stores = Arc::new(AtomicUsize::new(0));
    let result = stores.clone();
    explore(None, move || {
        let memory: Memory<SOUND> = Memory::new(SLOTS, &[SIZE], 1, 1);
        kill_writer_after(usize::MAX);
        let mut accounts = one_device(SLOTS);
        (1..=events).for_each(|position| in_order(&memory.segment(), &alloc(position), &mut accounts));
        stores.store(usize::MAX - stores_left(), Relaxed);
        kill_writer_after(usize::MAX);
    });
    result.load(Relaxed)
}

#[test]
fn a_killed_writer_leaves_the_state_before_or_after() {
    // Every commit writes slot, row and head, the second and the fourth also a checkpoint.
    let stores = [0, 1, 2, 3, 4].map(stores_of);
    let commits = [1, 2, 3, 4].map(|commit| stores[commit] - stores[commit - 1]);
    assert!(commits[0] >= 6 && commits[1] > commits[0] && commits[3] > commits[2], "{commits:?}");
    let tally = Arc::default();
    for (events, preemptions) in [(1, 3), (2, 2), (3, 1), (4, 1)] {
        for store in stores[events - 1]..stores[events] {
            attach(&tally, Script { events: events as u64, stores: store, preemptions }, in_order::<SOUND>);
        }
    }
    tally.assert_both();
}

/// A ring that holds two of three events: each is returned, or counted as missed, in order.
pub(crate) fn lap<const V: u8>(tally: &Arc<Tally>) {
    let tally = tally.clone();
    explore(Some(2), move || {
        let memory: Arc<Memory<V>> = Arc::new(Memory::new(2, &[SIZE], 0, 0));
        let observer = {
            let (memory, tally) = (memory.clone(), tally.clone());
            thread::spawn(move || {
                let (mut cursor, mut passed) = (Cursor::after(0), 0);
                for _ in 0..3 {
                    match cursor.next(&memory.segment()) {
                        Step::Event(event) => {
                            passed += 1;
                            assert_eq!(event, Event { row: NO_ROW, ..alloc(passed) }, "wrong event");
                        }
                        Step::Lapped { missed } => passed += missed,
                        Step::Idle => {}
                    }
                    assert_eq!(cursor.position(), passed, "neither returned nor missed");
                }
                tally.count(passed == 3);
            })
        };
        let mut no_device = Accounts::new(2);
        for position in 1..=3 {
            memory.segment().publish(&Event { row: NO_ROW, ..alloc(position) }, None, &mut no_device);
        }
        observer.join().unwrap();
    });
}

#[test]
fn a_lapped_cursor_says_what_it_missed() {
    let tally = Arc::default();
    lap::<SOUND>(&tally);
    tally.assert_both();
}
