//! The two primitives alone: the stamped cell and the latch.

use crate::word::{ModelWord, SOUND, Tally, explore, latch_memory};
use loom::thread;
use shm_layout::protocol::latch::{self, LatchWriter};
use shm_layout::protocol::stamped;
use shm_layout::{Word, load_pod, store_pod};
use std::sync::Arc;

type Payload = [u64; 3];
type Cell<const V: u8> = [ModelWord<V>; 3];

fn payload(stamp: u64) -> Payload {
    [stamp, 10 * stamp, 10 * stamp]
}

/// A writer changes a cell while a reader reads it once; what it gets must be consistent.
pub(crate) fn cell<const V: u8>(
    tally: &Arc<Tally>,
    write: impl Fn(&Cell<V>) + Copy + Send + Sync + 'static,
    read: impl Fn(&Cell<V>) -> Option<Payload> + Copy + Send + Sync + 'static,
) {
    let tally = tally.clone();
    explore(None, move || {
        let cell: Arc<Cell<V>> = Arc::new(std::array::from_fn(|_| ModelWord::watched()));
        stamped::write(&cell[..], &payload(1));
        let reader = {
            let (cell, tally) = (cell.clone(), tally.clone());
            thread::spawn(move || {
                let found = read(&cell);
                tally.count(found.is_some());
                if let Some(found) = found {
                    assert_eq!(found, payload(found[0]), "torn");
                }
            })
        };
        write(&cell);
        reader.join().unwrap();
    });
}

pub(crate) fn overwrite<const V: u8>(cell: &Cell<V>) {
    stamped::write(&cell[..], &payload(2));
}

pub(crate) fn expect_first<const V: u8>(cell: &Cell<V>) -> Option<Payload> {
    stamped::read_expected(&cell[..], 1).ok()
}

#[test]
fn a_slot_is_read_whole_or_not_at_all() {
    for read in [expect_first::<SOUND>, |cell: &Cell<SOUND>| stamped::read_expected(&cell[..], 2).ok()] {
        let tally = Arc::default();
        cell(&tally, overwrite::<SOUND>, read);
        tally.assert_both();
    }
}

#[test]
fn a_row_is_read_whole_through_clear_and_reuse() {
    let tally = Arc::default();
    let reuse = |cell: &Cell<SOUND>| {
        stamped::clear(&cell[..]);
        stamped::write(&cell[..], &payload(2));
        stamped::clear(&cell[..]);
    };
    cell(&tally, reuse, |cell| stamped::read(&cell[..]));
    tally.assert_both();
}

/// Why a stamp is never used twice: the reader cannot distinguish the first write from the second. A bucket
/// of the history is written that way while it is open, so its words are right only individually.
#[test]
#[should_panic(expected = "torn")]
fn a_cell_rewritten_under_its_old_stamp_tears() {
    let rewrite = |cell: &Cell<SOUND>| stamped::write(&cell[..], &[1_u64, 77, 77]);
    cell(&Arc::default(), rewrite, |cell| {
        let found: Option<Payload> = stamped::read(&cell[..]);
        found.inspect(|found| assert_eq!(found[1], found[2], "torn")).map(|_| payload(1))
    });
}

/// A latch that turns while it is read, in at most `attempts` attempts.
pub(crate) fn latch<const V: u8>(tally: &Arc<Tally>, turns: u64, attempts: usize) {
    let tally = tally.clone();
    explore(Some(3), move || {
        let latch: Arc<Vec<ModelWord<V>>> = Arc::new(latch_memory(2));
        let reader = {
            let (latch, tally) = (latch.clone(), tally.clone());
            thread::spawn(move || {
                let mut tries = 0;
                let found = latch::read(&latch, attempts, |copy| {
                    tries += 1;
                    load_pod::<[u64; 2], _>(copy)
                });
                if let Some([a, b]) = found {
                    assert!(a == b && a <= turns, "torn: {a} {b}");
                }
                tally.count(found.is_some() && tries == 1);
            })
        };
        let mut writer = LatchWriter::default();
        for turn in 1..=turns {
            writer.turn(&latch, |copy| store_pod(copy, &[turn, turn]));
        }
        reader.join().unwrap();
    });
}

#[test]
fn a_latch_is_read_whole() {
    for (turns, attempts) in [(1, 1), (2, 2), (3, 1), (3, 4)] {
        let tally = Arc::default();
        latch::<SOUND>(&tally, turns, attempts);
        tally.assert_both();
    }
}

/// A successor of a killed writer continues with the copy that its readers are not directed to.
#[test]
fn a_latch_can_be_taken_over() {
    explore(None, || {
        let latch: Arc<Vec<ModelWord<SOUND>>> = Arc::new(latch_memory(1));
        let mut first = LatchWriter::default();
        first.turn(&latch, |copy| store_pod(copy, &1_u64));
        // Killed in the middle of the second turn: the copy is changed, the sequence is not.
        latch[16].store(99);
        let reader = {
            let latch = latch.clone();
            thread::spawn(move || latch::read(&latch, 2, load_pod::<u64, _>).unwrap())
        };
        LatchWriter::resume(&latch).turn(&latch, |copy| store_pod(copy, &2_u64));
        assert!([1, 2].contains(&reader.join().unwrap()));
    });
}
