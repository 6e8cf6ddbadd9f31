//! Arguments of what shows all devices or processes at once.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::values::{interval, process_query};
use crate::query::Query;

/// Options without a command, as scripts of Tenstorrent's own tool use them.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "As in Tenstorrent's own tt-smi")]
pub struct OfficialArgs {
    /// Print a snapshot in JSON, as `snapshot --json` does
    #[arg(short = 's', long)]
    pub snapshot: bool,
    /// With -s: write it to FILE instead (mode 0600, replaced as a whole; no links are followed)
    #[arg(short = 'f', long, value_name = "FILE", requires = "snapshot")]
    pub filename: Option<PathBuf>,
    /// List the devices, as `list` does; -ls works too
    #[arg(short = 'l', long)]
    pub list: bool,
    /// Refused: this tool never opens a device, so it cannot reset one
    #[arg(short = 'r', long, value_name = "DEVICE", num_args = 0.., value_delimiter = ',')]
    pub reset: Option<Vec<String>>,
}

impl OfficialArgs {
    /// Whether one of them was given.
    pub fn is_any(&self) -> bool {
        self.snapshot || self.list || self.reset.is_some()
    }
}

/// `snapshot`
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Examples:
  tt-smi snapshot --detail                     kernels by type, peaks, ring buffers
  tt-smi snapshot --json | jq '.devices[].dram_used_bytes'
  tt-smi snapshot --format csv --processes     one line per process and device
  tt-smi snapshot --format prometheus > /var/lib/prometheus/node-exporter/tt.prom

JSON is described by docs/schema/snapshot.json; what is not known is null, empty in CSV, and left
out for Prometheus.")]
pub struct SnapshotArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Also what each process has on each device; CSV has that instead of the devices (JSON has both always)
    #[arg(long, short)]
    pub processes: bool,
    /// Also every class, the kernels by type, and the peaks of each device
    #[arg(long, short)]
    pub detail: bool,
}

/// How a snapshot is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
    /// For spreadsheets: a line per device, or per process and device.
    Csv,
    /// For Prometheus: its text format.
    Prometheus,
}

/// `watch`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi watch --interval 1s | jq -r '[.timestamp, .devices[0].dram_used_bytes] | @tsv'
  tt-smi watch --samples 60 > minute.ndjson

Each line is what `snapshot --json` prints (docs/schema/snapshot.json). Ctrl-C or SIGTERM end it
with success.")]
pub struct WatchArgs {
    /// Time between two lines, such as 500ms or 2s [default: `interval` of the settings, else 500ms]
    #[arg(long, short, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Duration>,
    /// End after N lines [default: go on until Ctrl-C]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub samples: Option<u64>,
}

/// `list`
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Examples:
  tt-smi list
  tt-smi list --json | jq -r '.devices[].pci_address'")]
pub struct ListArgs {
    /// JSON instead of a table (docs/schema/list.json)
    #[arg(long)]
    pub json: bool,
}

/// `ps`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi ps --sort dram                        who uses most
  tt-smi ps --query 'user=ann dram>1GiB'       one user's large ones
  tt-smi ps --query 'state=stopped'            who holds memory and does nothing
  tt-smi ps --tree                             children below their parents

Fields of a query: pid, name, user, command, container, state, device, class, size, dram, l1, peak,
rate, dispatches, hits, misses, age. Operators: = != > >= < <= ~ (contains) !~.

A pid in parentheses is what a process in a container calls itself. PEAK is the sum of the process's
peaks on each device. Events per second are known where an aggregator runs.")]
pub struct PsArgs {
    /// Only who fits all terms, such as 'user=ann dram>1GiB'; a bare word is sought in name and command
    #[arg(long, short, value_name = "QUERY", default_value = "", hide_default_value = true, value_parser = process_query)]
    pub query: Query,
    /// What to sort by
    #[arg(long, value_enum, default_value_t, value_name = "BY")]
    pub sort: ProcessSort,
    /// Children below their parents
    #[arg(long, conflicts_with = "json")]
    pub tree: bool,
    /// JSON instead of a table (docs/schema/ps.json)
    #[arg(long)]
    pub json: bool,
}

/// Order of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProcessSort {
    /// Those that live first, then by pid.
    #[default]
    Pid,
    /// By name.
    Name,
    /// By owner.
    User,
    /// Most DRAM first.
    Dram,
    /// Most L1 first.
    L1,
    /// Highest peak of DRAM first.
    Peak,
    /// Most events per second first.
    Rate,
    /// Oldest first.
    Age,
}
