//! The processes of the demonstration. What they report is in [`tt_shm_demo`].

pub(crate) mod worker;

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tt_shm_os::{NAMESPACE_ENV, Namespace};

use crate::cli::DemoArgs;

/// How long a worker gets to free what it holds before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// The worker processes; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct Workers {
    children: Vec<Child>,
}

impl Workers {
    /// Starts them. Each is this program again, with a hidden command.
    pub(crate) fn start(args: &DemoArgs, namespace: &Namespace) -> anyhow::Result<Workers> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let mut workers = Workers { children: Vec::new() };
        for worker in 0..args.workers {
            let numbers = [
                ("--worker", u64::from(worker)),
                ("--workers", u64::from(args.workers)),
                ("--devices", u64::from(args.devices)),
                ("--seed", args.seed),
                ("--rate", u64::from(args.rate)),
                ("--parent", u64::from(std::process::id())),
            ];
            let mut command = Command::new(&program);
            command.arg("demo-worker").env(NAMESPACE_ENV, namespace.as_str());
            for (name, number) in numbers {
                command.arg(name).arg(number.to_string());
            }
            // Their words would disturb the screen; they are shown at the end.
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            workers.children.push(command.spawn().context("cannot start a worker")?);
        }
        Ok(workers)
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        self.children.iter().map(Child::id).collect()
    }

    /// Whether all have ended by themselves: then there is nothing more to see.
    pub(crate) fn have_ended(&mut self) -> bool {
        self.children.iter_mut().all(|child| !matches!(child.try_wait(), Ok(None)))
    }

    /// Ends them in an orderly way and passes on what they had to say.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        self.end();
        let mut complaints = Vec::new();
        for child in &mut self.children {
            let mut said = String::new();
            if let Some(stderr) = &mut child.stderr {
                // Output that cannot be read is lost; there is still the exit code.
                let _ = stderr.read_to_string(&mut said);
            }
            match child.wait() {
                Ok(status) if status.success() => {}
                // Killed on purpose, to see how that is shown.
                Ok(status) if status.signal().is_some() => {
                    eprintln!("tt-smi: worker {}: {status}", child.id())
                }
                status => complaints.push(complaint(child.id(), status.ok(), &said)),
            }
        }
        anyhow::ensure!(complaints.is_empty(), "{}", complaints.join("; "));
        Ok(())
    }

    fn end(&mut self) {
        for child in &mut self.children {
            if let (Ok(None), Some(pid)) = (child.try_wait(), Pid::from_raw(child.id() as i32)) {
                // It may have ended just now; it is not reaped yet, so the pid is still its own.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        let deadline = Instant::now() + GRACE;
        while !self.have_ended() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        for child in &mut self.children {
            if let Ok(None) = child.try_wait() {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.end();
    }
}

fn complaint(pid: u32, status: Option<ExitStatus>, said: &str) -> String {
    let status = status.map_or_else(|| "with an unknown status".to_owned(), |status| status.to_string());
    format!("worker {pid} ended early ({status}): {}", said.trim())
}
