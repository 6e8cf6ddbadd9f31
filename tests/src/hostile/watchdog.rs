//! Programs that must end, and use little memory.

use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::space::Process;

/// Nothing that is tried takes a second on an idle machine; whatever takes this long hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a program came to.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

/// Runs a program to its end; fails the test if that does not come.
#[track_caller]
pub fn finish(mut command: Command) -> Finished {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let about = format!("{command:?}");
    let mut process = Process::spawn(command);
    let (stdout, stderr) = (process.0.stdout.take(), process.0.stderr.take());
    let read = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            // A pipe of a killed program ends; what came before stays.
            let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut text));
            String::from_utf8(text).expect("tt-smi writes UTF-8")
        })
    };
    let out = read(stdout.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let err = read(stderr.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = process.0.try_wait().expect("our own child can be waited for") {
            break status;
        }
        assert!(start.elapsed() < PATIENCE, "{about} hangs");
        std::thread::sleep(Duration::from_millis(2));
    };
    let text = |thread: std::thread::JoinHandle<String>| thread.join().expect("the pipe was read");
    Finished { status, stdout: text(out), stderr: text(err) }
}

/// The most private memory in bytes that a process has had: what it mapped of others' files does not count.
pub fn peak_memory(pid: u32) -> u64 {
    let status = tt_shm_os::Procfs::default().status(pid).expect("the process lives");
    let bytes = |name: &str| status.bytes(name).expect("procfs has the field");
    bytes("VmHWM").saturating_sub(bytes("RssShmem"))
}
