//! Cost of one event, as a multiple of the least that any event ring with timestamps can cost.

use serde_json::{Value, json};
use std::hint::black_box;
use tt_shm_benches::child::{Player, play_part_if_asked};
use tt_shm_benches::options::{Group, Options};
use tt_shm_benches::report::{Base, Report};
use tt_shm_benches::threads::{Spaced, Team, hand_over, measure_together};
use tt_shm_measure::limit::LimitRing;
use tt_shm_measure::scene::Scene;
use tt_shm_measure::sink::{Nothing, Sink, Tracked};
use tt_shm_measure::timing::{Measured, Timed, best_mean, measure};
use tt_shm_measure::workload::{Order, Pairs, Probe, SIZE, Single, Untimed, Workload};
use tt_shm_writer::{CoreType, Kernel, KernelType, Launch, ProgramBinaryStatus, Record, Tracker};

const LIVE: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
const ORDERS: [Order; 3] = [Order::Random, Order::RandomSameId, Order::Lifo];

fn main() {
    play_part_if_asked();
    let options = Options::from_env();
    let mut emit = Emit { report: Report::new("emit", &options), limit: None, options: options.clone() };
    emit.bases();
    let groups: [Group<Emit>; 8] = [
        ("disabled", Emit::disabled),
        ("pairs", Emit::pairs),
        ("dispatch", Emit::dispatch),
        ("threads", Emit::threads),
        ("spaced", Emit::spaced),
        ("hand-over", Emit::hand_over),
        ("observers", Emit::observers),
        ("growth", Emit::growth),
    ];
    options.run(&groups, &mut emit);
    emit.report.finish();
}

struct Emit {
    options: Options,
    report: Report,
    limit: Option<Base>,
}

impl Emit {
    fn add(&mut self, name: &str, parameters: &[(&str, Value)], measured: Measured) {
        let limit = self.limit.as_ref().expect("measured first");
        self.report.add_to(limit, name, parameters, measured);
    }

    /// The harness alone, whose percentiles are the cost of timing, and the limit.
    fn bases(&mut self) {
        let effort = self.options.effort();
        let harness = measure(&mut Pairs::new(Nothing, 1000, Order::Random, 0), effort);
        let ring = LimitRing::new().expect("shared memory");
        let limit = measure(&mut Pairs::new(ring, 1000, Order::Random, 0), effort);
        self.limit = Some(self.report.add("limit", &[], limit));
        self.add("harness alone", &[("live", json!(1000))], harness);
        let large = measure(&mut Pairs::new(Nothing, 1_000_000, Order::Random, 0), effort);
        self.add("harness alone", &[("live", json!(1_000_000))], large);
    }

    fn disabled(&mut self) {
        let effort = self.options.effort();
        let tracker = Tracker::disabled();
        let device = tracker.register_device(&Default::default()).expect("nothing happens");
        // The same arguments, each kept from being known in advance, and no call.
        let nothing = || {
            black_box((black_box(&tracker), black_box(device), black_box(1_u64)));
            black_box(true);
        };
        let base = best_mean(&mut Single(nothing), effort);
        self.add("loop alone", &[], Measured::mean(base));
        assert!(tracker.free(device, 1).is_ok() && !tracker.is_enabled());
        let call = || _ = black_box(black_box(&tracker).free(black_box(device), black_box(1)).is_ok());
        let ns = best_mean(&mut Single(call), effort);
        self.add("tracking disabled", &[], Measured::mean(ns));
    }

    fn pairs(&mut self) {
        for live in LIVE {
            let scene = Scene::new();
            let shared = self.orders("shared", live, scene.tracked());
            self.orders("exclusive", live, shared.into_exclusive());
        }
    }

    fn orders<R: Record>(&mut self, handle: &str, live: usize, sink: Tracked<R>) -> Tracked<R> {
        let mut pairs = Pairs::new(sink, live, Order::Random, 0);
        for order in ORDERS {
            pairs.set_order(order);
            check(&mut pairs);
            let measured = measure(&mut pairs, self.options.effort());
            let parameters = [("live", json!(live)), ("order", json!(order.name()))];
            self.add(handle, &parameters, measured);
        }
        pairs.finish()
    }

    fn dispatch(&mut self) {
        let scene = Scene::new();
        let shared = scene.tracked();
        launch(&shared);
        let measured = self.dispatched(&shared);
        self.add("cached dispatch", &[("handle", json!("shared"))], measured);
        let exclusive = shared.into_exclusive();
        let measured = self.dispatched(&exclusive);
        self.add("cached dispatch", &[("handle", json!("exclusive"))], measured);
    }

    fn dispatched<R: Record>(&self, sink: &Tracked<R>) -> Measured {
        let cached = || sink.tracker.counters(sink.device).expect("enabled").cached_dispatches;
        let before = cached();
        sink.tracker.dispatch(sink.device, 1).expect("loaded");
        assert_eq!(cached(), before + 1);
        let call = || sink.tracker.dispatch(sink.device, 1).expect("loaded");
        measure(&mut Single(call), self.options.effort())
    }

    /// Two threads at one lock, and beside it two that have nothing to do with each other.
    fn threads(&mut self) {
        for live in [1_000, 10_000] {
            let scene = Scene::new();
            let sink = scene.tracked();
            let team = Team::new(
                [0, 1].map(|thread| Pairs::new(sink.share(), live / 2, Order::Random, thread << 40)),
            );
            let measured = measure_together(team, self.options.effort());
            self.add("shared", &[("live", json!(live)), ("threads", json!(2))], measured);
            let scene = Scene::new();
            let team = Team::new([0, 1].map(|thread| {
                Pairs::new(scene.tracked().into_exclusive(), live / 2, Order::Random, thread << 40)
            }));
            let measured = measure_together(team, self.options.effort());
            self.add("exclusive, one each", &[("live", json!(live)), ("threads", json!(2))], measured);
        }
    }

    /// Threads that do other work between events, and beside each the same loop without a tracker: more threads than
    /// cores are interrupted in the middle of anything.
    fn spaced(&mut self) {
        const WORK_NS: f64 = 2_000.0;
        for threads in [2, 4, 8] {
            let scene = Scene::new();
            let sink = scene.tracked();
            let effort = self.options.effort().over(20);
            let parameters = [("threads", json!(threads)), ("work us", json!(2))];
            let alone = (0..threads).map(|id| Spaced::new(Nothing, id, WORK_NS)).collect::<Vec<_>>();
            let alone = measure_together(Team::new(alone), effort);
            self.add("loop alone", &parameters, alone);
            let shared = (0..threads).map(|id| Spaced::new(sink.share(), id, WORK_NS)).collect::<Vec<_>>();
            let shared = measure_together(Team::new(shared), effort);
            self.add("shared", &parameters, shared);
        }
    }

    fn hand_over(&mut self) {
        let scene = Scene::new();
        let measured = hand_over(&scene.tracked(), self.options.pick(200, 20));
        self.add("hand-over to another thread", &[], measured);
    }

    fn observers(&mut self) {
        for live in [1_000, 10_000] {
            let scene = Scene::new();
            let mut pairs = Pairs::new(scene.tracked(), live, Order::Random, 0);
            self.observed(&mut pairs, "shared", live, "none");
            let aggregator = Player::aggregator(&scene);
            self.observed(&mut pairs, "shared", live, "following");
            // It has followed: its table has what we have.
            let bytes = pairs.live_bytes();
            scene.wait_for_table("the same sum", |table| {
                table.devices.iter().any(|(_, device)| device.dram_used_bytes == bytes) && table.events > 0
            });
            aggregator.stop();
            self.observed(&mut pairs, "shared", live, "stopped");
            drop(aggregator);
            let exclusive = pairs.finish().into_exclusive();
            let mut pairs = Pairs::new(exclusive, live, Order::Random, 1 << 40);
            self.observed(&mut pairs, "exclusive", live, "none");
            let aggregator = Player::aggregator(&scene);
            self.observed(&mut pairs, "exclusive", live, "following");
            aggregator.stop();
            self.observed(&mut pairs, "exclusive", live, "stopped");
        }
    }

    fn observed<R: Record>(
        &mut self,
        pairs: &mut Pairs<Tracked<R>>,
        handle: &str,
        live: usize,
        observer: &str,
    ) {
        check(pairs);
        let measured = measure(pairs, self.options.effort());
        self.add(handle, &[("live", json!(live)), ("observer", json!(observer))], measured);
    }

    /// From nothing to a million: no single call may pause for long.
    fn growth(&mut self) {
        let count = self.options.pick(1_000_000_u64, 100_000);
        let scene = Scene::new();
        let mut sink = scene.tracked();
        let mut timed = Timed::default();
        for id in 0..count {
            timed.event(|| sink.alloc(id, SIZE));
        }
        assert_eq!(sink.dram_bytes(), count * SIZE);
        let measured = Measured { ns: timed.mean_ns(), percentiles: Some(timed.percentiles()) };
        self.add("growth", &[("from", json!(0)), ("to", json!(count))], measured);
    }
}

/// Some pairs, and the tracker still counts what is live.
fn check<R: Record>(pairs: &mut Pairs<Tracked<R>>) {
    for _ in 0..100 {
        pairs.step(&mut Untimed);
    }
    pairs.check().expect("what is live is counted");
}

fn launch<R: Record>(sink: &Tracked<R>) {
    let kernel = Kernel::new(1, KernelType::Application, CoreType::Tensix, 100 << 10, 64);
    let launch = Launch::new(1, std::slice::from_ref(&kernel), ProgramBinaryStatus::NotSent);
    sink.tracker.launch(sink.device, launch).expect("launched");
}
