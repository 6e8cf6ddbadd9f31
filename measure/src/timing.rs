//! Means and distributions of a workload.

use crate::clock::Stopwatch;
use crate::workload::{Probe, Untimed, Workload};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Rounds of a mean, events in each, and events timed one by one.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The best of so many.
    pub rounds: u64,
    /// Events in a round. Less than a millisecond in most cases: longer than that, on a machine that
    /// others use too, no round runs without an interruption.
    pub events: u64,
    /// Events in a distribution.
    pub samples: u64,
}

impl Effort {
    /// For a case that takes so many times longer per event.
    pub fn over(self, times: u64) -> Effort {
        let least = |number: u64| (number / times).max(20);
        // Rounds get shorter first; what is slow by itself needs fewer of them.
        let rounds = if times > 100 { self.rounds.min(20) } else { self.rounds };
        Effort { rounds, events: least(self.events), samples: least(self.samples) }
    }
}

/// Nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Median.
    pub p50: f64,
    /// One of 100 is slower.
    pub p99: f64,
    /// One of 1 000 is slower.
    pub p99_9: f64,
    /// One of 10 000 is slower.
    pub p99_99: f64,
    /// The slowest.
    pub max: f64,
}

/// What a measurement came to.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Nanoseconds per event: the mean of the best round.
    pub ns: f64,
    /// Of single events, the cost of timing them included.
    pub percentiles: Option<Percentiles>,
}

impl Measured {
    /// A figure without a distribution.
    pub fn mean(ns: f64) -> Measured {
        Measured { ns, percentiles: None }
    }
}

/// Times single events. What it costs itself is part of each figure: see the base case.
#[derive(Debug)]
pub struct Timed {
    clock: Stopwatch,
    histogram: Histogram<u64>,
}

impl Default for Timed {
    fn default() -> Self {
        // Three digits; growing only when a slower event than ever comes.
        let histogram = Histogram::new_with_max(1 << 36, 3).expect("valid bounds");
        Timed { clock: Stopwatch::get(), histogram }
    }
}

impl Timed {
    /// Adds one duration in ticks.
    #[inline]
    pub fn record(&mut self, ticks: u64) {
        self.histogram.saturating_record(ticks);
    }

    /// Adds what another thread recorded.
    pub fn merge(&mut self, other: &Timed) {
        self.histogram.add(&other.histogram).expect("the same bounds");
    }

    /// The mean in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        self.histogram.mean() * self.clock.ns(1)
    }

    /// In nanoseconds.
    pub fn percentiles(&self) -> Percentiles {
        let at = |quantile| self.clock.ns(self.histogram.value_at_quantile(quantile));
        Percentiles {
            p50: at(0.5),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: self.clock.ns(self.histogram.max()),
        }
    }

    /// The median as the figure: for what takes so long that a mean would show the scheduler.
    pub fn median(&self) -> Measured {
        let percentiles = self.percentiles();
        Measured { ns: percentiles.p50, percentiles: Some(percentiles) }
    }
}

impl Probe for Timed {
    #[inline(always)]
    fn event<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let start = self.clock.ticks();
        let result = work();
        let ticks = self.clock.since(start);
        self.record(ticks);
        result
    }
}

/// Mean of the best round and distribution of single events of a workload.
pub fn measure(workload: &mut impl Workload, effort: Effort) -> Measured {
    let ns = best_mean(workload, effort);
    let mut timed = Timed::default();
    for _ in 0..effort.samples / workload.events() {
        workload.step(&mut timed);
    }
    Measured { ns, percentiles: Some(timed.percentiles()) }
}

/// Mean of the best round.
pub fn best_mean(workload: &mut impl Workload, effort: Effort) -> f64 {
    let ticks = (0..effort.rounds).map(|_| round(workload, effort)).min().unwrap_or(0);
    mean_ns(ticks, workload, effort)
}

/// Ticks that one round takes.
#[inline(never)]
pub fn round(workload: &mut impl Workload, effort: Effort) -> u64 {
    let clock = Stopwatch::get();
    let start = clock.ticks();
    for _ in 0..steps(workload, effort) {
        workload.step(&mut Untimed);
    }
    clock.since(start)
}

/// Nanoseconds per event of a round that took so many ticks.
pub fn mean_ns(ticks: u64, workload: &impl Workload, effort: Effort) -> f64 {
    Stopwatch::get().ns(ticks) / (steps(workload, effort) * workload.events()) as f64
}

fn steps(workload: &impl Workload, effort: Effort) -> u64 {
    (effort.events / workload.events()).max(1)
}

/// The one in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
