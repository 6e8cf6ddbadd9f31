//! Small segments, words that misbehave on purpose, and sequences of events whose state is known.

use shm_layout::control::{CONTROL_WORDS, DEVICE_COUNT, ROWS_PUBLISHED};
use shm_layout::protocol::commit::Accounts;
use shm_layout::protocol::live::LiveList;
use shm_layout::protocol::observe::Attached;
use shm_layout::{
    Class, Counters, DEVICE_COUNTER_WORDS, Event, EventKind, Row, RowEffect, RowKind, SLOT_WORDS,
    SegmentWords, Word, flags,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The number of loads left, and what happens then.
type Hook = (usize, Box<dyn FnOnce()>);

thread_local! {
    static STORES_LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Runs `write` until it has stored this many words; returns whether it completed.
pub(crate) fn killed_after(stores: usize, write: impl FnOnce()) -> bool {
    STORES_LEFT.set(stores);
    write();
    STORES_LEFT.replace(usize::MAX) > 0
}

/// Runs `then` just before the load number `loads` from now.
pub(crate) fn before_load(loads: usize, then: impl FnOnce() + 'static) {
    HOOK.set(Some((loads, Box::new(then))));
}

/// Cancels [`before_load`]; returns whether it was still pending.
pub(crate) fn never_happened() -> bool {
    HOOK.take().is_some()
}

fn count_load() {
    let due = HOOK.with_borrow_mut(|hook| match hook {
        Some((0, _)) => hook.take().map(|(_, then)| then),
        Some((left, _)) => {
            *left -= 1;
            None
        }
        None => None,
    });
    if let Some(then) = due {
        then();
    }
}

/// A word whose writer may die, and between whose loads things may happen.
#[derive(Default)]
pub(crate) struct Watched(AtomicU64);

impl Word for Watched {
    fn load(&self) -> u64 {
        count_load();
        self.0.load(Ordering::Relaxed)
    }
    fn store(&self, value: u64) {
        let left = STORES_LEFT.get();
        STORES_LEFT.set(left.saturating_sub(1));
        if left > 0 {
            self.0.store(value, Ordering::Relaxed);
        }
    }
    fn store_release(&self, value: u64) {
        fence(Ordering::Release);
        self.store(value);
    }
    fn fence_acquire() {
        fence(Ordering::Acquire);
    }
    fn fence_release() {
        fence(Ordering::Release);
    }
}

/// The blocks of a small segment.
pub(crate) struct Memory<W> {
    pub(crate) control: Vec<W>,
    pub(crate) counters: Vec<[W; DEVICE_COUNTER_WORDS]>,
    pub(crate) ring: Vec<[W; SLOT_WORDS]>,
    pub(crate) rows: Vec<[W; SLOT_WORDS]>,
}

impl<W: Word + Default> Memory<W> {
    pub(crate) fn new(slots: usize, rows: usize, devices: usize) -> Memory<W> {
        let cells = |count| (0..count).map(|_| std::array::from_fn(|_| W::default())).collect();
        let memory = Memory {
            control: (0..CONTROL_WORDS).map(|_| W::default()).collect(),
            counters: (0..devices).map(|_| std::array::from_fn(|_| W::default())).collect(),
            ring: cells(slots),
            rows: cells(rows),
        };
        memory.control[DEVICE_COUNT].store(devices as u64);
        memory.control[ROWS_PUBLISHED].store(rows as u64);
        memory
    }
}

impl<W: Word> Memory<W> {
    pub(crate) fn segment(&self) -> SegmentWords<'_, W> {
        SegmentWords {
            control: &self.control,
            devices: &[],
            counters: &self.counters,
            name_index: &[],
            name_bytes: &[],
            ring: &self.ring,
            rows: &self.rows,
        }
    }
}

/// A few allocations on one device: buffers, names that come later, a program with its pair of rows (3 and
/// 4), reuse of row 0, and events that concern no row or no device.
pub(crate) fn life() -> Vec<Event> {
    let about = |kind, class: Class, id, size, row| Event {
        class: class as u8,
        id,
        size,
        row,
        address: 0,
        aux: 7,
        ..Event::new(kind, 0)
    };
    let pair = |times: u64, partner: u32| times | u64::from(partner) << 32;
    // Twice at once, in lane 2.
    let dispatch = |row: u32| Event {
        flags: flags::RESIDENT,
        address: pair(2, 7 - row),
        aux: 20,
        place: 2,
        ..about(EventKind::KernelDispatch, Class::KernelApplication, 7, 30, row)
    };
    let resident = |event| Event { flags: flags::RESIDENT, place: 1 << 2, ..event };
    let end = Event { address: pair(0, 4), ..resident(about(EventKind::ProgramEnd, Class::Dram, 7, 0, 3)) };
    let name = |class, id, row, name| Event { name, ..about(EventKind::Name, class, id, 0, row) };
    let events = [
        about(EventKind::Alloc, Class::Dram, 1, 10, 0),
        name(Class::Dram, 1, 0, 8),
        about(EventKind::KernelLoad, Class::KernelApplication, 2, 20, 1),
        about(EventKind::CbAlloc, Class::Cb, 3, 30, 2),
        dispatch(3),
        dispatch(4),
        dispatch(3),
        about(EventKind::Free, Class::Dram, 1, 10, 0),
        about(EventKind::Alloc, Class::L1, 4, 40, 0),
        name(Class::L1, 4, 0, 9),
        Event { device: shm_layout::NO_DEVICE, ..Event::new(EventKind::Marker, 0) },
        dispatch(4),
        resident(about(EventKind::CbFree, Class::Cb, 3, 30, 2)),
        resident(about(EventKind::KernelUnload, Class::KernelApplication, 2, 20, 1)),
        end,
        Event::new(EventKind::PeakReset, 0),
        about(EventKind::Alloc, Class::Trace, 5, 50, 3),
    ];
    (1..).zip(events).map(|(stamp, event)| Event { stamp, time: 10 * stamp, ..event }).collect()
}

/// Writes events as a process does.
pub(crate) struct Writer {
    accounts: Accounts,
    list: BTreeMap<u32, Row>,
}

impl Writer {
    pub(crate) fn new(slots: usize, devices: usize) -> Writer {
        let mut accounts = Accounts::new(slots);
        (0..devices).for_each(|_| accounts.add_device());
        Writer { accounts, list: BTreeMap::new() }
    }

    pub(crate) fn commit<W: Word>(&mut self, segment: &SegmentWords<'_, W>, event: &Event) {
        change(&mut self.list, event);
        let is_dispatch = event.kind() == Some(EventKind::KernelDispatch);
        let program_row = is_dispatch.then(|| self.list[&event.row]);
        segment.commit(event, program_row.as_ref(), &mut self.accounts).unwrap();
    }
}

fn change(list: &mut BTreeMap<u32, Row>, event: &Event) {
    match RowEffect::of(event) {
        RowEffect::Set(RowKind::Program) => {
            let before = list.get(&event.partner()).copied();
            list.insert(event.row, Row::after_dispatch(before.as_ref(), event));
        }
        RowEffect::Set(_) => drop(list.insert(event.row, Row::from_event(event))),
        RowEffect::Clear => drop(list.remove(&event.row)),
        RowEffect::ClearPair => list.retain(|row, _| *row != event.row && *row != event.partner()),
        RowEffect::Rename => {
            list.entry(event.row).and_modify(|row| row.rename(event));
        }
        RowEffect::None => {}
    }
}

/// The counters after the first `position` events.
pub(crate) fn counters_at(events: &[Event], position: u64) -> Counters {
    let mut counters = Counters::ZERO;
    for event in events[..position as usize].iter().filter(|event| event.device == 0) {
        counters.apply(event).unwrap();
    }
    counters
}

/// The live list after the first `position` events, with the newer row of each program.
pub(crate) fn list_at(events: &[Event], position: u64) -> Vec<Row> {
    let mut list = BTreeMap::new();
    events[..position as usize].iter().for_each(|event| change(&mut list, event));
    let newest = list.values().filter(|row| row.kind() == Some(RowKind::Program)).map(|row| row.stamp).max();
    let mut rows: Vec<Row> = list.into_values().collect();
    rows.retain(|row| row.kind() != Some(RowKind::Program) || Some(row.stamp) == newest);
    rows.sort_by_key(|row| row.stamp);
    rows
}

/// Attaches, follows and lists: all three must be exact. Returns the position.
pub(crate) fn assert_exact<W: Word>(memory: &Memory<W>, events: &[Event]) -> u64 {
    let segment = memory.segment();
    let mut attached = Attached::new(&segment).unwrap();
    attached.catch_up(&segment).unwrap();
    let position = attached.cursor.position();
    assert_eq!(attached.devices[0].0, counters_at(events, position), "at {position}");
    let list = LiveList::read(&segment);
    assert!(list.exact && list.position == position && list.missed == 0, "{list:?}");
    assert_eq!(list.rows, list_at(events, position), "at {position}");
    position
}
