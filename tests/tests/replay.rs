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
use tt_shm_record::{Begin, Entry, FrameSink, FrameTime, Record, Recorder, Who, WriterOptions};
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

/// Keys that cannot be equal: when it was asked, how long ago something was then or was noticed, and who aggregates.
const BY_NATURE: [&str; 5] = ["timestamp", "namespace", "running_seconds", "seconds_ago", "aggregator_pid"];

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
            if self.recorder.followed().all(|known| known.identity() != segment.identity())
                && segment.is_alive().unwrap()
            {
                let who = Who {
                    pid_here: Some(segment.pid()),
                    command_line: Some(common::HOST.to_owned()),
                    parent: Some(std::process::id()),
                    ..Who::default()
                };
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
        // Not all that is said is part of the truth: failures are not.
        let events = self.recorder.counts().events;
        until("a daemon that has folded all events", || {
            let folded = json(&self.space, &["snapshot"])["aggregator"]["events"].as_u64();
            (folded == Some(events)).then_some(())
        });
        let time = monotonic_ns();
        let said = COMMANDS.map(|command| json(&self.space, command)).to_vec();
        let as_of = monotonic_ns();
        self.poll();
        // A frame for each note that says until when it is complete, which the recorder does by itself now and then, so that
        // a cut finds some of them.
        self.recorder.entry(&Entry::AsOf { time_ns: as_of }, FrameTime::at(as_of));
        self.recorder.flush();
        self.write();
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
            if let Some(Value::Object(aggregator)) = map.get_mut("aggregator") {
                aggregator.remove("pid");
            }
            map.retain(|key, _| !BY_NATURE.contains(&key.as_str()) && !key.ends_with("age_ms"));
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
            a.iter()
                .zip(b)
                .enumerate()
                .for_each(|(n, (a, b))| differences(&format!("{path}[{n}]"), a, b, out));
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
    let last = if record.finished_ns().is_some() { record.span_ns().1 } else { record.complete_until_ns() };
    format!("-{:.9}s", last.saturating_sub(time) as f64 / 1e9)
}

/// Compares some of the commands.
#[track_caller]
fn assert_equal(space: &Space, file: &Path, noted: &[Noted], commands: usize) {
    let record = Record::open(file).unwrap();
    let mut all = Vec::new();
    for (number, noted) in noted.iter().enumerate() {
        for (command, live) in COMMANDS.iter().zip(&noted.said).take(commands) {
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

/// Two processes on a shared chip work, one fails to allocate and is killed; what was said at each stop.
fn record() -> (PathBuf, Space, TempDir, Vec<Noted>) {
    let space = Space::new();
    let monitor = Monitor::start(SMI, &space);
    let mut recording = Recording::start(space);
    let mut noted = Vec::new();
    let mut first = host(&recording.space, [1, 2]);
    recording.poll();
    first.tell(work(1, 3000));
    noted.push(recording.note(&mut [&mut first]));
    let mut second = host(&recording.space, [2, 3]);
    recording.poll();
    second.tell(work(2, 4000));
    noted.push(recording.note(&mut [&mut first, &mut second]));
    first.tell(Command::Grow { count: 700 });
    recording.poll();
    second.tell(Command::Spin { pairs: 2000 });
    noted.push(recording.note(&mut [&mut first, &mut second]));
    second.tell(FAIL);
    noted.push(recording.note(&mut [&mut first, &mut second]));
    // It dies with all that it holds.
    second.signal(Signal::KILL);
    until("the end of the second process", || {
        recording.poll();
        (recording.recorder.counts().ended == 1).then_some(())
    });
    noted.push(recording.note(&mut [&mut first]));
    first.tell(Command::Spin { pairs: 1000 });
    noted.push(recording.note(&mut [&mut first]));
    let (file, space, folder) = recording.finish();
    drop(monitor);
    (file, space, folder, noted)
}

#[test]
fn every_figure_is_the_one_that_was_noted() {
    let (file, space, _folder, noted) = record();
    assert_equal(&space, &file, &noted, COMMANDS.len());
    let left = std::fs::read_dir(tt_shm_os::SHM_DIR).unwrap().flatten();
    let prefix = "tt-shm.v2.replay-";
    let is_ours = |name: &str| name.starts_with(prefix) && name.contains(&format!("-{}", std::process::id()));
    assert!(left.map(|file| file.file_name().to_string_lossy().into_owned()).all(|name| !is_ours(&name)));
}

/// The recorder may be killed at any byte: what was noted before the last thing that is there is still shown.
#[test]
fn a_record_that_ends_anywhere_shows_what_was_noted_before() {
    let (file, space, folder, noted) = record();
    let bytes = std::fs::read(&file).unwrap();
    let cut = folder.path().join("cut.ttrec");
    let (mut random, mut shown) = (fastrand::Rng::with_seed(17), 0);
    for _ in 0..12 {
        let len = random.usize(bytes.len() / 4..bytes.len());
        std::fs::write(&cut, &bytes[..len]).unwrap();
        let record = Record::open(&cut).unwrap();
        let until = record.complete_until_ns();
        let Some(last) = noted.iter().rposition(|noted| noted.time <= until) else { continue };
        assert_equal(&space, &cut, &noted[last..=last], 4);
        shown += 1;
    }
    assert!(shown > 3, "{shown} cuts had something to show");
}

#[test]
fn moments_are_found_and_compared_by_name() {
    let (file, space, folder, noted) = record();
    let name = file.to_str().unwrap();
    let record = Record::open(&file).unwrap();
    // The process that failed has all that it held then.
    let failed = replayed(&space, &file, "failure", &["oom"]);
    assert_eq!(failed["failures"].as_array().unwrap().len(), 1);
    let peak = replayed(&space, &file, "peak", &["snapshot"]);
    let used = |device: &Value, figure: &str| device[figure].as_u64().unwrap_or(0);
    let all = peak["devices"].as_array().unwrap();
    assert!(all.iter().any(|device| used(device, "dram_used_bytes") > 0), "{peak}");
    // Two moments of one record: the second process was there at the first one only.
    let [a, b] = [3, 5].map(|place: usize| at(&record, noted[place].time));
    let differ = json(&space, &["diff", name, "--at-a", &a, "--at-b", &b]);
    assert_eq!((&differ["a"]["exact"], &differ["b"]["exact"]), (&Value::Bool(true), &Value::Bool(true)));
    let total = |list: &Value| -> i64 {
        list.as_array().unwrap().iter().map(|one| one["difference_bytes"].as_i64().unwrap()).sum()
    };
    assert!(total(&differ["sums"]) < 0);
    assert_eq!(total(&differ["sums"]), total(&differ["names"]), "names add up to the sums");
    let same = json(&space, &["diff", name, name, "--at-a", &a, "--at-b", &a]);
    assert_eq!((&same["sums"], &same["names"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    // Wrong moments are refused with what there is.
    for (at, message) in [
        ("failure#9", "the record has 1 failed allocations"),
        ("marker:nothing", "the record has 0 markers named"),
        ("+9h", "is not in the record, which is from"),
        ("soon", "is not a time such as"),
    ] {
        let output = space.command(SMI).args(["replay", name, "--at", at]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && errors.contains(message), "{at}: {errors}");
    }
    let refused = space.command(SMI).args(["replay", name, "--", "clean"]).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot be replayed; give snapshot"));
    drop(folder);
}
