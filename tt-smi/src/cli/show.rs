//! Arguments of the commands that show all devices or processes at once.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::values::{interval, process_query};
use crate::query::Query;

/// Options of Tenstorrent's own tool, for scripts that use them.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Compatible with Tenstorrent's own tt-smi")]
pub struct OfficialArgs {
    /// Print a snapshot as JSON, like `snapshot --json`
    #[arg(short = 's', long)]
    pub snapshot: bool,
    /// With -s: write to FILE instead of stdout (mode 0600, replaced atomically; links are not followed)
    #[arg(short = 'f', long, value_name = "FILE", requires = "snapshot")]
    pub filename: Option<PathBuf>,
    /// List the devices, like `list`; -ls works too
    #[arg(short = 'l', long)]
    pub list: bool,
    /// Not supported: this tool never opens a device, so it cannot reset one
    #[arg(short = 'r', long, value_name = "DEVICE", num_args = 0.., value_delimiter = ',')]
    pub reset: Option<Vec<String>>,
}

impl OfficialArgs {
    /// Whether any of them was given.
    pub fn is_any(&self) -> bool {
        self.snapshot || self.list || self.reset.is_some()
    }
}

/// `snapshot`
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Examples:
  tt-smi snapshot --detail                     all memory classes, kernels by type, peaks
  tt-smi snapshot --json | jq '.devices[].dram_used_bytes'
  tt-smi snapshot --format csv --processes     one line per process and device
  tt-smi snapshot --format prometheus > /var/lib/prometheus/node-exporter/tt.prom

JSON is described by docs/schema/snapshot.json. Unknown values are null in JSON, empty in CSV, and
omitted for Prometheus.")]
pub struct SnapshotArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Also show each process on each device; in CSV, instead of the devices (JSON always has both)
    #[arg(long, short)]
    pub processes: bool,
    /// Also show every memory class, kernels by type, and peaks of each device
    #[arg(long, short)]
    pub detail: bool,
}

/// Output format of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people.
    #[default]
    Table,
    /// JSON for programs.
    Json,
    /// CSV for spreadsheets: one line per device, or per process and device.
    Csv,
    /// The text format of Prometheus.
    Prometheus,
}

/// `watch`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi watch --interval 1s | jq -r '[.timestamp, .devices[0].dram_used_bytes] | @tsv'
  tt-smi watch --samples 60 > minute.ndjson

Each line is a document as printed by `snapshot --json` (docs/schema/snapshot.json). Ctrl-C and
SIGTERM end it with exit code 0.")]
pub struct WatchArgs {
    /// Time between lines, such as 500ms or 2s [default: `interval` of the config file, else 500ms]
    #[arg(long, short, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Duration>,
    /// Exit after N lines [default: run until Ctrl-C]
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
  tt-smi ps --sort dram                        largest DRAM use first
  tt-smi ps --query 'user=ann dram>1GiB'       large processes of one user
  tt-smi ps --query 'state=stopped'            processes that hold memory while stopped
  tt-smi ps --tree                             children indented below their parents

Fields of a query: pid, name, user, command, container, state, device, class, size, dram, l1, peak,
rate, dispatches, hits, misses, age. Operators: = != > >= < <= ~ (contains) !~.

A pid in parentheses is the pid inside the process's container. PEAK is the sum of the process's
peaks over all devices. Events per second are known only while an aggregator runs.")]
pub struct PsArgs {
    /// Only processes that match all terms, such as 'user=ann dram>1GiB'; a bare word matches name or command
    #[arg(long, short, value_name = "QUERY", default_value = "", hide_default_value = true, value_parser = process_query)]
    pub query: Query,
    /// Sort order
    #[arg(long, value_enum, default_value_t, value_name = "BY")]
    pub sort: ProcessSort,
    /// Indent children below their parents
    #[arg(long, conflicts_with = "json")]
    pub tree: bool,
    /// JSON instead of a table (docs/schema/ps.json)
    #[arg(long)]
    pub json: bool,
}

/// Order of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProcessSort {
    /// Running processes first, then by pid.
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
    /// Highest DRAM peak first.
    Peak,
    /// Most events per second first.
    Rate,
    /// Oldest first.
    Age,
}
