//! A full /dev/shm: a clear error at open, `degraded` at growth, and never a wrong total.
//!
//! Each host gets a small /dev/shm of its own in a mount namespace.

mod common;

use common::HOST;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Stdio};
use tt_shm_reader::Segment;
use tt_shm_tests::script::{Answer, Command};
use tt_shm_tests::{Space, space::Process};

struct Confined {
    process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// A host whose /dev/shm has that size; `None` where namespaces are not to be had.
fn confined(space: &Space, size: &str) -> Option<Confined> {
    let allowed = space.command("unshare").args(["-rm", "true"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this machine lets nobody make mount namespaces (unshare -rm)");
        return None;
    }
    let mut command = space.command("unshare");
    let script = format!("mount -t tmpfs -o size={size} tmpfs /dev/shm && exec {HOST}");
    command.args(["-rm", "sh", "-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = Process::spawn(command);
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
    let Some(mut host) = confined(&space, "512k") else { return };
    let Answer::Failed(message) = host.ask(&open()) else { panic!("half a megabyte cannot be enough") };
    assert!(message.contains("no room in /dev/shm") && message.contains("tt-smi clean"), "{message}");
}

#[test]
fn growing_without_room_degrades_the_list_and_no_total() {
    let space = Space::new();
    let Some(mut host) = confined(&space, "2m") else { return };
    assert!(matches!(host.ask(&open()), Answer::Done));
    assert!(matches!(host.ask(&Command::Grow { count: 50_000 }), Answer::Done));
    let segment = host.segment();
    let list = segment.allocations();
    assert!(segment.is_degraded() && list.unlisted > 0);
    assert_eq!(list.list.len() as u64 + list.unlisted, 50_000);
    assert_eq!(segment.counters().unwrap().counters[0].l1_used(), 50_000 * 64);
}
