//! What happens to files, in the abstract: system calls take effect one after the other, so what matters is
//! their order. A name that is reaped must be that of a dead process; what a successor adopts must be intact,
//! and not older than what any reader saw.

use crate::word::{ModelWord, SOUND, Tally, explore, kill_writer_after, latch_memory};
use loom::sync::atomic::{AtomicBool, Ordering::SeqCst};
use loom::thread;
use shm_layout::protocol::latch::{self, LatchWriter};
use shm_layout::protocol::stamped;
use shm_layout::{load_pod, store_pod};
use std::sync::Arc;

/// A segment as the file system knows it.
#[derive(Default)]
struct File {
    named: AtomicBool,
    locked: AtomicBool,
    ended: AtomicBool,
}

impl File {
    fn lock(&self) {
        self.locked.store(true, SeqCst);
    }

    fn link(&self) {
        self.named.store(true, SeqCst);
    }

    /// The process ends, and the kernel drops its lock.
    fn end(&self) {
        self.ended.store(true, SeqCst);
        self.locked.store(false, SeqCst);
    }

    /// As a tracker and the aggregator do it: found by name, not locked, removed.
    fn reap(&self) -> bool {
        let dead = self.named.load(SeqCst) && !self.locked.load(SeqCst);
        if dead && self.named.swap(false, SeqCst) {
            assert!(self.ended.load(SeqCst), "the name of a living process was removed");
            return true;
        }
        false
    }
}

/// Two reap while a process makes its segment and ends.
fn reaped_beside(tally: &Arc<Tally>, make: impl Fn(&File) + Copy + Send + Sync + 'static) {
    let tally = tally.clone();
    explore(Some(3), move || {
        let file = Arc::new(File::default());
        let reaper = || {
            let file = file.clone();
            thread::spawn(move || file.reap())
        };
        let reapers = [reaper(), reaper()];
        make(&file);
        file.end();
        let reaped =
            reapers.map(|reaper| reaper.join().unwrap()).into_iter().filter(|reaped| *reaped).count();
        assert!(reaped <= 1, "removed twice");
        // A later one finds what was left.
        assert_eq!(file.reap(), reaped == 0);
        tally.count(reaped == 1);
    });
}

#[test]
fn only_the_dead_are_reaped_and_each_once() {
    let tally = Arc::default();
    reaped_beside(&tally, |file| {
        file.lock();
        file.link();
    });
    tally.assert_both();
}

#[test]
#[should_panic(expected = "the name of a living process was removed")]
fn a_name_before_its_lock_would_be_reaped() {
    reaped_beside(&Arc::default(), |file| {
        file.link();
        file.lock();
    });
}

const TURNS: u64 = 2;

/// An aggregator writes a row and a bucket of history, and dies after so many stores; a reader looks
/// meanwhile, and a successor takes over what it finds.
fn adopted_after(stores: usize, tally: &Arc<Tally>) {
    let tally = tally.clone();
    explore(Some(2), move || {
        let row: Arc<Vec<ModelWord<SOUND>>> = Arc::new(latch_memory(2));
        let bucket: Arc<[ModelWord<SOUND>; 3]> = Arc::new(std::array::from_fn(|_| ModelWord::watched()));
        kill_writer_after(stores);
        let reader = {
            let row = row.clone();
            thread::spawn(move || latch::read(&row, 4, load_pod::<[u64; 2], _>).expect("fewer turns"))
        };
        let mut writer = LatchWriter::default();
        for turn in 1..=TURNS {
            writer.turn(&row, |copy| store_pod(copy, &[turn, turn]));
            stamped::write(&bucket[..], &[turn, 10 * turn, 10 * turn]);
        }
        let [seen, same] = reader.join().unwrap();
        assert_eq!(seen, same, "torn");
        let [adopted, same] = latch::read(&row, 1, load_pod::<[u64; 2], _>).expect("nobody writes");
        assert_eq!(adopted, same, "torn");
        assert!(seen <= adopted && adopted <= TURNS, "{adopted} adopted, {seen} seen before");
        let history = stamped::read::<[u64; 3], _>(&bucket[..]);
        assert!(history.is_none_or(|[stamp, a, b]| a == 10 * stamp && a == b && stamp <= adopted), "torn");
        tally.count(adopted == TURNS);
        kill_writer_after(usize::MAX);
    });
}

#[test]
fn what_a_successor_adopts_is_whole_and_not_older_than_what_was_seen() {
    let tally = Arc::default();
    // A turn stores two words and the sequence, a bucket its stamp twice and two words.
    for stores in 0..=TURNS as usize * 7 {
        adopted_after(stores, &tally);
    }
    tally.assert_both();
}
