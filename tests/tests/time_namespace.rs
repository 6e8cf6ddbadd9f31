//! A writer in another time namespace, where CLOCK_MONOTONIC is shifted: its times are right, or said to be unknown.

use crate::common::{HOST, SMI, json};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use tt_shm_os::{Calibration, ClockKind, monotonic_ns};
use tt_shm_reader::{Segment, notice_kind};
use tt_shm_tests::monitor::snapshot;
use tt_shm_tests::script::{Answer, Command};
use tt_shm_tests::space::{Process, until};
use tt_shm_tests::{Monitor, Space};

/// A host whose clock is a day ahead; `None` where time namespaces are not to be had.
fn shifted(space: &Space) -> Option<Process> {
    let unshare = ["-rT", "--monotonic", "86400", "--fork", "--kill-child"];
    let allowed = space.command("unshare").args(unshare).arg("true").status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this machine lets nobody make time namespaces (unshare -rT)");
        return None;
    }
    let mut command = space.command("unshare");
    command.args(unshare).arg(HOST).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = Process::spawn(command);
    let mut output = BufReader::new(process.0.stdout.take()?);
    for command in [Command::Open { ring_slots: 0, chips: vec![1] }, Command::Grow { count: 10 }] {
        writeln!(process.0.stdin.as_mut()?, "{}", serde_json::to_string(&command).unwrap()).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(matches!(serde_json::from_str(&line).unwrap(), Answer::Done), "{line}");
    }
    Some(process)
}

#[test]
fn its_times_are_those_of_who_looks() {
    let space = Space::new();
    let before = monotonic_ns();
    let Some(_host) = shifted(&space) else { return };
    let segment = Segment::open(&space.segments()[0]).unwrap();
    assert!(!segment.shares_clock());
    assert_eq!(segment.is_time_known(), ClockKind::best() != ClockKind::Monotonic);
    if segment.is_time_known() {
        let (theirs, ours) = (segment.calibration(), Calibration::measure(ClockKind::best()));
        let ratio = theirs.ticks_per_second() / ours.ticks_per_second();
        assert!((0.9..1.1).contains(&ratio), "{ratio} times the frequency of its clock");
        let time = theirs.to_monotonic_ns(segment.counters().unwrap().counters[0].time);
        assert!((before..=monotonic_ns()).contains(&time), "{before} {time}");
    }
    let _monitor = Monitor::start(SMI, &space);
    let table = until("the process to be in the table", || {
        snapshot(&space).filter(|table| table.processes.len() == 1 && table.events > 0)
    });
    let process = table.processes[0].1;
    assert_eq!(process.started, 0, "a time of another clock");
    assert!(process.last_event <= monotonic_ns());
    assert!(table.notices.iter().any(|notice| notice.kind == notice_kind::CLOCK));
    assert_eq!(json(&space, &["snapshot"])["errors"][0]["kind"], "clock");
}
