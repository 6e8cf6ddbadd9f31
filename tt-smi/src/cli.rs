//! What the user typed. What it resolves to is [`crate::settings::Settings`] and the commands' own types.

use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tt_shm_os::Namespace;

use crate::commands::{DoctorArgs, OomArgs, RunArgs};
use crate::select::{ClassFilter, DeviceSelector};

/// Exact, live memory of Tenstorrent accelerators, per process.
///
/// Reads shared memory only: it never opens a device and cannot disturb a workload. Without a command it
/// shows a live screen (where stdout is no terminal: the snapshot table).
#[derive(Debug, Parser)]
#[command(name = "tt-smi", version, propagate_version = true, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// Which group of processes to look at [default: default]
    #[arg(long, global = true, env = tt_shm_os::NAMESPACE_ENV, value_name = "NS", hide_env_values = true)]
    pub namespace: Option<String>,
    /// When to use colours; NO_COLOR is honoured
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    pub color: ColorChoice,
    /// What to do; a live screen if nothing is said
    #[command(subcommand)]
    pub command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  tt-smi                                  live screen
  tt-smi snapshot --detail                devices now, with kernels by type and peaks
  tt-smi snapshot --json | jq .devices    the same for scripts; unknown is null
  tt-smi allocations --device 0 --top 20  the largest live allocations on device 0
  tt-smi events --follow --pid 4242       what one process allocates, as it happens
  tt-smi run -- python3 train.py          its peaks, and what it never freed, at the end
  tt-smi oom                              why an allocation failed, and who held the memory
  tt-smi doctor                           whether this machine is set up, and what to do if not
  tt-smi bench                            what tracking costs on this machine, in 10 seconds
  tt-smi demo                             real processes with a made-up workload; needs no hardware

Exit codes: 0 success, 1 nothing could be read, 2 wrong usage.";

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Devices and processes as they are now
    Snapshot(SnapshotArgs),
    /// What is live: per device and class, then one by one
    Allocations(AllocationsArgs),
    /// Programs: binaries, circular buffers, dispatches, cache hits
    Programs(ProgramsArgs),
    /// What happened: the events that the rings still hold, or all from now on
    Events(EventsArgs),
    /// The most that was ever used, when, and by whom
    Peak(PeakArgs),
    /// Run the aggregator: publishes devices, peaks and history for every reader
    Aggregate(AggregateArgs),
    /// Remove what dead processes left in /dev/shm
    ///
    /// The table of a killed aggregator stays: the next one takes history and peaks from it.
    Clean(CleanArgs),
    /// Start a made-up workload in real processes and watch it
    Demo(DemoArgs),
    /// Measure what tracking costs on this machine
    ///
    /// In turns, so that ratios hold on a busy machine: the least that an event can cost (the limit), an event
    /// with 1 000, 10 000 and 100 000 live allocations, a dispatch, a call while tracking is off, reading a row,
    /// and the same told and asked through a socket. Works in a namespace of its own and leaves nothing behind.
    ///
    /// Keys of --json: CASE_ns is what one costs; beside it CASE_p50_ns, _p99_ns, _p99_9_ns, _p99_99_ns and
    /// _max_ns of single calls; CASE_multiple_of_limit compares. Cases: limit, emit_exclusive, emit_shared
    /// (1 000 live), each with _10000 and _100000, dispatch_cached, dispatch_first, loop_alone, disabled,
    /// socket_send, row_read, socket_query. dispatch_cached_percent_of_5us (2us, 20us; dispatch_first) is what a
    /// loop with so much host work notices.
    Bench(BenchArgs),
    /// One process of the demo.
    #[command(hide = true)]
    DemoWorker(WorkerArgs),
    /// The last allocations that failed: why, who held what then, and what came before
    ///
    /// A running aggregator keeps the last 32 of the host with exact holders. Without one, only what the processes
    /// themselves still tell is known: what is not is "-" or null.
    Oom(OomArgs),
    /// Run a command with tracking on, and report at its end: peaks, and what was never freed
    ///
    /// Signals and the exit code pass through (128 + signal if it was killed), its input and output are not touched; the
    /// report goes to stderr. Of the processes in the namespace, those count that descend from the command. Others may
    /// watch the run meanwhile.
    Run(RunArgs),
    /// Check this machine: /dev/shm, segments, aggregator, driver, containers; and say what to do
    ///
    /// Changes nothing and opens no device. Exit codes: 0 all is well, 1 there are warnings, 2 something cannot work.
    Doctor(DoctorArgs),
}

/// `snapshot`
#[derive(Debug, Default, Args)]
pub struct SnapshotArgs {
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Also what each process has on each device (JSON has it always)
    #[arg(long, short)]
    pub processes: bool,
    /// Also every class, the kernels by type, and the peaks of each device
    #[arg(long, short)]
    pub detail: bool,
}

/// `allocations`
#[derive(Debug, Args)]
pub struct AllocationsArgs {
    /// Only this device: index, PCI address or chip id; may be repeated
    #[arg(long, value_name = "DEVICE")]
    pub device: Vec<DeviceSelector>,
    /// Only this process; may be repeated
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// Only this class: dram, trace, l1, l1_small, cb, kernel_application, kernel_fabric,
    /// kernel_dispatch, system_memory, or kernel for all three kinds of kernels; may be repeated
    #[arg(long, value_name = "CLASS")]
    pub class: Vec<ClassFilter>,
    /// Largest or oldest first
    #[arg(long, value_enum, default_value_t = SortBy::Size)]
    pub sort: SortBy,
    /// List at most so many single ones (subtotals are always of all)
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Order of single allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortBy {
    /// Largest first.
    Size,
    /// Oldest first.
    Age,
}

/// `programs`
#[derive(Debug, Args)]
pub struct ProgramsArgs {
    /// Only programs on this device: index, PCI address or chip id; may be repeated
    #[arg(long, value_name = "DEVICE")]
    pub device: Vec<DeviceSelector>,
    /// Only this process; may be repeated
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// `events`
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Go on with what happens from now on, also in new processes, until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// Only this process; may be repeated
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// One JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// `peak`
#[derive(Debug, Args)]
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
pub struct AggregateArgs {
    /// Write a summary to stderr this often, such as 10s or 500ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub stats_interval: Option<Duration>,
}

/// `clean`
#[derive(Debug, Args)]
pub struct CleanArgs {
    /// Not only the given namespace
    #[arg(long)]
    pub all_namespaces: bool,
    /// Say what would be removed, and remove nothing
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

/// `bench`
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// How long to measure: longer gives steadier figures
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
}

/// `demo`
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Devices of the mesh
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=128))]
    pub devices: u32,
    /// Processes
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: u32,
    /// The same seed gives the same workload
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Dispatches per second of each process
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: u32,
    /// End after so many seconds [default: until q or Ctrl-C]
    #[arg(long, value_name = "N")]
    pub seconds: Option<u64>,
}

/// `demo-worker`
#[derive(Clone, Debug, Args)]
pub struct WorkerArgs {
    /// Number of this worker, from 0
    #[arg(long)]
    pub worker: u32,
    /// Workers in all
    #[arg(long)]
    pub workers: u32,
    /// Devices of the mesh
    #[arg(long)]
    pub devices: u32,
    /// Seed of the workload
    #[arg(long)]
    pub seed: u64,
    /// Dispatches per second
    #[arg(long)]
    pub rate: u32,
    /// Process to end with
    #[arg(long)]
    pub parent: u32,
}

impl Cli {
    /// The namespace that was asked for, if any; an empty one asks for none.
    pub fn namespace(&self) -> Result<Option<Namespace>, tt_shm_os::NameError> {
        self.namespace.as_deref().filter(|name| !name.is_empty()).map(Namespace::new).transpose()
    }
}

/// `500ms`, `10s`, `2m`; a bare number is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| format!("{text:?} is not a time; try 10s or 500ms"))?;
    let millis = match unit {
        "ms" => Some(number),
        "s" | "" => number.checked_mul(1000),
        "m" => number.checked_mul(60_000),
        _ => return Err(format!("unknown unit {unit:?}; use ms, s or m")),
    };
    match millis {
        Some(millis) if millis > 0 => Ok(Duration::from_millis(millis)),
        _ => Err(format!("{text:?} is out of range")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("3"), Ok(Duration::from_secs(3)));
        for bad in ["", "0s", "s", "1h", "1.5s", "-1s", "99999999999999999999s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn namespaces_and_globals_go_anywhere() {
        let cli = Cli::try_parse_from(["tt-smi", "snapshot", "--json", "--namespace", "ci"]).unwrap();
        assert_eq!(cli.namespace().unwrap().unwrap().as_str(), "ci");
        assert!(matches!(cli.command, Some(Command::Snapshot(SnapshotArgs { json: true, .. }))));
        assert!(Cli::try_parse_from(["tt-smi", "allocations", "--class", "nope"]).is_err());
    }
}
