//! How long `tt-smi snapshot --json` takes from start to end, with an aggregator running and without.

use serde_json::{Value, json};
use std::process::{Command, Stdio};
use tt_shm_benches::child::{Player, play_part_if_asked};
use tt_shm_benches::options::Options;
use tt_shm_benches::program;
use tt_shm_benches::report::Report;
use tt_shm_measure::clock::Stopwatch;
use tt_shm_measure::scene::Scene;
use tt_shm_measure::sink::Sink;
use tt_shm_measure::timing::{Measured, Timed};
use tt_shm_measure::workload::Probe;
use tt_shm_os::NAMESPACE_ENV;

fn main() {
    play_part_if_asked();
    let options = Options::from_env();
    let mut report = Report::new("start", &options);
    let Some(program) = program::find() else {
        return report.skip("tt-smi snapshot --json", "no tt-smi found, set TT_SMI to its path");
    };
    let runs = options.pick(30, 5);
    let base = time(runs, || Command::new("/bin/true"));
    let base = report.add("harness alone: /bin/true", &[], base);
    let scene = Scene::new();
    let mut sink = scene.tracked();
    sink.alloc(1, 4096);
    let snapshot = || {
        let mut command = Command::new(&program);
        command.args(["snapshot", "--json"]).env(NAMESPACE_ENV, scene.namespace.as_str());
        command
    };
    check(snapshot());
    let name = "tt-smi snapshot --json";
    report.add_to(&base, name, &[("aggregator", json!("none"))], time(runs, snapshot));
    let _aggregator = Player::aggregator(&scene);
    scene.wait_for_table("the allocation", |table| {
        table.devices.iter().any(|(_, device)| device.dram_used_bytes == 4096)
    });
    check(snapshot());
    report.add_to(&base, name, &[("aggregator", json!("running"))], time(runs, snapshot));
    report.finish();
}

/// It succeeds, and says what is used.
fn check(mut command: Command) {
    let output = command.output().expect("tt-smi runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value["devices"][0]["dram_used_bytes"], json!(4096), "{value}");
}

fn time(runs: usize, command: impl Fn() -> Command) -> Measured {
    // Calibrated before the first run.
    Stopwatch::get();
    let mut timed = Timed::default();
    for _ in 0..runs {
        let status = timed.event(|| command().stdout(Stdio::null()).status());
        assert!(status.is_ok_and(|status| status.success()));
    }
    timed.median()
}
