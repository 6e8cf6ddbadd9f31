//! One process and an observer of its segment: exact, whatever happens to the process.

use crate::common::{HOST, assert_exact, host, open, segment_of};
use rustix::process::Signal;
use std::os::unix::fs::MetadataExt;
use tt_shm_reader::Segment;
use tt_shm_tests::space::until;
use tt_shm_tests::{Command, Host, Space};

fn work(seed: u64, calls: u64, threads: u64) -> Command {
    Command::Work { seed, calls, threads, pause_us: 0 }
}

#[test]
fn a_late_observer_sees_everything_exactly() {
    let space = Space::new();
    let mut host = host(&space, [1, 2, 3]);
    host.tell(work(7, 50_000, 1));
    assert_exact(&open(&space, &host), &host.truth());
}

#[test]
fn four_threads_with_a_million_events_each_are_exact() {
    let space = Space::new();
    let mut host = host(&space, [1, 2]);
    host.tell(work(11, 1_000_000, 4));
    let segment = open(&space, &host);
    assert!(segment.words().head() >= 4_000_000);
    assert_exact(&segment, &host.truth());
}

#[test]
fn a_live_list_of_200_000_grows_without_loss() {
    let space = Space::new();
    let mut host = host(&space, [1]);
    host.tell(Command::Grow { count: 200_000 });
    let segment = open(&space, &host);
    assert_exact(&segment, &host.truth());
    assert_eq!(segment.allocations().list.len(), 200_000);
    assert!(!segment.is_degraded());
}

#[test]
fn a_default_segment_costs_at_most_4_mib() {
    let space = Space::new();
    let mut host = host(&space, 0..4);
    host.tell(work(1, 1000, 1));
    let bytes = std::fs::metadata(segment_of(&space, host.pid())).unwrap().blocks() * 512;
    assert!(bytes <= 4 << 20, "{bytes} bytes");
    assert!(bytes > 1 << 20, "{bytes} bytes: the ring was not populated in advance");
}

#[test]
fn a_killed_process_leaves_its_exact_state() {
    let space = Space::new();
    let mut host = host(&space, [1, 2]);
    host.tell(work(3, 20_000, 1));
    let truth = host.truth();
    let segment = open(&space, &host);
    assert!(segment.is_alive().unwrap());
    host.kill();
    assert!(!segment.is_alive().unwrap());
    assert_exact(&segment, &truth);
    assert!(!segment.is_closed(), "a killed process closes nothing");
}

/// Killed at a random moment of full speed: what is left is the state after some call, so every figure
/// still belongs to the live list.
#[test]
fn a_process_killed_in_full_run_leaves_a_state_that_belongs_together() {
    for seed in 0..20 {
        let space = Space::new();
        let mut host = host(&space, [1, 2]);
        host.tell(Command::Start { seed, pause_us: 0 });
        let segment = open(&space, &host);
        until("some events", || (segment.words().head() > 1000 * (seed + 1)).then_some(()));
        host.kill();
        let snapshot = segment.counters().unwrap();
        let list = segment.allocations();
        assert!(list.exact);
        assert_eq!(list.position, snapshot.position);
        for (device, counters) in snapshot.counters.iter().enumerate() {
            for (class, counted) in counters.classes.iter().enumerate() {
                let of_it = || {
                    list.list
                        .iter()
                        .filter(|a| usize::from(a.row.device) == device && usize::from(a.row.class) == class)
                };
                assert_eq!(counted.live_count, of_it().count() as u64);
                assert_eq!(counted.live_bytes, of_it().map(|a| a.row.size).sum::<u64>());
            }
        }
    }
}

#[test]
fn a_stopped_process_is_alive_and_exact() {
    let space = Space::new();
    let mut host = host(&space, [1]);
    host.tell(work(5, 5000, 1));
    let truth = host.truth();
    host.signal(Signal::STOP);
    let segment = open(&space, &host);
    assert!(segment.is_alive().unwrap());
    assert_exact(&segment, &truth);
    host.signal(Signal::CONT);
    assert_eq!(host.truth(), truth);
}

#[test]
fn a_lapped_follower_misses_events_and_no_total() {
    let space = Space::new();
    let mut host = Host::start_with(HOST, &space, [1], 64);
    let segment = open(&space, &host);
    let mut follow = segment.follow();
    host.tell(work(9, 10_000, 1));
    let seen = follow.by_ref().count() as u64;
    let head = segment.words().head();
    assert!(follow.missed() > 0);
    assert_eq!(seen + follow.missed(), head);
    assert_exact(&segment, &host.truth());
}

/// While the process runs at full speed in a tiny ring, totals can still be read, and are possible ones.
#[test]
fn totals_can_be_read_at_full_speed() {
    let space = Space::new();
    let mut host = Host::start_with(HOST, &space, [1], 64);
    let segment = open(&space, &host);
    host.send(&Command::Spin { pairs: 3_000_000 });
    let (mut read, mut busy) = (0, 0);
    while segment.words().head() < 6_000_000 {
        match segment.counters() {
            Ok(snapshot) if snapshot.counters.is_empty() => {}
            Ok(snapshot) => {
                let used = snapshot.counters[0].dram_used();
                assert!(used == 0 || used == 1000, "{used} bytes at {}", snapshot.position);
                read += 1;
            }
            Err(_) => busy += 1,
        }
    }
    assert!(matches!(host.answer(), tt_shm_tests::script::Answer::Done));
    assert!(read > 0, "never read in {busy} attempts");
    assert_exact(&segment, &host.truth());
}

#[test]
fn a_normal_end_closes_and_removes_the_segment() {
    let space = Space::new();
    let mut host = host(&space, [1]);
    let segment = open(&space, &host);
    host.tell(Command::Close);
    assert!(segment.is_closed() && !segment.is_alive().unwrap());
    assert_eq!(space.files(), Vec::<std::path::PathBuf>::new());
    assert!(host.finish().success());
}

#[test]
fn an_exit_without_dropping_the_tracker_removes_the_segment() {
    let space = Space::new();
    let mut host = host(&space, [1]);
    assert_eq!(space.segments().len(), 1);
    host.send(&Command::Exit);
    assert!(host.wait().success());
    assert_eq!(space.files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn exec_ends_the_segment() {
    let space = Space::new();
    let mut host = host(&space, [1]);
    let segment = open(&space, &host);
    host.send(&Command::Exec);
    until("the lock to be gone with the old program", || (!segment.is_alive().unwrap()).then_some(()));
}

#[test]
fn a_signal_ends_the_segment() {
    let space = Space::new();
    let mut host = host(&space, [1]);
    let segment = open(&space, &host);
    host.signal(Signal::TERM);
    host.wait();
    assert!(!segment.is_alive().unwrap());
}

#[test]
fn dead_segments_are_reaped_by_the_next_tracker_and_live_ones_are_not() {
    let space = Space::new();
    let mut dead = host(&space, [1]);
    let alive = host(&space, [1]);
    dead.kill();
    assert_eq!(space.segments().len(), 2);
    let newcomer = host(&space, [1]);
    let mut expected = vec![segment_of(&space, alive.pid()), segment_of(&space, newcomer.pid())];
    expected.sort();
    assert_eq!(space.segments(), expected);
}

#[test]
fn names_of_a_namespace_are_not_seen_in_another() {
    let (space, other) = (Space::new(), Space::new());
    let host = host(&space, [1]);
    assert_eq!(space.segments(), vec![segment_of(&space, host.pid())]);
    assert!(other.segments().is_empty());
    assert!(Segment::open(&segment_of(&space, host.pid())).is_ok());
}
