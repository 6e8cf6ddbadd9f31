//! The live list while it grows.

use crate::word::{KIND, Memory, ModelWord, SIZE, SOUND, Tally, event, explore};
use loom::thread;
use shm_layout::control::ROWS_PUBLISHED;
use shm_layout::protocol::commit::Accounts;
use shm_layout::protocol::live::LiveList;
use shm_layout::{Event, EventKind, SegmentWords, Word};
use std::sync::Arc;

type Segment<'a, const V: u8> = SegmentWords<'a, ModelWord<V>>;

/// Row 1 is new when it is first used.
pub(crate) fn grow<const V: u8>(segment: &Segment<'_, V>) {
    segment.control[ROWS_PUBLISHED].store_release(2);
}

pub(crate) fn allocate<const V: u8>(segment: &Segment<'_, V>) {
    let second = Event { row: 1, ..event(2, EventKind::Alloc, 4) };
    segment.publish(&second, None, &mut Accounts::new(4));
}

/// One row is listed; a second one is created, written and looked for at the same time.
pub(crate) fn walk<const V: u8>(
    tally: &Arc<Tally>,
    work: impl Fn(&Segment<'_, V>) + Copy + Send + Sync + 'static,
) {
    let tally = tally.clone();
    explore(Some(3), move || {
        let memory: Arc<Memory<V>> = Arc::new(Memory::new(4, &[KIND, SIZE], 2, 0).with_published(1));
        memory.segment().publish(&event(1, EventKind::Alloc, 2), None, &mut Accounts::new(4));
        let observer = {
            let (memory, tally) = (memory.clone(), tally.clone());
            thread::spawn(move || {
                let list = LiveList::read(&memory.segment());
                let sizes: Vec<u64> = list.rows.iter().map(|row| row.size).collect();
                let expected: &[&[u64]] = &[&[], &[2], &[2, 4]];
                assert!(list.exact, "the ring holds every event");
                assert_eq!(sizes, expected[list.position as usize], "at {}", list.position);
                tally.count(list.position == 2);
            })
        };
        work(&memory.segment());
        observer.join().unwrap();
    });
}

#[test]
fn a_list_that_grows_is_that_of_its_position() {
    let tally = Arc::default();
    walk::<SOUND>(&tally, |segment| {
        grow(segment);
        allocate(segment);
    });
    tally.assert_both();
}
