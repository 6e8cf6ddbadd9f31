//! What may happen to an aggregator and its table, while hosts work and readers read.

use crate::common::{FAIL, SMI, host, json, segment_of};
use rustix::process::Signal;
use serde_json::Value;
use shm_layout::Class;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tt_shm_os::{path_of, table_file_name};
use tt_shm_reader::Table;
use tt_shm_tests::monitor::{await_exact, snapshot};
use tt_shm_tests::space::{Process, until};
use tt_shm_tests::{Command, Monitor, Space};

fn table_path(space: &Space) -> PathBuf {
    path_of(&table_file_name(space.namespace(), rustix::process::geteuid().as_raw()))
}

/// `tt-smi snapshot --json`, which must succeed.
#[track_caller]
fn shown(space: &Space) -> Value {
    let output = space.command(SMI).args(["snapshot", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn aggregator(space: &Space) -> Process {
    let mut command = space.command(SMI);
    command.arg("aggregate").stderr(Stdio::piped());
    Process::spawn(command)
}

/// A host that holds some DRAM, and how much.
fn busy_host(space: &Space) -> (tt_shm_tests::Host, u64) {
    let mut host = host(space, [1]);
    host.tell(Command::Work { seed: 3, calls: 3000, threads: 1, pause_us: 0 });
    let dram = host.truth().devices[0].dram_used;
    (host, dram)
}

#[test]
fn a_hundred_restarts_under_load() {
    let space = Space::new();
    let mut host = host(&space, [1, 2]);
    host.tell(Command::Start { seed: 1, pause_us: 50 });
    for number in 0..100 {
        let mut process = aggregator(&space);
        // From the middle of its start to some time at work.
        std::thread::sleep(Duration::from_millis(number % 20));
        process.kill();
    }
    let _monitor = Monitor::start(SMI, &space);
    host.tell(Command::Stop);
    await_exact(&space, &[(host.pid(), host.truth())]);
    let tables = space.files().into_iter().filter(|path| path.to_string_lossy().contains(".table"));
    assert_eq!(tables.count(), 1, "what was left half made is removed: {:?}", space.files());
}

#[test]
fn of_several_aggregators_at_once_one_wins_and_the_others_say_so() {
    let space = Space::new();
    let mut all: Vec<Process> = (0..4).map(|_| aggregator(&space)).collect();
    until("three of four to give up", || {
        let ended = all.iter_mut().filter_map(|process| process.0.try_wait().unwrap()).count();
        (ended == 3).then_some(())
    });
    let winner = all.iter_mut().position(|process| process.0.try_wait().unwrap().is_none()).unwrap();
    let winner = all.swap_remove(winner);
    until("the table of the winner", || {
        let table = Table::open(space.namespace()).ok()?;
        (table.header().pid == u64::from(winner.0.id())).then_some(())
    });
    for mut loser in all {
        let mut message = String::new();
        std::io::Read::read_to_string(loser.0.stderr.as_mut().unwrap(), &mut message).unwrap();
        assert_eq!(loser.0.wait().unwrap().code(), Some(1));
        assert!(message.contains(&winner.0.id().to_string()) && message.contains(".lock"), "{message}");
    }
}

/// Suspended for an hour is stopped for longer than a heartbeat may take.
#[test]
fn a_stopped_aggregator_is_stale_and_nobody_believes_its_table() {
    let space = Space::new();
    let (_host, dram) = busy_host(&space);
    let process = aggregator(&space);
    let table = until("a fresh table", || {
        Table::open(space.namespace()).ok().filter(|table| table.freshness().is_fresh())
    });
    until("the host's memory", || {
        let devices = table.snapshot().devices;
        (devices.first()?.1.dram_used_bytes == dram).then_some(())
    });
    process.signal(Signal::STOP);
    until("a stale heartbeat", || (!table.freshness().is_fresh()).then_some(()));
    let stale = shown(&space);
    assert_eq!(stale["aggregator"]["pid"], Value::Null, "it was read directly");
    assert_eq!(stale["devices"][0]["dram_used_bytes"], dram);
    process.signal(Signal::CONT);
    until("a heartbeat again", || table.freshness().is_fresh().then_some(()));
    assert_eq!(shown(&space)["aggregator"]["pid"], process.0.id());
}

#[test]
fn a_deleted_table_is_made_anew_and_what_was_open_stays_readable() {
    let space = Space::new();
    let (mut host, dram) = busy_host(&space);
    let _monitor = Monitor::start(SMI, &space);
    let table = Table::open(space.namespace()).unwrap();
    until("the host's memory", || {
        (table.snapshot().devices.first()?.1.dram_used_bytes == dram).then_some(())
    });
    std::fs::remove_file(table_path(&space)).unwrap();
    assert!(table.is_replaced());
    assert_eq!(table.snapshot().devices[0].1.dram_used_bytes, dram);
    assert_eq!(shown(&space)["devices"][0]["dram_used_bytes"], dram);
    await_exact(&space, &[(host.pid(), host.truth())]);
}

/// Whoever removes everything lets a second aggregator start. The first must not fight with it.
#[test]
fn with_its_lock_file_removed_too_an_aggregator_makes_way_for_the_next() {
    let space = Space::new();
    let first = aggregator(&space);
    until("its table", || Table::open(space.namespace()).ok());
    first.signal(Signal::STOP);
    for file in space.files() {
        std::fs::remove_file(file).unwrap();
    }
    let next = Monitor::start(SMI, &space);
    first.signal(Signal::CONT);
    std::thread::sleep(Duration::from_millis(200));
    let table = Table::open(space.namespace()).unwrap();
    assert!(table.header().pid != u64::from(first.0.id()) && table.freshness().is_fresh());
    assert!(next.terminate().success());
    until("the first to take over again", || {
        let table = Table::open(space.namespace()).ok()?;
        (table.header().pid == u64::from(first.0.id())).then_some(())
    });
}

#[test]
fn a_file_in_the_place_of_the_table_is_refused_and_replaced() {
    let space = Space::new();
    let (mut host, dram) = busy_host(&space);
    let process = aggregator(&space);
    let table = until("its table", || Table::open(space.namespace()).ok());
    process.signal(Signal::STOP);
    std::fs::remove_file(table_path(&space)).unwrap();
    std::fs::write(table_path(&space), vec![7; 1 << 16]).unwrap();
    assert!(table.is_replaced());
    assert!(Table::open(space.namespace()).is_err());
    assert_eq!(shown(&space)["devices"][0]["dram_used_bytes"], dram);
    process.signal(Signal::CONT);
    await_exact(&space, &[(host.pid(), host.truth())]);
}

#[test]
fn a_table_cut_short_kills_no_reader_and_is_made_anew() {
    let space = Space::new();
    let (mut host, dram) = busy_host(&space);
    let process = aggregator(&space);
    until("its table", || Table::open(space.namespace()).ok());
    process.signal(Signal::STOP);
    std::fs::File::options().write(true).open(table_path(&space)).unwrap().set_len(4096).unwrap();
    assert_eq!(shown(&space)["devices"][0]["dram_used_bytes"], dram);
    process.signal(Signal::CONT);
    host.tell(Command::Spin { pairs: 10 });
    await_exact(&space, &[(host.pid(), host.truth())]);
    assert_eq!(Table::open(space.namespace()).unwrap().header().pid, u64::from(process.0.id()));
}

/// A reader may lock what it may read; nobody who writes asks for such a lock.
#[test]
fn a_reader_that_locks_the_table_stops_nobody() {
    let space = Space::new();
    let mut host = host(&space, [1]);
    let mut monitor = Monitor::start(SMI, &space);
    let file = std::fs::File::open(table_path(&space)).unwrap();
    rustix::fs::flock(file.as_fd(), rustix::fs::FlockOperation::LockExclusive).unwrap();
    rustix::fs::fcntl_lock(file.as_fd(), rustix::fs::FlockOperation::LockShared).unwrap();
    host.tell(Command::Work { seed: 4, calls: 1000, threads: 1, pause_us: 0 });
    await_exact(&space, &[(host.pid(), host.truth())]);
    monitor.kill();
    let _next = Monitor::start(SMI, &space);
    host.tell(Command::Figures);
    until("the next aggregator to follow", || {
        let classes = snapshot(&space)?.devices.first()?.1.classes;
        (classes[Class::KernelFabric as usize].live_count == 2).then_some(())
    });
}

/// Bytes of address space that a process uses.
fn address_space(process: &Process) -> u64 {
    let pages = std::fs::read_to_string(format!("/proc/{}/statm", process.0.id())).unwrap();
    pages.split(' ').next().unwrap().parse::<u64>().unwrap() * rustix::param::page_size() as u64
}

fn limit_address_space(process: &Process, bytes: Option<u64>) {
    let pid = rustix::process::Pid::from_child(&process.0);
    let limit = rustix::process::Rlimit { current: bytes, maximum: None };
    rustix::process::prlimit(Some(pid), rustix::process::Resource::As, limit).unwrap();
}

#[test]
fn a_segment_that_could_not_be_mapped_is_followed_when_it_can() {
    let space = Space::new();
    let process = aggregator(&space);
    let table = until("a fresh table", || {
        Table::open(space.namespace()).ok().filter(|table| table.freshness().is_fresh())
    });
    // Enough for all that the daemon does, and not for a segment.
    limit_address_space(&process, Some(address_space(&process) + (32 << 20)));
    let (mut host, _) = busy_host(&space);
    until("the segment to be refused", || (table.snapshot().refused == 1).then_some(()));
    limit_address_space(&process, None);
    until("the segment to be followed", || (table.snapshot().refused == 0).then_some(()));
    await_exact(&space, &[(host.pid(), host.truth())]);
}

/// systemd removes the files of users who log out (RemoveIPC), while their processes live.
fn nameless_host(space: &Space) -> (tt_shm_tests::Host, u64) {
    let (host, dram) = busy_host(space);
    let mut first = Monitor::start(SMI, space);
    until("the host's memory", || {
        (snapshot(space)?.devices.first()?.1.dram_used_bytes == dram).then_some(())
    });
    for segment in space.segments() {
        std::fs::remove_file(segment).unwrap();
    }
    first.kill();
    (host, dram)
}

#[test]
fn root_finds_a_process_again_whose_file_has_no_name() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped, needs root to open what others have mapped");
        return;
    }
    let space = Space::new();
    let (mut host, _) = nameless_host(&space);
    let _next = Monitor::start(SMI, &space);
    host.tell(Command::Spin { pairs: 10 });
    await_exact(&space, &[(host.pid(), host.truth())]);
    let table = snapshot(&space).unwrap();
    let process = table.processes[0].1;
    assert_eq!((process.flags, table.unseen), (tt_shm_reader::process_flags::UNLINKED, 0));
}

/// What the daemon still follows no list can open: it is named, and nothing is all there is.
#[test]
fn lists_name_living_processes_whose_files_have_no_name() {
    let space = Space::new();
    let (mut nameless, mut other) = (host(&space, [1]), host(&space, [1]));
    let _monitor = Monitor::start(SMI, &space);
    other.tell(Command::Grow { count: 3 });
    other.tell(FAIL);
    let exact = || {
        let failure = &json(&space, &["oom"])["failures"][0];
        let lists = ["allocations", "programs"].map(|list| json(&space, &[list])["exact"] == true);
        (lists, failure["held"]["exact"] == true, failure["events_complete"] == true)
    };
    until("all of it exact", || (exact() == ([true; 2], true, true)).then_some(()));
    nameless.tell(Command::Grow { count: 2 });
    std::fs::remove_file(segment_of(&space, nameless.pid())).unwrap();
    until("it is noticed", || (exact() == ([false; 2], false, false)).then_some(()));
    for command in ["allocations", "programs", "oom"] {
        let errors = json(&space, &[command])["errors"].to_string();
        assert!(errors.contains(&format!("pid {}", nameless.pid())), "{command}: {errors}");
        assert!(errors.contains("no name any more"), "{command}: {errors}");
    }
    nameless.kill();
    until("its end", || (exact() == ([true; 2], true, true)).then_some(()));
}
