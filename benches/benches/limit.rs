//! The least that any event ring with timestamps can cost, and what it is made of.

use serde_json::json;
use shm_layout::EventKind;
use std::hint::black_box;
use tt_shm_benches::child::play_part_if_asked;
use tt_shm_benches::options::Options;
use tt_shm_benches::report::Report;
use tt_shm_benches::walk::Walk;
use tt_shm_measure::clock::Stopwatch;
use tt_shm_measure::limit::LimitRing;
use tt_shm_measure::sink::{EventSink, Nothing, Sink};
use tt_shm_measure::timing::{Measured, best_mean, measure};
use tt_shm_measure::workload::{Order, Pairs, Untimed, Workload};

/// In the first caches; the index of 100 000 allocations; their rows; these with index and ring; in no cache.
const MEMORIES_KIB: [usize; 5] = [256, 1200, 6400, 9600, 65_536];

fn main() {
    play_part_if_asked();
    let options = Options::from_env();
    let mut report = Report::new("limit", &options);
    let base = report.add("harness alone", &[], run(Nothing, &options));
    report.add_to(&base, "clock", &[], run(ClockOnly(Stopwatch::get()), &options));
    let store = StoreOnly(LimitRing::new().expect("shared memory"));
    report.add_to(&base, "64-byte store and head", &[], run(store, &options));
    let limit = checked(LimitRing::new().expect("shared memory"));
    report.add_to(&base, "limit", &[("memory", json!("/dev/shm"))], run(limit, &options));
    for kib in MEMORIES_KIB {
        let mut walk = Walk::new(kib << 10).expect("shared memory");
        let measured = Measured::mean(best_mean(&mut walk, options.effort()));
        report.add_to(&base, "load that waits for the one before", &[("KiB", json!(kib))], measured);
    }
    report.finish();
}

fn run(sink: impl Sink, options: &Options) -> Measured {
    measure(&mut Pairs::new(sink, 1000, Order::Random, 0), options.effort())
}

/// What is written is there.
fn checked(ring: LimitRing) -> LimitRing {
    let mut pairs = Pairs::new(ring, 1000, Order::Random, 0);
    for _ in 0..100 {
        pairs.step(&mut Untimed);
    }
    assert_eq!(pairs.sink.last(), (1200, 1200));
    pairs.sink
}

/// Only the clock.
#[derive(Clone, Copy, Debug)]
struct ClockOnly(Stopwatch);

impl EventSink for ClockOnly {
    #[inline(always)]
    fn put(&mut self, _: EventKind, _: u64, _: u64) {
        black_box(self.0.ticks());
    }
}

/// Only slot and head.
#[derive(Debug)]
struct StoreOnly(LimitRing);

impl EventSink for StoreOnly {
    #[inline(always)]
    fn put(&mut self, kind: EventKind, id: u64, size: u64) {
        self.0.write_untimed(kind, id, size);
    }
}
