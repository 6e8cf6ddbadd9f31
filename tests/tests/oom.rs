//! What `tt-smi oom` tells of allocations that failed in real processes.

use crate::common::{FAIL, HOST, SMI, host, json, smi, tracker};
use serde_json::Value;
use tt_shm_tests::space::until;
use tt_shm_tests::{Command, Host, Monitor, Space};
use tt_shm_writer::{CircularBuffer, Class, DeviceInfo, Dispatch, FailedAlloc, Record};

#[track_caller]
fn oom(space: &Space, arguments: &[&str]) -> Value {
    json(space, &[&["oom"], arguments].concat())
}

/// Waits until the aggregator has recorded the only failure; its ring tells of it at once, but not who held what.
fn await_recorded(space: &Space) -> Value {
    until("the failure", || Some(oom(space, &[])).filter(|oom| oom["failures"][0]["held"]["exact"] == true))
}

#[test]
fn with_an_aggregator_the_holders_then_are_exact() {
    let space = Space::new();
    let _monitor = Monitor::start(SMI, &space);
    let (mut large, mut small) = (host(&space, [5, 6]), host(&space, [5]));
    large.tell(Command::Work { seed: 1, calls: 2000, threads: 1, pause_us: 0 });
    small.tell(Command::Grow { count: 3 });
    let (large_then, small_then) = (large.truth(), small.truth());
    small.tell(FAIL);
    // What happens afterwards changes nothing of what was then.
    large.tell(Command::Spin { pairs: 50 });
    large.kill();
    let oom = await_recorded(&space);
    let failure = &oom["failures"][0];
    assert_eq!(
        (&oom["schema"], &failure["device"], &failure["pid"]),
        (&1.into(), &0.into(), &small.pid().into())
    );
    assert_eq!((&failure["class"], &failure["cause"]), (&"dram".into(), &"fragmented".into()));
    for (key, bytes) in [("request_bytes", 4096), ("free_bytes", 9000), ("largest_free_bytes", 1000)] {
        assert_eq!(failure[key], bytes);
    }
    let held = &failure["held"];
    assert_eq!(held["exact"], true);
    let of = |pid: u32| {
        let holders = held["holders"].as_array().unwrap();
        &holders.iter().find(|holder| holder["pid"] == pid).unwrap()["classes_bytes"]
    };
    let dram_used = |said: &Value| said["dram"].as_u64().unwrap() + said["trace"].as_u64().unwrap();
    assert_eq!(dram_used(of(large.pid())), large_then.devices[0].dram_used);
    assert_eq!(of(small.pid())["l1"], small_then.devices[0].l1_used);
    assert_eq!(failure["events"].as_array().unwrap().len(), 16);
    assert_eq!(failure["events_complete"], true);
    assert_eq!(failure["events"][15]["pid"], small.pid());
}

#[test]
fn without_an_aggregator_what_cannot_be_known_is_said() {
    let space = Space::new();
    let (mut whole, mut lapped) = (host(&space, [5]), Host::start_with(HOST, &space, [6], 64));
    whole.tell(Command::Grow { count: 7 });
    whole.tell(FAIL);
    lapped.tell(Command::Spin { pairs: 100 });
    lapped.tell(FAIL);
    let oom = oom(&space, &[]);
    assert_eq!((&oom["aggregator_pid"], &oom["failures_known"]), (&Value::Null, &2.into()));
    // The latest first; its ring no longer tells what the process held.
    let (late, early) = (&oom["failures"][0], &oom["failures"][1]);
    assert_eq!((&late["pid"], &late["held"]), (&lapped.pid().into(), &Value::Null));
    assert_eq!((&late["events_complete"], &late["request_bytes"]), (&false.into(), &4096.into()));
    assert_eq!(
        (&early["held"]["exact"], &early["held"]["classes_bytes"]["l1"]),
        (&false.into(), &448.into())
    );
    let text = smi(&space, &["oom"]);
    for line in ["held on device 1 at that time: -", "other processes may have held more", ": fragmented"] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
}

#[test]
fn a_killed_process_still_tells_what_failed_and_what_it_held() {
    let space = Space::new();
    let mut host = host(&space, [5]);
    host.tell(Command::Grow { count: 7 });
    host.tell(Command::Fail { request: 4096, free: u64::MAX, largest: u64::MAX });
    host.kill();
    let oom = oom(&space, &[]);
    let failure = &oom["failures"][0];
    assert_eq!((&failure["pid"], &failure["device"]), (&host.pid().into(), &0.into()));
    for unknown in ["free_bytes", "largest_free_bytes", "cause"] {
        assert_eq!(failure[unknown], Value::Null);
    }
    assert_eq!(failure["held"]["holders"][0]["classes_bytes"]["l1"], 448);
    assert!(smi(&space, &["oom"]).contains("on device 0"));
}

#[test]
fn a_killed_aggregator_leaves_what_it_saw() {
    let space = Space::new();
    let mut monitor = Monitor::start(SMI, &space);
    let mut host = host(&space, [5]);
    host.tell(Command::Grow { count: 7 });
    host.tell(FAIL);
    await_recorded(&space);
    monitor.kill();
    let alone =
        until("a stale heartbeat", || Some(oom(&space, &[])).filter(|oom| oom["aggregator_pid"].is_null()));
    assert_eq!((&alone["failures_known"], &alone["failures"][0]["held"]["exact"]), (&1.into(), &true.into()));
}

#[test]
fn devices_and_numbers_are_chosen() {
    let space = Space::new();
    let (mut first, mut second) = (host(&space, [5]), host(&space, [6]));
    (0..3).for_each(|_| first.tell(FAIL));
    second.tell(FAIL);
    let count = |arguments: &[&str]| oom(&space, arguments)["failures"].as_array().unwrap().len();
    assert_eq!(count(&[]), 4);
    assert_eq!((count(&["--device", "0x5"]), count(&["--device", "0x6"])), (3, 1));
    assert_eq!(count(&["--device", "0x5", "--last", "2"]), 2);
    let wrong = space.command(SMI).args(["oom", "--device", "9"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    let usage = space.command(SMI).args(["oom", "--last", "0"]).output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn no_failure_is_no_error() {
    let space = Space::new();
    assert!(smi(&space, &["oom"]).starts_with("No allocation failures known"));
    assert_eq!(oom(&space, &[])["failures"], Value::Array(vec![]));
}

const MIB: u64 = 1 << 20;

/// 768 MiB over 12 banks: enough is free in each, but not in one piece; then it would have fitted; then nobody knows.
fn fail_over_banks(space: &Space) -> tt_shm_writer::Tracker {
    let tracker = tracker(space);
    let device = tracker.register_device(&DeviceInfo { chip_id: 5, ..DeviceInfo::default() }).unwrap();
    let asked = FailedAlloc::new(Class::Dram, 768 * MIB);
    let needed = asked.needed_per_bank(64 * MIB, 12);
    for failed in
        [needed.free_per_bank(100 * MIB, 30 * MIB), needed.free_per_bank(100 * MIB, 70 * MIB), asked]
    {
        tracker.alloc_failed(device, failed).unwrap();
    }
    tracker
}

#[track_caller]
fn assert_told_by_bank(space: &Space, oom: &Value) {
    let failures = oom["failures"].as_array().unwrap();
    let [unknown, fits, pieces] = &failures[..] else { panic!("{oom:#}") };
    assert_eq!((&pieces["cause"], &fits["cause"]), (&"fragmented".into(), &Value::Null), "{oom:#}");
    for (key, value) in
        [("per_bank", true.into()), ("needed_per_bank_bytes", (64 * MIB).into()), ("banks", Value::from(12))]
    {
        assert_eq!(pieces[key], value, "{key}");
    }
    for key in ["free_bytes", "largest_free_bytes", "needed_per_bank_bytes", "banks", "cause"] {
        assert_eq!(unknown[key], Value::Null, "{key}");
    }
    let text = smi(space, &["oom"]);
    let line = "needed 64.0 MiB in each of 12 banks; free 100.0 MiB per bank, largest block 30.0 MiB per bank: fragmented";
    assert!(text.contains(line), "{text}");
    for output in [text, oom.to_string()] {
        assert!(!output.contains("18446744073709551615") && !output.contains("0xffffffff"), "{output}");
    }
}

#[test]
fn figures_of_a_bank_are_compared_with_what_a_bank_needs() {
    let space = Space::new();
    let tracker = fail_over_banks(&space);
    assert_told_by_bank(&space, &oom(&space, &[]));
    let _monitor = Monitor::start(SMI, &space);
    let seen =
        until("an aggregator", || Some(oom(&space, &[])).filter(|oom| !oom["aggregator_pid"].is_null()));
    assert_told_by_bank(&space, &seen);
    let device = tracker.register_device(&DeviceInfo { chip_id: 5, ..DeviceInfo::default() }).unwrap();
    let failed = FailedAlloc::new(Class::Dram, 768 * MIB).needed_per_bank(64 * MIB, 12);
    tracker.alloc_failed(device, failed.free_per_bank(100 * MIB, 30 * MIB)).unwrap();
    let recorded = until("it is recorded", || {
        let oom = oom(&space, &[]);
        oom["failures"][0]["held"]["exact"].as_bool().filter(|exact| *exact).map(|_| oom)
    });
    let failure = &recorded["failures"][0];
    assert_eq!((&failure["cause"], &failure["per_bank"]), (&"fragmented".into(), &true.into()));
    assert!(
        smi(&space, &["snapshot", "--detail"])
            .contains("100.0 MiB per bank free, largest block 30.0 MiB per bank")
    );
}

/// Circular buffers are on cores, and say so with and without an aggregator, wherever a failure is shown.
#[test]
fn circular_buffers_that_do_not_fit_are_told_by_core() {
    let space = Space::new();
    let tracker = tracker(&space);
    let device = tracker.register_device(&DeviceInfo { chip_id: 5, ..DeviceInfo::default() }).unwrap();
    let failed = FailedAlloc::new(Class::Cb, 64 * MIB).needed_per_bank(MIB, 64);
    let fail = || tracker.alloc_failed(device, failed.free_per_bank(MIB / 2, MIB / 2)).unwrap();
    let says = |arguments: &[&str], part: &str| {
        let text = smi(&space, arguments);
        assert!(text.contains(part) && !text.contains("bank"), "no {part:?} in\n{text}");
    };
    let told =
        "needed 1.0 MiB on each of 64 cores; free 512.0 KiB per core, largest block 512.0 KiB per core";
    fail();
    says(&["oom"], told);
    let _monitor = Monitor::start(SMI, &space);
    until("an aggregator", || Some(oom(&space, &[])).filter(|oom| !oom["aggregator_pid"].is_null()));
    fail();
    let recorded = until("it is recorded", || {
        Some(oom(&space, &[])).filter(|oom| oom["failures"][0]["held"]["exact"] == true)
    });
    assert_eq!(recorded["failures"][0]["cause"], "exhausted");
    says(&["oom"], told);
    says(&["snapshot", "--detail"], "512.0 KiB per core free, largest block 512.0 KiB per core");
}

#[test]
fn events_say_what_a_bank_had_and_how_often_and_where_a_program_ran() {
    let space = Space::new();
    let tracker = fail_over_banks(&space);
    let device = tracker.register_device(&DeviceInfo { chip_id: 5, ..DeviceInfo::default() }).unwrap();
    tracker.cb_alloc(device, CircularBuffer::new(7, 1, 4096, 64)).unwrap();
    tracker.dispatch(device, Dispatch::new(7).times(32).lane(1).queue(2)).unwrap();
    let text = smi(&space, &["events"]);
    for line in [
        "requested 805306368 bytes (67108864 in each of 12 banks), 104857600 per bank free, largest block 31457280 per bank",
        "requested 805306368 bytes, - free, largest block -",
        "(cached, 32 times, lane 1, queue 2)",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    let lines = smi(&space, &["events", "--json"]);
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let dispatch = events.iter().find(|event| event["event"] == "KERNEL_DISPATCH").unwrap();
    assert_eq!(
        (&dispatch["times"], &dispatch["lane"], &dispatch["queue"]),
        (&32.into(), &1.into(), &2.into())
    );
    let failed: Vec<&Value> = events.iter().filter(|event| event["event"] == "ALLOC_FAILED").collect();
    assert_eq!((&failed[0]["per_bank"], &failed[0]["banks"]), (&true.into(), &12.into()));
    assert_eq!((&failed[2]["free_bytes"], &failed[2]["needed_per_bank_bytes"]), (&Value::Null, &Value::Null));
    assert!(!(text + &lines).contains("18446744073709551615"));
}
