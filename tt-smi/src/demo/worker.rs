//! One process of the demonstration.

use std::ffi::CString;

use anyhow::Context;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use tt_shm_demo::Worker;
use tt_shm_writer::Tracker;

use crate::cli::WorkerArgs;
use crate::settings::Settings;
use crate::signals::Stop;

/// Runs until SIGTERM or SIGINT, or until the parent ends.
pub(crate) fn run(args: &WorkerArgs, settings: &Settings) -> anyhow::Result<()> {
    let stop = Stop::on_signals().context("cannot catch signals")?;
    set_parent_process_death_signal(Some(Signal::TERM)).context("cannot ask to end with the parent")?;
    let parent = Pid::from_raw(args.parent as i32);
    // It may have ended before that was asked for.
    if getppid() != parent {
        return Ok(());
    }
    let WorkerArgs { worker: number, workers, devices, seed, rate, .. } = *args;
    let worker = Worker { number, workers, devices, seed, rate };
    // What monitors show as the name of the process.
    let _ = rustix::thread::set_name(&CString::new(worker.network()).context("a name without zero bytes")?);
    let tracker = Tracker::builder().enabled(true).namespace(settings.namespace.as_str()).open()?;
    worker.run(&tracker, &|| stop.is_set())?;
    Ok(())
}
