//! Real threads: a writer at full speed, and an observer that compares whatever it gets.

use crate::support::{Memory, Writer};
use shm_layout::protocol::live::LiveList;
use shm_layout::protocol::observe::Attached;
use shm_layout::{Class, Counters, Event, EventKind};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const EVENTS: u64 = 200_000;
const ROWS: u64 = 64;
const SLOTS: usize = 1024;
const DEVICES: usize = 2;
/// Positions between two remembered states.
const SNAPSHOT: u64 = 512;

/// The event of a position. All rows are allocated in turn, then all are freed in turn, and so on.
fn event(position: u64) -> Event {
    let (round, row) = ((position - 1) / ROWS, (position - 1) % ROWS);
    let allocated_at = position - if round % 2 == 1 { ROWS } else { 0 };
    let classes = [Class::Dram, Class::Trace, Class::L1, Class::L1Small];
    Event {
        stamp: position,
        time: position,
        class: classes[row as usize / 2 % 4] as u8,
        id: row,
        size: 1 + allocated_at.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1_000_000,
        aux: allocated_at,
        row: row as u32,
        ..Event::new(if round % 2 == 0 { EventKind::Alloc } else { EventKind::Free }, (row % 2) as u8)
    }
}

/// States at every [`SNAPSHOT`]th position; those between are computed from there.
struct Expected(Vec<[Counters; DEVICES]>);

impl Expected {
    fn new() -> Expected {
        let mut expected = Expected(vec![[Counters::ZERO; DEVICES]]);
        for position in (SNAPSHOT..=EVENTS).step_by(SNAPSHOT as usize) {
            let state = expected.at(position);
            expected.0.push(state);
        }
        expected
    }

    fn at(&self, position: u64) -> [Counters; DEVICES] {
        let nearest = (position / SNAPSHOT).min(self.0.len() as u64 - 1);
        let mut state = self.0[nearest as usize];
        for event in (nearest * SNAPSHOT + 1..=position).map(event) {
            state[usize::from(event.device)].apply(&event).unwrap();
        }
        state
    }
}

fn list_at(position: u64) -> Vec<(u64, u64)> {
    let mut list = BTreeMap::new();
    for event in (position.saturating_sub(2 * ROWS) + 1..=position).map(event) {
        match event.kind() {
            Some(EventKind::Alloc) => drop(list.insert(event.row, (event.stamp, event.size))),
            _ => drop(list.remove(&event.row)),
        }
    }
    let mut list: Vec<_> = list.into_values().collect();
    list.sort_unstable();
    list
}

/// Attaches and follows for a while, comparing at every stop. Whether all went well to the end.
fn follow(memory: &Memory<AtomicU64>, expected: &Expected) -> bool {
    let segment = memory.segment();
    let Ok(mut attached) = Attached::new(&segment) else { return false };
    for _ in 0..4 {
        if attached.catch_up(&segment).is_err() {
            return false;
        }
        let position = attached.cursor.position();
        let state = expected.at(position);
        for (device, state) in state.iter().enumerate() {
            let (found, complete) = &attached.devices[device];
            assert!(*complete <= position);
            assert!(found == state, "device {device} at {position}: {found:?} is not {state:?}");
        }
    }
    true
}

fn list(memory: &Memory<AtomicU64>) -> bool {
    let list = LiveList::read(&memory.segment());
    if list.exact {
        let rows: Vec<_> = list.rows.iter().map(|row| (row.stamp, row.size)).collect();
        assert_eq!(rows, list_at(list.position), "at {}", list.position);
    }
    list.exact
}

#[test]
fn every_state_that_is_seen_is_a_state_that_was() {
    let expected = Expected::new();
    let memory: Memory<AtomicU64> = Memory::new(SLOTS, ROWS as usize, DEVICES);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = Writer::new(SLOTS, DEVICES);
            for event in (1..=EVENTS).map(event) {
                writer.commit(&memory.segment(), &event);
            }
            done.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                follow(&memory, &expected);
                list(&memory);
            }
            // With nobody in the way everything is exact, and at the end.
            assert!(follow(&memory, &expected) && list(&memory));
            assert_eq!(memory.segment().head(), EVENTS);
        });
    });
}
