//! What else a host could do to be observed: the same pairs of allocation and free, told to each peer.
//!
//! Queues and iceoryx2 carry events and keep no statistics, so they are lower bounds and not equals. The
//! socket's server and tt-metal's region keep sums; only ours keeps events, sums, peaks and what is live.

#[cfg(feature = "peers")]
mod iceoryx;
mod lttng;
mod queues;

use serde_json::{Value, json};
use tt_shm_benches::child::{Player, play_part_if_asked};
use tt_shm_benches::options::{Group, Options};
use tt_shm_benches::region::{PROCESSES, Region};
use tt_shm_benches::report::{Base, Report};
use tt_shm_measure::limit::LimitRing;
use tt_shm_measure::message::place;
use tt_shm_measure::scene::Scene;
use tt_shm_measure::sink::{Nothing, Sink};
use tt_shm_measure::socket::SocketClient;
use tt_shm_measure::timing::{Effort, Measured, measure};
use tt_shm_measure::workload::{Order, Pairs, SIZE, Untimed, Workload};

const LIVE: usize = 1000;

fn main() {
    play_part_if_asked();
    let options = Options::from_env();
    let mut peers = Peers { report: Report::new("peers", &options), ours: None, options: options.clone() };
    peers.ours();
    let groups: [Group<Peers>; 5] = [
        ("region", Peers::region),
        ("socket", Peers::socket),
        ("queues", Peers::queues),
        ("iceoryx2", Peers::iceoryx),
        ("lttng", lttng::run),
    ];
    options.run(&groups, &mut peers);
    peers.report.finish();
}

struct Peers {
    options: Options,
    report: Report,
    /// The shared handle, which is what a host with threads would use.
    ours: Option<Base>,
}

impl Peers {
    fn add(&mut self, name: &str, parameters: &[(&str, Value)], measured: Measured) {
        let ours = self.ours.as_ref().expect("measured first");
        self.report.add_to(ours, name, parameters, measured);
    }

    fn run(&mut self, name: &str, parameters: &[(&str, Value)], sink: impl Sink, effort: Effort) {
        let measured = measure(&mut Pairs::new(sink, LIVE, Order::Random, 0), effort);
        self.add(name, parameters, measured);
    }

    fn ours(&mut self) {
        let (scene, effort) = (Scene::new(), self.options.effort());
        let mut pairs = Pairs::new(scene.tracked(), LIVE, Order::Random, 0);
        pairs.step(&mut Untimed);
        assert_eq!(pairs.sink.dram_bytes(), pairs.live_bytes());
        let measured = measure(&mut pairs, effort);
        self.ours = Some(self.report.add("shared", &[], measured));
        let exclusive = pairs.finish().into_exclusive();
        self.run("exclusive", &[], exclusive, effort);
        self.run("harness alone", &[], Nothing, effort);
        self.run("limit", &[], LimitRing::new().expect("shared memory"), effort);
    }

    /// The process's slot is looked for among those of all processes: best case and worst.
    fn region(&mut self) {
        for slot in [0, PROCESSES - 1] {
            let region = Region::new(slot).expect("shared memory");
            let mut pairs = Pairs::new(region, LIVE, Order::Random, 0);
            pairs.step(&mut Untimed);
            assert_eq!(pairs.sink.totals()[0], LIVE as u64 * SIZE);
            let measured = measure(&mut pairs, self.options.effort().over(4));
            self.add("tt-metal region", &[("processes before it", json!(slot))], measured);
        }
    }

    fn socket(&mut self) {
        let scene = Scene::new();
        let path = scene.path("socket");
        let _server = Player::server(&path);
        let client = SocketClient::connect(&path);
        let mut pairs = Pairs::new(&client, LIVE, Order::Random, 0);
        pairs.step(&mut Untimed);
        assert_eq!(client.query(0)[place::DRAM], LIVE as u64 * SIZE);
        let measured = measure(&mut pairs, self.options.effort().over(20));
        self.add("socket send", &[], measured);
        assert_eq!(client.query(0)[place::DRAM], LIVE as u64 * SIZE);
    }

    fn queues(&mut self) {
        let effort = self.options.effort();
        self.run("rtrb + timestamp", &[], queues::rtrb(), effort);
        self.run("crossbeam ArrayQueue + timestamp", &[], queues::crossbeam(), effort);
    }

    #[cfg(feature = "peers")]
    fn iceoryx(&mut self) {
        let effort = self.options.effort().over(4);
        iceoryx::with_publisher(|publisher| self.run("iceoryx2 publish + timestamp", &[], publisher, effort));
    }

    #[cfg(not(feature = "peers"))]
    fn iceoryx(&mut self) {
        self.report.skip("iceoryx2 publish + timestamp", "needs --features peers (three minutes to build)");
    }
}
