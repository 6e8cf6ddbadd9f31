//! A record of real processes, replayed to noted times: every figure is the one that the live commands gave then.

mod common;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{FAIL, SMI, host, json};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tt_shm_os::{monotonic_ns, realtime_ns};
use tt_shm_reader::Segment;
use tt_shm_record::{Begin, FrameSink, Record, Recorder, Who, WriterOptions};
use tt_shm_tests::monitor::await_exact;
use tt_shm_tests::space::until;
use tt_shm_tests::{Command, Host, Monitor, Space};

/// The commands that are compared.
const COMMANDS: [&[&str]; 7] = [
    &["snapshot"],
    &["ps"],
    &["list"],
    &["allocations", "--sort", "address"],
    &["programs"],
    &["peak"],
    &["oom"],
];

/// Keys that cannot be equal: when and where it was asked, how long ago that was, rates over the last second, and what
/// only the machine knows of a process.
const BY_NATURE: [&str; 12] = [
    "timestamp",
    "namespace",
    "source",
    "age_seconds",
    "age_ns",
    "aggregator_pid",
    "events_per_second",
    "rates",
    "file",
    "segment",
    "oldest_age_seconds",
    "last_dispatch_age_seconds",
];

/// A recorder in this process, polled between what the hosts do.
struct Recording {
    space: Space,
    recorder: Recorder,
    sink: FrameSink<File>,
    path: PathBuf,
    _folder: TempDir,
}

impl Recording {
    fn start(space: Space) -> Recording {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ttrec");
        let begin = Begin {
            host: "here".into(),
            monotonic_ns: monotonic_ns(),
            realtime_ns: realtime_ns(),
            namespace: space.namespace().as_str().into(),
            ..Begin::default()
        };
        let sink = FrameSink::new(File::create(&path).unwrap(), WriterOptions::default()).unwrap();
        Recording { space, recorder: Recorder::new(&begin), sink, path, _folder: folder }
    }

    fn poll(&mut self) {
        for path in self.space.segments() {
            let Ok(segment) = Segment::open(&path) else { continue };
            if self.recorder.followed().all(|known| known.identity() != segment.identity()) && segment.is_alive().unwrap() {
                let who = Who { pid_here: Some(segment.pid()), ..Who::default() };
                self.recorder.add(Arc::new(segment), who);
            }
        }
        self.recorder.poll();
        self.write();
    }

    fn write(&mut self) {
        for frame in self.recorder.take() {
            self.sink.write(&frame).unwrap();
        }
    }

    /// What the commands say while nothing happens, and when.
    fn note(&mut self, hosts: &mut [&mut Host]) -> Noted {
        let truths: Vec<_> = hosts.iter_mut().map(|host| (host.pid(), host.truth())).collect();
        self.poll();
        await_exact(&self.space, &truths);
        let time = monotonic_ns();
        let said = COMMANDS.map(|command| json(&self.space, command)).to_vec();
        self.poll();
        Noted { time, said }
    }

    fn finish(mut self) -> (PathBuf, Space, TempDir) {
        self.recorder.finish();
        self.write();
        (self.path, self.space, self._folder)
    }
}

struct Noted {
    time: u64,
    said: Vec<Value>,
}

/// The figures alone.
fn figures(mut value: Value) -> Value {
    strip(&mut value);
    value
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !BY_NATURE.contains(&key.as_str()) && !key.ends_with("age_seconds"));
            map.values_mut().for_each(strip);
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        _ => {}
    }
}

/// The first differences of two documents, by path.
fn differences(path: &str, live: &Value, replayed: &Value, out: &mut Vec<String>) {
    match (live, replayed) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let none = Value::String("(absent)".into());
                let path = format!("{path}.{key}");
                differences(&path, a.get(key).unwrap_or(&none), b.get(key).unwrap_or(&none), out);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().for_each(|(n, (a, b))| differences(&format!("{path}[{n}]"), a, b, out));
        }
        _ if live == replayed => {}
        _ if is_time(path) && near(live, replayed) => {}
        _ => out.push(format!("{path}: live {live}, replayed {replayed}")),
    }
}

/// Times are told to the microsecond, and conversions of ticks differ by less than that.
fn is_time(path: &str) -> bool {
    ["time", "since", "started", "_at"].iter().any(|word| path.rsplit('.').next().unwrap().contains(word))
}

fn near(a: &Value, b: &Value) -> bool {
    match (a.as_str(), b.as_str(), a.as_f64(), b.as_f64()) {
        // All but the last digits of the fraction, and the Z.
        (Some(a), Some(b), ..) => a.len() == b.len() && a.len() > 6 && a[..a.len() - 6] == b[..b.len() - 6],
        (_, _, Some(a), Some(b)) => (a - b).abs() < 0.01,
        _ => false,
    }
}

#[track_caller]
fn replayed(space: &Space, file: &Path, at: &str, command: &[&str]) -> Value {
    let file = file.to_str().unwrap();
    json(space, &[&["replay", file, "--at", at, "--"][..], command].concat())
}

/// The time as an option: so long before the end of the record.
fn at(record: &Record, time: u64) -> String {
    let (_, last) = record.span_ns();
    format!("-{:.9}s", last.saturating_sub(time) as f64 / 1e9)
}

#[track_caller]
fn assert_equal(space: &Space, file: &Path, noted: &[Noted]) {
    let record = Record::open(file).unwrap();
    let mut all = Vec::new();
    for (number, noted) in noted.iter().enumerate() {
        for (command, live) in COMMANDS.iter().zip(&noted.said) {
            let then = replayed(space, file, &at(&record, noted.time), command);
            let path = format!("note {number} {}", command[0]);
            differences(&path, &figures(live.clone()), &figures(then), &mut all);
        }
    }
    assert!(all.is_empty(), "{} differences:\n{}", all.len(), all.join("\n"));
}

fn work(seed: u64, calls: u64) -> Command {
    Command::Work { seed, calls, threads: 1, pause_us: 0 }
}

#[test]
fn every_figure_is_the_one_that_was_noted() {
    let space = Space::new();
    let _monitor = Monitor::start(SMI, &space);
    let mut recording = Recording::start(space);
    let mut first = host(&recording.space, [1, 2]);
    recording.poll();
    let mut noted = Vec::new();
    first.tell(Command::Figures);
    noted.push(recording.note(&mut [&mut first]));
    let mut second = host(&recording.space, [2, 3]);
    recording.poll();
    for seed in 1..4 {
        first.tell(work(seed, 3000));
        recording.poll();
        second.tell(work(seed + 10, 2000));
        noted.push(recording.note(&mut [&mut first, &mut second]));
    }
    second.tell(FAIL);
    noted.push(recording.note(&mut [&mut first, &mut second]));
    // It dies with all that it holds.
    second.signal(Signal::KILL);
    until("the end of the second process", || {
        recording.poll();
        (recording.recorder.counts().ended == 1).then_some(())
    });
    noted.push(recording.note(&mut [&mut first]));
    first.tell(work(9, 3000));
    noted.push(recording.note(&mut [&mut first]));
    let (file, space, _folder) = recording.finish();
    assert_equal(&space, &file, &noted);
}
