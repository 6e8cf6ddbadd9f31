//! What a person or a script gets from `tt-smi`, while real processes run.

use crate::common::{self, SMI, host, json, smi, tracker};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tt_shm_tests::space::Process;
use tt_shm_tests::{Command, Monitor, Space};
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, Class, CoreType, DeviceInfo, FailedAlloc, Kernel, KernelType, Launch,
    MarkerPhase, ProgramBinaryStatus, Record,
};

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
    let line_of = |name: &str| {
        let found = text.lines().find(|line| line.trim_start().starts_with(name));
        found.unwrap_or_else(|| panic!("no {name:?} in\n{text}")).to_owned()
    };
    for (name, size, count) in [
        ("kernels loaded", " 324.0 KiB ", "9 kernels"),
        ("Fabric", " 112.0 KiB ", "2 kernels"),
        ("Dispatch", " 92.0 KiB ", "2 kernels"),
        ("Application", " 120.0 KiB ", "5 kernels"),
    ] {
        let line = line_of(name);
        assert!(line.contains(size) && line.contains(count), "{line}");
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
fn everything_that_is_reported_can_be_read_in_the_events() {
    let space = Space::new();
    let tracker = tracker(&space);
    let device = tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() }).unwrap();
    let step = tracker.intern("step").unwrap();
    tracker.device_open(device).unwrap();
    tracker.marker(MarkerPhase::Begin, 7, step).unwrap();
    tracker.alloc_failed(device, FailedAlloc::new(Class::L1, 5000).free(4000, 300)).unwrap();
    tracker.kernel_ring(device, 71_680, 1024, 3).unwrap();
    tracker.cb_alloc(device, CircularBuffer::new(3, 1, 4096, 64).globally_allocated()).unwrap();
    tracker.reset_peaks(device).unwrap();
    tracker.device_close(device).unwrap();
    let text = smi(&space, &["events"]);
    for line in [
        "[DEVICE_OPEN] Device 0",
        "[MARKER] begin step 7 \"step\"",
        "[ALLOC_FAILED] L1 on Device 0: requested 5000 bytes, 4000 free, largest block 300",
        "[GAUGE] Kernel ring buffer on Device 0: 1024 of 71680 bytes, 3 programs",
        "[CB_ALLOC] Device 0: +0 MiB (Total: 0 MiB) (cb 0x1, program 0x3, inside an L1 buffer)",
        "[PEAK_RESET] Device 0",
        "[DEVICE_CLOSE] Device 0",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    let lines = smi(&space, &["events", "--json"]);
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| events.iter().find(|event| event["event"] == kind).unwrap();
    assert_eq!((&of("GAUGE")["used_bytes"], &of("GAUGE")["programs"]), (&1024.into(), &3.into()));
    assert_eq!((&of("MARKER")["phase"], &of("MARKER")["device"]), (&"begin".into(), &Value::Null));
    assert_eq!(of("ALLOC_FAILED")["largest_free_bytes"], 300);
    assert_eq!(of("CB_ALLOC")["globally_allocated"], true);
}

#[test]
fn followed_events_come_as_they_happen_and_from_new_processes_too() {
    let space = Space::new();
    let tracker = tracker(&space);
    let device = tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() }).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 0x01d, 4096)).unwrap();
    let mut command = space.command(SMI);
    command.args(["events", "--follow"]).stdout(Stdio::piped());
    let mut follower = Process::spawn(command);
    let mut lines = BufReader::new(follower.0.stdout.take().unwrap()).lines();
    // What happened before it looked is not shown, so it may take several until it looks.
    let looks = AtomicBool::new(false);
    let first = std::thread::scope(|scope| {
        scope.spawn(|| {
            let more = (0x1000..).take_while(|_| !looks.load(Ordering::Relaxed));
            more.for_each(|id| {
                tracker.alloc(device, Alloc::new(BufferType::Dram, id, 4096)).unwrap();
                std::thread::sleep(Duration::from_millis(5));
            });
        });
        let first = lines.next();
        looks.store(true, Ordering::Relaxed);
        first.unwrap().unwrap()
    });
    assert!(first.contains("Allocated 4096 bytes of DRAM") && !first.contains("0x1d)"), "{first}");
    let mut newcomer = host(&space, [9]);
    newcomer.tell(Command::Grow { count: 3 });
    let theirs = format!("[PID {}] Allocated", newcomer.pid());
    let seen = lines.by_ref().map(Result::unwrap).filter(|line| line.contains(&theirs)).take(3).count();
    assert_eq!(seen, 3);
    follower.signal(Signal::INT);
    assert!(follower.0.wait().unwrap().success());
}

#[test]
fn allocations_say_which_is_oldest_and_where_it_was_made() {
    let space = Space::new();
    let tracker = tracker(&space);
    let device = tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() }).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 5, 10)).unwrap();
    let text = smi(&space, &["allocations"]);
    assert!(!text.contains("CALL SITE"), "{text}");
    let site = tracker.intern("load_weights < main").unwrap();
    tracker.alloc(device, Alloc::new(BufferType::L1, 6, 1000).cores(64).site(site)).unwrap();
    let ids = |sort: &str| -> Vec<Value> {
        let listed = json(&space, &["allocations", "--sort", sort]);
        listed["allocations"].as_array().unwrap().iter().map(|a| a["id"].clone()).collect()
    };
    assert_eq!((ids("age"), ids("size")), (vec![5.into(), 6.into()], vec![6.into(), 5.into()]));
    let text = smi(&space, &["allocations"]);
    assert!(text.contains("CALL SITE") && text.contains("load_weights < main"), "{text}");
    let listed = json(&space, &["allocations"]);
    let core_types: Vec<_> = [0, 1].map(|i| listed["allocations"][i]["core_type"].clone()).into();
    assert_eq!(core_types, ["tensix".into(), Value::Null], "DRAM is in no core");
}

#[test]
fn programs_from_before_tracking_and_copies_of_binaries_are_told() {
    let space = Space::new();
    let tracker = tracker(&space);
    let device = tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() }).unwrap();
    let kernel = |id| Kernel::new(id, KernelType::Application, CoreType::Tensix, 1024, 64).hash(0xabc);
    tracker.launch(device, Launch::new(1, &[kernel(1)], ProgramBinaryStatus::NotSent)).unwrap();
    tracker.launch(device, Launch::new(2, &[kernel(2)], ProgramBinaryStatus::Committed)).unwrap();
    let text = smi(&space, &["programs"]);
    assert_eq!(text.matches("late: loaded before tracking began").count(), 1, "{text}");
    assert!(text.contains("128.0 KiB of kernels loaded, 64.0 KiB unique, 64.0 KiB copies"), "{text}");
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
fn a_setting_that_is_out_of_range_is_wrong_usage() {
    let space = Space::new();
    for (variable, value) in [
        ("TT_SHM_RING_SLOTS", "100"),
        ("TT_SHM_RING_SLOTS", "many"),
        ("TT_SHM_LIVE_CAPACITY", "0"),
        ("TT_SHM_NAMESPACE", "a/b"),
    ] {
        let output =
            space.command(SMI).args(["demo", "--seconds", "1"]).env(variable, value).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{variable}={value}: {said}");
        assert!(said.contains(variable) && !said.contains("from another terminal"), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn nothing_there_is_said_and_bad_usage_is_told_apart() {
    let space = Space::new();
    let code = |arguments: &[&str]| space.command(SMI).args(arguments).output().unwrap().status.code();
    assert_eq!(code(&["snapshot", "--no-such-flag"]), Some(2));
    assert_eq!(code(&["--namespace", "a/b", "snapshot"]), Some(2));
    assert_eq!(code(&["allocations", "--device", "77"]), Some(1));
    for command in ["snapshot", "peak"] {
        assert!(smi(&space, &[command]).contains("no process reports allocations here"), "{command}");
    }
    let said = |arguments: &[&str]| {
        let output = space.command(SMI).args(arguments).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    for (arguments, says) in [
        (&["ps"][..], "No process reports in this namespace (see `tt-smi doctor`"),
        (&["events"], "no process reports events in this namespace (see `tt-smi doctor`"),
        (&["allocations", "--device", "7"], "no device 7: no process reports any here"),
        (
            &["allocations", "--query", "size>1MiB"],
            "No matching allocations: no process reports in this namespace (see `tt-smi doctor`",
        ),
        (&["programs", "--query", "relu"], "No matching programs: no process reports in this namespace"),
        (&["ps", "--query", "shoe=1"], "no field \"shoe\"; the fields are pid, name, user, command"),
        (&["watch", "--interval", "0"], "from 20ms to 1h"),
        (&["run"], "tt-smi run [OPTIONS] [--] <COMMAND>..."),
    ] {
        assert!(said(arguments).contains(says), "{arguments:?}: {}", said(arguments));
    }
    // Who is not there is an error, whatever it is asked for by.
    for (arguments, says) in [
        (&["allocations", "--pid", "1"][..], "no process 1 reports here"),
        (&["programs", "--pid", "1"], "no process 1 reports here"),
        (&["allocations", "--device", "99"], "no device 99"),
    ] {
        let absent = space.command(SMI).args(arguments).output().unwrap();
        assert!(String::from_utf8_lossy(&absent.stderr).contains(says), "{arguments:?}");
        assert_eq!(absent.status.code(), Some(1), "{arguments:?}");
    }
}

#[test]
fn a_unit_stands_next_to_its_number() {
    let space = Space::new();
    let alone = space.command(SMI).args(["allocations", "--query", "size>1 MiB"]).output().unwrap();
    let said = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert!(said.contains("\"MiB\" stands alone; write the unit next to its number: size>1MiB"), "{said}");
    assert_eq!(alone.status.code(), Some(2));
    for fine in ["size>1MiB", "size>1 mib-cache", "age>1d", "pid=1,2 T"] {
        let output = space.command(SMI).args(["allocations", "--query", fine]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{fine}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_run_that_nobody_reported_in_says_why_and_its_report_may_go_to_stdout() {
    let space = Space::new();
    let run = space.command(SMI).args(["run", "--json", "-", "--", "true"]).output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(
        said.contains("no process of the command reported memory") && said.contains("env --format docker"),
        "{said}"
    );
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(report["exit_code"], 0);
    assert!(!std::path::Path::new("-").exists());
}
