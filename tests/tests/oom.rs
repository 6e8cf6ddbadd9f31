//! What `tt-smi oom` tells of allocations that failed in real processes.

mod common;

use common::{FAIL, HOST, SMI, host, json, smi};
use serde_json::Value;
use tt_shm_tests::space::until;
use tt_shm_tests::{Command, Host, Monitor, Space};

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
    for line in
        ["held then on device 1: -", "others may have held more", "enough was free, but not in one piece"]
    {
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
    assert!(smi(&space, &["oom"]).starts_with("No allocation failure is known"));
    assert_eq!(oom(&space, &[])["failures"], Value::Array(vec![]));
}
