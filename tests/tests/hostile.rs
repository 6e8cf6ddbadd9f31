//! Every bad input, beside an honest process whose numbers must stay exact.
//!
//! Met by a daemon that follows it, and by commands that look once. No crash, no hang (a watchdog ends what does),
//! little memory, and a reason for whatever is left out.

mod common;

use std::collections::BTreeMap;
use std::fs::File;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{SMI, host};
use serde_json::Value;
use shm_layout::protocol::stamped;
use shm_layout::{Event, EventKind, Row, RowKind};
use tt_shm_tests::hostile::{CASES, Case, Expect, Finished, Forged, Made, finish, peak_memory};
use tt_shm_tests::space::{Process, until};
use tt_shm_tests::{Command, DeviceTruth, Space, Truth};

/// Private memory that no command and no daemon may exceed, whatever it is given.
const MAX_MEMORY: u64 = 192 << 20;

/// `tt-smi aggregate`, with what it logs.
struct Daemon {
    process: Process,
    log: std::path::PathBuf,
}

impl Daemon {
    fn start(space: &Space) -> Daemon {
        let log = space.folder_name("log");
        let mut command = space.command(SMI);
        command.arg("aggregate").stderr(Stdio::from(File::create(&log).unwrap()));
        let daemon = Daemon { process: Process::spawn(command), log };
        until("the daemon", || json(space, &["snapshot"])["aggregator"]["pid"].as_u64());
        daemon
    }

    #[track_caller]
    fn assert_well(&mut self) {
        assert_eq!(self.process.0.try_wait().unwrap(), None, "the daemon ended: {}", self.log());
        let memory = peak_memory(self.process.0.id());
        assert!(memory < MAX_MEMORY, "the daemon had {memory} bytes");
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

/// Runs tt-smi to its end, which no bad input may turn into a crash.
#[track_caller]
fn smi(space: &Space, arguments: &[&str]) -> Finished {
    let mut command = space.command(SMI);
    command.args(arguments);
    let finished = finish(command);
    assert!(finished.status.code().is_some(), "{arguments:?} crashed: {finished:?}");
    assert!(finished.status.success(), "{arguments:?}: {}", finished.stderr);
    for text in [&finished.stdout, &finished.stderr] {
        let obeyed = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!text.contains(obeyed), "{arguments:?} prints what a terminal would obey: {text:?}");
    }
    finished
}

#[track_caller]
fn json(space: &Space, arguments: &[&str]) -> Value {
    let text = smi(space, &[arguments, &["--json"]].concat()).stdout;
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

/// What a snapshot says of a process on one device, in the words of its truth, as far as it tells.
fn said(device: &Value, truth: &DeviceTruth) -> DeviceTruth {
    let number = |key: &str| device[key].as_u64().unwrap_or(u64::MAX);
    DeviceTruth {
        dram_used: number("dram_used_bytes"),
        l1_used: number("l1_used_bytes"),
        eth_used: number("eth_l1_used_bytes"),
        dram_peak: number("dram_peak_bytes"),
        l1_peak: number("l1_peak_bytes"),
        dispatches: number("dispatches"),
        ..truth.clone()
    }
}

/// Whether a snapshot is exact about the honest processes, and about their devices, which nobody else claims.
fn is_exact(snapshot: &Value, honest: &[(u32, Truth)]) -> Result<(), String> {
    let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (pid, truth) in honest {
        let processes = snapshot["processes"].as_array().ok_or("no processes")?;
        let alive = |process: &&Value| process["pid"] == *pid && process["state"] == "alive";
        let process = processes.iter().find(alive).ok_or(format!("{pid} is missing"))?;
        for (number, truth) in truth.devices.iter().enumerate() {
            let mut usages = process["devices"].as_array().into_iter().flatten();
            let usage = usages.find(|usage| usage["logical_id"] == number).ok_or("its device is missing")?;
            if said(usage, truth) != *truth {
                return Err(format!("{pid}, device {number}: {:?}, not {truth:?}", said(usage, truth)));
            }
            let (dram, l1) = sums.entry(usage["index"].as_u64().unwrap_or(u64::MAX)).or_default();
            (*dram, *l1) = (*dram + truth.dram_used, *l1 + truth.l1_used);
        }
    }
    for (index, (dram, l1)) in sums {
        let device = &snapshot["devices"][index as usize];
        if device["dram_used_bytes"] != dram || device["l1_used_bytes"] != l1 {
            return Err(format!("device {index} is not the sum of its processes: {device}"));
        }
    }
    Ok(())
}

/// Whether a snapshot gives the reason for leaving a file out.
fn has_reason(snapshot: &Value, made: &Made, reason: &str) -> Result<(), String> {
    let file = made.path.file_name().unwrap().to_str().unwrap();
    let errors = snapshot["errors"].as_array().ok_or("no errors")?;
    let about: Vec<_> = errors.iter().filter(|error| error["file"] == file).collect();
    match about.iter().any(|error| error["message"].as_str().is_some_and(|text| text.contains(reason))) {
        true => Ok(()),
        false => Err(format!("no {reason:?} of {file} in {about:?}")),
    }
}

/// Waits until a snapshot is what it must be.
#[track_caller]
fn until_met(case: &Case, space: &Space, check: impl Fn(&Value) -> Result<(), String>) {
    let mut last = String::new();
    let met = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        until("a snapshot as it must be", || match check(&json(space, &["snapshot"])) {
            Ok(()) => Some(()),
            Err(why) => {
                last = why;
                None
            }
        });
    }));
    assert!(met.is_ok(), "{}: {last}", case.name);
}

fn work(seed: usize) -> Command {
    Command::Work { seed: seed as u64, calls: 200, threads: 1, pause_us: 0 }
}

#[test]
fn a_daemon_meets_every_case_and_stays_exact() {
    let space = Space::new();
    let mut honest = host(&space, [1, 2]);
    honest.tell(work(1000));
    let mut daemon = Daemon::start(&space);
    for (seed, case) in CASES.iter().enumerate() {
        // Before the bad file: a process that begins removes what looks like the dead of its own user.
        let mut newcomer = host(&space, [1, 2]);
        let Some(made) = (case.make)(&space) else {
            eprintln!("skipped, this user cannot make it: {}", case.name);
            continue;
        };
        if let (Some(then), Some(forged)) = (case.then, &made.forged) {
            until_met(case, &space, |snapshot| followed(snapshot, forged));
            then(forged);
        }
        newcomer.tell(work(seed));
        let truths = [(honest.pid(), honest.truth()), (newcomer.pid(), newcomer.truth())];
        until_met(case, &space, |snapshot| {
            is_exact(snapshot, &truths)?;
            match case.followed {
                Expect::Reason(reason) => has_reason(snapshot, &made, reason),
                Expect::Harmless => Ok(()),
            }
        });
        if let Expect::Reason(reason) = case.followed {
            let file = made.path.file_name().unwrap().to_str().unwrap();
            let logged = daemon.log().lines().any(|line| line.contains(file) && line.contains(reason));
            assert!(logged, "{}: the log does not say why: {}", case.name, daemon.log());
        }
        daemon.assert_well();
    }
}

fn followed(snapshot: &Value, forged: &Forged) -> Result<(), String> {
    let processes = snapshot["processes"].as_array().ok_or("no processes")?;
    let there = processes.iter().any(|process| process["namespace_pid"] == forged.header.pid);
    if there { Ok(()) } else { Err("it is not followed".into()) }
}

#[test]
fn who_looks_once_meets_every_case_and_is_exact() {
    let space = Space::new();
    let mut honest = host(&space, [1, 2]);
    honest.tell(work(1000));
    for (seed, case) in CASES.iter().enumerate() {
        // Before the bad file: a process that begins removes what looks like the dead of its own user.
        let mut newcomer = host(&space, [1, 2]);
        let Some(made) = (case.make)(&space) else { continue };
        if let (Some(then), Some(forged)) = (case.then, &made.forged) {
            then(forged);
        }
        newcomer.tell(work(seed));
        let truths = [(honest.pid(), honest.truth()), (newcomer.pid(), newcomer.truth())];
        let snapshot = json(&space, &["snapshot"]);
        assert_eq!(is_exact(&snapshot, &truths), Ok(()), "{}", case.name);
        if let Expect::Reason(reason) = case.direct {
            assert_eq!(has_reason(&snapshot, &made, reason), Ok(()), "{}", case.name);
        }
        lists_are_exact(&space, case, &truths);
        if let Some(forged) = &made.forged {
            assert_costs_nothing(case, forged);
        }
    }
}

/// The commands that read segments themselves say exactly what the honest process holds.
fn lists_are_exact(space: &Space, case: &Case, honest: &[(u32, Truth)]) {
    for command in ["snapshot", "allocations", "programs", "events"] {
        smi(space, &[command]);
    }
    let listed = json(space, &["allocations"]);
    for (pid, truth) in honest {
        let own = listed["allocations"].as_array().unwrap().iter().filter(|item| item["pid"] == *pid);
        let mut ids: Vec<_> = own.map(|item| (item["id"].as_u64(), item["size_bytes"].as_u64())).collect();
        let mut live: Vec<_> = truth.live.iter().map(|(_, _, id, size)| (Some(*id), Some(*size))).collect();
        ids.sort_unstable();
        live.sort_unstable();
        assert!(ids == live, "{}: the list of an honest process differs", case.name);
    }
}

/// Holes of a file that was only read are still holes: whoever touches one pays for it.
fn assert_costs_nothing(case: &Case, forged: &Forged) {
    use std::os::unix::fs::MetadataExt;
    let bytes = forged.file.metadata().unwrap().blocks() * 512;
    assert!(bytes < 4 << 20, "{}: readers filled {bytes} bytes of a sparse file", case.name);
}

/// A file that is cut and grown again and again, at every moment of a command's life.
#[test]
fn files_that_are_cut_at_any_moment_end_no_command() {
    let space = Space::new();
    let honest = host(&space, [1]);
    let stop = AtomicBool::new(false);
    let forged = Forged::honest(&space);
    forged.devices(4);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let len = forged.header.total_len;
                for short in [0, 4096, len / 2] {
                    forged.file.set_len(short).unwrap();
                    forged.file.set_len(len).unwrap();
                    // Not through the map: it may be cut at this moment, and this process has no guard.
                    let header = bytemuck::bytes_of(&forged.header);
                    std::os::unix::fs::FileExt::write_all_at(&forged.file, header, 0).unwrap();
                }
            }
        });
        for _ in 0..10 {
            for command in ["snapshot", "allocations", "programs", "events", "peak"] {
                smi(&space, &[command]);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    drop(honest);
}

/// Names are what was written in JSON, and nothing that a terminal obeys anywhere (see `smi`).
#[test]
fn json_has_the_very_text() {
    let space = Space::new();
    let case = CASES.iter().find(|case| case.name.contains("terminal")).unwrap();
    let _made = (case.make)(&space);
    let name = "\u{1b}]0;owned\u{7}\u{9b}31m\r\u{202e}\\";
    let snapshot = json(&space, &["snapshot"]);
    assert_eq!(snapshot["processes"][0]["name"], name);
    assert_eq!(snapshot["devices"][0]["board"], "p\u{1b}[31m\\150");
    let listed = json(&space, &["allocations"]);
    assert_eq!(listed["allocations"][0]["name"], name);
    assert_eq!(listed["allocations"][0]["site"], name);
    let event: Value = serde_json::from_str(&smi(&space, &["events", "--json"]).stdout).unwrap();
    assert_eq!(event["name"], name);
    assert!(smi(&space, &["allocations"]).stdout.contains("owned\\u{7}"));
}

/// A large ring in which every event has the longest name there is, of signs that are written out.
#[test]
fn what_one_ring_prints_is_bounded() {
    let space = Space::new();
    let slots: u64 = 1 << 17;
    let forged = Forged::new(&space, (slots, 64, 4096), |_| {});
    forged.devices(1);
    forged.intern(&[0x1b; shm_layout::MAX_NAME_LEN], shm_layout::MAX_NAME_LEN as u64);
    let marker = shm_layout::Event { name: 1, ..shm_layout::Event::new(shm_layout::EventKind::Marker, 0) };
    (1..=slots).for_each(|stamp| forged.emit(shm_layout::Event { stamp, id: stamp, ..marker }));
    let text = smi(&space, &["events"]);
    let (lines, bytes) = (text.stdout.lines().count(), text.stdout.len());
    assert!(lines == 1 << 16 && bytes < 32 << 20, "{lines} lines, {bytes} bytes");
    assert!(
        text.stdout.lines().last().unwrap().contains(&format!("step {slots} ")),
        "the last ones are shown"
    );
    assert!(text.stderr.contains("skipped 65536 events"), "{}", text.stderr);
    let json = smi(&space, &["events", "--json"]).stdout;
    let (lines, bytes) = (json.lines().count(), json.len());
    assert!(lines == 1 << 16 && bytes < 200 << 20, "{lines} lines, {bytes} bytes");
}

/// Rows without end, each with the longest name there is and a site as long, of signs that are written out.
#[test]
fn what_one_list_prints_is_bounded() {
    let space = Space::new();
    let mut honest = host(&space, [9]);
    honest.tell(Command::Grow { count: 100_000 });
    let listed = json(&space, &["allocations"]);
    assert_eq!((&listed["exact"], &listed["errors"]), (&true.into(), &Value::Array(vec![])));
    assert_eq!(listed["allocations"].as_array().unwrap().len(), 100_000, "honest ones are listed in full");
    drop(honest);
    let rows: u64 = 1 << 16;
    let forged = Forged::new(&space, (64, rows, 4096), |_| {});
    forged.devices(1);
    forged.intern(&[0x1b; shm_layout::MAX_NAME_LEN], shm_layout::MAX_NAME_LEN as u64);
    list(&forged, rows, RowKind::Buffer);
    assert_bounded(&space, "allocations", rows);
    list(&forged, rows, RowKind::Program);
    assert_bounded(&space, "programs", rows);
}

/// Fills the list with rows of this kind.
fn list(forged: &Forged, rows: u64, kind: RowKind) {
    forged.emit(Event { stamp: 1, ..Event::new(EventKind::PeakReset, 0) });
    let named =
        Row { stamp: 1, kind: kind as u8, name: 1, site: 1, size: 64, ..bytemuck::Zeroable::zeroed() };
    for (id, words) in (0..rows).zip(forged.words().rows) {
        stamped::write(words, &Row { id, row: id as u32, ..named });
    }
    forged.set(shm_layout::control::ROWS_PUBLISHED, rows);
}

#[track_caller]
fn assert_bounded(space: &Space, command: &str, rows: u64) {
    let text = smi(space, &[command]);
    let (lines, bytes) = (text.stdout.lines().count() as u64, text.stdout.len());
    assert!(lines > rows && bytes < 32 << 20, "{command}: {lines} lines, {bytes} bytes");
    assert!(text.stderr.contains("names cut to 32 characters"), "{command}: {}", text.stderr);
    let shown = smi(space, &[command, "--json"]).stdout;
    assert!(shown.len() < 128 << 20, "{command}: {} bytes of JSON", shown.len());
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown[command].as_array().unwrap().len() as u64, rows);
    assert!(shown["errors"].to_string().contains("names cut to 32 characters"));
}
