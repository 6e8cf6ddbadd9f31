//! A writer's private truth: how far each of its threads came, in a file that outlives kill -9.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU64, fence};

use anyhow::Context;
use tt_shm_os::WriteMap;

/// Each thread has a cache line of its own.
const THREAD_WORDS: usize = 8;
const BEGUN: usize = 0;
const DONE: usize = 1;
const REFUSED: usize = 2;

/// The notes of all threads. A mapping: what was stored is in the kernel's hands when the process dies.
pub struct Notes {
    map: WriteMap,
}

/// What a thread had noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Calls begun.
    pub begun: u64,
    /// Calls that returned: all that were begun, or one less.
    pub done: u64,
    /// Calls that were refused. Must stay 0.
    pub refused: u64,
}

impl Notes {
    /// A new file for so many threads.
    pub fn create(path: &Path, threads: usize) -> anyhow::Result<Notes> {
        let file = File::options().read(true).write(true).create_new(true).open(path);
        let file = file.with_context(|| format!("cannot make {}", path.display()))?;
        let len = threads * THREAD_WORDS * 8;
        file.set_len(len as u64)?;
        Ok(Notes { map: WriteMap::new(&file, len)? })
    }

    /// The file that the soak made.
    pub fn open(path: &Path) -> anyhow::Result<Notes> {
        let file = File::options().read(true).write(true).open(path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        let len = file.metadata()?.len() as usize;
        Ok(Notes { map: WriteMap::new(&file, len)? })
    }

    fn word(&self, thread: usize, word: usize) -> &AtomicU64 {
        &self.map.words()[thread * THREAD_WORDS + word]
    }

    /// Call number `number` (from 1) is about to be made. Nothing of the call may come to be before this.
    pub fn begin(&self, thread: usize, number: u64) {
        self.word(thread, BEGUN).store(number, SeqCst);
        fence(SeqCst);
    }

    /// It returned. Nothing of the call may come to be after this.
    pub fn end(&self, thread: usize, number: u64, refused: bool) {
        fence(SeqCst);
        if refused {
            self.word(thread, REFUSED).fetch_add(1, SeqCst);
        }
        self.word(thread, DONE).store(number, SeqCst);
    }

    /// What a thread of a stopped or dead writer had noted.
    pub fn progress(&self, thread: usize) -> Progress {
        let word = |word| self.word(thread, word).load(SeqCst);
        Progress { begun: word(BEGUN), done: word(DONE), refused: word(REFUSED) }
    }
}
