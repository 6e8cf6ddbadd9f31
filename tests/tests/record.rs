//! `tt-smi record` and the daemon's black box on real processes: what was seen live is found again, also after a kill.

use crate::common::{HOST, SMI, host};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tt_shm_os::monotonic_ns;
use tt_shm_reader::{Counters, Row, Segment};
use tt_shm_record::{Ended, Record};
use tt_shm_tests::space::{Process, until};
use tt_shm_tests::{Command, Space};

/// What an observer saw at a moment.
struct Noted {
    ns: u64,
    counters: Vec<Counters>,
    rows: Vec<Row>,
}

/// Notes what a process holds that does nothing at this moment.
fn note(segment: &Segment) -> Noted {
    std::thread::sleep(Duration::from_millis(1));
    let (now, list) = (segment.counters().unwrap(), segment.live_list());
    let ns = monotonic_ns();
    std::thread::sleep(Duration::from_millis(1));
    assert!(list.exact && list.position == now.position);
    Noted { ns, counters: now.counters, rows: list.rows }
}

fn recorder(space: &Space, file: &Path) -> Process {
    let mut command = space.command(SMI);
    command.args(["record", "-o"]).arg(file).stderr(std::process::Stdio::null());
    Process::spawn(command)
}

fn work(seed: u64) -> Command {
    Command::Work { seed, calls: 400, threads: 1, pause_us: 0 }
}

fn spin(pairs: u64) -> Command {
    Command::Spin { pairs }
}

/// Compares what was noted with what the record says; what it is not complete for it must not claim.
fn compare(record: &Record, noted: &[Noted]) -> usize {
    let process = record.processes().next().expect("the host").number();
    let mut found = 0;
    for noted in noted {
        let state = record.state_at(process, noted.ns).unwrap();
        // What a gap lost may be from before the moment that was noted last.
        if noted.ns <= record.complete_until_ns() && record.totals().gaps == 0 {
            assert!(state.is_exact(), "{} {}", noted.ns, record.complete_until_ns());
        }
        if state.is_exact() {
            assert_eq!((&state.counters, &state.rows), (&noted.counters, &noted.rows));
            found += 1;
        }
    }
    found
}

#[test]
fn a_killed_recorder_leaves_everything_that_it_had_written() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..4_u64 {
        let space = Space::new();
        let file = folder.path().join(format!("{round}.ttrec"));
        let mut recorder = recorder(&space, &file);
        until("the record begins", || Record::open(&file).ok());
        let mut host = host(&space, [5, 6]);
        let segment = Segment::open(&space.segments()[0]).unwrap();
        let mut noted = Vec::new();
        let steps = [work(round), spin(10), spin(500), spin(3000)];
        for step in steps {
            host.tell(step);
            noted.push(note(&segment));
        }
        let last = noted.last().unwrap().ns;
        until("all of that is written", || {
            Record::open(&file).ok().filter(|r| r.complete_until_ns() >= last)
        });
        // Killed in the middle of what follows.
        host.send(&spin(300_000));
        std::thread::sleep(Duration::from_millis(40 * round));
        recorder.kill();
        host.answer();
        let record = Record::open(&file).unwrap();
        assert_eq!(record.finished_ns(), None);
        let found = compare(&record, &noted);
        let may_be_in_gap = usize::from(record.totals().gaps > 0);
        assert!(found + may_be_in_gap >= noted.len(), "{found} of {} moments", noted.len());
    }
}

#[test]
fn a_command_is_recorded_to_its_end() {
    let (space, folder) = (Space::new(), tempfile::tempdir().unwrap());
    let (script, file) = (folder.path().join("script"), folder.path().join("a.ttrec"));
    let open = Command::Open { ring_slots: 0, chips: vec![5] };
    let lines = [open, work(3)].map(|command| serde_json::to_string(&command).unwrap() + "\n");
    std::fs::write(&script, lines.concat()).unwrap();
    let shell = format!("{HOST} < {} > /dev/null; exit 7", script.display());
    let run = || {
        let mut command = space.command(SMI);
        command.env_remove("TT_ALLOC_TRACKING_ENABLED").args(["record", "--no-tap", "-o"]).arg(&file);
        command.args(["--", "sh", "-c", &shell]).output().unwrap()
    };
    let output = run();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let record = Record::open(&file).unwrap();
    assert!(record.damage().is_none() && record.has_index() && record.finished_ns().is_some());
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let process = record.processes().next().unwrap();
    assert_eq!((process.positions.0, process.lost()), (1, 0));
    assert_eq!(process.end.map(|end| end.how), Some(Ended::Closed));
    assert!(space.segments().is_empty(), "what a command leaves is removed");
    let again = run();
    assert!(String::from_utf8_lossy(&again.stderr).contains("--force"), "{again:?}");
    assert_eq!(again.status.code(), Some(1));
}

#[test]
fn the_black_box_has_the_time_before_a_kill() {
    let (space, folder) = (Space::new(), tempfile::tempdir().unwrap());
    let mut command = space.command(SMI);
    command.args(["aggregate", "--black-box", "16MiB"]).env("STATE_DIRECTORY", folder.path());
    let mut daemon = Process::spawn({
        command.stderr(std::process::Stdio::null());
        command
    });
    let box_file =
        || -> Option<PathBuf> { Some(std::fs::read_dir(folder.path()).ok()?.next()?.ok()?.path()) };
    until("the black box begins", || Record::open(box_file()?).ok());
    let mut host = host(&space, [5]);
    let segment = Segment::open(&space.segments()[0]).unwrap();
    host.tell(work(1));
    let noted = [note(&segment)];
    host.kill();
    let record = until("its end is recorded", || {
        let record = Record::open(box_file()?).ok()?;
        let is_over = record.processes().next().is_some_and(|process| process.end.is_some());
        is_over.then_some(record)
    });
    daemon.kill();
    assert_eq!(record.processes().next().unwrap().end.unwrap().how, Ended::Died);
    assert_eq!(compare(&record, &noted), 1);
}
