//! What a person or a script gets from `tt-smi`, while real processes run.

mod common;

use common::{SMI, host};
use serde_json::Value;
use tt_shm_tests::{Command, Monitor, Space};
use tt_shm_writer::{Alloc, BufferType, CoreType, DeviceInfo, Kernel, KernelType, Record, Tracker};

/// Runs tt-smi, which must succeed, and returns what it printed.
#[track_caller]
fn smi(space: &Space, arguments: &[&str]) -> String {
    let output = space.command(SMI).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?} failed: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn json(space: &Space, arguments: &[&str]) -> Value {
    let text = smi(space, &[arguments, &["--json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

/// A tracker of this very process.
fn tracker(space: &Space) -> Tracker {
    Tracker::builder().enabled(true).namespace(space.namespace().as_str()).open().unwrap()
}

/// With and without an aggregator, a snapshot says what the processes know.
#[test]
fn a_snapshot_equals_the_truth_with_and_without_an_aggregator() {
    let space = Space::new();
    let mut host = host(&space, [5, 6]);
    host.tell(Command::Work { seed: 1, calls: 3000, threads: 1, pause_us: 0 });
    let truth = host.truth();
    let check = |snapshot: Value| {
        for (device, truth) in truth.devices.iter().enumerate() {
            for said in [&snapshot["devices"][device], &snapshot["processes"][0]["devices"][device]] {
                assert_eq!(said["dram_used_bytes"], truth.dram_used);
                assert_eq!(said["l1_used_bytes"], truth.l1_used);
                assert_eq!(said["eth_l1_used_bytes"], truth.eth_used);
                assert_eq!(said["dram_peak_bytes"], truth.dram_peak);
                assert_eq!(said["l1_peak_bytes"], truth.l1_peak);
                assert_eq!(said["dispatches"], truth.dispatches);
            }
        }
        assert_eq!(snapshot["schema"], 1);
        assert_eq!(snapshot["processes"][0]["pid"], host.pid());
        assert_eq!(snapshot["errors"], Value::Array(vec![]));
    };
    let alone = json(&space, &["snapshot"]);
    assert_eq!(alone["aggregator"]["pid"], Value::Null);
    check(alone);
    let _monitor = Monitor::start(SMI, &space);
    let with = json(&space, &["snapshot"]);
    assert!(with["aggregator"]["pid"].is_u64());
    check(with);
}

#[test]
fn kernels_are_shown_by_type_with_their_counts() {
    let space = Space::new();
    let mut host = host(&space, [1]);
    host.tell(Command::Figures);
    let text = smi(&space, &["snapshot", "--detail"]);
    for line in [
        "Kernels: 324.0 KiB",
        "- Fabric: 112 KiB (2 kernels)",
        "- Dispatch: 92 KiB (2 kernels)",
        "- Application: 120 KiB (5 kernels)",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    let device = &json(&space, &["snapshot"])["devices"][0];
    assert_eq!(device["kernel_loaded_bytes"], 324 << 10);
    assert_eq!(device["classes"]["kernel_application"]["live_count"], 5);
}

#[test]
fn what_is_unknown_is_null_and_a_dash() {
    let space = Space::new();
    let tracker = tracker(&space);
    let device = tracker.register_device(&DeviceInfo { chip_id: 9, ..Default::default() }).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 4096)).unwrap();
    let device = &json(&space, &["snapshot"])["devices"][0];
    for unknown in ["dram_total_bytes", "l1_total_bytes", "board", "pci_address", "arch", "capacity_source"] {
        assert_eq!(device[unknown], Value::Null, "{unknown}");
    }
    assert_eq!(device["dram_used_bytes"], 4096);
    assert!(smi(&space, &["snapshot"]).contains("4.0 KiB / -"));
}

#[test]
fn allocations_are_the_live_ones_with_subtotals() {
    let space = Space::new();
    let mut host = host(&space, [1, 2]);
    host.tell(Command::Work { seed: 2, calls: 3000, threads: 1, pause_us: 0 });
    let truth = host.truth();
    let all = json(&space, &["allocations"]);
    let listed = all["allocations"].as_array().unwrap();
    assert_eq!(listed.len(), truth.live.len());
    let bytes = |list: &[Value]| -> u64 { list.iter().map(|a| a["size_bytes"].as_u64().unwrap()).sum() };
    assert_eq!(bytes(listed), truth.live.iter().map(|(_, _, _, size)| size).sum::<u64>());
    let one =
        json(&space, &["allocations", "--device", "1", "--class", "dram", "--sort", "size", "--top", "3"]);
    let top: Vec<_> =
        one["allocations"].as_array().unwrap().iter().map(|a| a["size_bytes"].as_u64()).collect();
    let mut expected: Vec<_> = truth
        .live
        .iter()
        .filter(|(device, class, ..)| (*device, *class) == (1, 0))
        .map(|l| Some(l.3))
        .collect();
    expected.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(top, expected[..3]);
    let kernels = json(&space, &["allocations", "--class", "kernel"]);
    assert!(kernels["allocations"].as_array().unwrap().iter().all(|a| a["class"] == "kernel_application"));
}

#[test]
fn events_read_like_the_log_that_users_know() {
    let space = Space::new();
    let tracker = tracker(&space);
    let info = DeviceInfo { chip_id: 1, logical_id: Some(0), ..Default::default() };
    let device = tracker.register_device(&info).unwrap();
    let fabric = Kernel::new(0xf00, KernelType::Fabric, CoreType::Ethernet, 57_344, 16);
    tracker.kernel_load(device, fabric).unwrap();
    let dispatch = Kernel::new(0xd00, KernelType::Dispatch, CoreType::Tensix, 47_104, 2);
    tracker.kernel_load(device, dispatch).unwrap();
    let name = tracker.intern("bad\x1b[31mname").unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 0xab, 4096).name(name)).unwrap();
    let text = smi(&space, &["events"]);
    let load = "[KERNEL_LOAD] Fabric kernel on Device 0: +0.875 MiB (57344 B x 16 cores, id 0xf00)";
    assert!(text.contains(&format!("{load} (Total: 0.875 MiB)")), "{text}");
    assert!(
        text.contains("[KERNEL_LOAD] Dispatch kernel on Device 0: +0.089844 MiB (47104 B x 2 cores"),
        "{text}"
    );
    assert!(text.contains("(Total: 0.964844 MiB)"), "{text}");
    assert!(text.contains("Allocated 4096 bytes of DRAM on device 0 (buffer_id=0xab)"), "{text}");
    assert!(!text.contains('\x1b'), "a name must not reach the terminal as it is");
}

#[test]
fn programs_tell_what_runs_where() {
    let space = Space::new();
    let mut host = host(&space, [1, 2]);
    host.tell(Command::Work { seed: 3, calls: 5000, threads: 1, pause_us: 0 });
    let truth = host.truth();
    let programs = json(&space, &["programs"]);
    let programs = programs["programs"].as_array().unwrap();
    assert!(!programs.is_empty());
    let bytes: u64 = programs.iter().map(|p| p["kernel_bytes"].as_u64().unwrap()).sum();
    assert_eq!(bytes, truth.devices.iter().map(|device| device.bytes[5]).sum::<u64>());
    for program in programs {
        let count = |what: &str| program[what].as_u64().unwrap();
        assert_eq!(count("cache_hits") + count("cache_misses"), count("dispatches"));
    }
}

#[test]
fn peaks_can_be_reset_by_asking_the_aggregator() {
    let space = Space::new();
    let refused = space.command(SMI).args(["peak", "--reset"]).output().unwrap();
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && message.contains("tt-smi aggregate"), "{message}");
    let _monitor = Monitor::start(SMI, &space);
    let tracker = tracker(&space);
    let device = tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() }).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 1000)).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 2, 50)).unwrap();
    tracker.free(device, 1).unwrap();
    let peak = || json(&space, &["snapshot"])["devices"][0]["dram_peak_bytes"].as_u64();
    tt_shm_tests::space::until("the peak", || (peak() == Some(1050)).then_some(()));
    smi(&space, &["peak", "--reset"]);
    tt_shm_tests::space::until("the peak of the new window", || (peak() == Some(50)).then_some(()));
}

#[test]
fn clean_removes_what_the_dead_left_and_nothing_else() {
    let space = Space::new();
    let (mut dead, alive) = (host(&space, [1]), host(&space, [1]));
    dead.tell(Command::Grow { count: 100 });
    dead.kill();
    assert!(smi(&space, &["clean", "--dry-run"]).contains(&dead.pid().to_string()));
    assert_eq!(space.segments().len(), 2);
    let report = smi(&space, &["clean"]);
    assert!(report.contains(&dead.pid().to_string()) && report.contains("6.2 KiB"), "{report}");
    assert_eq!(space.segments(), vec![common::segment_of(&space, alive.pid())]);
}

#[test]
fn the_demo_ends_by_itself_and_leaves_nothing() {
    let space = Space::new();
    let text = smi(&space, &["demo", "--seconds", "2", "--devices", "2", "--workers", "2", "--seed", "7"]);
    assert!(text.contains("2 devices, 2 processes"), "{text}");
    assert_eq!(space.files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn nothing_there_is_said_and_bad_usage_is_told_apart() {
    let space = Space::new();
    let code = |arguments: &[&str]| space.command(SMI).args(arguments).output().unwrap().status.code();
    assert_eq!(code(&["snapshot", "--no-such-flag"]), Some(2));
    assert_eq!(code(&["--namespace", "a/b", "snapshot"]), Some(2));
    assert_eq!(code(&["allocations", "--device", "77"]), Some(1));
}
