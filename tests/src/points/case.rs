//! Runs a helper into its trap, and watches how it ends.

use super::trap::{ENV, End, Trap};
use crate::space::{Process, Space};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// How long a helper may take to reach its trap.
const PATIENCE: Duration = Duration::from_secs(20);

/// A helper process that may have a trap, and talks in lines.
pub struct Helper {
    process: Process,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// How a helper was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Killed by SIGKILL.
    Killed,
    /// Stopped by SIGSTOP.
    Stopped,
    /// Ended otherwise.
    Ended,
    /// None of it, for a long time.
    Running,
}

impl Helper {
    /// Starts it.
    pub fn start(program: &str, arguments: &[&str], space: &Space, trap: Option<Trap>) -> Helper {
        let mut command = space.command(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(trap) = trap {
            command.env(ENV, trap.to_text());
        }
        let mut process = Process::spawn(command);
        let input = process.0.stdin.take();
        let output = BufReader::new(process.0.stdout.take().expect("stdout is piped"));
        Helper { process, input, output }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Gives it a line. It may be dead already.
    pub fn tell(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        }
    }

    /// Gives it no more lines.
    pub fn end_input(&mut self) {
        self.input = None;
    }

    /// Reads a line; `None` at the end.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        Some(line.trim_end().to_owned())
    }

    /// Reads up to a line; says how many came before it, or `None` if it never came.
    pub fn lines_until(&mut self, last: &str) -> Option<usize> {
        let mut before = 0;
        loop {
            if self.line()? == last {
                return Some(before);
            }
            before += 1;
        }
    }

    /// Lines that it wrote before it was stopped or killed.
    pub fn lines_so_far(&mut self) -> usize {
        let mut lines = 0;
        loop {
            let left = self.output.buffer().len() as u64;
            let more = rustix::io::ioctl_fionread(self.output.get_ref()).unwrap_or(0);
            // Whole lines only: each is one write.
            if left + more == 0 || self.line().is_none() {
                return lines;
            }
            lines += 1;
        }
    }

    /// Waits until it is stopped or has ended. It stays waitable: its pid remains its own.
    fn wait(&self) -> Found {
        let pid = WaitId::Pid(Pid::from_child(&self.process.0));
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let status = waitid(pid.clone(), options | WaitIdOptions::NOHANG).expect("our own child");
            match status {
                None => std::thread::sleep(Duration::from_micros(300)),
                Some(status) if status.stopped() => return Found::Stopped,
                Some(status) if status.terminating_signal() == Some(Signal::KILL.as_raw()) => {
                    return Found::Killed;
                }
                Some(_) => return Found::Ended,
            }
        }
        Found::Running
    }

    /// Waits until it is in its trap; anything else means that the point was never reached.
    pub fn wait_for(&self, end: End) -> Result<Found, String> {
        let expected = if end == End::Kill { Found::Killed } else { Found::Stopped };
        let found = self.wait();
        if found == expected { Ok(found) } else { Err(format!("the point was never reached: {found:?}")) }
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.process.signal(Signal::CONT);
    }

    /// Ends it by SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Whether it ends, or ended, as it should.
    pub fn succeeds(&mut self) -> bool {
        self.input = None;
        self.process.0.wait().is_ok_and(|status| status.success())
    }
}
