//! The aggregator as a process among others: the table equals what the hosts know, whatever happens.

use crate::common::{self, HOST, SMI, host};
use rustix::process::Signal;
use shm_layout::Class;
use tt_shm_reader::{notice_kind, process_state};
use tt_shm_tests::monitor::{await_exact, snapshot};
use tt_shm_tests::space::until;
use tt_shm_tests::{Command, Host, Monitor, Space};

fn work(seed: u64, calls: u64) -> Command {
    Command::Work { seed, calls, threads: 1, pause_us: 0 }
}

#[test]
fn the_writers_first_then_the_aggregator() {
    let space = Space::new();
    let (mut a, mut b) = (host(&space, [1, 2]), host(&space, [1, 2]));
    a.tell(work(1, 20_000));
    b.tell(work(2, 20_000));
    let _monitor = Monitor::start(SMI, &space);
    let table = await_exact(&space, &[(a.pid(), a.truth()), (b.pid(), b.truth())]);
    assert_eq!(table.devices.len(), 2);
    a.tell(Command::Close);
    await_exact(&space, &[(b.pid(), b.truth())]);
}

#[test]
fn the_aggregator_first_then_the_writers() {
    let space = Space::new();
    let _monitor = Monitor::start(SMI, &space);
    let (mut a, mut b) = (host(&space, [1, 2]), host(&space, [2, 3]));
    a.tell(work(3, 20_000));
    b.tell(work(4, 20_000));
    let table = await_exact(&space, &[(a.pid(), a.truth()), (b.pid(), b.truth())]);
    assert_eq!(table.devices.len(), 3);
}

#[test]
fn several_threads_in_several_processes() {
    let space = Space::new();
    let _monitor = Monitor::start(SMI, &space);
    let (mut a, mut b) = (host(&space, [1, 2]), host(&space, [1, 2]));
    let threads = |seed| Command::Work { seed, calls: 50_000, threads: 4, pause_us: 0 };
    a.send(&threads(5));
    b.send(&threads(6));
    a.answer();
    b.answer();
    await_exact(&space, &[(a.pid(), a.truth()), (b.pid(), b.truth())]);
}

#[test]
fn killed_in_mid_work_and_restarted_it_is_exact_again() {
    let space = Space::new();
    let mut hosts: Vec<_> = (0..3).map(|_| host(&space, [1, 2])).collect();
    for (seed, host) in hosts.iter_mut().enumerate() {
        host.tell(Command::Start { seed: seed as u64, pause_us: 20 });
    }
    for _ in 0..5 {
        let mut monitor = Monitor::start(SMI, &space);
        let folded = || snapshot(&space).map_or(0, |table| table.events);
        until("some events", || (folded() > 500).then_some(()));
        monitor.kill();
    }
    let _monitor = Monitor::start(SMI, &space);
    let truths: Vec<_> = hosts
        .iter_mut()
        .map(|host| {
            host.tell(Command::Stop);
            (host.pid(), host.truth())
        })
        .collect();
    let table = await_exact(&space, &truths);
    assert!(table.gap.is_some(), "history was adopted, and the gap is marked");
}

#[test]
fn a_killed_writer_is_reclaimed_and_reported() {
    let space = Space::new();
    let _monitor = Monitor::start(SMI, &space);
    let (mut dies, mut lives) = (host(&space, [1, 2]), host(&space, [1, 2]));
    dies.tell(work(7, 5000));
    dies.tell(Command::Figures);
    lives.tell(work(8, 5000));
    let (truth, pid) = (dies.truth(), dies.pid());
    await_exact(&space, &[(pid, truth.clone()), (lives.pid(), lives.truth())]);
    dies.kill();
    let table = await_exact(&space, &[(lives.pid(), lives.truth())]);
    let notice = table.notices.iter().find(|n| n.kind == notice_kind::RECLAIMED && n.pid == u64::from(pid));
    let notice = notice.expect("the reclaim is reported");
    for class in Class::ALL {
        let held = |what: fn(&tt_shm_tests::DeviceTruth) -> &[u64; Class::COUNT]| -> u64 {
            truth.devices.iter().map(|device| what(device)[class as usize]).sum()
        };
        assert_eq!(notice.bytes[class as usize], held(|device| &device.bytes), "{}", class.name());
        assert_eq!(notice.counts[class as usize], held(|device| &device.counts), "{}", class.name());
    }
    let ended =
        table.processes.iter().any(|(_, p)| p.pid == u64::from(pid) && p.state == process_state::ENDED);
    assert!(ended, "the process is shown as ended");
    until("the dead segment to be removed", || (space.segments().len() == 1).then_some(()));
}

#[test]
fn a_stopped_writer_still_counts() {
    let space = Space::new();
    let _monitor = Monitor::start(SMI, &space);
    let mut host = host(&space, [1]);
    host.tell(work(9, 5000));
    let (pid, truth) = (host.pid(), host.truth());
    host.signal(Signal::STOP);
    await_exact(&space, &[(pid, truth.clone())]);
    // Longer than it takes to notice a death.
    std::thread::sleep(std::time::Duration::from_millis(1200));
    await_exact(&space, &[(pid, truth)]);
    host.signal(Signal::CONT);
}

#[test]
fn a_lapped_ring_costs_events_and_no_total() {
    let space = Space::new();
    let _monitor = Monitor::start(SMI, &space);
    let mut host = Host::start_with(HOST, &space, [1, 2], 64);
    host.tell(work(10, 200_000));
    let table = await_exact(&space, &[(host.pid(), host.truth())]);
    assert!(table.missed > 0, "a ring of 64 slots must have been lapped");
    let (_, process) = table.processes[0];
    assert_eq!(process.missed, table.missed);
    // What was missed makes peaks over processes a range, and the range holds the process's own peak.
    let peak = host.truth().devices[0].dram_peak;
    let device = &table.devices.iter().find(|(_, d)| d.entry.chip_id == 1).unwrap().1;
    assert!(device.dram_peak.low <= peak && peak <= device.dram_peak.high, "{:?} {peak}", device.dram_peak);
}

#[test]
fn thirty_two_devices_and_sixteen_processes() {
    let space = Space::new();
    let _monitor = Monitor::start(SMI, &space);
    let mut hosts: Vec<_> = (0..16).map(|_| host(&space, 0..32)).collect();
    for (seed, host) in hosts.iter_mut().enumerate() {
        host.send(&work(seed as u64, 2000));
    }
    let truths: Vec<_> = hosts
        .iter_mut()
        .map(|host| {
            host.answer();
            (host.pid(), host.truth())
        })
        .collect();
    let table = await_exact(&space, &truths);
    assert_eq!((table.devices.len(), table.usages.len()), (32, 16 * 32));
}

#[test]
fn peaks_over_processes_are_exact_and_say_who_held_what() {
    let space = Space::new();
    let _monitor = Monitor::start(SMI, &space);
    let (mut a, mut b) = (host(&space, [1]), host(&space, [1]));
    a.tell(Command::Grow { count: 1000 });
    b.tell(Command::Grow { count: 500 });
    await_exact(&space, &[(a.pid(), a.truth()), (b.pid(), b.truth())]);
    a.tell(Command::Close);
    let table = await_exact(&space, &[(b.pid(), b.truth())]);
    let device = table.devices[0].1;
    let peak = device.l1_peak;
    assert_eq!((peak.low, peak.high, peak.count), (96_000, 96_000, 1500));
    assert_eq!(device.l1_used_bytes, 32_000);
    let holders = device.l1_composition.holders;
    assert_eq!((holders[0].pid, holders[0].bytes), (u64::from(a.pid()), 64_000));
    assert_eq!((holders[1].pid, holders[1].bytes), (u64::from(b.pid()), 32_000));
}

/// Any user can cut his own file short; a monitor that maps it must not die of it.
#[test]
fn a_segment_cut_short_breaks_only_itself() {
    let space = Space::new();
    let _monitor = Monitor::start(SMI, &space);
    let (mut cut, mut whole) = (host(&space, [1, 2]), host(&space, [1, 2]));
    cut.tell(work(12, 5000));
    whole.tell(work(13, 5000));
    await_exact(&space, &[(cut.pid(), cut.truth()), (whole.pid(), whole.truth())]);
    cut.signal(Signal::STOP);
    let file = std::fs::File::options().write(true).open(common::segment_of(&space, cut.pid())).unwrap();
    file.set_len(4096).unwrap();
    let broken = |table: &tt_shm_reader::TableSnapshot| {
        table.notices.iter().any(|n| n.kind == notice_kind::BROKEN && n.pid == u64::from(cut.pid()))
    };
    let table = until("the loss to be noticed", || snapshot(&space).filter(|table| broken(table)));
    let dram: u64 = table.devices.iter().map(|(_, device)| device.dram_used_bytes).sum();
    assert_eq!(dram, whole.truth().devices.iter().map(|device| device.dram_used).sum::<u64>());
    whole.tell(Command::Grow { count: 10 });
    let l1: u64 = whole.truth().devices.iter().map(|device| device.bytes[Class::L1 as usize]).sum();
    until("the other process to be followed on", || {
        let devices = snapshot(&space)?.devices;
        let said: u64 = devices.iter().map(|(_, device)| device.classes[Class::L1 as usize].live_bytes).sum();
        (said == l1).then_some(())
    });
    cut.kill();
}

#[test]
fn only_one_aggregator_runs() {
    let space = Space::new();
    let _monitor = Monitor::start(SMI, &space);
    let second = space.command(SMI).arg("aggregate").output().unwrap();
    let message = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success());
    assert!(message.contains(".lock"), "{message}");
}

#[test]
fn sigterm_ends_it_cleanly() {
    let space = Space::new();
    let monitor = Monitor::start(SMI, &space);
    assert!(monitor.terminate().success());
    let left: Vec<_> =
        space.files().into_iter().filter(|path| path.extension() != Some("lock".as_ref())).collect();
    assert!(left.is_empty(), "{left:?}");
}
