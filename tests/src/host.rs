//! A real process that uses the writer, told what to do line by line.

use crate::script::{Answer, Command, Truth};
use crate::space::{Process, Space};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, ExitStatus, Stdio};

/// A host process.
pub struct Host {
    process: Process,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Host {
    /// Starts a host that has opened its tracker on these chips. `program` is the path of the helper
    /// binary `host`, which only the test knows.
    pub fn start(program: &str, space: &Space, chips: impl IntoIterator<Item = u64>) -> Host {
        Host::start_with(program, space, chips, 0)
    }

    /// Likewise, with a ring of that many slots.
    pub fn start_with(
        program: &str,
        space: &Space,
        chips: impl IntoIterator<Item = u64>,
        ring_slots: u64,
    ) -> Host {
        let mut host = Host::spawn(space.command(program));
        host.tell(Command::Open { ring_slots, chips: chips.into_iter().collect() });
        host
    }

    /// Starts a host by this command. It has not opened its tracker.
    pub fn spawn(mut command: std::process::Command) -> Host {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::spawn(command);
        let input = process.0.stdin.take();
        let output = BufReader::new(process.0.stdout.take().expect("stdout is piped"));
        Host { process, input, output }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Gives a command without waiting for the answer.
    pub fn send(&mut self, command: &Command) {
        let input = self.input.as_mut().expect("the host is being talked to");
        let line = serde_json::to_string(command).expect("commands are plain data");
        writeln!(input, "{line}").and_then(|()| input.flush()).expect("the host listens");
    }

    /// Waits for an answer.
    #[track_caller]
    pub fn answer(&mut self) -> Answer {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the host answers");
        assert!(!line.is_empty(), "the host ended: {:?}", self.process.0.wait());
        serde_json::from_str(&line).expect("answers are plain data")
    }

    /// Gives a command and waits until it is done.
    #[track_caller]
    pub fn tell(&mut self, command: Command) {
        self.send(&command);
        match self.answer() {
            Answer::Done => {}
            other => panic!("{command:?} was answered by {other:?}"),
        }
    }

    /// What the process knows of itself.
    #[track_caller]
    pub fn truth(&mut self) -> Truth {
        self.send(&Command::Truth);
        match self.answer() {
            Answer::Truth(truth) => truth,
            other => panic!("asked for the truth, got {other:?}"),
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Ends it by SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Lets it end by itself (no more commands) and waits.
    pub fn finish(mut self) -> ExitStatus {
        self.input = None;
        self.process.0.wait().expect("our own child can be waited for")
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) -> ExitStatus {
        self.process.0.wait().expect("our own child can be waited for")
    }
}
