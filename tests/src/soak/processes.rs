//! The processes of a soak. All are this very program in another role, so that one binary is all there is.

use super::notes::Notes;
use super::replay::Replay;
use super::writer::Plan;
use crate::space::{Process, Space};
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, WaitOptions, waitpid};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use tt_shm_reader::Segment;

/// The environment variable that says which role this process has.
pub const ROLE: &str = "TT_SOAK_ROLE";

/// What a process of a soak does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reports and takes notes.
    Writer,
    /// Reports, reads its events back, and logs them.
    Judged,
    /// Looks at everything all the time.
    Reader,
    /// `tt-smi`.
    Smi,
}

impl Role {
    /// The role of this process; `None` for the soak itself.
    pub fn of_this_process() -> Option<Role> {
        let role = std::env::var(ROLE).ok()?;
        [Role::Writer, Role::Judged, Role::Reader, Role::Smi].into_iter().find(|known| known.name() == role)
    }

    fn name(self) -> &'static str {
        match self {
            Role::Writer => "writer",
            Role::Judged => "judged",
            Role::Reader => "reader",
            Role::Smi => "tt-smi",
        }
    }
}

/// A command that runs this program in a role.
pub fn command(space: &Space, role: Role) -> Result<Command> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = space.command(program.to_str().context("the path of this program is text")?);
    // A group of its own: Ctrl-C ends the soak, and the soak ends the others.
    command.env(ROLE, role.name()).process_group(0);
    Ok(command)
}

/// Any process that may be stopped and continued.
pub struct Stoppable {
    process: Process,
    stopped: bool,
}

impl Stoppable {
    /// Starts it.
    pub fn spawn(command: Command) -> Stoppable {
        Stoppable { process: Process::spawn(command), stopped: false }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Stops it; returns when every thread of it has stopped.
    pub fn stop(&mut self) -> Result<()> {
        if self.stopped {
            return Ok(());
        }
        self.process.signal(Signal::STOP);
        let waited = waitpid(Some(Pid::from_child(&self.process.0)), WaitOptions::UNTRACED)?;
        let (_, status) = waited.context("waiting without NOHANG returns a status")?;
        ensure!(status.stopped(), "process {} ended by itself: {status:?}", self.pid());
        self.stopped = true;
        Ok(())
    }

    /// Lets it go on.
    pub fn go_on(&mut self) {
        if std::mem::take(&mut self.stopped) {
            self.process.signal(Signal::CONT);
        }
    }

    /// Whether it is stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Whether it ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.process.0.try_wait(), Ok(None))
    }

    /// Its standard input and output, if they are piped.
    pub fn take_pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>) {
        (self.process.0.stdin.take(), self.process.0.stdout.take())
    }

    /// Waits until it has ended by itself, and says whether that was an orderly end.
    pub fn wait(&mut self) -> bool {
        self.go_on();
        self.process.0.wait().is_ok_and(|status| status.success())
    }

    /// Ends it by SIGKILL and waits for that.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Ends it by SIGTERM, and says whether that was an orderly end.
    pub fn terminate(mut self) -> bool {
        self.process.signal(Signal::TERM);
        self.go_on();
        self.process.0.wait().is_ok_and(|status| status.success())
    }
}

/// A writer, what it noted, and its segment.
pub struct Writer {
    /// Its process.
    pub process: Stoppable,
    /// What it was told.
    pub plan: Plan,
    /// What it notes.
    pub notes: Notes,
    /// The same calls, repeated.
    pub replay: Replay,
    /// Its segment; stays readable when it is dead and its file removed.
    pub segment: Segment,
    /// Its segment once more, to be copied.
    pub file: File,
    /// Pid of the aggregator that was seen to follow it.
    pub followed_by: Option<u32>,
    input: Option<ChildStdin>,
}

impl Writer {
    /// Starts one that has opened its tracker.
    pub fn start(space: &Space, plan: Plan) -> Result<Writer> {
        let notes = Notes::create(&plan.notes, plan.threads)?;
        let mut command = command(space, Role::Writer)?;
        command.arg(serde_json::to_string(&plan)?).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Stoppable::spawn(command);
        let input = process.process.0.stdin.take();
        let output = process.process.0.stdout.take().context("stdout is piped")?;
        let mut path = String::new();
        BufReader::new(output).read_line(&mut path)?;
        ensure!(!path.is_empty(), "writer {} could not start", process.pid());
        let path = PathBuf::from(path.trim_end());
        let (segment, file) = (Segment::open(&path)?, File::open(&path)?);
        let replay = Replay::new(plan.seed, plan.threads);
        Ok(Writer { process, plan, notes, replay, segment, file, followed_by: None, input })
    }

    /// Lets it end in an orderly way, and says whether it did.
    pub fn finish(&mut self) -> bool {
        self.input = None;
        self.process.go_on();
        self.process.process.0.wait().is_ok_and(|status| status.success())
    }

    /// Calls that it was refused.
    pub fn refused(&self) -> u64 {
        (0..self.plan.threads).map(|thread| self.notes.progress(thread).refused).sum()
    }
}
