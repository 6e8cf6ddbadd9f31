//! One process of the demonstration.

use std::ffi::CString;

use anyhow::Context;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use tt_shm_writer::Tracker;

use super::models::NETWORKS;
use super::plan::Plan;
use super::workload::Workload;
use crate::cli::WorkerArgs;
use crate::settings::Settings;
use crate::signals::Stop;

/// Runs until SIGTERM or SIGINT, or until the parent ends.
pub fn run(args: &WorkerArgs, settings: &Settings) -> anyhow::Result<()> {
    let stop = Stop::on_signals().context("cannot catch signals")?;
    set_parent_process_death_signal(Some(Signal::TERM)).context("cannot ask to end with the parent")?;
    let parent = Pid::from_raw(args.parent as i32);
    // It may have ended before that was asked for.
    if getppid() != parent {
        return Ok(());
    }
    let network = &NETWORKS[args.worker as usize % NETWORKS.len()];
    // What monitors show as the name of the process.
    let _ = rustix::thread::set_name(&CString::new(network.name).context("a name without zero bytes")?);
    let tracker = Tracker::builder().enabled(true).namespace(settings.namespace.as_str()).open()?;
    let plan = Plan::new(network, args);
    let stopped = || stop.is_set();
    Workload::open(&tracker, &plan, args.devices)?.run(&stopped)?;
    Ok(())
}
