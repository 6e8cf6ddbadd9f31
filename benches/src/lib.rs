//! What the benchmarks share: timing of a repeated piece of work, and how it is printed.
//!
//! Machines are noisy, so a figure is the best of several rounds, and what counts is the ratio to the
//! base cases of the same run.

use std::time::Instant;

/// Best time per repetition in nanoseconds, over several rounds of `repetitions`.
pub fn best_ns(rounds: u32, repetitions: u32, mut work: impl FnMut(u32)) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let start = Instant::now();
        for repetition in 0..repetitions {
            work(repetition);
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(repetitions));
    }
    best
}

/// Prints one line: what, how long, and how many times the base it is.
pub fn report(what: &str, ns: f64, base_ns: f64) {
    println!("{what:<44} {ns:>9.1} ns  {:>6.2} x", ns / base_ns);
}
