//! The live screen in a pseudo-terminal: time to the first picture, and what it costs at ten pictures a second
//! with eight busy devices.

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use serde_json::json;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
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
        let mut demo = busy_devices(&program, &scene, steps);
        for aggregator in ["none", "running"] {
            let _aggregator = (aggregator == "running").then(|| Player::aggregator(&scene));
            wait_for_devices(&program, &scene);
            let parameters = [("aggregator", json!(aggregator)), ("steps", json!(steps))];
            let first = time_to_first_picture(&program, &scene, options.pick(20, 3));
            report.add("first picture", &parameters, first);
            let share = cost_at_ten_pictures(&program, &scene, "overview", options.pick(10, 2));
            report.add("a second of ten pictures", &parameters, Measured::mean(share * 1e9));
        }
        demo.kill().expect("our child");
        demo.wait().expect("our child");
    }
    for mesh in [true, false].into_iter().filter(|_| options.wants("allocations")) {
        let scene = Scene::new();
        let _held = hold_many(&scene, mesh);
        let parameters = [("live", json!(LIVE)), ("mesh", json!(mesh))];
        let share = cost_at_ten_pictures(&program, &scene, "allocations", options.pick(20, 5));
        report.add("a second of ten pictures, allocations", &parameters, Measured::mean(share * 1e9));
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
fn busy_devices(program: &Path, scene: &Scene, steps: u64) -> std::process::Child {
    let (devices, steps) = (DEVICES.to_string(), steps.to_string());
    Command::new(program)
        .args(["demo", "--devices", &devices, "--workers", &devices, "--rate", &steps])
        .env(NAMESPACE_ENV, scene.namespace.as_str())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("tt-smi runs")
}

fn wait_for_devices(program: &Path, scene: &Scene) {
    loop {
        let mut command = Command::new(program);
        command.args(["snapshot", "--json"]).env(NAMESPACE_ENV, scene.namespace.as_str());
        let output = command.output().expect("tt-smi runs");
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        if value["devices"].as_array().is_some_and(|devices| devices.len() as u64 == DEVICES) {
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
    fn open(program: &Path, scene: &Scene, view: &str) -> Screen {
        let size = PtySize { rows: 50, cols: 160, pixel_width: 0, pixel_height: 0 };
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
        timed.event(|| Screen::open(program, scene, "overview").wait_for_picture());
    }
    timed.median()
}

/// Share of a core, once it is open.
fn cost_at_ten_pictures(program: &Path, scene: &Scene, view: &str, seconds: u64) -> f64 {
    let mut screen = Screen::open(program, scene, view);
    screen.wait_for_picture();
    let pid = screen.child.process_id().expect("it runs");
    // Somebody must read, or the terminal is full and the program waits.
    let mut output = std::mem::replace(&mut screen.output, Box::new(std::io::empty()));
    std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    std::thread::sleep(Duration::from_secs(1));
    let before = cpu_of(pid);
    std::thread::sleep(Duration::from_secs(seconds));
    (cpu_of(pid) - before).as_secs_f64() / seconds as f64
}
