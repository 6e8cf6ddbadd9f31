//! Real output of `tt-smi` against docs/schema: closed objects, so that a key without a description fails.

use crate::common::{FAIL, HOST, SMI, host, json, smi, tracker};
use serde_json::Value;
use std::path::PathBuf;
use tt_shm_tests::space::until;
use tt_shm_tests::{Command, Host, Monitor, Space};
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, Class, CoreType, DeviceInfo, FailedAlloc, Kernel, KernelType,
};
use tt_shm_writer::{Launch, MarkerPhase, ProgramBinaryStatus, Record};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/schema")
}

fn schema(name: &str) -> Value {
    let path = folder().join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What is wrong with a document, by the schema of that name.
fn errors(name: &str, document: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(&schema(name)).unwrap();
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[track_caller]
pub(crate) fn check(name: &str, document: &Value) {
    let errors = errors(name, document);
    assert!(errors.is_empty(), "{name}: {errors:#?}\n{document:#}");
}

#[track_caller]
fn check_lines(name: &str, lines: &str) {
    assert!(!lines.is_empty());
    lines.lines().for_each(|line| check(name, &serde_json::from_str(line).unwrap()));
}

#[track_caller]
fn check_all(space: &Space) {
    check("snapshot", &json(space, &["snapshot"]));
    check("snapshot", &serde_json::from_str(&smi(space, &["-s"])).unwrap());
    check_lines("snapshot", &smi(space, &["watch", "--samples", "2", "--interval", "20ms"]));
    check("list", &json(space, &["list"]));
    check("history", &json(space, &["history"]));
    check("ps", &json(space, &["ps"]));
    check("peak", &json(space, &["peak"]));
    check("programs", &json(space, &["programs"]));
    check("cores", &json(space, &["cores"]));
    check("oom", &json(space, &["oom"]));
    check("doctor", &doctor(space));
    for arguments in
        [&["allocations"][..], &["allocations", "--group", "name"], &["allocations", "--histogram"]]
    {
        check("allocations", &json(space, arguments));
    }
}

/// Its exit code is what it found.
fn doctor(space: &Space) -> Value {
    let output = space.command(SMI).args(["doctor", "--json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn nothing_at_all_is_described() {
    check_all(&Space::new());
}

/// Its own peaks are all that is known of what its ring no longer holds, and it has forgotten them.
#[test]
fn a_peak_that_nobody_knows_is_described() {
    let space = Space::new();
    let tracker = tracker(&space);
    let device = tracker.register_device(&DeviceInfo { chip_id: 5, ..DeviceInfo::default() }).unwrap();
    let pair = |id, size| {
        tracker.alloc(device, Alloc::new(BufferType::Dram, id, size)).unwrap();
        tracker.free(device, id).unwrap();
    };
    pair(1, 5000);
    tracker.reset_peaks(device).unwrap();
    (2..30_000).for_each(|id| pair(id, 10));
    check_all(&space);
    let snapshot = json(&space, &["snapshot"]);
    let shown = &snapshot["devices"][0];
    assert_eq!((&shown["dram_peak_bytes"], &shown["dram_peak_high_bytes"]), (&10.into(), &Value::Null));
    assert_eq!(shown["dram_peak_exact"], false);
    assert!(smi(&space, &["peak"]).contains("at least 10 B"), "{}", smi(&space, &["peak"]));
    assert!(!smi(&space, &["snapshot", "--format", "prometheus"]).contains("tt_dram_peak_high_bytes{"));
}

#[test]
fn a_workload_is_described() {
    let space = Space::new();
    let mut host = host(&space, [5, 6]);
    host.tell(Command::Work { seed: 1, calls: 3000, threads: 1, pause_us: 0 });
    host.tell(Command::Figures);
    check_all(&space);
    check_lines("event", &smi(&space, &["events", "--json"]));
}

#[test]
fn unknown_is_null_and_described_as_such() {
    let space = Space::new();
    let tracker = tracker(&space);
    let device = tracker.register_device(&DeviceInfo { chip_id: 9, ..Default::default() }).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 4096)).unwrap();
    check_all(&space);
    let device = &json(&space, &["list"])["devices"][0];
    for key in ["dram_total_bytes", "l1_total_bytes", "board", "arch", "pci_address", "capacity_source"] {
        assert_eq!(device[key], Value::Null, "{key}");
    }
    let allocation = &json(&space, &["allocations"])["allocations"][0];
    for key in ["name", "site", "address", "cores", "core_type", "program"] {
        assert_eq!(allocation[key], Value::Null, "{key}");
    }
}

#[test]
fn every_kind_of_event_is_described() {
    let space = Space::new();
    let tracker = tracker(&space);
    let info = DeviceInfo { chip_id: 1, logical_id: Some(0), ..Default::default() };
    let device = tracker.register_device(&info).unwrap();
    let name = tracker.intern("step").unwrap();
    tracker.device_open(device).unwrap();
    tracker.marker(MarkerPhase::Begin, 7, name).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::L1, 1, 4096).name(name).cores(4)).unwrap();
    tracker.free(device, 1).unwrap();
    tracker.alloc_failed(device, FailedAlloc::new(Class::L1, 5000).free(4000, 300)).unwrap();
    tracker.kernel_ring(device, 71_680, 1024, 3).unwrap();
    tracker.cb_alloc(device, CircularBuffer::new(3, 1, 4096, 64)).unwrap();
    let kernel = Kernel::new(2, KernelType::Application, CoreType::Tensix, 1024, 64).hash(0xabc);
    tracker.launch(device, Launch::new(2, &[kernel], ProgramBinaryStatus::NotSent)).unwrap();
    tracker.reset_peaks(device).unwrap();
    tracker.device_close(device).unwrap();
    check_lines("event", &smi(&space, &["events", "--json"]));
    check_all(&space);
}

#[test]
fn who_ended_and_what_could_not_be_read_are_described() {
    let space = Space::new();
    let _monitor = Monitor::start(SMI, &space);
    let (mut dead, _alive) = (host(&space, [1]), host(&space, [1, 2]));
    dead.tell(Command::Grow { count: 100 });
    let name = format!("tt-shm.v2.{}.99-0123456789abcdef", space.namespace());
    std::fs::write(tt_shm_os::path_of(&name), "no segment").unwrap();
    until("both", || (json(&space, &["ps"])["processes"].as_array()?.len() == 2).then_some(()));
    dead.kill();
    let snapshot = until("the end and the refusal", || {
        let snapshot = json(&space, &["snapshot"]);
        let complete = snapshot["reclaimed"][0].is_object() && snapshot["errors"][0].is_object();
        complete.then_some(snapshot)
    });
    check("snapshot", &snapshot);
    let ended = json(&space, &["ps", "--query", "state=ended"]);
    check("ps", &ended);
    assert_eq!(ended["processes"][0]["dram_used_bytes"], Value::Null);
    check("peak", &json(&space, &["peak", "--reset"]));
    check_all(&space);
}

#[test]
fn failures_are_described_with_an_aggregator_and_without() {
    let space = Space::new();
    // One whose ring tells what it held, one whose ring has forgotten, one that did not say what was free.
    let (mut whole, mut lapped) = (host(&space, [5]), Host::start_with(HOST, &space, [6], 64));
    whole.tell(Command::Grow { count: 7 });
    whole.tell(FAIL);
    lapped.tell(Command::Spin { pairs: 100 });
    lapped.tell(FAIL);
    whole.tell(Command::Fail { request: 4096, free: u64::MAX, largest: u64::MAX });
    let alone = json(&space, &["oom"]);
    check("oom", &alone);
    assert_eq!((&alone["aggregator_pid"], &alone["failures_known"]), (&Value::Null, &3.into()));
    assert_eq!(alone["failures"][1]["held"], Value::Null);
    let _monitor = Monitor::start(SMI, &space);
    until("both are followed", || {
        let snapshot = json(&space, &["snapshot"]);
        (snapshot["processes"].as_array()?.len() == 2 && snapshot["aggregator"]["pid"].is_u64()).then_some(())
    });
    whole.tell(FAIL);
    let recorded = until("the record", || {
        Some(json(&space, &["oom"])).filter(|oom| oom["failures"][0]["held"]["exact"] == true)
    });
    check("oom", &recorded);
    assert_eq!(recorded["failures_known"], 4);
    lapped.kill();
    check("doctor", &doctor(&space));
}

#[test]
fn the_report_of_a_run_is_described() {
    let space = Space::new();
    let folder = tempfile::tempdir().unwrap();
    let (report, script) = (folder.path().join("report.json"), folder.path().join("script"));
    let commands = [Command::Open { ring_slots: 0, chips: vec![5] }, Command::Grow { count: 7 }];
    let lines: Vec<String> = commands.iter().map(|one| serde_json::to_string(one).unwrap()).collect();
    std::fs::write(&script, lines.join("\n") + "\n").unwrap();
    let run = |command: &str| -> Value {
        let mut smi = space.command(SMI);
        let output = smi.args(["run", "--json"]).arg(&report).args(["--", "sh", "-c", command]).output();
        let text = std::fs::read(&report).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        serde_json::from_slice(&text).unwrap()
    };
    let leaked = run(&format!("{HOST} < {}", script.display()));
    let (silent, killed) = (run("exit 3"), run("kill -9 $$"));
    [&leaked, &silent, &killed].into_iter().for_each(|report| check("run", report));
    let leak = &leaked["processes"][0]["never_freed"][0];
    assert_eq!((&leak["class"], &leak["count"], &leak["call_site"]), (&"l1".into(), &7.into(), &Value::Null));
    assert_eq!((&silent["exit_code"], &killed["signal"]), (&3.into(), &9.into()));
}

#[test]
fn the_benchmark_is_described() {
    check("bench", &json(&Space::new(), &["bench", "--seconds", "1"]));
}

/// The schemas would notice what they are there to notice.
#[test]
fn schemas_are_valid_closed_and_strict() {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    for name in &names {
        let schema = schema(name);
        jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        assert_closed(name, &schema);
    }
    let space = Space::new();
    let _host = host(&space, [5]);
    let good = json(&space, &["snapshot"]);
    for (pointer, value) in [
        ("/devices/0/dram_used_bytes", Value::from("12 GiB")),
        ("/devices/0/dram_used_bytes", Value::Null),
        ("/devices/0/dram_total_bytes", Value::from(-1)),
        ("/devices/0/classes/dram/live_count", Value::from(0.5)),
        ("/processes/0/state", Value::from("asleep")),
        ("/timestamp", Value::from("yesterday")),
        ("/schema", Value::from(2)),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value.clone();
        assert!(!errors("snapshot", &bad).is_empty(), "{pointer} may be {value}");
    }
    for pointer in ["", "/devices/0", "/processes/0/devices/0", "/devices/0/classes/dram"] {
        let mut bad = good.clone();
        bad.pointer_mut(pointer).unwrap().as_object_mut().unwrap().insert("surprise".into(), Value::Null);
        assert!(!errors("snapshot", &bad).is_empty(), "{pointer} is open");
        let mut bad = good.clone();
        let object = bad.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
        let key = object.keys().next().unwrap().clone();
        object.remove(&key);
        assert!(!errors("snapshot", &bad).is_empty(), "{pointer} may lack {key}");
    }
}

/// Every object says what it may hold, and every value what it is.
fn assert_closed(at: &str, schema: &Value) {
    let Some(object) = schema.as_object() else { return };
    if object.contains_key("properties") {
        assert_eq!(schema["additionalProperties"], false, "{at} is open");
    }
    for (key, inner) in object {
        match (key.as_str(), inner) {
            ("properties" | "$defs" | "patternProperties", Value::Object(members)) => {
                for (name, member) in members {
                    let described =
                        ["description", "$ref", "anyOf"].iter().any(|key| member.get(key).is_some());
                    assert!(described, "{at}/{name} is not described");
                    assert_closed(&format!("{at}/{name}"), member);
                }
            }
            ("items", inner) => assert_closed(&format!("{at}/items"), inner),
            _ => {}
        }
    }
}
