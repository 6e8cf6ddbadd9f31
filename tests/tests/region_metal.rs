//! The regions that a real tt-metal publishes, beside what it really holds: where the figures agree, and every way in
//! which they are known not to. Where no tt-metal is installed, a line says that there was none.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tt_shm_region::{Bytes, Content, Fault, Kind, Liveness, Region, Regions, Roots};
use tt_shm_tests::region::seconds_ago;
use tt_shm_tests::space::{Process, until};
use tt_shm_tests::{Metal, Space};

use crate::common::SMI;

/// The time between two readings.
const POLL: Duration = Duration::from_millis(100);

/// A mock machine with one chip, whose id nobody else has. Its files in /dev/shm are removed when it is dropped.
struct Board {
    metal: Metal,
    chip: u64,
    folder: tempfile::TempDir,
    regions: Regions,
}

impl Board {
    fn find() -> Option<Board> {
        let metal = Metal::find()?;
        let folder = tempfile::tempdir().unwrap();
        let chip = 0x7E57_0000_0000_0000 | tt_shm_os::random_u64().unwrap() >> 16;
        let described = std::fs::read_to_string(metal.machine("n150")).unwrap();
        let (before, rest) = described.split_once("chip_unique_ids: {0: ").unwrap();
        let described = format!("{before}chip_unique_ids: {{0: {chip}}}{}", rest.split_once('}').unwrap().1);
        std::fs::write(folder.path().join("n150.yaml"), described).unwrap();
        Some(Board { metal, chip, folder, regions: Regions::new(Roots::default()) })
    }

    /// A process that has opened the chip.
    fn job(&self) -> Job {
        let (python, script) = self.metal.python("region.py");
        let mut command = Command::new(python);
        command.arg(script);
        self.start(command)
    }

    /// The same, reporting through the tap.
    fn tapped_job(&self, space: &Space) -> Job {
        let (python, script) = self.metal.python("region.py");
        // A shell that becomes the job, so that its pid is the job's.
        let script = format!("eval \"$({SMI} env)\" && exec {} {}", python.display(), script.display());
        let mut command = space.command("sh");
        command.args(["-c", &script]);
        self.start(command)
    }

    fn start(&self, mut command: Command) -> Job {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.env_remove("TT_METAL_SHM_TRACKING_DISABLED").env_remove("LD_PRELOAD");
        self.metal.prepare(&mut command, self.folder.path().join("n150.yaml"));
        let mut process = Process::spawn(command);
        let (input, output) = (process.0.stdin.take().unwrap(), process.0.stdout.take().unwrap());
        let mut job = Job { process, input, lines: BufReader::new(output).lines(), left: BTreeSet::new() };
        job.tell("open");
        job.remember_files();
        job
    }

    fn region(&self) -> Option<&Region> {
        self.regions.regions().iter().find(|region| region.chip_id == self.chip)
    }

    /// What a reader that comes just now sees.
    #[track_caller]
    fn read(&mut self) -> Content {
        self.regions = Regions::new(Roots::default());
        self.regions.poll(Instant::now());
        self.region().expect("the region is there").content.clone().unwrap()
    }

    /// What is seen when nobody has written for a while, so that contradictions are stated.
    #[track_caller]
    fn read_at_rest(&mut self) -> Content {
        std::thread::sleep(2 * POLL);
        self.read()
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(format!("/dev/shm/tt_device_{}_memory", self.chip));
    }
}

/// A process with tt-metal. Ends when dropped.
struct Job {
    process: Process,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// What its MPI leaves in /dev/shm.
    left: BTreeSet<PathBuf>,
}

/// Bytes that a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    dram: u64,
    l1: u64,
}

impl Held {
    fn of(value: &Value) -> Held {
        let bytes = |kind: &str| value[kind].as_u64().unwrap_or_else(|| panic!("{value}"));
        Held { dram: bytes("dram"), l1: bytes("l1") }
    }
}

impl From<Bytes> for Held {
    fn from(bytes: Bytes) -> Held {
        Held { dram: bytes.dram, l1: bytes.l1 }
    }
}

impl Job {
    fn pid(&self) -> u32 {
        self.process.0.id()
    }

    fn send(&mut self, command: &str) {
        writeln!(self.input, "{command}").unwrap();
    }

    #[track_caller]
    fn answer(&mut self) -> Value {
        let line = self.lines.next().expect("the script lives").unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Lets it do something, and returns what it requested of what it holds then.
    #[track_caller]
    fn tell(&mut self, command: &str) -> Held {
        self.send(command);
        Held::of(&self.answer()["requested"])
    }

    /// What it occupies, by its allocator.
    #[track_caller]
    fn occupied(&mut self, command: &str) -> Held {
        self.send(command);
        Held::of(&self.answer()["occupied"])
    }

    fn kill(&mut self) {
        self.process.kill();
    }

    fn remember_files(&mut self) {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid())).unwrap();
        let shared = maps.lines().filter_map(|line| Some(&line[line.find("/dev/shm/sm_segment.")?..]));
        self.left.extend(shared.map(PathBuf::from));
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.kill();
        for file in &self.left {
            let _ = std::fs::remove_file(file);
        }
    }
}

fn alive(job: &Job) -> Liveness {
    Liveness::Alive { pid_here: job.pid() }
}

/// The device of a chip, as tt-smi shows it on this machine.
fn shown(space: &Space, chip: u64) -> Value {
    let output = space.command(SMI).args(["snapshot", "--json"]).env_remove("TT_SMI_ROOT").output().unwrap();
    let snapshot: Value = serde_json::from_slice(&output.stdout).unwrap();
    let id = format!("{chip:#018x}");
    snapshot["devices"]
        .as_array()
        .unwrap()
        .iter()
        .find(|device| device["chip_id"] == *id)
        .cloned()
        .unwrap_or_default()
}

/// Beside a job that reports, and one that does not.
#[test]
fn tt_smi_shows_what_tt_metal_says_of_jobs_that_do_not_report() {
    let Some(board) = Board::find() else { return };
    let space = Space::new();
    let mut job = board.job();
    let held = job.tell("alloc a dram 512 512");
    let device = shown(&space, board.chip);
    assert_eq!(device["source"], serde_json::json!(["tt-metal"]), "{device:#}");
    assert_eq!(
        (device["tt_metal_dram_bytes"].as_u64(), &device["dram_used_exact"]),
        (Some(held.dram), &false.into())
    );
    let mut tapped = board.tapped_job(&space);
    let occupied = tapped.occupied("alloc b dram 64 64");
    let device = shown(&space, board.chip);
    assert_eq!(device["source"], serde_json::json!(["tap", "tt-metal"]), "{device:#}");
    let figures = ["dram_used_bytes", "tt_metal_dram_bytes"].map(|key| device[key].as_u64());
    assert_eq!(figures, [Some(occupied.dram), Some(held.dram)], "none is counted twice: {device:#}");
    assert_eq!(device["dram_used_exact"], false, "the other does not report");
    job.kill();
    let device = shown(&space, board.chip);
    assert_eq!(device["source"], serde_json::json!(["tap"]), "the other is a ghost: {device:#}");
    assert_eq!(
        (device["dram_used_bytes"].as_u64(), &device["dram_used_exact"]),
        (Some(occupied.dram), &true.into())
    );
}

/// What the first thread does is what is read, in every reading, while it goes on and after each step.
#[test]
fn what_the_first_thread_holds_is_what_is_read() {
    let Some(mut board) = Board::find() else { return };
    let mut job = board.job();
    let content = board.read();
    assert_eq!((content.version, content.chip_id, content.reference_count), (3, board.chip, 1));
    assert!(content.processes.is_empty(), "nothing was counted yet: {content:?}");
    for command in [
        "alloc a dram 512 512",
        "alloc b l1 256 256",
        "alloc c dram 32 32",
        "free a",
        "alloc a dram 1024 512",
        "free b",
        "operate add d a",
        "free d",
    ] {
        let held = job.tell(command);
        let content = board.read_at_rest();
        assert_eq!(Held::from(content.totals), held, "{command}");
        assert_eq!(
            Held::from(content.sum(|process| process.pid_here() == Some(job.pid()))),
            held,
            "{command}"
        );
        assert!(content.faults.is_empty() && content.is_steady, "{command}: {:?}", content.faults);
        let [process] = &content.processes[..] else { panic!("{content:?}") };
        assert_eq!((process.liveness.clone(), process.name_lossy().as_ref()), (alive(&job), "python"));
    }
    compare_while_it_goes_on(&mut board, &mut job);
    job.tell("close");
    let content = board.read_at_rest();
    assert_eq!((content.reference_count, content.totals), (0, Bytes::default()));
    assert!(content.processes.is_empty() && content.faults.is_empty(), "{content:?}");
    // The slot keeps the name of who had it.
    job.tell("open");
    let content = board.read_at_rest();
    assert!(content.processes.is_empty() && content.faults.is_empty(), "{content:?}");
    assert_eq!(job.tell("alloc a dram 64 64"), Held::from(board.read().totals));
}

/// Ten readings a second while tensors come and go. A reading has to be a state between its begin and its end.
fn compare_while_it_goes_on(board: &mut Board, job: &mut Job) {
    const SECONDS: u32 = 4;
    let first = Held::from(board.read().totals);
    job.send(&format!("loop {SECONDS}"));
    let (start, mut readings, mut unsteady) = (Instant::now(), Vec::new(), 0);
    while start.elapsed() < Duration::from_secs(SECONDS.into()) {
        std::thread::sleep(POLL + Duration::from_millis(1));
        let begun = seconds_ago(0);
        assert!(board.regions.poll(Instant::now()));
        let content = board.region().unwrap().content.clone().unwrap();
        readings.push((begun, Held::from(content.totals), seconds_ago(0)));
        assert!(content.faults.is_empty(), "{:?}", content.faults);
        assert_eq!(content.processes.first().map(|process| &process.liveness), Some(&alive(job)));
        unsteady += usize::from(!content.is_steady);
    }
    // Each state from when it may have begun to when the next was there for sure.
    let mut states = vec![(0, first, u64::MAX)];
    loop {
        let step = job.answer();
        let held = Held::of(&step["requested"]);
        let Some(begun) = step["begun"].as_u64() else { break };
        states.last_mut().unwrap().2 = step["done"].as_u64().unwrap();
        states.push((begun, held, u64::MAX));
    }
    for (begun, read, done) in &readings {
        let possible = states.iter().filter(|(from, _, to)| from <= done && begun <= to);
        let possible: Vec<Held> = possible.map(|(_, held, _)| *held).collect();
        let dram = possible.iter().any(|held| held.dram == read.dram);
        let l1 = possible.iter().any(|held| held.l1 == read.l1);
        assert!(dram && l1, "read {read:?}, and tt-metal held one of {possible:?}");
    }
    let (readings, states) = (readings.len(), states.len());
    println!("{readings} readings, {states} states, all equal; {unsteady} readings were unsteady");
    assert!(readings > 20 && states > 50, "{readings} readings of {states} states");
}

/// `accuracy::FIRST_THREAD_ONLY`, `REQUESTED_BYTES` and `NO_DATAFLOW_BUFFERS`, as they happen.
#[test]
fn what_is_missing_is_what_the_reasons_say() {
    let Some(mut board) = Board::find() else { return };
    let mut job = board.job();
    let before = job.tell("alloc a dram 512 512");
    // Another thread's memory is missing.
    let held = job.tell("thread alloc other dram 1024 1024");
    assert_eq!(held.dram, before.dram + (2 << 20));
    assert_eq!(Held::from(board.read_at_rest().totals), before);
    // Freed on the first thread, it takes off what is held: the total falls to zero, and nothing contradicts itself.
    let held = job.tell("free other");
    let content = board.read_at_rest();
    assert_eq!((held.dram, content.totals.dram), (512 * 512 * 2, 0));
    assert!(content.faults.is_empty(), "it cannot be seen from the region: {:?}", content.faults);
    job.tell("free a");

    // Requested bytes, not occupied ones: a page in each of the 64 banks.
    for number in 0..10 {
        job.tell(&format!("alloc small{number} l1 32 32"));
    }
    let occupied = job.occupied("alloc last l1 32 32");
    assert_eq!((board.read().totals.l1, occupied.l1), (11 * 2048, 11 * 2048 * 64));

    // An addition has circular buffers; a product has dataflow buffers, which are not counted.
    job.tell("alloc b dram 512 512");
    job.tell("operate matmul product b");
    assert_eq!(board.read_at_rest().totals.cb, 0);
    job.tell("operate add sum b");
    let cb = board.read_at_rest().totals.cb;
    assert!(cb > 0);
    // Of a program that is not in the cache yet.
    job.tell("alloc c dram 256 256");
    job.tell("operate matmul other c");
    assert_eq!(board.read_at_rest().totals.cb, cb);
}

/// `accuracy::RACES`: what a killed process leaves, and which figures disagree from then on.
#[test]
fn a_killed_process_is_a_ghost_and_what_it_leaves_is_named() {
    let Some(mut board) = Board::find() else { return };
    let (mut first, mut second) = (board.job(), board.job());
    first.tell("alloc a dram 512 1024");
    second.tell("alloc a dram 2048 1024");
    let content = board.read_at_rest();
    let (mine, theirs) = (512 * 1024 * 2, 2048 * 1024 * 2);
    let of = |content: &Content, pid: u32| content.sum(|process| process.pid == pid as i32).dram;
    assert_eq!((of(&content, first.pid()), of(&content, second.pid())), (mine, theirs));
    assert_eq!((content.totals.dram, content.reference_count), (mine + theirs, 2));
    assert!(content.faults.is_empty(), "{:?}", content.faults);
    assert!(content.processes.iter().all(|process| process.pid_here().is_some()), "{content:?}");

    // The total of circular buffers is that of who wrote last.
    first.tell("operate add b a");
    second.tell("operate add b a");
    let content = board.read_at_rest();
    let cb = content.processes[0].bytes.cb;
    assert_eq!(content.totals.cb, cb);
    let named = content.faults.iter().any(|fault| matches!(fault, Fault::Total { kind: Kind::Cb, .. }));
    assert!(named && content.faults.len() == 1, "{:?}", content.faults);

    let held = of(&content, first.pid());
    first.kill();
    let content = board.read_at_rest();
    let liveness: Vec<_> = content.processes.iter().map(|process| process.liveness.clone()).collect();
    assert_eq!(liveness, [Liveness::Ghost, alive(&second)]);
    assert_eq!(content.sum(|process| process.liveness.has_ended()).dram, held, "it stays counted");
    assert_eq!((content.reference_count, content.process_count), (2, 2));

    second.tell("close");
    let content = board.read_at_rest();
    assert_eq!(content.totals.dram, held);
    assert_eq!(content.sum(|process| process.pid_here().is_some()), Bytes::default(), "nobody lives");
    let chips = content.faults.iter().filter(|fault| matches!(fault, Fault::Chip { .. }));
    assert!(chips.count() > 0, "{:?}", content.faults);

    // Whoever watches sees the end within a poll.
    let mut third = board.job();
    third.tell("alloc a dram 32 32");
    let pid = third.pid() as i32;
    let state = |board: &mut Board| {
        board.regions.poll(Instant::now());
        let content = board.region()?.content.clone().ok()?;
        content.processes.iter().find(|one| one.pid == pid).map(|one| one.liveness.clone())
    };
    until("it is seen", || state(&mut board).filter(|state| matches!(state, Liveness::Alive { .. })));
    third.kill();
    until("its end is seen", || state(&mut board).filter(|state| *state == Liveness::Ghost));
}
