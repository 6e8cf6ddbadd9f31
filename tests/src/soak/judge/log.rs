//! A writer's private log: one record per call, in a file that outlives kill -9.
//!
//! A record is begun before its call and completed after it, with the position and the ticks of its first event as
//! the writer reads them back from its own ring. All events of a call have the same ticks and positions in a row.
//! What the call was follows from the seed (see [`super::super::mix`]) or is in the record.

use anyhow::Context;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU64, fence};
use tt_shm_os::WriteMap;

const WORDS: usize = 8;
/// Records that a log has room for; a writer ends before it is full.
pub const CAPACITY: u64 = 400_000;

/// What a record is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A segment was made: `a` is its identity, `b` the number of the life.
    Open,
    /// The next call of a thread's mix.
    Mix,
    /// A buffer of `a` bytes with the id `b` in DRAM of a device.
    Spike,
    /// Its end.
    SpikeEnd,
    /// An allocation of `a` bytes of DRAM failed; `b` bytes were free.
    Failed,
    /// The segment was closed.
    Close,
}

const CODES: [Code; 6] = [Code::Open, Code::Mix, Code::Spike, Code::SpikeEnd, Code::Failed, Code::Close];

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it was.
    pub code: Code,
    /// Of which thread.
    pub thread: usize,
    /// On which device of the process, where the code does not say.
    pub device: usize,
    /// The clock before the call.
    pub before: u64,
    /// The clock after it returned, `None` if it has not.
    pub after: Option<u64>,
    /// Position of its first event.
    pub position: u64,
    /// Ticks of its events.
    pub ticks: u64,
    /// See [`Code`].
    pub a: u64,
    /// See [`Code`].
    pub b: u64,
}

impl Entry {
    /// A call that has begun at this tick, of which nothing else is known.
    pub fn begun(code: Code, before: u64) -> Entry {
        Entry { code, thread: 0, device: 0, before, after: None, position: 0, ticks: 0, a: 0, b: 0 }
    }
}

/// A log, as its writer and as the soak see it.
pub struct Log {
    map: WriteMap,
}

impl Log {
    /// A new file.
    pub fn create(path: &Path) -> anyhow::Result<Log> {
        let file = File::options().read(true).write(true).create_new(true).open(path);
        let file = file.with_context(|| format!("cannot make {}", path.display()))?;
        let len = (CAPACITY as usize + 1) * WORDS * 8;
        file.set_len(len as u64)?;
        Ok(Log { map: WriteMap::new(&file, len)? })
    }

    /// The file that the soak made.
    pub fn open(path: &Path) -> anyhow::Result<Log> {
        let file = File::options().read(true).write(true).open(path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Log { map: WriteMap::new(&file, file.metadata()?.len() as usize)? })
    }

    /// The first record's place holds two counts: what the writer found wrong with its own events, and delays.
    fn word(&self, record: u64, word: usize) -> &AtomicU64 {
        &self.map.words()[(record as usize + 1) * WORDS + word]
    }

    /// Something that the writer read back is not what it reported.
    pub fn complain(&self) {
        self.map.words()[0].fetch_add(1, SeqCst);
    }

    /// How often that was.
    pub fn complaints(&self) -> u64 {
        self.map.words()[0].load(SeqCst)
    }

    /// So many events were delayed between clock and commit.
    pub fn set_delays(&self, delays: u64) {
        self.map.words()[1].store(delays, SeqCst);
    }

    /// How many that were.
    pub fn delays(&self) -> u64 {
        self.map.words()[1].load(SeqCst)
    }

    /// Record number `number` is begun. Nothing of the call may come to be before this.
    pub fn begin(&self, number: u64, entry: &Entry) {
        let Entry { code, thread, device, before, a, b, .. } = *entry;
        let what = code as u64 | (thread as u64) << 8 | (device as u64) << 16;
        for (word, value) in [(1, what), (2, before), (6, a), (7, b)] {
            self.word(number, word).store(value, SeqCst);
        }
        self.word(number, 0).store(1, SeqCst);
        fence(SeqCst);
    }

    /// The call returned.
    pub fn end(&self, number: u64, position: u64, ticks: u64, after: u64) {
        fence(SeqCst);
        for (word, value) in [(3, after), (4, position), (5, ticks)] {
            self.word(number, word).store(value, SeqCst);
        }
        self.word(number, 0).store(2, SeqCst);
    }

    /// Completes what is known only after the call that makes a segment.
    pub fn name(&self, number: u64, a: u64) {
        self.word(number, 6).store(a, SeqCst);
    }

    /// A record, if it was begun.
    pub fn entry(&self, number: u64) -> Option<Entry> {
        let word = |word| self.word(number, word).load(SeqCst);
        let state = word(0);
        if number >= CAPACITY || state == 0 {
            return None;
        }
        let what = word(1);
        Some(Entry {
            code: *CODES.get((what & 0xff) as usize)?,
            thread: (what >> 8 & 0xff) as usize,
            device: (what >> 16 & 0xff) as usize,
            before: word(2),
            after: (state == 2).then(|| word(3)),
            position: word(4),
            ticks: word(5),
            a: word(6),
            b: word(7),
        })
    }
}
