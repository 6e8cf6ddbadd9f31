//! Arguments of what runs beside the processes, or cleans up after them.

use std::time::Duration;

use clap::Args;

use super::values::duration;

/// `peak`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi peak                       the most that was used of each memory, and who held it
  tt-smi peak --reset && run-step && tt-smi peak --json
                                    the peak of one step alone; needs a running aggregator

JSON is described by docs/schema/peak.json.")]
pub struct PeakArgs {
    /// Ask the running aggregator to begin a new window: its peaks start at what is used now
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
  tt-smi aggregate &                one for this user and namespace; root's is seen by all users
  tt-smi aggregate --stats-interval 10s")]
pub struct AggregateArgs {
    /// Write a summary to stderr this often, such as 10s or 500ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub stats_interval: Option<Duration>,
}

/// `clean`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi clean --dry-run            what dead processes left, and what they held
  tt-smi clean --all-namespaces")]
pub struct CleanArgs {
    /// In every namespace, not only this one
    #[arg(long)]
    pub all_namespaces: bool,
    /// Say what would be removed, and remove nothing
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
