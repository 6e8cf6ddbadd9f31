//! The shared-memory region that unmodified tt-metal publishes per chip: one record takes a mutex, a getpid, a search
//! for the process's slot, atomic additions and a clock.
//!
//! It keeps sums only: no events, no list of what is live, no peaks, no kernels; and nobody cleans up
//! after a process that is killed.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tt_shm_measure::limit::shared_map;
use tt_shm_measure::sink::Sink;
use tt_shm_os::{WriteMap, realtime_ns};

/// Bytes of the region.
pub const REGION_LEN: usize = 8576;
/// Processes that it has room for.
pub const PROCESSES: usize = 64;

const LAST_UPDATE: usize = word(8);
const TOTAL_DRAM: usize = word(48);
const FIRST_CHIP_DRAM: usize = word(88 + 8);
const PROCESS_LIST: usize = word(856);
const PROCESS_WORDS: usize = word(120);
const PROCESS_DRAM: usize = word(8);
const PROCESS_TIME: usize = word(48);

/// Offsets are written in bytes, as in tt-metal's structure.
const fn word(offset: usize) -> usize {
    offset / size_of::<u64>()
}

/// One chip's region.
#[derive(Debug)]
pub struct Region {
    map: WriteMap,
    lock: Mutex<()>,
}

impl Region {
    /// A region in which this process has the given slot, and others have those before it.
    pub fn new(slot: usize) -> io::Result<Region> {
        assert!(slot < PROCESSES, "there are {PROCESSES} slots");
        let region = Region { map: shared_map(REGION_LEN)?, lock: Mutex::new(()) };
        let own = u64::from(std::process::id());
        for other in 0..slot {
            // Not a pid that this process can have.
            region.process(other)[0].store(u64::from(u32::MAX) - other as u64, Ordering::Relaxed);
        }
        region.process(slot)[0].store(own, Ordering::Relaxed);
        Ok(region)
    }

    fn process(&self, slot: usize) -> &[AtomicU64] {
        let start = PROCESS_LIST + slot * PROCESS_WORDS;
        &self.map.words()[start..start + PROCESS_WORDS]
    }

    fn own_slot(&self) -> Option<&[AtomicU64]> {
        let pid = rustix::process::getpid().as_raw_nonzero().get() as u64;
        let slots = (0..PROCESSES).map(|slot| self.process(slot));
        slots.into_iter().find(|process| process[0].load(Ordering::Acquire) == pid)
    }

    /// Adds to the sums; a free adds a negative number.
    #[inline]
    pub fn record(&self, bytes: i64) {
        let _guard = self.lock.lock().expect("no thread panics");
        let Some(process) = self.own_slot() else { panic!("this process has a slot") };
        let (words, bytes) = (self.map.words(), bytes.cast_unsigned());
        for sum in [&words[TOTAL_DRAM], &words[FIRST_CHIP_DRAM], &process[PROCESS_DRAM]] {
            // Wrapping: the sum of both complements is the difference.
            sum.fetch_add(bytes, Ordering::Relaxed);
        }
        let now = realtime_ns();
        process[PROCESS_TIME].store(now, Ordering::Relaxed);
        words[LAST_UPDATE].store(now, Ordering::Relaxed);
    }

    /// The five totals of the chip.
    #[inline]
    pub fn totals(&self) -> [u64; 5] {
        let words = &self.map.words()[TOTAL_DRAM..TOTAL_DRAM + 5];
        std::array::from_fn(|class| words[class].load(Ordering::Relaxed))
    }
}

impl Sink for Region {
    #[inline]
    fn alloc(&mut self, _: u64, size: u64) {
        self.record(size.cast_signed());
    }

    #[inline]
    fn free(&mut self, _: u64, size: u64) {
        self.record(-size.cast_signed());
    }
}
