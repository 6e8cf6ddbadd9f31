//! What tt-metal's regions say, as tt-smi shows it: beside the figures, never in them.

use serde_json::{Value, json};
use tt_shm_tests::machine::FakeProcess;
use tt_shm_tests::region::seconds_ago;
use tt_shm_tests::space::{Process, until};
use tt_shm_tests::{Command, RegionImage, RegionTree, Space};

use crate::common::{SMI, host};

const CHIP: u64 = 7;
const GHOSTS: u64 = 8;
const STRANGE: u64 = 9;
const PID: u32 = 4_000_123;

fn json(space: &Space, tree: &RegionTree, arguments: &[&str]) -> Value {
    let mut command = space.command(SMI);
    let output = command.args(arguments).arg("--json").env("TT_SMI_ROOT", tree.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A machine on which a job runs that does not report, and one was killed; a third region has an unknown version.
fn tree() -> RegionTree {
    let tree = RegionTree::default();
    let slots = [(PID as i32, [5 << 20, 1 << 20, 2048, 4096, 8192]), (4_000_999, [3 << 20, 0, 0, 0, 0])];
    tree.publish(
        CHIP,
        &RegionImage::honest(3, CHIP, &slots).written(0, seconds_ago(1)).written(1, seconds_ago(1)),
    );
    tree.publish(GHOSTS, &RegionImage::honest(4, GHOSTS, &[(4_000_998, [1 << 20, 0, 0, 0, 0])]));
    tree.publish(STRANGE, &RegionImage::honest(5, STRANGE, &[]));
    tree.add_process(&FakeProcess::new(PID, "python3 model.py").mapping(&tree.region(CHIP)));
    tree
}

#[test]
fn a_job_that_does_not_report_is_shown_with_what_tt_metal_says() {
    let (space, tree) = (Space::new(), tree());
    let snapshot = json(&space, &tree, &["snapshot"]);
    crate::schema::check("snapshot", &snapshot);
    let devices = snapshot["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 1, "ghosts make no device: {devices:#?}");
    let device = &devices[0];
    assert_eq!((&device["chip_id"], &device["source"]), (&json!("0x0000000000000007"), &json!(["tt-metal"])));
    assert_eq!((&device["dram_used_bytes"], &device["dram_used_exact"]), (&json!(0), &json!(false)));
    assert_eq!(device["dram_used_high_bytes"], Value::Null, "nothing bounds it");
    assert_eq!(device["tt_metal_dram_bytes"], 5 << 20);
    let region = &device["tt_metal"];
    let bytes =
        ["dram_bytes", "l1_bytes", "l1_small_bytes", "trace_bytes", "cb_bytes"].map(|key| &region[key]);
    assert_eq!(bytes, [&json!(5 << 20), &json!(1 << 20), &json!(2048), &json!(4096), &json!(8192)]);
    assert_eq!(region["incomplete_because"].as_array().unwrap().len(), 4);
    let states: Vec<&Value> =
        region["processes"].as_array().unwrap().iter().map(|one| &one["state"]).collect();
    assert_eq!(states, [&json!("alive"), &json!("ghost")]);
    let silent = &snapshot["silent_holders"][0];
    assert_eq!((&silent["pid"], &silent["command"]), (&json!(PID), &json!("python3 model.py")));
    assert_eq!((&silent["devices"], &silent["tt_metal"]["dram_bytes"]), (&json!([0]), &json!(5 << 20)));
    let errors = snapshot["errors"].as_array().unwrap();
    let message = |kind: &str| errors.iter().find(|error| error["kind"] == kind).unwrap()["message"].clone();
    assert!(
        message("silent").as_str().unwrap().contains("tt-metal's region says ~5.0 MiB of DRAM"),
        "{errors:?}"
    );
    assert!(message("region").as_str().unwrap().contains("layout version 5"), "{errors:?}");
}

#[test]
fn a_job_that_reports_is_not_counted_twice() {
    let (space, tree) = (Space::new(), tree());
    let mut host = host(&space, []);
    host.tell(Command::Register { chip: CHIP, dram_bytes: 1 << 30, bus: 1 });
    let slots = [(host.pid() as i32, [5 << 20, 0, 0, 0, 0])];
    tree.end_process(PID);
    tree.publish(CHIP, &RegionImage::honest(3, CHIP, &slots).written(0, seconds_ago(1)));
    tree.add_process(&FakeProcess::new(host.pid(), "host").mapping(&tree.region(CHIP)));
    let device = &json(&space, &tree, &["snapshot"])["devices"][0];
    assert_eq!((&device["source"], &device["dram_used_exact"]), (&json!(["ring"]), &json!(true)));
    assert_eq!(
        (&device["tt_metal"]["processes"][0]["reports"], &device["tt_metal_dram_bytes"]),
        (&json!(true), &json!(0))
    );
    assert_eq!(device["unreported_holder"], json!(false));
}

#[test]
fn the_daemon_follows_and_doubts_what_it_did_not_see() {
    let (space, tree) = (Space::new(), tree());
    let mut command = space.command(SMI);
    command.arg("aggregate").env("TT_SMI_ROOT", tree.path());
    let daemon = Process::spawn(command);
    let device = |wanted: &dyn Fn(&Value) -> bool| {
        until("the device", || {
            let snapshot = json(&space, &tree, &["snapshot"]);
            let found = snapshot["aggregator"]["pid"].is_u64().then(|| snapshot["devices"][0].clone())?;
            wanted(&found).then_some(found)
        })
    };
    device(&|device| device["tt_metal_dram_bytes"] == json!(5 << 20));
    let mut host = host(&space, []);
    host.tell(Command::Register { chip: CHIP, dram_bytes: 1 << 30, bus: 1 });
    device(&|device| {
        device["source"] == json!(["ring", "tt-metal"]) && device["dram_used_exact"] == json!(false)
    });
    // The job ends: what is used now is known again, what the peak was is not.
    tree.end_process(PID);
    let later = device(&|device| device["source"] == json!(["ring"]));
    assert_eq!((&later["dram_used_exact"], &later["dram_peak_exact"]), (&json!(true), &json!(false)));
    drop(daemon);
}
