//! `tt-smi aggregate`: the daemon.

use anyhow::Context;
use tt_shm_aggregator::{DaemonConfig, Log, run_daemon};

use crate::cli::AggregateArgs;
use crate::settings::Settings;
use crate::signals::Stop;

/// Runs until SIGINT or SIGTERM.
pub(crate) fn run(args: &AggregateArgs, settings: &Settings) -> anyhow::Result<()> {
    let stop = Stop::on_signals().context("cannot catch signals")?;
    let config = DaemonConfig {
        namespace: settings.namespace.clone(),
        stats_interval: args.stats_interval,
        driver: Some(crate::driver::roots()),
        regions: Some(crate::driver::region_roots()),
        log: Log::stderr(),
    };
    Ok(run_daemon(config, stop.flag())?)
}
