//! A thread that is stopped where a function may be called on it.
//!
//! dlopen takes the locks of malloc and the dynamic linker. On a thread that holds one of them, and would be stopped in
//! the middle of what they protect, it would wait for ever or find half a list. So a thread is stopped only
//!
//! - in a system call in which neither of them ever waits, or
//! - in code that neither of them ever calls,
//!
//! and in both cases not inside a signal handler, which may have interrupted anything. Only one thread is stopped: the
//! others go on, and release what they hold.

use std::fs::read_to_string;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::io::Errno;
use tt_shm_os::{Procfs, Registers, Resume, Stop, Tracee};

use super::memory::{Mapping, mappings};
use super::target::Target;

/// How long a thread may take to stop. One that waits for a disk or a device may take longer; it goes on when this process
/// ends.
const STOPPING: Duration = Duration::from_secs(2);
/// Between two rounds through the threads.
const PAUSE: Duration = Duration::from_millis(2);
/// What dlopen and the tap need of a thread's stack at most, and as much again.
const STACK_ROOM: u64 = 64 << 10;
/// Of a stack that is searched for signal handlers.
const MAX_STACK: u64 = 16 << 20;

/// `ERESTARTSYS`, `ERESTARTNOINTR`, `ERESTARTNOHAND`: the kernel begins the call again with the same arguments.
const RESTARTS: [i64; 3] = [-512, -513, -514];
/// `ERESTART_RESTARTBLOCK`: the kernel knows how to go on, by [`RESTART_SYSCALL`].
const RESTART_BLOCK: i64 = -516;
const RESTART_SYSCALL: i64 = 219;
const EINTR: i64 = -4;

/// A thread that is stopped at a safe point. It goes on as it was when this is dropped.
#[derive(Debug)]
pub struct Thread {
    pub tid: u32,
    pub tracee: Tracee,
    pub registers: Registers,
}

/// Stops one of the threads at a safe point, trying all of them again and again.
pub fn stop_one(target: &Target, patience: Duration) -> anyhow::Result<Thread> {
    let start = Instant::now();
    while start.elapsed() < patience {
        for tid in candidates(target)? {
            let stopped = try_stop(target, tid).with_context(|| format!("cannot stop thread {tid}"));
            if let Some(thread) = stopped.context("nothing was changed")? {
                return Ok(thread);
            }
        }
        std::thread::sleep(PAUSE);
    }
    bail!(
        "in {} s no thread of process {} stood where a library can be loaded safely: nothing was changed; try again",
        patience.as_secs_f64(),
        target.pid
    )
}

/// The threads that may be at a safe point, best first. Those that cannot be are not disturbed.
fn candidates(target: &Target) -> anyhow::Result<Vec<u32>> {
    let tasks = Procfs::default().path(target.pid, "task");
    let tasks = std::fs::read_dir(&tasks).with_context(|| format!("process {} has ended", target.pid))?;
    let tids = tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse().ok());
    let mut ranked: Vec<(u32, u32)> = tids.filter_map(|tid| Some((rank(target, tid)?, tid))).collect();
    ranked.sort_unstable();
    Ok(ranked.into_iter().map(|(_, tid)| tid).collect())
}

/// What `/proc/PID/task/TID/syscall` says: the number of a call and its arguments, or that the thread runs.
fn rank(target: &Target, tid: u32) -> Option<u32> {
    let path = Procfs::default().path(target.pid, &format!("task/{tid}/syscall"));
    let Ok(text) = read_to_string(path) else { return Some(3) };
    let mut fields = text.split_ascii_whitespace();
    let Some(number) = fields.next().and_then(|number| number.parse().ok()).filter(|number| *number >= 0)
    else {
        return Some(2);
    };
    let mut arguments =
        fields.map(|field| u64::from_str_radix(field.trim_start_matches("0x"), 16).unwrap_or(0));
    let [first, second] = [arguments.next()?, arguments.next()?];
    let is_safe = is_safe_wait(target, number, first, second);
    // A call that the kernel does not begin again by itself is second choice.
    is_safe.then_some(u32::from([EPOLL_WAIT, EPOLL_PWAIT, EPOLL_PWAIT2].contains(&number)))
}

fn try_stop(target: &Target, tid: u32) -> anyhow::Result<Option<Thread>> {
    let Some(thread) = stop(tid)? else { return Ok(None) };
    if thread.is_safe(target)? {
        return Ok(Some(thread));
    }
    thread.restart_if_interrupted(target)?;
    Ok(None)
}

/// Whether a thread is nowhere in this range of code, and not in a signal handler that returns to it. It goes on as it was.
pub fn is_outside(target: &Target, tid: u32, code: &Range<u64>) -> anyhow::Result<bool> {
    if !Procfs::default().path(target.pid, &format!("task/{tid}")).exists() {
        return Ok(true);
    }
    let Some(thread) = stop(tid)? else { return Ok(true) };
    let is_outside = !code.contains(&thread.registers.rip) && !thread.is_in_handler(target)?;
    thread.restart_if_interrupted(target)?;
    Ok(is_outside)
}

/// `None` if it has ended.
fn stop(tid: u32) -> anyhow::Result<Option<Thread>> {
    let tracee = match Tracee::seize(tid) {
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => return Ok(None),
        tracee => tracee.context("it cannot be traced")?,
    };
    tracee.interrupt()?;
    loop {
        match wait_until(STOPPING, || tracee.stopped())? {
            Some(Stop::Interrupted) => break,
            Some(Stop::Ended) => return Ok(None),
            Some(Stop::Signal(signal)) => tracee.resume(Resume::Continue, signal)?,
            Some(Stop::Syscall) => tracee.resume(Resume::Continue, 0)?,
            Some(Stop::Group) => bail!("the process was stopped meanwhile"),
            None => bail!("it waits for a disk or a device; try again"),
        }
    }
    let registers = tracee.registers()?;
    Ok(Some(Thread { tid, tracee, registers }))
}

impl Thread {
    fn is_safe(&self, target: &Target) -> anyhow::Result<bool> {
        let registers = &self.registers;
        let number = registers.orig_rax.cast_signed();
        let is_safe = match number {
            0.. => is_safe_wait(target, number, registers.rdi, registers.rsi),
            _ => target.safe_text.iter().any(|text| text.contains(&registers.rip)),
        };
        Ok(is_safe && self.has_room(target)? && !self.is_in_handler(target)?)
    }

    fn stack(&self, target: &Target) -> anyhow::Result<Option<Mapping>> {
        Ok(mappings(target.pid)?.into_iter().find(|one| one.contains(self.registers.rsp)))
    }

    fn has_room(&self, target: &Target) -> anyhow::Result<bool> {
        let Some(stack) = self.stack(target)? else { return Ok(false) };
        // The first thread's grows.
        Ok(stack.name == "[stack]" || self.registers.rsp - stack.start >= STACK_ROOM)
    }

    /// Whether the frame of a signal handler is on its stack.
    fn is_in_handler(&self, target: &Target) -> anyhow::Result<bool> {
        let Some(stack) = self.stack(target)? else { return Ok(true) };
        let top = self.registers.rsp & !7;
        let length = usize::try_from((stack.end - top).min(MAX_STACK))?;
        let words = target.memory.bytes(top, length)?;
        let restorer = target.restorer.to_ne_bytes();
        Ok(words.chunks_exact(8).any(|word| word == restorer))
    }

    /// Where it goes on when its registers are loaded by itself: what the kernel would have done with an interrupted
    /// call, done here.
    pub fn continuation(&self) -> Registers {
        let mut registers = self.registers;
        if registers.orig_rax.cast_signed() < 0 {
            return registers;
        }
        let result = registers.rax.cast_signed();
        let again = match result {
            RESTART_BLOCK => Some(RESTART_SYSCALL.cast_unsigned()),
            // By our interrupt; nothing was received yet.
            EINTR => Some(registers.orig_rax),
            _ if RESTARTS.contains(&result) => Some(registers.orig_rax),
            _ => None,
        };
        if let Some(number) = again {
            registers.rax = number;
            // Back to the instruction, which has two bytes.
            registers.rip = registers.rip.wrapping_sub(2);
        }
        registers.orig_rax = u64::MAX;
        registers
    }

    /// Some calls end when their thread is stopped, with EINTR. Few programs expect that without a signal, so they are
    /// begun again. All others are begun again by the kernel.
    pub fn restart_if_interrupted(&self, target: &Target) -> io::Result<()> {
        let registers = &self.registers;
        let interrupted = registers.orig_rax.cast_signed() >= 0 && registers.rax.cast_signed() == EINTR;
        if interrupted && !has_pending_signal(target.pid, self.tid) {
            self.tracee.set_registers(&self.continuation())?;
        }
        Ok(())
    }
}

/// Whether a thread is about to handle a signal, which is a good reason for EINTR.
fn has_pending_signal(pid: u32, tid: u32) -> bool {
    let Some(status) = Procfs::default().status(format!("{pid}/task/{tid}")) else { return true };
    let mask = |field: &str| u64::from_str_radix(status.field(field).unwrap_or("0"), 16).unwrap_or(0);
    (mask("SigPnd") | mask("ShdPnd")) & !mask("SigBlk") != 0
}

const READ: i64 = 0;
const FUTEX: i64 = 202;
const EPOLL_WAIT: i64 = 232;
const EPOLL_PWAIT: i64 = 281;
const EPOLL_PWAIT2: i64 = 441;
/// poll, select, pause, accept, recvfrom, recvmsg, wait4, rt_sigtimedwait, rt_sigsuspend, epoll_wait, waitid, pselect6,
/// ppoll, epoll_pwait, accept4, epoll_pwait2.
const WAITS: [i64; 16] =
    [7, 23, 34, 43, 45, 47, 61, 128, 130, EPOLL_WAIT, 247, 270, 271, EPOLL_PWAIT, 288, EPOLL_PWAIT2];
/// nanosleep, clock_nanosleep, and any of these or poll if it was interrupted before. So continues a futex with a timeout,
/// too, by which the tap's own lock waits: [`FUTEX_WAIT_PRIVATE`] tells.
const SLEEPS: [i64; 3] = [35, 230, RESTART_SYSCALL];
/// The second argument, which the other calls do not have: a pointer or a flag, or the number of descriptors of poll.
const FUTEX_WAIT_PRIVATE: u64 = 128;
/// Of futex: how condition variables and semaphores wait. Locks wait by `FUTEX_WAIT`, which is 0.
const FUTEX_WAIT_BITSET: u64 = 9;
const FUTEX_COMMAND: u64 = 0x7f;

/// Whether a thread that waits in this call holds no lock of malloc or the dynamic linker.
fn is_safe_wait(target: &Target, number: i64, first: u64, second: u64) -> bool {
    if number == RESTART_SYSCALL && second == FUTEX_WAIT_PRIVATE {
        return false;
    }
    let waits_like_a_lock =
        SLEEPS.contains(&number) || (number == FUTEX && second & FUTEX_COMMAND == FUTEX_WAIT_BITSET);
    match number {
        // The dynamic linker reads files.
        READ => is_stream(target.pid, first),
        _ => WAITS.contains(&number) || (waits_like_a_lock && !target.has_own_malloc),
    }
}

/// Whether a descriptor is a pipe, a socket, a terminal or the like.
fn is_stream(pid: u32, descriptor: u64) -> bool {
    let Ok(link) = std::fs::read_link(Procfs::default().path(pid, &format!("fd/{descriptor}"))) else {
        return false;
    };
    let name = link.to_string_lossy();
    ["pipe:", "socket:", "anon_inode:", "/dev/pts/", "/dev/tty"].iter().any(|kind| name.starts_with(kind))
}

/// Asks until there is an answer, or no time left.
pub fn wait_until<T>(
    patience: Duration,
    mut ask: impl FnMut() -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask()? {
            return Ok(Some(answer));
        }
        match start.elapsed() {
            elapsed if elapsed > patience => return Ok(None),
            // Most answers come within microseconds, and a thread waits meanwhile.
            elapsed if elapsed < Duration::from_millis(1) => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(100)),
        }
    }
}
