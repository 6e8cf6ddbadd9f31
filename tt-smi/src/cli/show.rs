//! Arguments of the commands that show all devices or processes at once.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::DeviceArgs;
use super::values::{device_query, interval, process_query};
use crate::query::Query;
use crate::threshold::Threshold;

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

/// Which devices of a list of devices.
#[derive(Debug, Default, Args)]
pub struct DeviceListArgs {
    /// Where.
    #[command(flatten)]
    pub on: DeviceArgs,
    /// Only devices that fit all terms, such as 'dram>1GiB'; a bare word is sought in the board's name
    #[arg(long, short, value_name = "QUERY", default_value = "", hide_default_value = true, value_parser = device_query)]
    pub query: Query,
}

/// Which processes, and on which devices.
#[derive(Debug, Default, Args)]
pub struct ProcessListArgs {
    /// Where.
    #[command(flatten)]
    pub on: DeviceArgs,
    /// Only processes that fit all terms, such as 'user=ann dram>1GiB'; a bare word is sought in name and command
    #[arg(long, short, value_name = "QUERY", default_value = "", hide_default_value = true, value_parser = process_query)]
    pub query: Query,
}

/// `snapshot`
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Examples:
  tt-smi snapshot --detail                     all memory classes, kernels by type, peaks
  tt-smi snapshot --json | jq '.devices[].dram_used_bytes'
  tt-smi snapshot --format csv --processes     one line per process and device
  tt-smi snapshot --format prometheus > /var/lib/prometheus/node-exporter/tt.prom
  tt-smi snapshot --fail-above 'dram>90%' > /dev/null || echo full

JSON is described by docs/schema/snapshot.json. Unknown values are null in JSON, empty in CSV, and
omitted for Prometheus. --query selects processes by the fields of `ps`; the figures of devices
always cover all processes. Exit code 3: a device exceeds a limit of --fail-above.")]
pub struct SnapshotArgs {
    /// Which.
    #[command(flatten)]
    pub only: ProcessListArgs,
    /// Limits.
    #[command(flatten)]
    pub limits: LimitArgs,
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
  tt-smi watch --format csv --device 0 > device0.csv
  tt-smi watch --fail-above 'dram>=95%' > /dev/null || notify-send 'DRAM is nearly full'

Each line of NDJSON is a document as printed by `snapshot --json` (docs/schema/snapshot.json).
Ctrl-C and SIGTERM end it with exit code 0, a device above a limit of --fail-above with 3.")]
pub struct WatchArgs {
    /// Devices and processes.
    #[command(flatten)]
    pub only: ProcessListArgs,
    /// Limits.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: WatchFormat,
    /// Also print each process on each device; CSV prints these instead of the devices (NDJSON always has both)
    #[arg(long, short)]
    pub processes: bool,
    /// Time between snapshots, such as 500ms or 2s [default: `interval` of the config file, else 500ms]
    #[arg(long, short, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Duration>,
    /// Exit after N snapshots [default: run until Ctrl-C]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub samples: Option<u64>,
}

/// How each snapshot of `watch` is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum WatchFormat {
    /// For people, with a blank line between.
    Table,
    /// For spreadsheets: one heading, then a line per device, or per process and device.
    Csv,
    /// For programs: a line of JSON each.
    #[default]
    Ndjson,
}

/// How full devices may be.
#[derive(Debug, Default, Args)]
pub struct LimitArgs {
    /// Exit with 3 if this holds for a device shown: dram, l1 or eth_l1, > or >=, a size or a share of its capacity,
    /// such as 'dram>90%' or 'l1>100MiB'; may be repeated. If that cannot be known, it is an error
    #[arg(long, value_name = "LIMIT")]
    pub fail_above: Vec<Threshold>,
}

/// `history`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi history                               the last hour of each device
  tt-smi history --span day --device 0 --format csv > device0.csv
  tt-smi history --json | jq '.devices[0].telemetry[-1].temperature_celsius.max'

JSON is described by docs/schema/history.json. Times without a line are unknown.")]
pub struct HistoryArgs {
    /// Which devices.
    #[command(flatten)]
    pub on: DeviceArgs,
    /// How far back
    #[arg(long, value_enum, default_value_t, value_name = "SPAN")]
    pub span: HistorySpan,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: HistoryFormat,
    /// Same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// How far back a history goes. The number is the resolution in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum HistorySpan {
    /// A minute.
    Minute,
    /// An hour.
    #[default]
    Hour,
    /// A day.
    Day,
}

impl HistorySpan {
    /// As it is given and written.
    pub fn word(self) -> &'static str {
        match self {
            HistorySpan::Minute => "minute",
            HistorySpan::Hour => "hour",
            HistorySpan::Day => "day",
        }
    }
}

/// Output format of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum HistoryFormat {
    /// A table for each device.
    #[default]
    Table,
    /// JSON for programs.
    Json,
    /// CSV for spreadsheets: one line per device and time.
    Csv,
}

/// `list`
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Examples:
  tt-smi list
  tt-smi list --json | jq -r '.devices[].pci_address'
  tt-smi list --query 'dram=0'                 reporting devices with no DRAM in use
  tt-smi list --json | jq '.devices[] | [.board, .temperature_celsius]'

Fields of a query: device, name, class, size, dram, l1 (what is used), peak, rate, dispatches, hits,
misses. Operators: = != > >= < <= ~ (contains) !~.")]
pub struct ListArgs {
    /// Which devices.
    #[command(flatten)]
    pub devices: DeviceListArgs,
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
    /// Devices and processes.
    #[command(flatten)]
    pub only: ProcessListArgs,
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
