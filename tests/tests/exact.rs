//! What may be called exact, with real processes and the real tool: each case was once called exact and was not, or
//! was lost.

mod common;

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use common::{HOST, SMI, host, json, segment_of, smi, tracker};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde_json::Value;
use shm_layout::EventKind;
use shm_layout::table::usage_flags;
use tt_shm_aggregator::{Aggregator, Claim, Config, TablePublisher};
use tt_shm_os::monotonic_ns;
use tt_shm_reader::{DeviceStats, Table, TableSnapshot};
use tt_shm_tests::executable::copy_program;
use tt_shm_tests::hostile::{DEVICE_CHIP, Forged, peak_memory};
use tt_shm_tests::monitor::snapshot;
use tt_shm_tests::space::{Process, until};
use tt_shm_tests::{Command, Host, Monitor, Space};
use tt_shm_writer::{Alloc, BufferType, DeviceInfo, Record, Tracker};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Usually `nobody`: has no files and no rights.
const STRANGER: u32 = 65534;
/// Rows of the table that the processes of one other user may have.
const FOREIGN_ROWS: u64 = 1024;

/// Whether this test can become other users.
fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped, needs root to become another user: {test}");
    }
    root
}

fn device(table: &TableSnapshot, chip: u64) -> Option<DeviceStats> {
    table.devices.iter().find(|(_, device)| device.entry.chip_id == chip).map(|(_, device)| *device)
}

/// A host that holds so much on chip 1, and when it began to.
fn holding(space: &Space, bytes: u64) -> (Host, [u64; 2]) {
    let mut host = host(space, [1]);
    let before = monotonic_ns();
    host.tell(Command::Hold { id: 1, bytes });
    (host, [before, monotonic_ns()])
}

/// A daemon that followed a host which holds 1 MiB, and was killed.
fn killed_daemon(space: &Space) -> Host {
    let (small, _) = holding(space, MIB);
    let mut first = Monitor::start(SMI, space);
    until("the host in the table", || (device(&snapshot(space)?, 1)?.dram_used_bytes == MIB).then_some(()));
    first.kill();
    small
}

/// The DRAM peak of chip 1 is at least 10 GiB, which a process reached then, and not exact.
#[track_caller]
fn assert_found(space: &Space, [earliest, latest]: [u64; 2]) {
    let peak = device(&snapshot(space).unwrap(), 1).unwrap().dram_peak;
    // Clocks are converted to within a millisecond.
    let when = earliest.saturating_sub(MIB)..=latest + MIB;
    assert!(when.contains(&peak.time), "{} is not in {when:?}", peak.time);
    let shown = &json(space, &["peak"])["devices"][0]["dram"];
    assert!(shown["low_bytes"].as_u64().unwrap() >= 10 * GIB, "{shown}");
    assert_eq!((&shown["exact"], shown["time"].is_string()), (&Value::Bool(false), true), "{shown}");
}

/// The daemon is killed, a process holds 10 GiB and is killed, the daemon starts again.
#[test]
fn a_process_killed_between_two_daemons_counts_in_the_peak() {
    let space = Space::new();
    let _small = killed_daemon(&space);
    let (mut large, reached) = holding(&space, 10 * GIB);
    large.kill();
    let _next = Monitor::start(SMI, &space);
    assert_found(&space, reached);
}

/// The same, and the process ends in order, as long as the table of the killed daemon looks fresh.
#[test]
fn a_process_that_ended_in_order_between_two_daemons_counts_in_the_peak() {
    // A slow machine may take longer than that to start it.
    for _ in 0..20 {
        let space = Space::new();
        let _small = killed_daemon(&space);
        let (large, reached) = holding(&space, 10 * GIB);
        assert!(large.finish().success());
        let left = space.segments().len() == 2;
        let _next = Monitor::start(SMI, &space);
        if left {
            return assert_found(&space, reached);
        }
    }
    panic!("the table of a killed daemon never looked fresh");
}

/// The same after the table has become stale: the file is gone, and what was in it, nobody knows.
#[test]
fn a_process_that_left_no_trace_between_two_daemons_makes_the_peak_unknown() {
    let space = Space::new();
    let _small = killed_daemon(&space);
    await_stale(&space);
    let (large, _) = holding(&space, 10 * GIB);
    assert!(large.finish().success());
    let _next = Monitor::start(SMI, &space);
    let shown = &json(&space, &["peak"])["devices"][0]["dram"];
    assert_eq!((&shown["exact"], &shown["high_bytes"]), (&Value::Bool(false), &Value::Null), "{shown}");
}

#[test]
fn a_fresh_daemon_counts_what_the_dead_had_reached() {
    let space = Space::new();
    let (mut large, reached) = holding(&space, 10 * GIB);
    large.kill();
    let _monitor = Monitor::start(SMI, &space);
    assert_found(&space, reached);
    assert_eq!(device(&snapshot(&space).unwrap(), 1).unwrap().dram_used_bytes, 0);
}

fn await_stale(space: &Space) {
    until("a stale table", || {
        let fresh = Table::open(space.namespace()).is_ok_and(|table| table.freshness().is_fresh());
        (!fresh).then_some(())
    });
}

/// Threads that do nothing, as fast as they can, until this is dropped.
struct Busy(Arc<AtomicBool>, Vec<JoinHandle<()>>);

impl Busy {
    fn start(threads: usize) -> Busy {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..threads).map(|_| {
            let stop = stop.clone();
            std::thread::spawn(move || while !stop.load(Ordering::Relaxed) {})
        });
        Busy(stop.clone(), threads.collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        for thread in self.1.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A file with what a host is told when it begins.
fn script(space: &Space, commands: &[Command]) -> PathBuf {
    let lines: Vec<String> = commands.iter().map(|command| serde_json::to_string(command).unwrap()).collect();
    let path = space.folder_name("script");
    std::fs::write(&path, lines.join("\n")).unwrap();
    path
}

/// Processes that allocate, free and end at once, beside two busy loops.
#[test]
fn of_a_hundred_processes_that_end_at_once_none_is_lost() {
    const PROCESSES: u64 = 100;
    const PAIRS: u64 = 7;
    let space = Space::new();
    let _monitor = Monitor::start(SMI, &space);
    let commands = [Command::Open { ring_slots: 0, chips: vec![1] }, Command::Spin { pairs: PAIRS }];
    let script = script(&space, &commands);
    let _busy = Busy::start(2);
    let brief = |_| {
        let mut command = space.command(HOST);
        command.stdin(std::fs::File::open(&script).unwrap()).stdout(Stdio::null());
        Process::spawn(command)
    };
    // Some at a time: how many live together is not the question.
    for _ in 0..PROCESSES / 4 {
        let started: Vec<Process> = (0..4).map(brief).collect();
        for mut process in started {
            assert!(process.0.wait().unwrap().success());
        }
    }
    until("all files to be removed", || space.segments().is_empty().then_some(()));
    let table = until("all processes to be counted", || {
        let table = snapshot(&space)?;
        let counted = device(&table, 1)?.events;
        assert!(counted <= PROCESSES * PAIRS * 2, "{counted} events");
        (counted == PROCESSES * PAIRS * 2 || table.lost > 0).then_some(table)
    });
    assert_eq!(table.lost, 0);
    let device = device(&table, 1).unwrap();
    assert_eq!((device.dram_used_bytes, table.missed), (0, 0));
    assert!(device.dram_peak.low >= 1000);
}

/// Nobody follows a closed or stale table: a process that ends removes its file itself.
#[test]
fn a_process_that_nobody_follows_removes_its_file() {
    let space = Space::new();
    let monitor = Monitor::start(SMI, &space);
    let (first, _) = holding(&space, MIB);
    let (second, _) = holding(&space, MIB);
    assert!(monitor.terminate().success());
    assert!(first.finish().success());
    assert_eq!(space.segments(), [segment_of(&space, second.pid())], "the table was closed");
    let monitor = Monitor::start(SMI, &space);
    monitor.signal(Signal::STOP);
    await_stale(&space);
    assert!(second.finish().success());
    assert!(space.segments().is_empty(), "the table was stale");
}

/// A fresh table whose aggregator removes nothing, until this is dropped.
struct Follower(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl Follower {
    fn start(space: &Space) -> Follower {
        let stop = Arc::new(AtomicBool::new(false));
        let config = Config { reap: false, ..Config::new(space.namespace().clone()) };
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let claim = Claim::take(&config.namespace).unwrap();
            let mut aggregator = Aggregator::new(config).unwrap();
            let mut publisher = TablePublisher::create(claim, &aggregator).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                aggregator.poll();
                publisher.publish(&aggregator).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
            publisher.close().unwrap();
        });
        until("a fresh table", || {
            Table::open(space.namespace()).ok().filter(|table| table.freshness().is_fresh())
        });
        Follower(stop, Some(thread))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().map(JoinHandle::join);
    }
}

/// What a dead process left is the aggregator's to count and to remove.
#[test]
fn a_tracker_beside_a_fresh_table_removes_no_file_of_the_dead() {
    let space = Space::new();
    let (mut dead, _) = holding(&space, MIB);
    dead.kill();
    let file = segment_of(&space, dead.pid());
    let follower = Follower::start(&space);
    drop(tracker(&space));
    assert!(file.exists(), "it is the aggregator's to remove");
    drop(follower);
    drop(tracker(&space));
    assert!(!file.exists(), "nobody else will");
}

/// Without a daemon, every process's misuses and missing rows are shown, not only those of the first.
#[test]
fn without_a_daemon_the_misuses_of_every_process_are_shown() {
    let space = Space::new();
    let hosts: Vec<Host> = (0..20)
        .map(|_| {
            let mut command = space.command(HOST);
            // One more buffer than the live list has rows.
            command.env("TT_SHM_LIVE_CAPACITY", "1");
            let mut host = Host::spawn(command);
            host.tell(Command::Open { ring_slots: 0, chips: vec![1] });
            host.tell(Command::Misuse);
            for id in 1..=2 {
                host.tell(Command::Hold { id, bytes: MIB });
            }
            host
        })
        .collect();
    let processes = |command: &str| {
        let shown = json(&space, &[command]);
        let processes = shown["processes"].as_array().unwrap().clone();
        assert_eq!(processes.len(), hosts.len());
        processes
    };
    for process in processes("snapshot") {
        let said = (&process["degraded"], &process["unlisted"], &process["anomalies"]["unmatched_free"]);
        assert_eq!(said, (&true.into(), &1.into(), &1.into()), "{process}");
    }
    for process in processes("ps") {
        let said: Vec<&str> = process["flags"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(said, ["degraded", "unmatched_free 1", "unlisted 1"], "{process}");
    }
}

/// `unlisted` is how many live allocations have no row now, in tables as in JSON; not how often that happened.
#[test]
fn unlisted_means_the_same_everywhere() {
    let space = Space::new();
    let tracker = Tracker::builder().enabled(true).namespace(space.namespace().as_str()).live_capacity(1);
    let tracker = tracker.open().unwrap();
    let device = tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() }).unwrap();
    let alloc = |id| tracker.alloc(device, Alloc::new(BufferType::Dram, id, 64)).unwrap();
    (1..=4).for_each(alloc);
    tracker.free(device, 4).unwrap();
    for live in [2, 0] {
        let process = &json(&space, &["snapshot"])["processes"][0];
        assert_eq!((&process["unlisted"], &process["anomalies"]), (&live.into(), &serde_json::json!({})));
        let expected: &[&str] = if live > 0 { &["degraded", "unlisted 2"] } else { &[] };
        assert_eq!(json(&space, &["ps"])["processes"][0]["flags"], serde_json::json!(expected));
        let table = smi(&space, &["snapshot"]);
        assert!(table.trim_end().ends_with(&expected.join(", ")), "{table}");
        assert_eq!(json(&space, &["allocations"])["unlisted"], live);
        [3, 2].into_iter().filter(|_| live > 0).for_each(|id| tracker.free(device, id).unwrap());
    }
}

/// A process whose segment becomes impossible while it lives leaves totals and peaks.
#[test]
fn a_process_that_breaks_leaves_totals_and_peaks() {
    const LIE: u64 = 1 << 49;
    let space = Space::new();
    let (mut honest, mut other) = (host(&space, [DEVICE_CHIP]), host(&space, [2]));
    honest.tell(Command::Hold { id: 1, bytes: 10 });
    other.tell(Command::Hold { id: 1, bytes: 7 });
    let forged = Forged::honest(&space);
    forged.devices(1);
    forged.emit_dram(EventKind::Alloc, 0, LIE);
    let _monitor = Monitor::start(SMI, &space);
    until("both processes", || {
        (device(&snapshot(&space)?, DEVICE_CHIP)?.dram_used_bytes == LIE + 10).then_some(())
    });
    forged.emit_dram(EventKind::Free, 0, LIE + 1);
    until("the honest process alone", || {
        (device(&snapshot(&space)?, DEVICE_CHIP)?.dram_used_bytes == 10).then_some(())
    });
    let peak = json(&space, &["peak"]);
    let of = |chip: u64| {
        let devices = peak["devices"].as_array().unwrap();
        let id = format!("{chip:#018x}");
        devices.iter().find(|device| device["chip_id"] == *id).unwrap()["dram"].clone()
    };
    let shared = of(DEVICE_CHIP);
    assert_eq!((&shared["low_bytes"], &shared["high_bytes"]), (&10.into(), &Value::Null), "{shared}");
    assert_eq!(shared["exact"], false);
    assert_eq!(of(2)["low_bytes"], 7);
    let shown = json(&space, &["snapshot"]);
    let processes = shown["processes"].as_array().unwrap();
    let find = |pid: u64| processes.iter().find(|process| process["namespace_pid"] == pid).unwrap();
    assert_eq!(find(forged.header.pid)["broken"], true);
    for (host, bytes) in [(&honest, 10), (&other, 7)] {
        let process = find(host.pid().into());
        let said = (&process["broken"], &process["devices"][0]["dram_used_bytes"]);
        assert_eq!(said, (&false.into(), &bytes.into()));
    }
}

/// A host of another user.
fn strange_host(space: &Space) -> Host {
    // The one of the test may lie where others may not go.
    let program = space.folder_name("host");
    copy_program(HOST, &program);
    let mut command = space.command(program.to_str().unwrap());
    command.uid(STRANGER).gid(STRANGER).current_dir("/");
    let mut host = Host::spawn(command);
    host.tell(Command::Open { ring_slots: 0, chips: vec![] });
    host
}

/// The one device that a snapshot shows: PCI address, capacity, conflict.
fn identity(space: &Space) -> (Value, Value, Value) {
    let shown = json(space, &["snapshot"]);
    let devices = shown["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 1, "{shown}");
    let take = |key: &str| devices[0][key].clone();
    (take("pci_address"), take("dram_total_bytes"), take("conflict"))
}

/// A stranger is the first to claim a chip, and lies.
#[test]
fn root_says_what_a_chip_is_whoever_claimed_it_first() {
    if !is_root("claims of others") {
        return;
    }
    const LIE: Command = Command::Register { chip: 1, dram_bytes: 17, bus: 0x66 };
    const LIED_ADDRESS: &str = "0000:66:00.0";
    const ADDRESS: &str = "0000:03:00.0";
    for with_daemon in [true, false] {
        let space = Space::new();
        let _monitor = with_daemon.then(|| Monitor::start(SMI, &space));
        let mut liar = strange_host(&space);
        liar.tell(LIE);
        until("the stranger's claim", || {
            let shown = json(&space, &["snapshot"]);
            (shown["devices"][0]["pci_address"] == LIED_ADDRESS).then_some(())
        });
        let mut honest = host(&space, []);
        honest.tell(Command::Register { chip: 1, dram_bytes: 12 * GIB, bus: 3 });
        let truth = (ADDRESS.into(), (12 * GIB).into(), true.into());
        until("root's claim", || (identity(&space) == truth).then_some(()));
        honest.tell(Command::Hold { id: 1, bytes: MIB });
        let listed = json(&space, &["allocations", "--device", ADDRESS]);
        assert_eq!(listed["allocations"][0]["pid"], honest.pid(), "{listed}");
        if with_daemon {
            assert_conflict(&space, liar.pid());
        }
        // When root's process ends, nobody contradicts; when the liar does, too, nothing is known.
        assert!(honest.finish().success());
        let lie = (LIED_ADDRESS.into(), 17.into(), false.into());
        until("the stranger's claim again", || (identity(&space) == lie).then_some(()));
        if with_daemon {
            assert!(liar.finish().success());
            let nothing = (Value::Null, Value::Null, false.into());
            until("nobody's claim", || (identity(&space) == nothing).then_some(()));
        }
    }
}

/// A stranger makes a chip up that would come first, with the address of root's.
#[test]
fn a_stranger_moves_no_device_of_roots() {
    if !is_root("devices of others") {
        return;
    }
    const ADDRESS: &str = "0000:03:00.0";
    for with_daemon in [true, false] {
        let space = Space::new();
        let _monitor = with_daemon.then(|| Monitor::start(SMI, &space));
        let (mut liar, mut honest) = (strange_host(&space), host(&space, []));
        liar.tell(Command::Register { chip: 1, dram_bytes: 17, bus: 3 });
        honest.tell(Command::Register { chip: 5, dram_bytes: 12 * GIB, bus: 3 });
        honest.tell(Command::Hold { id: 1, bytes: MIB });
        liar.tell(Command::Hold { id: 1, bytes: 1 });
        until("both devices", || {
            let shown = json(&space, &["snapshot"]);
            let chips: Vec<_> =
                shown["devices"].as_array()?.iter().map(|device| device["chip_id"].clone()).collect();
            (chips == ["0x0000000000000005", "0x0000000000000001"]).then_some(())
        });
        for named in ["0", ADDRESS, "0x5"] {
            let listed = json(&space, &["allocations", "--device", named]);
            let list = listed["allocations"].as_array().unwrap();
            assert_eq!((list.len(), &list[0]["pid"]), (1, &honest.pid().into()), "{named}: {listed}");
            assert_eq!(list[0]["device"], 0, "{named}: {listed}");
        }
    }
}

/// Of the rows of the table, that of this process says that it contradicts what is taken for true, and what it says.
fn assert_conflict(space: &Space, pid: u32) {
    let table = snapshot(space).unwrap();
    assert_eq!(table.usages.len(), 2);
    for (_, usage) in &table.usages {
        let process = table.processes.iter().find(|(row, _)| *row as u64 == usage.process).unwrap().1;
        let lies = process.pid == u64::from(pid);
        assert_eq!(usage.flags & usage_flags::CONFLICT != 0, lies);
        assert_eq!(usage.entry.dram_bytes, if lies { 17 } else { 12 * GIB });
    }
}

/// Living segments of a stranger, each with something on 32 chips.
fn crowd(space: &Space, segments: u64) -> Vec<Forged> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    (1..=segments)
        .map(|size| {
            let forged = Forged::honest(space);
            forged.devices(CHIPS);
            (0..CHIPS as u8).for_each(|chip| forged.emit_dram(EventKind::Alloc, chip, size));
            chown(&forged.path, Some(STRANGER), Some(STRANGER)).unwrap();
            forged
        })
        .collect()
}

const CHIPS: usize = 32;

/// Waits until every chip of the crowd's has this total.
fn await_totals(space: &Space, total: u64) -> TableSnapshot {
    until("the totals", || {
        let table = snapshot(space)?;
        let is_right = |chip| device(&table, chip).is_some_and(|device| device.dram_used_bytes == total);
        (DEVICE_CHIP..DEVICE_CHIP + CHIPS as u64).all(is_right).then_some(table)
    })
}

/// More processes of one user than the table has rows for: totals are right, it says what is missing, and recovers.
#[test]
fn a_crowd_beyond_the_rows_of_the_table_is_counted_and_forgotten() {
    if !is_root("a crowd of another user") {
        return;
    }
    let segments = std::env::var("TT_TEST_CROWD").ok().and_then(|count| count.parse().ok()).unwrap_or(1000);
    let space = Space::new();
    let mut crowd = crowd(&space, segments);
    let start = std::time::Instant::now();
    let monitor = Monitor::start(SMI, &space);
    let total = segments * (segments + 1) / 2;
    let table = await_totals(&space, total);
    eprintln!("{segments} segments counted after {:?}", start.elapsed());
    assert_eq!(table.usages.len() as u64, FOREIGN_ROWS);
    assert_eq!(table.overflow, segments * CHIPS as u64 - FOREIGN_ROWS);
    // Events go on to be counted where there is no row.
    crowd.iter().for_each(|forged| forged.emit_dram(EventKind::Alloc, 0, 1));
    until("the events", || {
        let first = device(&snapshot(&space)?, DEVICE_CHIP)?;
        (first.dram_used_bytes == total + segments).then_some(())
    });
    eprintln!("the daemon had {} MiB", peak_memory(monitor.pid()) >> 20);
    let start = std::time::Instant::now();
    // Those who stay get the rows of those who leave. No more than there are rows: whose they were does not matter then.
    let stay = (FOREIGN_ROWS / CHIPS as u64 / 2) as usize;
    let staying = crowd.split_off(crowd.len() - stay);
    drop(crowd);
    until("rows for those who stay", || {
        let table = snapshot(&space)?;
        (table.overflow == 0 && table.usages.len() == stay * CHIPS).then_some(())
    });
    drop(staying);
    await_totals(&space, 0);
    eprintln!("gone after {:?}", start.elapsed());
    let _next = self::crowd(&space, 1);
    let table = await_totals(&space, 1);
    assert_eq!((table.usages.len(), table.overflow), (CHIPS, 0));
}

/// A list that lacks rows is not all there is: neither of the allocations nor of the programs that they belong to.
#[test]
fn a_process_without_room_for_its_rows_makes_lists_inexact() {
    let space = Space::new();
    let mut command = space.command(HOST);
    command.env("TT_SHM_LIVE_CAPACITY", "1");
    let mut host = Host::spawn(command);
    host.tell(Command::Open { ring_slots: 0, chips: vec![1] });
    let exact = || ["allocations", "programs"].map(|command| json(&space, &[command])["exact"] == true);
    assert_eq!(exact(), [true; 2]);
    for id in 1..=2 {
        host.tell(Command::Hold { id, bytes: MIB });
    }
    assert_eq!(exact(), [false; 2]);
    let errors = json(&space, &["programs"])["errors"].to_string();
    assert!(errors.contains(&format!("pid {}: 1 live allocation not listed", host.pid())), "{errors}");
}
