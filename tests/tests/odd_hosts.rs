//! Hosts that do unusual things to themselves, or have little of what they need.

use crate::common::{HOST, SMI, host, segment_of};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use tt_shm_reader::Segment;
use tt_shm_tests::monitor::{await_exact, snapshot};
use tt_shm_tests::script::{Answer, Command};
use tt_shm_tests::space::{Process, until};
use tt_shm_tests::{Monitor, Space};

const FORKER: &str = env!("CARGO_BIN_EXE_forker");

/// A forker that has said so many lines: who it is, and what it said.
fn forker(space: &Space, mode: &str, lines: usize) -> (Process, Vec<(String, u32)>) {
    let mut command = space.command(FORKER);
    command.arg(mode).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = Process::spawn(command);
    let output = BufReader::new(process.0.stdout.take().unwrap());
    let said = output.lines().take(lines).map(|line| {
        let line = line.unwrap();
        let (who, pid) = line.split_once(' ').unwrap();
        (who.to_owned(), pid.parse().unwrap())
    });
    let said = said.collect();
    (process, said)
}

/// What a host answers that is asked to open its tracker, under a limit that the shell sets.
fn open_under(space: &Space, limit: &str) -> Answer {
    let mut command = space.command("sh");
    command.args(["-c", &format!("{limit} && exec {HOST}")]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = Process::spawn(command);
    let open = Command::Open { ring_slots: 0, chips: vec![1] };
    writeln!(process.0.stdin.as_mut().unwrap(), "{}", serde_json::to_string(&open).unwrap()).unwrap();
    let mut line = String::new();
    BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{limit}: {error}: {line:?}"))
}

#[test]
fn a_host_that_closes_all_descriptors_reports_on_and_its_end_is_noticed() {
    let space = Space::new();
    let (mut process, said) = forker(&space, "closes", 1);
    let segment = Segment::open(&segment_of(&space, said[0].1)).unwrap();
    assert!(segment.is_alive().unwrap());
    assert!(!segment.is_degraded(), "its list grows without a descriptor");
    assert_eq!(segment.counters().unwrap().counters[0].dram_used(), 1_000_000);
    process.kill();
    assert!(!segment.is_alive().unwrap());
}

#[test]
fn a_child_by_raw_clone_reports_apart_and_does_not_keep_its_parent_alive() {
    let space = Space::new();
    let (mut parent, said) = forker(&space, "cloned", 2);
    let pid = |who: &str| said.iter().find(|(said, _)| said == who).unwrap().1;
    let segment = |who| Segment::open(&segment_of(&space, pid(who))).unwrap();
    let (of_parent, of_child) = (segment("parent"), segment("child"));
    let used = |segment: &Segment| segment.counters().unwrap().counters[0].dram_used();
    assert_eq!((used(&of_parent), used(&of_child)), (1030, 500));
    // Keeps the pipe open, and with it the child.
    let input = parent.0.stdin.take();
    parent.kill();
    until("the parent's lock to be gone", || (!of_parent.is_alive().unwrap()).then_some(()));
    assert!(of_child.is_alive().unwrap());
    drop(input);
    until("the child to end", || (!of_child.is_alive().unwrap()).then_some(()));
}

/// Exceeding the limit would kill the host.
#[test]
fn a_limit_on_the_size_of_files_is_a_clear_error() {
    let space = Space::new();
    let Answer::Failed(message) = open_under(&space, "ulimit -f 1000") else { panic!("that is too small") };
    assert!(message.contains("RLIMIT_FSIZE") && message.contains("ulimit -f"), "{message}");
    assert!(space.files().is_empty());
}

/// SIGXFSZ would end them without a word.
#[test]
fn a_monitor_that_may_make_no_files_says_so() {
    let space = Space::new();
    let report = space.folder_name("report");
    let run = format!("run --json {} -- true", report.display());
    for (arguments, expected) in
        [("aggregate", "RLIMIT_FSIZE"), ("demo --seconds 1", "RLIMIT_FSIZE"), (run.as_str(), "too large")]
    {
        let script = format!("ulimit -f 0 && exec {SMI} {arguments}");
        let output = space.command("sh").args(["-c", &script]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some(), "{arguments}: {output:?}");
        assert!(said.contains(expected), "{arguments}: {said}");
    }
}

/// Locking all memory, as hosts with real-time threads do, must not make a segment as large as it may become.
#[test]
fn a_host_that_locks_its_memory_has_a_segment_of_the_usual_size() {
    use std::os::unix::fs::MetadataExt;
    let space = Space::new();
    let (mut process, said) = forker(&space, "locked", 1);
    if said.is_empty() {
        eprintln!("skipped: this machine does not let us lock memory (mlockall)");
        return;
    }
    let path = segment_of(&space, said[0].1);
    let bytes = || std::fs::metadata(&path).unwrap().blocks() * 512;
    assert!(bytes() < 2 << 20, "{} bytes", bytes());
    let segment = Segment::open(&path).unwrap();
    assert_eq!(segment.allocations().list.len(), 1);
    assert!(bytes() < 2 << 20, "{} bytes after it was read", bytes());
    process.kill();
}

#[test]
fn a_limit_on_address_space_is_a_clear_error() {
    let space = Space::new();
    let Answer::Failed(message) = open_under(&space, "ulimit -v 60000") else { panic!("that is too little") };
    assert!(message.contains("ulimit -v") || message.contains("memory"), "{message}");
    assert!(space.files().is_empty());
}

/// As systemd does to users who logged out (RemoveIPC).
#[test]
fn a_host_whose_name_is_removed_is_followed_on() {
    let space = Space::new();
    let mut host = host(&space, [1]);
    let _monitor = Monitor::start(SMI, &space);
    host.tell(Command::Figures);
    await_exact(&space, &[(host.pid(), host.truth())]);
    std::fs::remove_file(segment_of(&space, host.pid())).unwrap();
    host.tell(Command::Grow { count: 5000 });
    let bytes: u64 = host.truth().devices[0].bytes[shm_layout::Class::L1 as usize];
    until("what it reported since", || {
        let table = snapshot(&space)?;
        (table.devices[0].1.classes[shm_layout::Class::L1 as usize].live_bytes == bytes).then_some(())
    });
    host.kill();
    until("its end", || (snapshot(&space)?.devices[0].1.processes == 0).then_some(()));
}

/// Then the folder is looked at again and again.
#[test]
fn an_aggregator_without_inotify_finds_hosts_all_the_same() {
    let space = Space::new();
    for limit in ["max_inotify_instances", "max_inotify_watches"] {
        let script = format!("echo 0 > /proc/sys/user/{limit} && exec {SMI} aggregate");
        let unshared = |script: &str| {
            let mut command = space.command("unshare");
            command.args(["-U", "--map-current-user", "--keep-caps", "sh", "-c", script]);
            command.stderr(Stdio::null());
            command
        };
        if !unshared(&format!("echo 0 > /proc/sys/user/{limit}"))
            .status()
            .is_ok_and(|status| status.success())
        {
            eprintln!("skipped: this machine lets nobody set limits of a user namespace");
            return;
        }
        let _aggregator = Process::spawn(unshared(&script));
        until("its table", || snapshot(&space));
        let mut host = host(&space, [1]);
        host.tell(Command::Work { seed: 2, calls: 1000, threads: 1, pause_us: 0 });
        await_exact(&space, &[(host.pid(), host.truth())]);
    }
}
