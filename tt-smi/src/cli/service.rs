//! Arguments of the commands that serve or maintain a namespace: `peak`, `aggregate`, `clean`, `doctor`.

use std::time::Duration;

use clap::Args;

use super::DeviceListArgs;
use super::values::duration;

/// `peak`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi peak                       peak use of each memory, and who held it
  tt-smi peak --reset && run-step && tt-smi peak --json
                                    the peak of a single step; needs a running aggregator

Fields of a query: device, name, class, size, dram, l1, peak, rate, dispatches, hits, misses.
Operators: = != > >= < <= ~ (contains) !~. JSON is described by docs/schema/peak.json.")]
pub struct PeakArgs {
    /// Devices.
    #[command(flatten)]
    pub devices: DeviceListArgs,
    /// Ask the running aggregator to start a new window: peaks restart at the current use
    #[arg(long)]
    pub reset: bool,
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// `aggregate`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi aggregate &                for this user and namespace; all users can read root's
  tt-smi aggregate --stats-interval 10s")]
pub struct AggregateArgs {
    /// Print a summary to stderr at this interval, such as 10s or 500ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub stats_interval: Option<Duration>,
}

/// `clean`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi clean --dry-run            files of dead processes, and what these held
  tt-smi clean --all-namespaces")]
pub struct CleanArgs {
    /// Clean every namespace, not only this one
    #[arg(long)]
    pub all_namespaces: bool,
    /// Print what would be removed, without removing it
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

/// `doctor`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi doctor
  tt-smi doctor --json | jq '.findings[] | select(.level != \"pass\")'

JSON is described by docs/schema/doctor.json.")]
pub struct DoctorArgs {
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}
