//! The live screen in a pseudo-terminal: time to the first picture, and what ten pictures a second cost: with eight busy
//! devices, in each view, with 100 000 live allocations, and in bytes with 32 devices.

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use serde_json::json;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tt_shm_benches::child::{Player, cpu_of, play_part_if_asked};
use tt_shm_benches::options::Options;
use tt_shm_benches::program;
use tt_shm_benches::report::Report;
use tt_shm_measure::clock::Stopwatch;
use tt_shm_measure::scene::Scene;
use tt_shm_measure::sink::chip;
use tt_shm_measure::timing::{Measured, Timed};
use tt_shm_measure::workload::Probe;
use tt_shm_os::NAMESPACE_ENV;
use tt_shm_writer::{Alloc, BufferType, Device, Record, Tracker};

const DEVICES: u64 = 8;
/// Steps a second of each of eight processes, on all devices: the demonstration's own, some 40 000 events a second
/// on all devices together, and more.
const STEPS: [u64; 2] = [200, 500];
/// Views other than the overview; that of allocations is also measured with many.
const VIEWS: [&str; 8] =
    ["detail", "charts", "processes", "allocations", "events", "map", "programs", "cores"];
/// Devices and processes of a large host, and the sizes of the terminal there.
const LARGE: (u64, u64) = (32, 8);
const SIZES: [(u16, u16); 3] = [(80, 24), (160, 50), (200, 50)];
/// Live allocations of the long list, and the devices that they are on.
const LIVE: u64 = 100_000;
const DEVICES_HELD: u64 = 4;
/// In the title, which is drawn with everything else at once.
const MARK: &[u8] = b"namespace ";

fn main() {
    play_part_if_asked();
    let options = Options::from_env();
    let mut report = Report::new("screen", &options);
    let Some(program) = program::find() else {
        return report.skip("tt-smi", "no tt-smi found, set TT_SMI to its path");
    };
    for steps in STEPS.into_iter().filter(|_| options.wants("devices")) {
        let scene = Scene::new();
        let mut demo = busy_devices(&program, &scene, (DEVICES, DEVICES), steps);
        for aggregator in ["none", "running"] {
            let _aggregator = (aggregator == "running").then(|| Player::aggregator(&scene));
            wait_for_devices(&program, &scene, DEVICES);
            let parameters = [("aggregator", json!(aggregator)), ("steps", json!(steps))];
            let first = time_to_first_picture(&program, &scene, options.pick(20, 3));
            report.add("first picture", &parameters, first);
            let cost = cost_at_ten_pictures(&program, &scene, "overview", SIZES[1], options.pick(10, 2));
            report.add("a second of ten pictures", &parameters, Measured::mean(cost.ns));
        }
        end(&mut demo);
    }
    if options.wants("views") {
        let scene = Scene::new();
        let mut demo = busy_devices(&program, &scene, (DEVICES, DEVICES), STEPS[0]);
        let _aggregator = Player::aggregator(&scene);
        wait_for_devices(&program, &scene, DEVICES);
        for view in VIEWS {
            let cost = cost_at_ten_pictures(&program, &scene, view, SIZES[1], options.pick(10, 2));
            report.add("a second of ten pictures", &[("view", json!(view))], Measured::mean(cost.ns));
        }
        end(&mut demo);
    }
    if options.wants("bytes") {
        let scene = Scene::new();
        let mut demo = busy_devices(&program, &scene, LARGE, STEPS[0]);
        let _aggregator = Player::aggregator(&scene);
        wait_for_devices(&program, &scene, LARGE.0);
        for size in SIZES {
            let cost = cost_at_ten_pictures(&program, &scene, "overview", size, options.pick(10, 2));
            let parameters = [
                ("devices", json!(LARGE.0)),
                ("size", json!(format!("{}x{}", size.0, size.1))),
                ("bytes of a picture", json!(cost.bytes.round())),
            ];
            report.add("a second of ten pictures", &parameters, Measured::mean(cost.ns));
        }
        end(&mut demo);
    }
    for mesh in [true, false].into_iter().filter(|_| options.wants("allocations")) {
        let scene = Scene::new();
        let _held = hold_many(&scene, mesh);
        let parameters = [("live", json!(LIVE)), ("mesh", json!(mesh))];
        let cost = cost_at_ten_pictures(&program, &scene, "allocations", SIZES[1], options.pick(20, 5));
        report.add("a second of ten pictures, allocations", &parameters, Measured::mean(cost.ns));
    }
    report.finish();
}

/// A tracker of this process with that many live allocations on four devices: made by calls on a mesh, which the screen
/// shows as one line each, or on each device apart.
fn hold_many(scene: &Scene, mesh: bool) -> Tracker {
    let tracker = scene.builder().live_capacity(2 * LIVE).open().expect("a segment");
    let devices = (1..=DEVICES_HELD).map(|number| tracker.register_device(&chip(number)).expect("a device"));
    let devices: Vec<Device> = devices.collect();
    let mut number = 0_u64;
    let mut hold = |on: &[Device]| {
        number += 1;
        let name = tracker.intern(format!("model.layers.{}.self_attn.qkv_proj.weight", number % 640));
        let size = 2048 + (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) / 32 * 32;
        let alloc =
            Alloc::new(BufferType::Dram, number, size).name(name.expect("a name")).address(number << 16);
        tracker.alloc(on, alloc).expect("room");
    };
    match mesh {
        true => (0..LIVE / DEVICES_HELD).for_each(|_| hold(&devices)),
        false => devices.iter().cycle().take(LIVE as usize).for_each(|device| hold(&[*device])),
    }
    tracker
}

/// The demonstration without a screen.
fn busy_devices(
    program: &Path,
    scene: &Scene,
    (devices, workers): (u64, u64),
    steps: u64,
) -> std::process::Child {
    let [devices, workers, steps] = [devices, workers, steps].map(|number| number.to_string());
    Command::new(program)
        .args(["demo", "--devices", &devices, "--workers", &workers, "--rate", &steps])
        .env(NAMESPACE_ENV, scene.namespace.as_str())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("tt-smi runs")
}

fn end(demo: &mut std::process::Child) {
    demo.kill().expect("our child");
    demo.wait().expect("our child");
}

fn wait_for_devices(program: &Path, scene: &Scene, count: u64) {
    loop {
        let mut command = Command::new(program);
        command.args(["snapshot", "--json"]).env(NAMESPACE_ENV, scene.namespace.as_str());
        let output = command.output().expect("tt-smi runs");
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        if value["devices"].as_array().is_some_and(|devices| devices.len() as u64 == count) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// tt-smi in a terminal.
struct Screen {
    child: Box<dyn Child + Send + Sync>,
    output: Box<dyn Read + Send>,
    /// The program ends when nobody holds the other end.
    _master: Box<dyn MasterPty + Send>,
}

impl Screen {
    fn open(program: &Path, scene: &Scene, view: &str, (cols, rows): (u16, u16)) -> Screen {
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(program);
        command.args(["top", "--interval", "100ms", "--view", view]);
        command.env(NAMESPACE_ENV, scene.namespace.as_str());
        command.env("TERM", "xterm-256color");
        let child = pair.slave.spawn_command(command).expect("tt-smi runs");
        let output = pair.master.try_clone_reader().expect("a reader");
        Screen { child, output, _master: pair.master }
    }

    fn wait_for_picture(&mut self) {
        let (mut seen, mut bytes) = (Vec::new(), [0; 65_536]);
        while !seen.windows(MARK.len()).any(|window| window == MARK) {
            let count = self.output.read(&mut bytes).expect("a picture");
            seen.extend_from_slice(&bytes[..count]);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn time_to_first_picture(program: &Path, scene: &Scene, runs: usize) -> Measured {
    Stopwatch::get();
    let mut timed = Timed::default();
    for _ in 0..runs {
        timed.event(|| Screen::open(program, scene, "overview", SIZES[1]).wait_for_picture());
    }
    timed.median()
}

/// What ten pictures a second cost, once the screen is open.
struct Cost {
    /// On the processor, in a second.
    ns: f64,
    /// Sent to the terminal for each picture.
    bytes: f64,
}

fn cost_at_ten_pictures(program: &Path, scene: &Scene, view: &str, size: (u16, u16), seconds: u64) -> Cost {
    let mut screen = Screen::open(program, scene, view, size);
    screen.wait_for_picture();
    let pid = screen.child.process_id().expect("it runs");
    // Somebody must read, or the terminal is full and the program waits.
    let mut output = std::mem::replace(&mut screen.output, Box::new(std::io::empty()));
    let sent = Arc::new(AtomicU64::new(0));
    let sum = Arc::clone(&sent);
    std::thread::spawn(move || {
        let mut bytes = [0; 65_536];
        while let Ok(count @ 1..) = output.read(&mut bytes) {
            sum.fetch_add(count as u64, Relaxed);
        }
    });
    std::thread::sleep(Duration::from_secs(1));
    let (before, sent_before) = (cpu_of(pid), sent.load(Relaxed));
    std::thread::sleep(Duration::from_secs(seconds));
    let (cpu, bytes) = (cpu_of(pid) - before, sent.load(Relaxed) - sent_before);
    let seconds = seconds as f64;
    Cost { ns: cpu.as_secs_f64() / seconds * 1e9, bytes: bytes as f64 / seconds / 10.0 }
}
