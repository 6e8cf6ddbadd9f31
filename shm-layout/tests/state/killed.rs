//! A process killed after any store of any commit.

use crate::support::{Memory, Watched, Writer, assert_exact, killed_after, life};

const SLOTS: usize = 16;

/// The state left behind is that before or after the event in flight, and once it is the one after, no later
/// store brings back the one before.
#[test]
fn any_store_may_be_the_last() {
    let events = life();
    for dying in 0..events.len() {
        let (mut stores, mut last) = (0, dying as u64);
        loop {
            let memory: Memory<Watched> = Memory::new(SLOTS, 5, 1);
            let mut writer = Writer::new(SLOTS, 1);
            events[..dying].iter().for_each(|event| writer.commit(&memory.segment(), event));
            let ended = killed_after(stores, || writer.commit(&memory.segment(), &events[dying]));
            let position = assert_exact(&memory, &events);
            assert!(last <= position && position <= dying as u64 + 1, "{last} then {position}");
            last = position;
            if ended {
                break;
            }
            stores += 1;
        }
        // A commit stores the slot and the head at least, and its end is the state after.
        assert!(stores > SLOTS / 2 && last == dying as u64 + 1);
    }
}

/// The same with a ring that has wrapped around: the slot that is overwritten held an older event.
#[test]
fn any_store_may_be_the_last_in_a_full_ring() {
    let slots = 4;
    let events = life();
    let dying = events.len() - 1;
    for stores in 0..60 {
        let memory: Memory<Watched> = Memory::new(slots, 5, 1);
        let mut writer = Writer::new(slots, 1);
        events[..dying].iter().for_each(|event| writer.commit(&memory.segment(), event));
        killed_after(stores, || writer.commit(&memory.segment(), &events[dying]));
        let position = assert_exact(&memory, &events) as usize;
        assert!(position == dying || position == dying + 1);
    }
}
