//! What tracking costs a loop that launches programs: per dispatch, in nanoseconds and as a share.
//!
//! Rounds of all cases take turns, and what is reported is the median of the differences between rounds
//! that were neighbours: so what else goes on on the machine meets all of them alike.

use serde_json::json;
use tt_shm_benches::child::{Player, play_part_if_asked};
use tt_shm_benches::clock::Stopwatch;
use tt_shm_benches::host::HostWork;
use tt_shm_benches::measure::Measured;
use tt_shm_benches::message::{Kind, place};
use tt_shm_benches::options::Options;
use tt_shm_benches::report::Report;
use tt_shm_benches::scene::Scene;
use tt_shm_benches::sink::chip;
use tt_shm_benches::socket::SocketClient;
use tt_shm_writer::{
    CircularBuffer, CoreType, Device, Kernel, KernelType, Mesh, ProgramBinaryStatus, Record, Tracker,
};

const FIRST_LAUNCH: &str = "first launch";
const CACHED_DISPATCH: &str = "cached dispatch";
const WORK_US: [u64; 3] = [2, 5, 20];
const DEVICES: [usize; 3] = [1, 4, 32];
/// Time that a round takes, about: short enough to run undisturbed more often than not.
const ROUND_US: u64 = 400;
const KERNEL_BYTES: u64 = 100 << 10;
const CORES: u32 = 64;

fn main() {
    play_part_if_asked();
    let options = Options::from_env();
    let mut report = Report::new("dispatch", &options);
    for first in [false, true] {
        for devices in DEVICES {
            for work_us in WORK_US {
                let name = if first { FIRST_LAUNCH } else { CACHED_DISPATCH };
                if options.wants(name) {
                    Loop { name, first, devices, work_us }.measure(&mut report, &options);
                }
            }
        }
    }
    report.finish();
}

/// One kind of loop.
#[derive(Clone, Copy)]
struct Loop {
    name: &'static str,
    first: bool,
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
        let mut hosts = [Host::Nothing, off, on, socket];
        let mut work = HostWork::of(self.work_us as f64 * 1e3);
        let dispatches = (ROUND_US / self.work_us).max(10);
        let mut program = 1;
        let rounds = options.pick(200, 20);
        for host in &hosts {
            host.check();
        }
        let times: Vec<[f64; 4]> = (0..rounds)
            .map(|_| hosts.each_mut().map(|host| self.round(host, &mut work, dispatches, &mut program)))
            .collect();
        self.add(report, &times);
    }

    fn add(self, report: &mut Report, times: &[[f64; 4]]) {
        let median_of = |value: &dyn Fn(&[f64; 4]) -> f64| median(times.iter().map(value).collect());
        let sizes = [("devices", json!(self.devices)), ("work us", json!(self.work_us))];
        let base = Measured::mean(median_of(&|round| round[0]));
        let base = report.add(&format!("{}: loop alone", self.name), &sizes, base);
        let name = format!("{}: added", self.name);
        for (host, tracking) in [(1, "off"), (2, "on"), (3, "socket")] {
            // What it adds to the loop; the ratio is its share of it.
            let added = Measured::mean(median_of(&|round| round[host] - round[0]));
            let parameters = [sizes.clone().as_slice(), &[("tracking", json!(tracking))]].concat();
            report.add_to(&base, &name, &parameters, added);
        }
    }

    /// Nanoseconds per dispatch.
    fn round(self, host: &mut Host, work: &mut HostWork, dispatches: u64, program: &mut u64) -> f64 {
        let clock = Stopwatch::get();
        let mut ticks = 0;
        host.prepare(0);
        for _ in 0..dispatches {
            *program += 1;
            let start = clock.ticks();
            work.run();
            if self.first {
                host.first_launch(*program);
            } else {
                host.dispatch();
            }
            ticks += clock.since(start);
            if self.first {
                host.end(*program);
            }
        }
        clock.ns(ticks) / dispatches as f64
    }
}

/// Who is told of a launch.
enum Host {
    Nothing,
    Tracked {
        tracker: Tracker,
        mesh: Mesh,
        first: Device,
    },
    /// And the number of devices.
    Socket(SocketClient, i32),
}

impl Host {
    fn tracked(tracker: &Tracker, devices: usize) -> Host {
        let chips = 0..devices as u64;
        let devices: Vec<Device> =
            chips.map(|id| tracker.register_device(&chip(id)).expect("a device")).collect();
        Host::Tracked { tracker: tracker.clone(), first: devices[0], mesh: Mesh::new(devices) }
    }

    /// Loads program 0 if that was not done yet.
    fn prepare(&self, program: u64) {
        if let Host::Tracked { tracker, mesh, .. } = self {
            tracker.launch(mesh, kernel(program), ProgramBinaryStatus::Committed).expect("loaded or cached");
        }
    }

    /// The program's binary is on the devices.
    #[inline]
    fn dispatch(&self) {
        match self {
            Host::Nothing => {}
            Host::Tracked { tracker, mesh, .. } => tracker.dispatch(mesh, 0).expect("loaded"),
            Host::Socket(client, devices) => {
                for device in 0..*devices {
                    client.send(Kind::KernelLoad, device, 0, KERNEL_BYTES);
                }
            }
        }
    }

    /// A program that was never seen: a circular buffer, its kernel, its dispatch.
    #[inline]
    fn first_launch(&self, program: u64) {
        match self {
            Host::Nothing => {}
            Host::Tracked { tracker, mesh, .. } => {
                tracker.cb_alloc(mesh, CircularBuffer::new(program, 1, 4096, CORES)).expect("new");
                tracker.launch(mesh, kernel(program), ProgramBinaryStatus::NotSent).expect("new");
            }
            Host::Socket(client, devices) => {
                for device in 0..*devices {
                    client.send(Kind::Alloc, device, program, 4096 * u64::from(CORES));
                    client.send(Kind::KernelLoad, device, program, KERNEL_BYTES);
                }
            }
        }
    }

    /// Not timed: the loop would grow without end.
    fn end(&self, program: u64) {
        match self {
            Host::Nothing => {}
            Host::Tracked { tracker, mesh, .. } => tracker.program_end(mesh, program).expect("loaded"),
            Host::Socket(client, devices) => {
                for device in 0..*devices {
                    client.send(Kind::Free, device, program, 0);
                    client.send(Kind::KernelUnload, device, program, 0);
                }
            }
        }
    }

    /// Before timing: a dispatch is counted on the first device, a first launch loads and an end unloads.
    fn check(&self) {
        self.prepare(0);
        self.dispatch();
        self.first_launch(1);
        match self {
            Host::Nothing => {}
            Host::Tracked { tracker, first, .. } => {
                let counters = tracker.counters(*first);
                assert!(counters.is_none_or(|counters| counters.dispatches == 3), "{counters:?}");
            }
            Host::Socket(client, _) => {
                assert_eq!(client.query(0)[place::KERNEL], 2 * KERNEL_BYTES);
            }
        }
        self.end(1);
    }
}

fn kernel(program: u64) -> Kernel {
    Kernel::new(program, KernelType::Application, CoreType::Tensix, KERNEL_BYTES, CORES)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
