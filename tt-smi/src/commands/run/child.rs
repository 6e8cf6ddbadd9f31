//! The command: started, given every signal that is meant for it, waited for.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpgrp, pidfd_open, pidfd_send_signal,
    set_child_subreaper, wait,
};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use tt_shm_os::NAMESPACE_ENV;

use super::RunId;
use crate::settings::Settings;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With this exit code.
    Exited(u8),
    /// By this signal.
    Killed(u8),
}

impl End {
    /// What a shell would say.
    pub(super) fn code(self) -> u8 {
        match self {
            End::Exited(code) => code,
            End::Killed(signal) => 128 | signal,
        }
    }
}

/// The command while it runs.
pub(super) struct Running {
    pid: Pid,
    signals: signal_hook::iterator::Handle,
    passer: std::thread::JoinHandle<()>,
}

impl Running {
    /// Starts it in our place: same terminal, same group, same files. From then on orphans among its descendants
    /// become our children, so that the way up leads here also from those that lost the run's number.
    pub(super) fn start(command: &[OsString], settings: &Settings, run: RunId) -> io::Result<Running> {
        set_child_subreaper(rustix::process::getpid().into())?;
        // Caught before it starts: one that comes meanwhile must not end us alone.
        let mut signals = Signals::new(to_catch())?;
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).env(tt_shm_writer::ENABLED_ENV, "1");
        command.env(tt_shm_writer::RUN_ENV, run.text(&settings.namespace));
        if settings.namespace_given {
            command.env(NAMESPACE_ENV, settings.namespace.as_str());
        }
        let child = crate::with_first_limits(|| command.spawn())?;
        let pid = Pid::from_child(&child);
        // Not its pid: that may be another's by the time that a signal comes.
        let target = pidfd_open(pid, PidfdFlags::empty())?;
        let handle = signals.handle();
        let passer = std::thread::spawn(move || pass_on(&mut signals, &target));
        Ok(Running { pid, signals: handle, passer })
    }

    /// Waits for its end, and for those of orphans, which are ours to bury.
    pub(super) fn wait(self) -> io::Result<End> {
        let end = loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if pid == self.pid => break end_of(status),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        };
        self.signals.close();
        let _ = self.passer.join();
        Ok(end)
    }
}

fn end_of(status: WaitStatus) -> End {
    let code = |code: i32| u8::try_from(code).unwrap_or(u8::MAX);
    match (status.exit_status(), status.terminating_signal()) {
        (_, Some(signal)) => End::Killed(code(signal)),
        (status, None) => End::Exited(status.map_or(u8::MAX, code)),
    }
}

/// The signals that are passed on, and the one of a child's end: who ignores that one has no children to wait for.
/// What we were told to ignore (by `nohup`, or by a shell that began a job in the background) stays ignored, by us
/// and so by the command: caught, it would get back its usual effect there.
fn to_catch() -> impl Iterator<Item = i32> {
    let ignored = std::fs::read_to_string("/proc/self/status").map_or(0, |status| ignored_in(&status));
    let passed = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
    passed.into_iter().filter(move |signal| ignored >> (signal - 1) & 1 == 0).chain([SIGCHLD])
}

/// The mask of ignored signals in a status of procfs.
fn ignored_in(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn pass_on(signals: &mut Signals, target: &OwnedFd) {
    for signal in signals.forever().filter(|signal| *signal != SIGCHLD) {
        if !(is_from_keyboard(signal) && is_in_foreground()) {
            let signal = Signal::from_named_raw(signal);
            // It may have ended just now.
            let _ = signal.map(|signal| pidfd_send_signal(target, signal));
        }
    }
}

/// The terminal sends these to all of its foreground group, so the command has it already.
fn is_from_keyboard(signal: i32) -> bool {
    matches!(signal, SIGINT | SIGQUIT)
}

fn is_in_foreground() -> bool {
    std::fs::File::open("/dev/tty").ok().and_then(|tty| tcgetpgrp(tty).ok()) == Some(getpgrp())
}
