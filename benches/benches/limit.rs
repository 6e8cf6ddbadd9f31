//! The least that any event ring with timestamps can cost, and what it is made of.

use serde_json::json;
use tt_shm_benches::child::play_part_if_asked;
use tt_shm_benches::clock::Stopwatch;
use tt_shm_benches::limit::{ClockOnly, LimitRing, StoreOnly};
use tt_shm_benches::measure::{Measured, measure};
use tt_shm_benches::options::Options;
use tt_shm_benches::report::Report;
use tt_shm_benches::sink::{Nothing, Sink};
use tt_shm_benches::workload::{Order, Pairs, Workload};

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
    report.finish();
}

fn run(sink: impl Sink, options: &Options) -> Measured {
    measure(&mut Pairs::new(sink, 1000, Order::Random, 0), options.effort())
}

/// What is written is there.
fn checked(ring: LimitRing) -> LimitRing {
    let mut pairs = Pairs::new(ring, 1000, Order::Random, 0);
    for _ in 0..100 {
        pairs.step(&mut tt_shm_benches::workload::Untimed);
    }
    assert_eq!(pairs.sink.last(), (1200, 1200));
    pairs.sink
}
