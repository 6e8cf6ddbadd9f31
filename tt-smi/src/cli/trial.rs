//! Arguments of the commands that start processes, or change them: `run`, `record`, `env`, `attach`, `detach`, `demo`, `bench`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::ScreenArgs;
use super::values::{duration, size};

/// `bench`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi bench
  tt-smi bench --json --seconds 30 | jq .emit_shared_ns

JSON is described by docs/schema/bench.json.")]
pub struct BenchArgs {
    /// JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Seconds to measure; more give steadier figures
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
}

/// `demo`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi demo                                   four devices, three processes; q quits
  tt-smi --namespace try demo --devices 32 --workers 8 --rate 1000
  tt-smi --namespace try snapshot --detail      from another terminal")]
pub struct DemoArgs {
    /// Number of simulated devices
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=128))]
    pub devices: u32,
    /// Number of processes
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: u32,
    /// Random seed; the same seed gives the same workload
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Dispatches per second and process
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: u32,
    /// Exit after N seconds [default: run until q or Ctrl-C]
    #[arg(long, value_name = "N")]
    pub seconds: Option<u64>,
    /// Options of the screen.
    #[command(flatten)]
    pub screen: ScreenArgs,
}

/// `demo-worker`
#[derive(Clone, Debug, Args)]
pub struct WorkerArgs {
    /// Number of this worker, from 0
    #[arg(long)]
    pub worker: u32,
    /// Total number of workers
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
    /// Parent process; the worker ends when it does
    #[arg(long)]
    pub parent: u32,
}

/// `run`
#[derive(Debug, Args)]
#[command(
    override_usage = "tt-smi run [OPTIONS] [--] <COMMAND>...",
    after_help = "\
Examples:
  tt-smi run -- python3 train.py --steps 10
  tt-smi run --json report.json -- ./test && jq '.processes[].never_freed' report.json

JSON is described by docs/schema/run.json. Exit codes: that of the command, 128 + signal if it was
killed, 127 if it was not found, 126 if it could not be started."
)]
pub struct RunArgs {
    /// Also write the report as JSON to FILE (mode 0600, replaced atomically); - is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Do not load the tap: only programs that report by themselves are seen
    #[arg(long)]
    pub no_tap: bool,
    /// Switch off the statistics that tt-metal keeps by itself (TT_METAL_SHM_TRACKING_DISABLED=1)
    #[arg(long)]
    pub no_region: bool,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `record`
#[derive(Debug, Args)]
#[command(
    override_usage = "tt-smi record [OPTIONS] [-- <COMMAND>...]",
    after_help = "\
Examples:
  tt-smi record                                  everything here, until Ctrl-C
  tt-smi record -o step.ttrec -- python3 train.py --steps 10
  tt-smi record -o night.ttrec --rotate 1GiB --duration 8h
                                                 night-0001.ttrec and so on, each readable alone

The file has mode 0600: it holds names and command lines. Exit codes: that of the command, else 0;
1 if the file could not be written."
)]
pub struct RecordArgs {
    /// Write to FILE [default: tt-smi-HOST-TIME.ttrec in this folder]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,
    /// Stop after this time, such as 90s or 2h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Begin a new file after this size, such as 1GiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub rotate: Option<u64>,
    /// Do not load the tap into COMMAND: only programs that report by themselves are seen
    #[arg(long)]
    pub no_tap: bool,
    /// A command to run meanwhile, and its arguments; the recording ends with it
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `env`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  eval \"$(tt-smi env)\"; python3 train.py        in this shell, for everything that it starts
  tt-smi env --format docker                     options for `docker run`
  tt-smi env --format systemd                    lines for a unit

Whatever is started with these variables reports to shared memory, and `tt-smi` in another terminal
shows it. Children inherit them: workers and launchers need nothing else. `sudo` cannot keep
LD_PRELOAD (use `sudo tt-smi run -- COMMAND`), `mpirun` passes them on with -x. Programs linked with
musl do not start with them.")]
pub struct EnvArgs {
    /// How the lines are written
    #[arg(long, value_enum, default_value = "shell")]
    pub format: EnvFormat,
}

/// How `env` writes its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum EnvFormat {
    /// For a shell
    Shell,
    /// Options for `docker run`, with the mounts that they need
    Docker,
    /// For the `Service` section of a systemd unit
    Systemd,
}

/// `attach`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi attach 4242                             asks first, and says what will be done
  tt-smi attach --yes $(pgrep -f train.py)       in a script

What the job holds already is listed with its next allocation or free on each device. Exit codes: 0
attached, or it reports already; 1 refused, with the reason, and the job goes on as it was.")]
pub struct AttachArgs {
    /// Process that uses tt-metal and does not report
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: u32,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

/// `detach`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi detach 4242                             asks first
  tt-smi attach 4242                             reports again, from what it holds then")]
pub struct DetachArgs {
    /// Process that reports by the tap
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: u32,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}
