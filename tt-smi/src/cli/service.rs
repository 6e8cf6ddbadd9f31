//! Arguments of the commands that serve or maintain a namespace: `peak`, `aggregate`, `bridge`, `clean`, `doctor`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tt_shm_measure::message::SOCKET_PATH;

use super::DeviceListArgs;
use super::values::{black_box_size, duration};

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
  tt-smi aggregate --stats-interval 10s
  tt-smi aggregate --black-box 256MiB
                                    the last minutes of every process, also of those that are gone

The black box is in $STATE_DIRECTORY, else in /var/lib/tt-smi: files black-box-TIME-N.ttrec of mode
0600.")]
pub struct AggregateArgs {
    /// Print a summary to stderr at this interval, such as 10s or 500ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub stats_interval: Option<Duration>,
    /// Keep a record of the last minutes in files of this size together, such as 256MiB
    #[arg(long, value_name = "SIZE", value_parser = black_box_size)]
    pub black_box: Option<u64>,
}

/// `bridge`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi bridge &                   clients find it where their own server used to be
  TT_ALLOC_TRACKING_ENABLED=1 python3 train.py
  tt-smi bridge --socket /run/user/1000/tt.sock --message-size 112

Lists that clients ask for go to stdout, the log to stderr. What is answered: docs/sources.md.")]
pub struct BridgeArgs {
    /// Listen on this socket; a stale one is replaced
    #[arg(long, value_name = "PATH", default_value = SOCKET_PATH)]
    pub socket: PathBuf,
    /// Length of all messages [default: told apart per connection]
    #[arg(long, value_name = "BYTES", value_parser = ["72", "112", "144"])]
    pub message_size: Option<String>,
    /// Take application kernels of 57344 bytes for fabric and of 47104 bytes for dispatch kernels
    #[arg(long)]
    pub guess_kernel_type: bool,
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
