//! Memory that no honest process writes: whatever it holds, reading it terminates without a panic.

use crate::support::Memory;
use proptest::collection::vec;
use proptest::prelude::*;
use shm_layout::control::{DEVICE_COUNT, HEAD, ROWS_PUBLISHED};
use shm_layout::protocol::commit::Accounts;
use shm_layout::protocol::live::LiveList;
use shm_layout::protocol::observe::{Attached, CatchUpError, Cursor, Step};
use shm_layout::{Event, EventKind, MAX_DEVICES, Word, store_pod};
use std::sync::atomic::AtomicU64;

const SLOTS: u64 = 8;

/// Does everything that an observer does. Counters are used only if they are plausible, as their contract
/// demands.
fn observe(memory: &Memory<AtomicU64>) {
    let segment = memory.segment();
    if let Ok(mut attached) = Attached::new(&segment)
        && attached.devices.iter().all(|(counters, _)| counters.is_plausible())
    {
        for _ in 0..4 {
            let _ = attached.catch_up(&segment);
        }
        assert!(attached.devices.len() <= shm_layout::MAX_DEVICES);
    }
    let list = LiveList::read(&segment);
    assert!(list.rows.len() <= memory.rows.len() + memory.ring.len() * 2);
    let mut cursor = Cursor::after(segment.head());
    for _ in 0..20 {
        cursor.next(&segment);
    }
}

/// Numbers that are likely to break something.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![0..20_u64, (0..20_u64).prop_map(|back| u64::MAX - back), any::<u64>(), Just(1 << 63)]
}

/// Events with a valid stamp and otherwise random content.
fn event() -> impl Strategy<Value = Event> {
    (any::<[u64; 8]>(), 0..EventKind::ALL.len(), 0..10_u32, 0..10_u32, any::<bool>()).prop_map(
        |(words, kind, row, partner, small)| {
            let mut event: Event = bytemuck::cast(words);
            event.kind = EventKind::ALL[kind] as u8;
            event.device %= 200;
            event.class %= 10;
            if small {
                event.row = row;
                event.address = (event.address % 3) | (u64::from(partner) << 32);
                event.place %= 300;
                event.aux %= 1000;
                event.size %= 1000;
            }
            event
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn wild_words_do_no_harm(
        words in vec(word(), 200),
        heads in (word(), word(), word()),
    ) {
        let memory: Memory<AtomicU64> = Memory::new(SLOTS as usize, 4, 2);
        let blocks = memory.ring.as_flattened().iter().chain(memory.rows.as_flattened());
        let counters = memory.counters.as_flattened().iter().step_by(13);
        for (word, value) in blocks.chain(counters).zip(words.iter().cycle()) {
            word.store(*value, std::sync::atomic::Ordering::Relaxed);
        }
        for (control, value) in [(HEAD, heads.0), (DEVICE_COUNT, heads.1), (ROWS_PUBLISHED, heads.2)] {
            Word::store(&memory.control[control], value);
        }
        observe(&memory);
    }

    #[test]
    fn wild_events_do_no_harm(
        events in vec(event(), SLOTS as usize),
        head in prop_oneof![0..20_u64, Just(u64::MAX), Just(u64::MAX - 3)],
    ) {
        let memory: Memory<AtomicU64> = Memory::new(SLOTS as usize, 4, 2);
        for (ahead, event) in (1..).zip(events) {
            let stamp = head.wrapping_add(ahead).max(1);
            if let Some(slot) = memory.segment().slot(stamp) {
                store_pod(slot, &Event { stamp, ..event });
            }
        }
        Word::store(&memory.control[HEAD], head);
        observe(&memory);
    }
}

#[test]
fn a_head_at_the_end_of_the_range_is_idle_or_lapped() {
    let memory: Memory<AtomicU64> = Memory::new(SLOTS as usize, 4, 1);
    Word::store(&memory.control[HEAD], u64::MAX);
    let mut cursor = Cursor::after(memory.segment().head());
    for _ in 0..5 {
        assert!(!matches!(cursor.next(&memory.segment()), Step::Event(_)));
    }
    observe(&memory);
}

/// A segment whose blocks are all empty, as carved from a file that is too short.
#[test]
fn an_empty_segment_is_empty() {
    let memory: Memory<AtomicU64> = Memory { control: vec![], counters: vec![], ring: vec![], rows: vec![] };
    let segment = memory.segment();
    assert_eq!(segment.head(), 0);
    assert!(Attached::new(&segment).unwrap().devices.is_empty());
    let list = LiveList::read(&segment);
    assert!(list.rows.is_empty() && list.exact);
    segment.publish(&Event { stamp: 1, ..Event::new(EventKind::Marker, 0) }, None, &mut Accounts::new(0));
}

/// No process has that many devices.
#[test]
fn an_event_of_a_device_that_there_cannot_be_is_implausible() {
    let memory: Memory<AtomicU64> = Memory::new(SLOTS as usize, 0, 1);
    let mut attached = Attached::new(&memory.segment()).unwrap();
    let event = Event { stamp: 1, ..Event::new(EventKind::Alloc, MAX_DEVICES as u8) };
    memory.segment().write_slot(event.to_words());
    assert!(matches!(attached.catch_up(&memory.segment()), Err(CatchUpError::Implausible(_))));
}
