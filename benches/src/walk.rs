//! What one cache line costs that nobody could ask for earlier.

use fastrand::Rng;
use std::hint::black_box;
use std::io;
use std::sync::atomic::Ordering;
use tt_shm_measure::limit::shared_map;
use tt_shm_measure::workload::{Probe, Workload};
use tt_shm_os::WriteMap;

const LINE_WORDS: usize = 8;

/// Lines of /dev/shm, each of which names the next, at random: no load can begin before the last has ended.
#[derive(Debug)]
pub struct Walk {
    map: WriteMap,
    line: usize,
}

impl Walk {
    /// Over so many bytes.
    pub fn new(bytes: usize) -> io::Result<Walk> {
        let map = shared_map(bytes)?;
        let lines = bytes / 64;
        // One cycle through all lines (Sattolo): each changes places with one before it.
        let mut next: Vec<usize> = (0..lines).collect();
        let mut random = Rng::with_seed(1);
        for line in (1..lines).rev() {
            next.swap(line, random.usize(..line));
        }
        for (line, next) in next.iter().enumerate() {
            map.words()[line * LINE_WORDS].store(*next as u64, Ordering::Relaxed);
        }
        let walk = Walk { map, line: 0 };
        assert_eq!(walk.length(), lines, "the walk comes by every line");
        Ok(walk)
    }

    #[inline(always)]
    fn after(&self, line: usize) -> usize {
        self.map.words()[line * LINE_WORDS].load(Ordering::Relaxed) as usize
    }

    fn length(&self) -> usize {
        let (mut line, mut length) = (self.after(0), 1);
        while line != 0 {
            (line, length) = (self.after(line), length + 1);
        }
        length
    }
}

impl Workload for Walk {
    fn events(&self) -> u64 {
        1
    }

    #[inline(always)]
    fn step<P: Probe>(&mut self, probe: &mut P) {
        self.line = probe.event(|| black_box(self.after(self.line)));
    }
}
