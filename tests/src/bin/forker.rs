//! A process that forks without exec, as Python's multiprocessing does.
//!
//! `forker once`: forks a child that reports something of its own; both tell their pid and wait for the
//! end of standard input. `forker busy N`: forks N children while another thread reports, and checks that
//! each child's own counters are exact.

use anyhow::{Context, Result, bail, ensure};
use std::io::Read;
use tt_shm_writer::{Alloc, BufferType, Device, DeviceInfo, NameId, Record, Tracker};

fn main() -> Result<()> {
    let tracker = Tracker::from_env()?;
    let device = tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() })?;
    let name = tracker.intern("inherited")?;
    match std::env::args().nth(1).as_deref() {
        Some("once") => once(&tracker, device, name),
        Some("busy") => {
            let children = std::env::args().nth(2).context("how many?")?.parse()?;
            busy(&tracker, device, children)
        }
        _ => bail!("usage: forker once | busy N"),
    }
}

fn once(tracker: &Tracker, device: Device, name: NameId) -> Result<()> {
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 1000).name(name))?;
    if fork()? == 0 {
        ensure!(tracker.free(device, 1).is_err(), "the child holds nothing of its parent's");
        tracker.alloc(device, Alloc::new(BufferType::Dram, 2, 500).name(name))?;
        println!("child {}", std::process::id());
    } else {
        tracker.alloc(device, Alloc::new(BufferType::Dram, 3, 30).name(name))?;
        println!("parent {}", std::process::id());
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn busy(tracker: &Tracker, device: Device, children: u64) -> Result<()> {
    let other = tracker.clone();
    std::thread::spawn(move || {
        for id in 1 << 32.. {
            let alloc = other.alloc(device, Alloc::new(BufferType::L1, id, 8));
            alloc.and_then(|()| other.free(device, id)).expect("the parent's calls are in order");
        }
    });
    for number in 0..children {
        if fork()? == 0 {
            let exact = child_is_exact(tracker, device, number);
            // Not exit(): that would run what other threads of the parent had registered.
            // SAFETY: _exit ends the process and touches nothing.
            unsafe { libc::_exit(i32::from(!exact)) };
        }
    }
    for _ in 0..children {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the answer.
        ensure!(unsafe { libc::wait(&mut status) } > 0, "a child is missing");
        ensure!(status == 0, "a child ended with status {status:#x}");
    }
    println!("exact {children}");
    Ok(())
}

fn child_is_exact(tracker: &Tracker, device: Device, number: u64) -> bool {
    let sizes = 1..=10 + number;
    let reported =
        sizes.clone().all(|id| tracker.alloc(device, Alloc::new(BufferType::Dram, id, id)).is_ok());
    let counters = tracker.counters(device);
    reported
        && counters.is_some_and(|counters| (counters.dram_used(), counters.l1_used()) == (sizes.sum(), 0))
}

fn fork() -> Result<i32> {
    // SAFETY: the child goes on in this thread alone; what it calls takes no lock that another thread of
    // the parent may have held, but the writer's, which knows about forks, and println's, which only the
    // main thread uses.
    let pid = unsafe { libc::fork() };
    ensure!(pid >= 0, "fork failed: {}", std::io::Error::last_os_error());
    Ok(pid)
}
