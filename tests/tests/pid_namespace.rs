//! A writer in another PID namespace: its death is noticed, and its pid is shown as it is called here.

use crate::common::{HOST, SMI};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use tt_shm_reader::{Segment, process_state};
use tt_shm_tests::monitor::snapshot;
use tt_shm_tests::script::{Answer, Command};
use tt_shm_tests::space::{Process, until};
use tt_shm_tests::{Monitor, Space};

/// A host that calls itself 1 or so; `None` where namespaces are not to be had.
struct Contained {
    /// `unshare`, which is killed with its child.
    outer: Process,
    input: std::process::ChildStdin,
    output: BufReader<std::process::ChildStdout>,
}

impl Contained {
    fn start(space: &Space) -> Option<Contained> {
        let allowed = space.command("unshare").args(["-rpf", "--mount-proc", "true"]).status();
        if !allowed.is_ok_and(|status| status.success()) {
            eprintln!("skipped: this machine lets nobody make PID namespaces (unshare -rpf --mount-proc)");
            return None;
        }
        let mut command = space.command("unshare");
        command.args(["-rpf", "--mount-proc", "--kill-child", HOST]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut outer = Process::spawn(command);
        let (input, output) = (outer.0.stdin.take()?, BufReader::new(outer.0.stdout.take()?));
        let mut host = Contained { outer, input, output };
        host.tell(&Command::Open { ring_slots: 0, chips: vec![1] });
        host.tell(&Command::Grow { count: 10 });
        Some(host)
    }

    fn tell(&mut self, command: &Command) {
        writeln!(self.input, "{}", serde_json::to_string(command).unwrap()).unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert!(matches!(serde_json::from_str(&line).unwrap(), Answer::Done), "{line}");
    }

    /// What it is called here: the only child of `unshare`.
    fn pid_here(&self) -> u32 {
        let outer = self.outer.0.id();
        let children = std::fs::read_to_string(format!("/proc/{outer}/task/{outer}/children")).unwrap();
        children.trim().parse().unwrap()
    }
}

fn smi(space: &Space, arguments: &[&str]) -> String {
    let output = space.command(SMI).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn assert_both_pids_are_shown(space: &Space, here: u32) {
    let shown: Value = serde_json::from_str(&smi(space, &["snapshot", "--json"])).unwrap();
    let process = &shown["processes"][0];
    assert_eq!((&process["pid"], &process["namespace_pid"]), (&here.into(), &1.into()));
    assert!(smi(space, &["snapshot"]).contains(&format!("{here} (1)")));
    let list: Value =
        serde_json::from_str(&smi(space, &["allocations", "--json", "--pid", &here.to_string()])).unwrap();
    assert_eq!(list["allocations"][0]["pid"], here, "{list}");
}

#[test]
fn its_pid_is_shown_as_it_is_called_here() {
    let space = Space::new();
    let Some(host) = Contained::start(&space) else { return };
    let here = host.pid_here();
    let segment = Segment::open(&space.segments()[0]).unwrap();
    assert_eq!((segment.pid(), segment.pid_here()), (1, Some(here)));
    assert_both_pids_are_shown(&space, here);
    let _monitor = Monitor::start(SMI, &space);
    until("the process to be in the table", || snapshot(&space).filter(|table| table.processes.len() == 1));
    assert_both_pids_are_shown(&space, here);
}

#[test]
fn its_death_is_noticed_and_its_pid_unknown_from_then_on() {
    let space = Space::new();
    let Some(mut host) = Contained::start(&space) else { return };
    let _monitor = Monitor::start(SMI, &space);
    until("the process to be in the table", || snapshot(&space).filter(|table| table.processes.len() == 1));
    let segment = Segment::open(&space.segments()[0]).unwrap();
    host.outer.kill();
    until("the lock to be gone", || (!segment.is_alive().unwrap()).then_some(()));
    until("the end to be in the table", || {
        snapshot(&space).filter(|table| table.processes[0].1.state == process_state::ENDED)
    });
    let shown: Value = serde_json::from_str(&smi(&space, &["snapshot", "--json"])).unwrap();
    let process = &shown["processes"][0];
    assert_eq!((&process["pid"], &process["namespace_pid"]), (&Value::Null, &1.into()));
    assert!(space.segments().is_empty(), "what is left of it is removed");
}

/// The same pid twice, as after a pid was used again: only the lock and the identity tell them apart.
#[test]
fn two_processes_of_one_pid_are_not_mistaken_for_each_other() {
    let space = Space::new();
    let Some(mut dies) = Contained::start(&space) else { return };
    let Some(lives) = Contained::start(&space) else { return };
    let _monitor = Monitor::start(SMI, &space);
    let used = |bytes| {
        until("the sum of those that live", || {
            snapshot(&space).filter(|table| table.devices.first().is_some_and(|d| d.1.l1_used_bytes == bytes))
        })
    };
    let table = used(2 * 640);
    assert_eq!(table.processes.iter().map(|(_, p)| p.pid).collect::<Vec<_>>(), [1, 1]);
    dies.outer.kill();
    let table = used(640);
    let alive = table.processes.iter().filter(|(_, p)| p.state == process_state::ALIVE);
    assert_eq!(alive.count(), 1);
    assert_both_pids_are_shown(&space, lives.pid_here());
    // A newcomer of the same pid removes what the dead left, and nothing else.
    let _newcomer = Contained::start(&space);
    used(2 * 640);
    assert_eq!(space.segments().len(), 2);
}

/// Both are process 1, each of its own namespace, and the child has inherited the list of what to remove at exit.
#[test]
fn a_child_that_has_its_parents_pid_leaves_the_parents_segment_alone() {
    let space = Space::new();
    let nested = |program: &str, arguments: &[&str]| {
        let mut command = space.command("unshare");
        command.args(["-rpf", "--mount-proc", program]).args(arguments);
        command.output().unwrap()
    };
    if !nested("unshare", &["-pf", "true"]).status.success() {
        eprintln!("skipped: this machine lets nobody make PID namespaces in PID namespaces (unshare -rpf)");
        return;
    }
    let output = nested(env!("CARGO_BIN_EXE_forker"), &["nested"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said == "nested 1\n", "{output:?}");
    assert!(space.files().is_empty(), "the parent removed it at its own end");
}
