//! What the aggregator takes: to fold events, to be up to date, to rest, and as there is more of everything.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tt_shm_aggregator::{Aggregator, Config};
use tt_shm_benches::child::{Player, play_part_if_asked};
use tt_shm_benches::crowd::{Crowd, Size, fold, observer};
use tt_shm_benches::options::{Group, Options};
use tt_shm_benches::report::{Base, Report};
use tt_shm_measure::clock::Stopwatch;
use tt_shm_measure::scene::Scene;
use tt_shm_measure::timing::{Effort, Measured, Timed, best_mean};
use tt_shm_measure::workload::{SIZE, Single};
use tt_shm_reader::Table;

const SMALL: Size = Size { processes: 1, devices: 1, live: 1000 };
/// Events that a process emits before another one does: typical, and the worst for merging by time.
const TURNS: [u64; 2] = [64, 2];

fn main() {
    play_part_if_asked();
    let options = Options::from_env();
    let mut bench =
        Aggregate { report: Report::new("aggregate", &options), base: None, options: options.clone() };
    bench.base();
    let groups: [Group<Aggregate>; 4] = [
        ("fold", Aggregate::fold),
        ("delay", Aggregate::delay),
        ("rest", Aggregate::rest),
        ("series", Aggregate::series),
    ];
    options.run(&groups, &mut bench);
    bench.report.finish();
}

struct Aggregate {
    options: Options,
    report: Report,
    base: Option<Base>,
}

impl Aggregate {
    fn add(&mut self, name: &str, parameters: &[(&str, Value)], measured: Measured) {
        let base = self.base.as_ref().expect("measured first");
        self.report.add_to(base, name, parameters, measured);
    }

    /// A poll that finds nothing in an empty namespace.
    fn base(&mut self) {
        let scene = Scene::new();
        let ns = idle_poll(&mut observer(&scene), &self.options);
        self.base = Some(self.report.add("empty poll", &[], Measured::mean(ns)));
    }

    fn fold(&mut self) {
        for rings in [1, 8, 64] {
            for turn in TURNS {
                let size = Size { processes: rings, ..SMALL };
                let ns = fold_ns(size, turn, self.options.pick(10, 2));
                let parameters = [("rings", json!(rings)), ("turn", json!(turn))];
                self.add("fold, per event", &parameters, Measured::mean(ns));
            }
        }
    }

    /// From the return of alloc() to the moment when the table has it.
    fn delay(&mut self) {
        let busy = self.options.pick(2000, 200);
        self.delay_of("delay, events in a row", busy, Duration::ZERO);
        // Longer than the aggregator needs to fall asleep for its longest time.
        let rare = self.options.pick(40, 5);
        self.delay_of("delay, after a pause", rare, Duration::from_millis(150));
    }

    fn delay_of(&mut self, name: &str, events: usize, pause: Duration) {
        let (scene, size) = (Scene::new(), Size { processes: 8, devices: 4, live: 1000 });
        let crowd = Crowd::new(&scene, size);
        let _aggregator = Player::aggregator(&scene);
        let expected = crowd.first_device_bytes();
        let table = scene.wait_for_table("all segments", |table| {
            table.devices.first().is_some_and(|(_, device)| device.dram_used_bytes == expected)
        });
        let (clock, mut timed) = (Stopwatch::get(), Timed::default());
        for event in 0..events {
            std::thread::sleep(pause);
            crowd.alloc(event);
            let start = clock.ticks();
            while first_device(&table) < expected + (event as u64 + 1) * SIZE {
                std::hint::spin_loop();
            }
            timed.record(clock.since(start));
        }
        self.report.add(name, &[("processes", json!(8))], timed.median());
    }

    /// CPU time per second while nothing happens.
    fn rest(&mut self) {
        for (processes, devices) in [(1, 1), (16, 8), (64, 32)] {
            let (scene, size) = (Scene::new(), Size { processes, devices, live: 100 });
            let _crowd = Crowd::new(&scene, size);
            let player = Player::aggregator(&scene);
            scene.wait_for_table("all segments", |table| table.processes.len() == processes);
            std::thread::sleep(Duration::from_millis(500));
            let (before, start) = (player.cpu(), Instant::now());
            std::thread::sleep(self.options.pick(Duration::from_secs(5), Duration::from_millis(500)));
            let share = (player.cpu() - before).as_secs_f64() / start.elapsed().as_secs_f64();
            let parameters = [("processes", json!(processes)), ("devices", json!(devices))];
            self.report.add("CPU per second at rest", &parameters, Measured::mean(share * 1e9));
        }
    }

    fn series(&mut self) {
        for processes in [1, 4, 16, 64, 256] {
            self.point("processes", processes, Size { processes, ..SMALL });
        }
        for devices in [1, 8, 32, 128] {
            self.point("devices", devices, Size { devices, ..SMALL });
        }
        for live in [1_000, 10_000, 100_000, 1_000_000] {
            self.point("live", live, Size { live, ..SMALL });
        }
    }

    fn point(&mut self, grows: &str, number: usize, size: Size) {
        let parameters = [("grows", json!(grows)), ("to", json!(number))];
        let fold = fold_ns(size, TURNS[0], self.options.pick(5, 1));
        self.add("series: fold, per event", &parameters, Measured::mean(fold));
        let scene = Scene::new();
        let _crowd = Crowd::new(&scene, size);
        let starts = (0..self.options.pick(10, 2)).map(|_| start_ns(&scene, size));
        let start = starts.fold(f64::INFINITY, f64::min);
        self.add("series: start", &parameters, Measured::mean(start));
        let idle = idle_poll(&mut observer(&scene), &self.options);
        self.add("series: idle poll", &parameters, Measured::mean(idle));
    }
}

/// From nothing to exact figures of every segment that is there.
fn start_ns(scene: &Scene, size: Size) -> f64 {
    let clock = Stopwatch::get();
    // Without the wait for late events, which is a constant.
    let config = Config { merge_window: Duration::ZERO, reap: false, ..Config::new(scene.namespace.clone()) };
    let start = clock.ticks();
    let aggregator = Aggregator::new(config).expect("/dev/shm");
    let ticks = clock.since(start);
    assert_eq!(aggregator.segments(), size.processes);
    clock.ns(ticks)
}

fn idle_poll(aggregator: &mut Aggregator, options: &Options) -> f64 {
    let effort = Effort { events: 20, ..options.effort() };
    best_mean(&mut Single(|| _ = aggregator.poll()), effort)
}

/// Nanoseconds per event to fold rings that are full, all events being old enough: the best of some rounds.
fn fold_ns(size: Size, turn: u64, rounds: usize) -> f64 {
    let scene = Scene::new();
    let mut crowd = Crowd::new(&scene, size);
    let mut aggregator = observer(&scene);
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let events = crowd.fill(turn);
        std::thread::sleep(Duration::from_millis(3));
        best = best.min(fold_all(&mut aggregator, events));
        let table = aggregator.snapshot();
        assert_eq!((table.missed, table.late), (0, 0), "every event is folded, in its turn");
        let used = table.devices.first().map(|(_, device)| device.dram_used_bytes);
        assert_eq!(used, Some(crowd.first_device_bytes()));
    }
    best
}

fn fold_all(aggregator: &mut Aggregator, events: u64) -> f64 {
    let clock = Stopwatch::get();
    let start = clock.ticks();
    fold(aggregator, events);
    clock.ns(clock.since(start)) / events as f64
}

fn first_device(table: &Table) -> u64 {
    table.device(0).read(|row| row.dram_used_bytes()).unwrap_or(0)
}
