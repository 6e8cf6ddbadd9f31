//! What a call of the C library costs more than the same call in Rust.
//!
//! The shared library is loaded as a C host's linker would, and called through pointers, as C calls it. Both take turns in
//! one process, so that the difference holds whatever else goes on; a C caller's own loop is in it on both sides.

use serde_json::json;
use tt_shm_benches::capi::{CTracker, Library};
use tt_shm_benches::child::play_part_if_asked;
use tt_shm_benches::options::Options;
use tt_shm_benches::report::Report;
use tt_shm_measure::interleave::{Figure, Interleaved};
use tt_shm_measure::scene::Scene;
use tt_shm_measure::sink::{Nothing, Sink, Tracked, WrongSum};
use tt_shm_measure::workload::{Order, Pairs, Untimed, Workload};
use tt_shm_writer::{Record, Tracker};

/// The most that a C call may cost more.
const LIMIT_NS: f64 = 5.0;
/// Live buffers: they fit into the caches, so that memory does not hide the difference.
const LIVE: usize = 1000;

/// The bytes that a sink counts are those that are live.
fn check<S: Sink>(pairs: &mut Pairs<S>, found: impl Fn(&S) -> u64) -> Result<(), WrongSum> {
    pairs.step(&mut Untimed);
    let expected = pairs.live_bytes();
    WrongSum::check("bytes live", found(&pairs.sink), expected)
}

fn main() {
    play_part_if_asked();
    let options = Options::from_env();
    let mut report = Report::new("capi", &options);
    let Some(library) = Library::load() else {
        return report.skip("C calls", "libtt_shm.so is not beside this program");
    };
    let scene = Scene::new();
    let short = library.tracker(scene.namespace.as_str());
    let long = library.tracker(scene.namespace.as_str()).by_struct();
    let exclusive = library.exclusive(scene.namespace.as_str());
    let pairs = |sink| Pairs::new(sink, LIVE, Order::Random, 0);
    let mut cases = Interleaved::default();
    let rust: Tracked<Tracker> = scene.tracked();
    cases.add(Figure::BestRound, Pairs::new(Nothing, LIVE, Order::Random, 0), |_| Ok(())).expect("nothing");
    cases
        .add(Figure::BestRound, Pairs::new(rust, LIVE, Order::Random, 0), |pairs| {
            check(pairs, |sink| sink.tracker.counters(sink.device).expect("enabled").dram_used())
        })
        .expect("exact");
    for tracker in [short, long, exclusive] {
        cases
            .add(Figure::BestRound, pairs(tracker), |pairs| check(pairs, CTracker::dram_bytes))
            .expect("exact");
    }
    for _ in 0..options.pick(200, 20) {
        cases.pass();
    }
    let measured = cases.finish().expect("exact");
    let names = ["harness alone", "Rust", "C, by numbers", "C, by a struct", "C, exclusive"];
    let figures: Vec<f64> = measured.iter().map(|measured| measured.ns).collect();
    let mut base = None;
    for (name, measured) in names.into_iter().zip(measured) {
        let parameters = [("live", json!(LIVE))];
        match (&base, name) {
            (None, "Rust") => base = Some(report.add(name, &parameters, measured)),
            (Some(base), _) => _ = report.add_to(base, name, &parameters, measured),
            (None, _) => _ = report.add(name, &parameters, measured),
        }
    }
    for (name, ns) in names.iter().zip(&figures).skip(2) {
        let more = ns - figures[1];
        let verdict = if more <= LIMIT_NS { "within" } else { "MORE THAN" };
        println!("{name}: {more:+.1} ns an event beside Rust, {verdict} the limit of {LIMIT_NS} ns");
    }
    report.finish();
}
