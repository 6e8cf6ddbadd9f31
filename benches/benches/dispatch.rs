//! What tracking costs a loop that launches programs: per dispatch, in nanoseconds and as a share.
//!
//! Rounds of all cases take turns, and what is reported is the median of the differences between rounds
//! that were neighbours: so what else goes on on the machine meets all of them alike.

use serde_json::json;
use tt_shm_benches::child::{Player, play_part_if_asked};
use tt_shm_benches::options::Options;
use tt_shm_benches::report::Report;
use tt_shm_measure::host_work::HostWork;
use tt_shm_measure::launches::{Host, Launch};
use tt_shm_measure::scene::Scene;
use tt_shm_measure::socket::SocketClient;
use tt_shm_measure::timing::{Measured, median};
use tt_shm_writer::Tracker;

const WORK_US: [u64; 3] = [2, 5, 20];
const DEVICES: [usize; 3] = [1, 4, 32];
/// Time that a round takes, about: short enough to run undisturbed more often than not.
const ROUND_US: u64 = 400;

fn main() {
    play_part_if_asked();
    let options = Options::from_env();
    let mut report = Report::new("dispatch", &options);
    for launch in [Launch::Cached, Launch::First] {
        for devices in DEVICES {
            for work_us in WORK_US {
                if options.wants(launch.name()) {
                    Loop { launch, devices, work_us }.measure(&mut report, &options);
                }
            }
        }
    }
    report.finish();
}

/// One kind of loop.
#[derive(Clone, Copy)]
struct Loop {
    launch: Launch,
    devices: usize,
    work_us: u64,
}

impl Loop {
    fn measure(self, report: &mut Report, options: &Options) {
        let scene = Scene::new();
        let path = scene.path("socket");
        let _server = Player::server(&path);
        let socket = Host::Socket(SocketClient::connect(&path), self.devices as i32);
        let on = Host::tracked(&scene.builder().open().expect("a segment"), self.devices);
        let off = Host::tracked(&Tracker::disabled(), self.devices);
        let hosts = [Host::Nothing, off, on, socket];
        let mut work = HostWork::of(self.work_us as f64 * 1e3);
        let dispatches = (ROUND_US / self.work_us).max(10);
        let mut program = 1;
        let rounds = options.pick(200, 20);
        for host in &hosts {
            host.check().expect("launches are counted");
        }
        let times: Vec<[f64; 4]> = (0..rounds)
            .map(|_| {
                hosts.each_ref().map(|host| self.launch.round(host, &mut work, dispatches, &mut program))
            })
            .collect();
        self.add(report, &times);
    }

    fn add(self, report: &mut Report, times: &[[f64; 4]]) {
        let median_of = |value: &dyn Fn(&[f64; 4]) -> f64| median(times.iter().map(value).collect());
        let sizes = [("devices", json!(self.devices)), ("work us", json!(self.work_us))];
        let base = Measured::mean(median_of(&|round| round[0]));
        let base = report.add(&format!("{}: loop alone", self.launch.name()), &sizes, base);
        let name = format!("{}: added", self.launch.name());
        for (host, tracking) in [(1, "off"), (2, "on"), (3, "socket")] {
            // What it adds to the loop; the ratio is its share of it.
            let added = Measured::mean(median_of(&|round| round[host] - round[0]));
            let parameters = [sizes.clone().as_slice(), &[("tracking", json!(tracking))]].concat();
            report.add_to(&base, &name, &parameters, added);
        }
    }
}
