//! A full /dev/shm: a clear error at open, `degraded` at growth, and never a wrong total.
//!
//! Each host gets a small /dev/shm of its own in a mount namespace.

use crate::common::{HOST, SMI};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Stdio};
use tt_shm_reader::Segment;
use tt_shm_tests::Space;
use tt_shm_tests::script::{Answer, Command};
use tt_shm_tests::space::{Process, until};

struct Confined {
    process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// A command of the shell in a /dev/shm of that size; `None` where namespaces are not to be had.
fn shell(space: &Space, size: &str, script: &str) -> Option<std::process::Command> {
    let allowed = space.command("unshare").args(["-rm", "true"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this machine lets nobody make mount namespaces (unshare -rm)");
        return None;
    }
    let mut command = space.command("unshare");
    let script = format!("mount -t tmpfs -o size={size} tmpfs /dev/shm && {script}");
    command.args(["-rm", "sh", "-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    Some(command)
}

/// A host whose /dev/shm has that size, after `prepare`.
fn confined(space: &Space, size: &str, prepare: &str) -> Option<Confined> {
    let mut process = Process::spawn(shell(space, size, &format!("{prepare} exec {HOST}"))?);
    let (input, output) = (process.0.stdin.take()?, process.0.stdout.take()?);
    Some(Confined { process, input, output: BufReader::new(output) })
}

impl Confined {
    fn ask(&mut self, command: &Command) -> Answer {
        writeln!(self.input, "{}", serde_json::to_string(command).unwrap()).unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn segment(&self) -> Segment {
        let shm = format!("/proc/{}/root/dev/shm", self.process.0.id());
        let mut files = std::fs::read_dir(Path::new(&shm)).unwrap();
        Segment::open(&files.next().unwrap().unwrap().path()).unwrap()
    }
}

fn open() -> Command {
    Command::Open { ring_slots: 0, chips: vec![1] }
}

#[test]
fn opening_without_room_is_a_clear_error() {
    let space = Space::new();
    let Some(mut host) = confined(&space, "512k", "") else { return };
    let Answer::Failed(message) = host.ask(&open()) else { panic!("half a megabyte cannot be enough") };
    assert!(message.contains("no room in /dev/shm") && message.contains("tt-smi clean"), "{message}");
}

/// The segment fits, with some devices, but not the counters of all.
#[test]
fn no_room_for_a_device_is_not_a_full_list() {
    let space = Space::new();
    let Some(mut host) = confined(&space, "448k", "") else { return };
    let many = Command::Open { ring_slots: 64, chips: (1..=128).collect() };
    let Answer::Failed(message) = host.ask(&many) else { panic!("there is no room for 128 devices") };
    assert!(message.contains("no room in /dev/shm for the counters of another device"), "{message}");
}

#[test]
fn growing_without_room_degrades_the_list_and_no_total() {
    let space = Space::new();
    let Some(mut host) = confined(&space, "2m", "") else { return };
    assert!(matches!(host.ask(&open()), Answer::Done));
    assert!(matches!(host.ask(&Command::Grow { count: 50_000 }), Answer::Done));
    let segment = host.segment();
    let list = segment.allocations();
    assert!(segment.is_degraded() && list.unlisted > 0);
    assert_eq!(list.list.len() as u64 + list.unlisted, 50_000);
    assert_eq!(segment.counters().unwrap().counters[0].l1_used(), 50_000 * 64);
}

#[test]
fn opening_without_a_single_page_is_a_clear_error() {
    let space = Space::new();
    let fill = "head -c 65536 /dev/zero > /dev/shm/filler;";
    let Some(mut host) = confined(&space, "64k", fill) else { return };
    let Answer::Failed(message) = host.ask(&open()) else { panic!("nothing cannot be enough") };
    assert!(message.contains("no room in /dev/shm"), "{message}");
}

/// A forked child that cannot list all devices of its parent must not give their numbers to others.
#[test]
fn a_child_without_room_for_its_devices_mistakes_none_for_another() {
    let space = Space::new();
    let forker = env!("CARGO_BIN_EXE_forker");
    let Some(mut command) = shell(&space, "16m", &format!("{forker} cramped")) else { return };
    let output = command.stderr(Stdio::piped()).output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("ForkedWithoutSegment"), "{text}");
}

/// Nothing is left of a table that found no room, and the next aggregator may try again.
#[test]
fn an_aggregator_without_room_for_its_table_says_so() {
    let space = Space::new();
    let script = format!("head -c 60k /dev/zero > /dev/shm/filler; {SMI} aggregate; echo $?; ls -A /dev/shm");
    let Some(mut command) = shell(&space, "64k", &script) else { return };
    let output = command.stderr(Stdio::piped()).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("/dev/shm") && message.contains("room"), "{message}");
    let text = String::from_utf8_lossy(&output.stdout);
    let left: Vec<&str> = text.lines().skip(1).filter(|name| !name.ends_with(".lock")).collect();
    assert_eq!((text.lines().next(), left), (Some("1"), vec!["filler"]), "{message}");
}

impl Confined {
    /// A command in the /dev/shm of the host.
    fn beside(&self, space: &Space, program: &str) -> std::process::Command {
        let mut command = space.command("nsenter");
        let pid = self.process.0.id().to_string();
        command.args(["-U", "-m", "--preserve-credentials", "-t", &pid, program]);
        command
    }

    fn snapshot(&self, space: &Space) -> serde_json::Value {
        let output = self.beside(space, SMI).args(["snapshot", "--json"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn shell(&self, space: &Space, script: &str) {
        let status = self.beside(space, "sh").args(["-c", script]).status().unwrap();
        assert!(status.success(), "{script}");
    }
}

fn kinds(snapshot: &serde_json::Value) -> Vec<&str> {
    snapshot["errors"].as_array().unwrap().iter().map(|error| error["kind"].as_str().unwrap()).collect()
}

/// Rows that there is no room for are missing, and that is said; all others go on, and it recovers by itself.
#[test]
fn a_table_without_room_for_all_rows_says_so_and_recovers() {
    let space = Space::new();
    let Some(mut host) = confined(&space, "16m", "") else { return };
    assert!(matches!(host.ask(&Command::Open { ring_slots: 0, chips: (1..=40).collect() }), Answer::Done));
    host.shell(&space, "cat /dev/zero > /dev/shm/filler 2>/dev/null; truncate -s -1M /dev/shm/filler");
    let mut command = host.beside(&space, SMI);
    command.arg("aggregate").stderr(Stdio::piped());
    let _daemon = Process::spawn(command);
    let short = until("the table to say what is wrong", || {
        let shown = host.snapshot(&space);
        kinds(&shown).contains(&"no_room").then_some(shown)
    });
    let devices = short["devices"].as_array().unwrap().len();
    assert!((1..40).contains(&devices), "{devices} devices are shown");
    // What has its rows goes on: the count of events, the figures, and the rows belong together.
    assert!(matches!(host.ask(&Command::Grow { count: 500 }), Answer::Done));
    until("the figures of the first device", || {
        let shown = host.snapshot(&space);
        let whole = shown["aggregator"]["consistent"] == true && kinds(&shown).contains(&"no_room");
        (whole && shown["devices"][0]["l1_used_bytes"] == 500 * 64).then_some(())
    });
    host.shell(&space, "rm /dev/shm/filler");
    until("all devices", || {
        let shown = host.snapshot(&space);
        (kinds(&shown).is_empty() && shown["devices"].as_array().unwrap().len() == 40).then_some(())
    });
}
