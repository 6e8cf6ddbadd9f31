//! The command: starts it, forwards signals to it, waits for it.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpgrp, pidfd_open, pidfd_send_signal,
    set_child_subreaper, wait,
};
use rustix::termios::tcgetpgrp;
use serde::Serialize;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use tt_shm_os::{NAMESPACE_ENV, Procfs};

use super::loadable::Obstacle;
use super::membership::RunId;
use super::notices::{NOTES_ENV, Notices};
use crate::cli::RunArgs;
use crate::settings::Settings;
use crate::tap::{self, PRELOAD_ENV};

/// Switches off the statistics that tt-metal keeps by itself.
const REGION_OFF_ENV: &str = "TT_METAL_SHM_TRACKING_DISABLED";

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "ExitJson")]
pub(in crate::commands) enum End {
    /// It exited with this code.
    Exited(u8),
    /// It was killed by this signal.
    Killed(u8),
}

/// How the command ended, as JSON.
///
/// Not an [`End`]: two keys of which one is null are easier on scripts than a tagged value.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ExitJson {
    /// Its exit code; `None` if a signal ended it.
    exit_code: Option<u8>,
    /// The signal that ended it; `None` if it exited.
    signal: Option<u8>,
}

impl From<End> for ExitJson {
    fn from(end: End) -> ExitJson {
        match end {
            End::Exited(code) => ExitJson { exit_code: Some(code), signal: None },
            End::Killed(signal) => ExitJson { exit_code: None, signal: Some(signal) },
        }
    }
}

impl End {
    /// The exit code that a shell would report.
    pub(in crate::commands) fn code(self) -> u8 {
        match self {
            End::Exited(code) => code,
            End::Killed(signal) => 128 | signal,
        }
    }
}

/// The command while it is running.
pub(in crate::commands) struct Running {
    pid: Pid,
    signals: signal_hook::iterator::Handle,
    passer: std::thread::JoinHandle<()>,
}

impl Running {
    /// Starts it in the same terminal, process group and with the same files. From then on orphans among its descendants
    /// become children of this process, so that lineage leads here also from those that lost the run's number.
    pub(super) fn start(
        args: &RunArgs,
        settings: &Settings,
        run: RunId,
        notices: Option<&Notices>,
        loads_tap: bool,
    ) -> io::Result<Running> {
        set_child_subreaper(rustix::process::getpid().into())?;
        // Handlers are installed before the start: a signal in between must not end only this process.
        let mut signals = Signals::new(to_catch())?;
        let (program, arguments) = args.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).env(tt_shm_writer::ENABLED_ENV, "1");
        command.env(tt_shm_writer::RUN_ENV, run.text(&settings.namespace));
        if settings.namespace_given {
            command.env(NAMESPACE_ENV, settings.namespace.as_str());
        }
        if loads_tap {
            load_tap(&mut command);
        }
        match notices {
            Some(notices) => command.env(NOTES_ENV, notices.path()),
            // That of a run in which this one runs is not for our processes.
            None => command.env_remove(NOTES_ENV),
        };
        if args.no_region {
            command.env(REGION_OFF_ENV, "1");
        }
        let child = crate::with_first_limits(|| command.spawn())?;
        let pid = Pid::from_child(&child);
        // A pidfd: the pid may belong to another process by the time a signal arrives.
        let target = pidfd_open(pid, PidfdFlags::empty())?;
        let handle = signals.handle();
        let passer = std::thread::spawn(move || pass_on(&mut signals, &target));
        Ok(Running { pid, signals: handle, passer })
    }

    /// Its pid.
    pub(super) fn pid(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    /// Waits for its end, and reaps orphans, which became children of this process.
    pub(in crate::commands) fn wait(self) -> io::Result<End> {
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

/// Starts a command for a recording: nobody listens to its notices.
pub(in crate::commands) fn start(args: &RunArgs, settings: &Settings, run: RunId) -> io::Result<Running> {
    let obstacle = args.command.first().and_then(|command| Obstacle::of(command.as_ref()));
    let loads_tap = !args.no_tap && !obstacle.is_some_and(|obstacle| obstacle.prevents_start());
    Running::start(args, settings, run, None, loads_tap)
}

/// Has the tap loaded into the command and all that it starts. Without it, they run all the same.
fn load_tap(command: &mut Command) {
    match tap::file() {
        Ok(file) => {
            let before = std::env::var_os(PRELOAD_ENV);
            command.env(PRELOAD_ENV, tap::preload(&file, before.as_deref()));
        }
        Err(error) => eprintln!("tt-smi: tt-metal is not observed: {error:#}"),
    }
}

fn end_of(status: WaitStatus) -> End {
    let code = |code: i32| u8::try_from(code).unwrap_or(u8::MAX);
    match (status.exit_status(), status.terminating_signal()) {
        (_, Some(signal)) => End::Killed(code(signal)),
        (status, None) => End::Exited(status.map_or(u8::MAX, code)),
    }
}

/// The signals that are forwarded, and SIGCHLD, which must not be ignored for waiting to work. Signals that were ignored
/// from the start (`nohup`, or a background job of a shell) stay ignored here and so in the command: a handler would
/// reset them to their default there.
fn to_catch() -> impl Iterator<Item = i32> {
    let ignored = Procfs::default().status("self").and_then(|status| status.ignored_signals()).unwrap_or(0);
    let passed = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
    passed.into_iter().filter(move |signal| ignored >> (signal - 1) & 1 == 0).chain([SIGCHLD])
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

/// Whether the terminal already sent the signal to the command, as it does to its whole foreground group.
fn is_from_keyboard(signal: i32) -> bool {
    matches!(signal, SIGINT | SIGQUIT)
}

fn is_in_foreground() -> bool {
    std::fs::File::open("/dev/tty").ok().and_then(|tty| tcgetpgrp(tty).ok()) == Some(getpgrp())
}
