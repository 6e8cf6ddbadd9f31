//! A process in which functions are called from outside, and one that does so.
//!
//! `busy`: threads allocate and free without a pause, calculate, sleep, poll and wait; each checks that nothing of that
//! goes wrong. Ends with the end of standard input, and with 1 if something did. `busy call PID LIBRARY`: calls
//! functions in that process for ever, until it is killed.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::thread::{NanosleepRelativeResult, nanosleep};

static ENDS: AtomicBool = AtomicBool::new(false);
static ROUNDS: AtomicU64 = AtomicU64::new(0);
const MOMENT: Timespec = Timespec { tv_sec: 0, tv_nsec: 3_000_000 };

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => be_busy(),
        ["call", pid, library] => call(pid.parse()?, Path::new(library)),
        _ => bail!("usage: busy | busy call PID LIBRARY"),
    }
}

fn be_busy() -> Result<()> {
    let work: [fn() -> Result<()>; 8] =
        [allocate, allocate, calculate, calculate, sleep, polls, epolls, wait];
    let threads = work.map(|work| std::thread::spawn(move || repeat(work)));
    println!("busy");
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    ENDS.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("no thread panics")?;
    }
    println!("{} rounds", ROUNDS.load(Ordering::Relaxed));
    Ok(())
}

fn repeat(work: fn() -> Result<()>) -> Result<()> {
    while !ENDS.load(Ordering::Relaxed) {
        // At once: whoever waits for this process should not wait for its end.
        if let Err(error) = work() {
            eprintln!("busy: {error:#}");
            std::process::exit(1);
        }
        ROUNDS.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// In malloc most of the time.
fn allocate() -> Result<()> {
    let mut held = VecDeque::new();
    for round in 0..20_000_usize {
        held.push_back(vec![round as u8; 1 + round * 7919 % 3000]);
        if held.len() > 50 {
            let first = held.pop_front().unwrap_or_default();
            ensure!(first.iter().all(|byte| *byte == first[0]), "memory has changed");
        }
    }
    Ok(())
}

/// The same twice, with everything in registers.
fn calculate() -> Result<()> {
    let chaos = || (0..200_000).fold([0.3_f64, 0.4, 0.5, 0.6], |x, _| x.map(|x| 3.9 * x * (1.0 - x)));
    let (first, second) = (chaos(), chaos());
    ensure!(first.map(f64::to_bits) == second.map(f64::to_bits), "{first:?} is not {second:?}");
    Ok(())
}

/// A timeout that is not cut short, and no error.
fn sleep() -> Result<()> {
    let start = Instant::now();
    match nanosleep(&MOMENT) {
        NanosleepRelativeResult::Ok => {}
        other => bail!("nanosleep: {other:?}"),
    }
    ensure!(start.elapsed() >= Duration::from_millis(3), "nanosleep took {:?} only", start.elapsed());
    Ok(())
}

fn polls() -> Result<()> {
    let (reader, _writer) = rustix::pipe::pipe()?;
    let start = Instant::now();
    let ready = poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&MOMENT))?;
    ensure!(
        ready == 0 && start.elapsed() >= Duration::from_millis(3),
        "poll: {ready} in {:?}",
        start.elapsed()
    );
    Ok(())
}

/// The kernel itself does not begin this one again.
fn epolls() -> Result<()> {
    let (reader, _writer) = rustix::pipe::pipe()?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &reader, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    let mut events = Vec::with_capacity(1);
    let start = Instant::now();
    epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&MOMENT))?;
    ensure!(
        events.is_empty() && start.elapsed() >= Duration::from_millis(3),
        "epoll_wait: {} events in {:?}",
        events.len(),
        start.elapsed()
    );
    Ok(())
}

fn wait() -> Result<()> {
    let (lock, condition) = (Mutex::new(()), Condvar::new());
    let start = Instant::now();
    let guard = lock.lock().expect("nobody panics");
    let (_guard, result) =
        condition.wait_timeout_while(guard, Duration::from_millis(3), |()| true).expect("nobody panics");
    ensure!(result.timed_out() && start.elapsed() >= Duration::from_millis(3), "a wait was cut short");
    Ok(())
}

#[cfg(target_arch = "x86_64")]
fn call(pid: u32, library: &Path) -> Result<()> {
    loop {
        let mut target = tt_smi::attach::target::Target::open(pid)?;
        tt_smi::attach::load_and_call(&mut target, library, "tt_shm_tap_install")?;
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn call(_: u32, _: &Path) -> Result<()> {
    bail!("for x86_64 only")
}
