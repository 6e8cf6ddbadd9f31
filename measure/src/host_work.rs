//! What a host does between two dispatches, for a given time.

use crate::clock::Stopwatch;
use std::hint::black_box;

/// Words that the work goes over: as large as a first-level cache, since real work uses it too.
const WORDS: usize = 4096;
/// Repetitions when measuring how long a piece takes.
const TRIALS: u64 = 200;

/// Busy work of a fixed amount. Not a wait for a deadline: that would hide whatever runs beside it.
#[derive(Debug)]
pub struct HostWork {
    memory: Vec<u64>,
    pieces: u64,
    position: usize,
}

impl HostWork {
    /// Work that takes so many nanoseconds when nothing disturbs it.
    pub fn of(ns: f64) -> HostWork {
        let mut work = HostWork { memory: vec![1; WORDS], pieces: 64, position: 0 };
        let clock = Stopwatch::get();
        let best = (0..TRIALS).map(|_| {
            let start = clock.ticks();
            work.run();
            clock.since(start)
        });
        let per_piece = clock.ns(best.min().unwrap_or(1)) / work.pieces as f64;
        work.pieces = ((ns / per_piece).round() as u64).max(1);
        work
    }

    /// Does it.
    #[inline(never)]
    pub fn run(&mut self) {
        let mut sum = 0_u64;
        for _ in 0..self.pieces {
            self.position = (self.position + 8) % WORDS;
            for word in &mut self.memory[self.position..self.position + 8] {
                // Each depends on the one before, as pointer-chasing host code does.
                sum = sum.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(*word);
                *word = sum;
            }
        }
        black_box(sum);
    }
}
