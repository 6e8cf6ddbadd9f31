//! A process that forks without exec, as Python's multiprocessing does.
//!
//! `forker once`: forks a child that reports something of its own; both tell their pid and wait for the
//! end of standard input. `forker busy N`: forks N children while another thread reports, and checks that
//! each child's own counters are exact. `forker intern N`: the same while another thread makes names known,
//! and each child makes one known too. `forker unused`: the child drops its trackers without
//! using them. `forker opening N`: opens N trackers while another thread forks, and
//! counts the locks that outlive their tracker. `forker cloned`: as `once`, but by a raw system call, of which
//! the C library learns nothing. `forker closes`: closes all descriptors that it did not open itself, reports on, and
//! waits for the end of standard input. `forker cramped`: forks a child that finds too little room
//! in /dev/shm for all of its devices. `forker nested`: forks a child into a new PID namespace, which exits without
//! having used its parent's tracker, and says whether the parent's segment is still there. `forker locked`: locks all
//! of its memory, present and future, before it opens a tracker, and waits for the end of standard input.

use anyhow::{Context, Result, bail, ensure};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use tt_shm_writer::{Alloc, BufferType, Device, DeviceInfo, NameId, Record, Tracker};

fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("locked") {
        return locked();
    }
    let tracker = Tracker::from_env()?;
    let device = tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() })?;
    let name = tracker.intern("inherited")?;
    let count = || anyhow::Ok(std::env::args().nth(2).context("how many?")?.parse()?);
    match std::env::args().nth(1).as_deref() {
        Some("once") => once(&tracker, device, name, fork),
        Some("cloned") => once(&tracker, device, name, raw_clone),
        Some("closes") => closes(&tracker, device),
        Some("busy") => busy(&tracker, device, count()?),
        Some("intern") => intern(count()?),
        Some("unused") => unused(tracker),
        Some("opening") => opening(count()?),
        Some("cramped") => cramped(&tracker),
        Some("nested") => nested(),
        _ => bail!(
            "usage: forker once | cloned | closes | busy N | intern N | unused | opening N | cramped | nested"
        ),
    }
}

fn once(tracker: &Tracker, device: Device, name: NameId, fork: fn() -> Result<i32>) -> Result<()> {
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

/// As hosts with real-time threads do.
fn locked() -> Result<()> {
    rustix::mm::mlockall(rustix::mm::MlockAllFlags::CURRENT | rustix::mm::MlockAllFlags::FUTURE)?;
    let tracker = Tracker::from_env()?;
    let device = tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() })?;
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 1000))?;
    println!("locked {}", std::process::id());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// As daemons do that want to inherit nothing.
fn closes(tracker: &Tracker, device: Device) -> Result<()> {
    // SAFETY: closes descriptors that nothing of this program uses; the tracker's segment needs none.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
    ensure!(closed == 0, "close_range failed: {}", std::io::Error::last_os_error());
    for id in 0..100_000 {
        tracker.alloc(device, Alloc::new(BufferType::Dram, id, 10))?;
    }
    println!("closed {}", std::process::id());
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
            leave(child_is_exact(tracker, device, number));
        }
    }
    wait_for(children)?;
    println!("exact {children}");
    Ok(())
}

/// Some children come into being while the other thread is in the middle of remembering a name. Few names
/// and many rounds: a child makes all names known again before its own.
fn intern(rounds: u64) -> Result<()> {
    const CHILDREN: u64 = 5;
    for _ in 0..rounds {
        let tracker = Tracker::from_env()?;
        let other = tracker.clone();
        let names = move || (0..5000).try_for_each(|name: u64| other.intern(name.to_string()).map(drop));
        let thread = std::thread::spawn(names);
        for _ in 0..CHILDREN {
            if fork()? == 0 {
                // SAFETY: only sets a timer, whose signal ends this child if it hangs.
                unsafe { libc::alarm(20) };
                leave(tracker.intern("the child's own").is_ok());
            }
        }
        wait_for(CHILDREN)?;
        ensure!(thread.join().is_ok_and(|interned| interned.is_ok()), "the parent's names found no room");
    }
    println!("interned {rounds}");
    Ok(())
}

/// A child that drops the tracker, or leaves by `exit`, without having used it.
fn unused(tracker: Tracker) -> Result<()> {
    let path = tracker.segment_path().context("tracking is enabled")?;
    let exclusive = Tracker::from_env()?.into_exclusive().ok().context("there are no clones")?;
    if fork()? == 0 {
        drop(tracker);
        drop(exclusive);
        std::process::exit(0);
    }
    wait_for(1)?;
    let file = std::fs::File::open(&path).context("the child removed its parent's segment")?;
    ensure!(tt_shm_os::is_write_locked(file.as_fd())?, "the child ended its parent's lock");
    let device = exclusive.register_device(&DeviceInfo { chip_id: 2, ..Default::default() })?;
    exclusive.alloc(device, Alloc::new(BufferType::Dram, 1, 1))?;
    println!("untouched {}", tt_shm_reader::Segment::open(&path)?.is_closed());
    Ok(())
}

/// Counts locks that are held by nobody but children that came into being while a tracker was opened.
fn opening(count: u64) -> Result<()> {
    std::thread::spawn(|| {
        while let Ok(pid) = fork() {
            if pid == 0 {
                // SAFETY: sleeps and ends this child, and touches nothing else.
                unsafe { libc::sleep(60) };
                leave(true);
            }
            std::thread::sleep(std::time::Duration::from_micros(500));
        }
    });
    let mut kept = 0;
    for _ in 0..count {
        let tracker = Tracker::from_env()?;
        let file = std::fs::File::open(tracker.segment_path().context("tracking is enabled")?)?;
        drop(tracker);
        kept += u64::from(tt_shm_os::is_write_locked(file.as_fd())?);
    }
    println!("kept {kept} of {count}");
    // SAFETY: ends this process group, which is this process and its children.
    unsafe { libc::kill(0, libc::SIGKILL) };
    Ok(())
}

/// Leaves a child room for its segment and for half of its devices.
fn cramped(tracker: &Tracker) -> Result<()> {
    let path = tracker.segment_path().context("tracking is enabled")?;
    let blocks = || anyhow::Ok(std::fs::metadata(&path)?.blocks() * 512);
    let base = blocks()?;
    let register = |chip_id| tracker.register_device(&DeviceInfo { chip_id, ..Default::default() });
    let devices = (1..=100).map(register).collect::<Result<Vec<_>, _>>()?;
    let space = rustix::fs::statvfs(tt_shm_os::SHM_DIR)?;
    let wanted = base + (blocks()? - base) / 2;
    let filler = PathBuf::from(tt_shm_os::SHM_DIR).join("filler");
    std::fs::write(&filler, vec![1; (space.f_bavail * space.f_frsize - wanted) as usize])?;
    if fork()? == 0 {
        let full = tracker.free(devices[0], 1);
        std::fs::remove_file(&filler)?;
        // Where there is room again, no handle may have come to mean another chip.
        let chips = || {
            let segments = tt_shm_reader::segment_paths(&tt_shm_os::Namespace::from_env()?)?;
            let own = segments.into_iter().find(|segment| *segment != path);
            let own = own.map(|path| tt_shm_reader::Segment::open(&path)).transpose()?;
            anyhow::Ok(
                own.map_or(Vec::new(), |own| own.devices().iter().map(|entry| entry.chip_id).collect()),
            )
        };
        let same = devices.iter().rev().all(|device| {
            tracker.device_open(*device).is_err() || {
                chips().is_ok_and(|chips| chips.len() == devices.len())
            }
        });
        let late = register(9999).ok().filter(|late| devices.contains(late));
        println!("{full:?} {same} {late:?}");
        leave(same && late.is_none());
    }
    wait_for(1)
}

fn nested() -> Result<()> {
    // SAFETY: it changes only which namespace the next child is in.
    let unshared = unsafe { libc::unshare(libc::CLONE_NEWPID) };
    ensure!(unshared == 0, "unshare failed: {}", std::io::Error::last_os_error());
    let before = own_segments()?;
    if fork()? == 0 {
        ensure!(std::process::id() == 1, "the first of a new namespace");
        // Not by main's end, which would drop the tracker: as a child does that runs a function and exits.
        std::process::exit(0);
    }
    wait_for(1)?;
    println!("nested {}", std::process::id());
    ensure!(before.len() == 1 && own_segments()? == before, "the child removed {before:?}");
    Ok(())
}

/// The segments of this namespace.
fn own_segments() -> Result<Vec<PathBuf>> {
    let namespace = std::env::var("TT_SHM_NAMESPACE")?;
    Ok(tt_shm_reader::segment_paths(&tt_shm_reader::Namespace::new(&namespace)?)?)
}

fn leave(well: bool) -> ! {
    // Not exit(): that would run what other threads of the parent had registered.
    // SAFETY: _exit ends the process and touches nothing.
    unsafe { libc::_exit(i32::from(!well)) }
}

fn wait_for(children: u64) -> Result<()> {
    for _ in 0..children {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the answer.
        ensure!(unsafe { libc::wait(&mut status) } > 0, "a child is missing");
        ensure!(status == 0, "a child ended with status {status:#x}");
    }
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

/// A fork that no handler of the C library sees.
fn raw_clone() -> Result<i32> {
    // SAFETY: without flags and a stack this is fork: the child goes on here with a copy of everything. What it
    // calls is what a child of fork() below calls.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    ensure!(pid >= 0, "clone failed: {}", std::io::Error::last_os_error());
    Ok(pid as i32)
}

fn fork() -> Result<i32> {
    // SAFETY: the child goes on in this thread alone; what it calls takes no lock that another thread of
    // the parent may have held, but the writer's, which knows about forks, and println's, which only the
    // main thread uses.
    let pid = unsafe { libc::fork() };
    ensure!(pid >= 0, "fork failed: {}", std::io::Error::last_os_error());
    Ok(pid)
}
