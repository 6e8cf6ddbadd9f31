//! What the user typed. What it resolves to is [`crate::settings::Settings`] and the commands' own types.

mod about;
mod lists;
mod past;
mod report;
mod screen;
mod serve;
mod service;
mod show;
mod trial;
mod values;

pub use about::{CompletionsArgs, ConfigAction, ConfigArgs, ManArgs};
pub use lists::{
    AllocationsArgs, CoresArgs, DeviceArgs, EventsArgs, OnlyArgs, OomArgs, ProgramsArgs, SortBy,
};
pub use past::{DiffArgs, ReplayArgs, When};
pub use report::ReportArgs;
pub use screen::ScreenArgs;
pub use serve::ServeArgs;
pub use service::{AggregateArgs, BridgeArgs, CleanArgs, DoctorArgs, PeakArgs};
pub use show::{
    DeviceListArgs, Format, HistoryArgs, HistoryFormat, HistorySpan, LimitArgs, ListArgs, OfficialArgs,
    ProcessListArgs, ProcessSort, PsArgs, SnapshotArgs, WatchArgs, WatchFormat,
};
pub use trial::{
    AttachArgs, BenchArgs, DemoArgs, DetachArgs, EnvArgs, EnvFormat, RecordArgs, RunArgs, WorkerArgs,
};
pub use values::interval;

use anyhow::Context;
use clap::{Parser, Subcommand, ValueEnum};
use tt_shm_os::Namespace;

/// Live memory of Tenstorrent accelerators, per process.
///
/// Reads what processes report to shared memory, and never opens a device. Without a command it shows a
/// live screen, or the snapshot table when stdout is not a terminal.
#[derive(Debug, Parser)]
#[command(name = "tt-smi", version, propagate_version = true, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// Show the processes that run with this TT_SHM_NAMESPACE [default: default]
    #[arg(long, global = true, env = tt_shm_os::NAMESPACE_ENV, value_name = "NS", hide_env_values = true)]
    #[arg(help_heading = EVERYWHERE)]
    pub namespace: Option<String>,
    /// When to use colours [default: auto]; NO_COLOR is honoured
    #[arg(long, global = true, value_enum, value_name = "WHEN", help_heading = EVERYWHERE)]
    pub color: Option<ColorChoice>,
    /// Options of the official tool; they stand without a command.
    #[command(flatten)]
    pub official: OfficialArgs,
    /// Options of the screen.
    #[command(flatten)]
    pub screen: ScreenArgs,
    /// Command to run; the live screen if there is none
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Heading of the global options, so that a command's own options stay together.
const EVERYWHERE: &str = "Global options";

const EXAMPLES: &str = "\
Examples:
  tt-smi                                  live screen
  tt-smi snapshot --detail                devices now, with kernels by type and peaks
  tt-smi snapshot --json | jq .devices    the same for scripts; unknown values are null
  tt-smi ps --sort dram                   processes, largest DRAM use first
  tt-smi allocations --device 0 --top 20  the largest live allocations on device 0
  tt-smi allocations --query 'class=kernel size>1MiB age>1h'
  tt-smi watch --interval 1s              one line of JSON per second
  tt-smi events --follow --pid 4242       allocations of one process, live
  tt-smi run -- python3 train.py          peaks and leaks of a job, when it ends
  tt-smi oom                              why an allocation failed, and who held the memory
  tt-smi doctor                           check the set-up of this machine
  tt-smi bench                            cost of tracking on this machine (takes 10 seconds)
  tt-smi demo                             simulated workload; needs no hardware

Exit codes: 0 success, 1 nothing could be read, 2 wrong usage, 3 --fail-above is exceeded. `doctor`
exits with 1 for warnings and 2 for errors; `run` exits with the exit code of its command.";

/// When to use colours.
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
    /// Show the live screen; the default without a command
    Top(ScreenArgs),
    /// Print the current state of devices and processes
    Snapshot(SnapshotArgs),
    /// Print a snapshot at every interval, as JSON, CSV or a table
    Watch(WatchArgs),
    /// List devices: index, board, PCI address, chip id, capacities
    List(ListArgs),
    /// List processes: identity, memory in use, peaks
    Ps(PsArgs),
    /// List live allocations: sums per device and class, then each allocation
    Allocations(AllocationsArgs),
    /// List programs: binaries, circular buffers, dispatches, cache hits
    Programs(ProgramsArgs),
    /// Show the L1 of each core: what is there, what is free, and which core runs out first
    ///
    /// Buffers take the same addresses on every core; the memory of programs differs by core. Of programs, those that run
    /// or ran last are counted. What a process does not report (coordinates of cores, addresses) is "-" or null.
    Cores(CoresArgs),
    /// Print the latest events of each process, or with --follow new ones as they happen
    Events(EventsArgs),
    /// Show memory in use and telemetry over the last minute, hour or day
    ///
    /// A running aggregator records it; without one, the history begins when the command starts. Each line covers a
    /// quarter of a second of a minute, 15 s of an hour, 6 min of a day: the least, the most and the last that was used,
    /// and the most that the driver measured. JSON and CSV have the least and the last of that, too.
    History(HistoryArgs),
    /// Show the peak memory use of each device: how much, when, and by whom
    Peak(PeakArgs),
    /// Explain recent allocation failures: why, who held the memory, what came before
    ///
    /// A running aggregator keeps the last 32 failures of the host, and who held the memory at that moment. Without one,
    /// failures are read from the rings of the processes, and what these do not tell is "-" or null.
    Oom(OomArgs),
    /// Show a record as it was at a time: any command, with the figures of that time
    ///
    /// The recorded processes are rebuilt in a namespace of their own and aggregated like live ones, under a clock of
    /// their time. Nothing of this machine is shown: no device, no process, no telemetry.
    Replay(ReplayArgs),
    /// Compare what two records, or two times of one, hold: sums, then names
    Diff(DiffArgs),
    /// Run a command with tracking on, then report its peaks and what it never freed
    ///
    /// Signals, input, output and the exit code (128 + signal if it was killed) pass through unchanged; the report goes
    /// to stderr. It covers every process that the command starts, however short-lived, and nothing else in the
    /// namespace. The run can be watched from other terminals meanwhile.
    Run(RunArgs),
    /// Record every event of every process to a file, until Ctrl-C or while a command runs
    ///
    /// The record has what is needed to see any moment again: events, what was live, names, devices, who the processes
    /// are, telemetry. It can be read up to its last second however the recorder ended. What was overwritten before it
    /// could be read is counted.
    Record(RecordArgs),
    /// Print the environment that makes a job report, for jobs that `run` cannot start
    Env(EnvArgs),
    /// Make a running tt-metal job report, by loading the tap into it
    ///
    /// For a job that was started without `run` or `env`. Stops one of its threads for some milliseconds, at a point where
    /// it is in the middle of nothing, and lets it load the library; the job goes on whatever happens, also if tt-smi is
    /// killed meanwhile. Needs the right to trace the process: the same user where ptrace_scope is 0, else root.
    Attach(AttachArgs),
    /// Stop the reports of a job that has the tap; its hooks stay, and only forward
    Detach(DetachArgs),
    /// Write a record as one page that a browser shows without a network
    ///
    /// The page has the time line with zoom, peaks with what they were made of, what was never freed, failures, programs
    /// and maps of the memory, and says which figures are exact. It gets the permissions of the record: names and command
    /// lines are in it.
    Report(ReportArgs),
    /// Run the aggregator daemon, which records peaks, history and failures
    ///
    /// Stays in the foreground until Ctrl-C or SIGTERM. While it runs, every command reads what it publishes: peaks over
    /// several processes are exact, event rates are known, and failures record who held the memory. Without it, each
    /// command aggregates by itself, beginning when it starts.
    Aggregate(AggregateArgs),
    /// Serve metrics, snapshots and events over HTTP, for Prometheus and others
    ///
    /// Stays in the foreground until Ctrl-C or SIGTERM. Reads what a running aggregator publishes, and needs no privileges;
    /// without an aggregator it aggregates what this user may read. Read-only, and bounded in clients, requests and series.
    Serve(ServeArgs),
    /// Serve clients of the proof of concept's socket, as processes like any other
    ///
    /// Stays in the foreground until Ctrl-C or SIGTERM. What a client reports becomes a segment in shared memory that every
    /// command shows, and that is gone with its connection. Its questions are answered from shared memory; what is not
    /// known is 0 there. Only clients of this user and of root are served.
    Bridge(BridgeArgs),
    /// Check this machine (/dev/shm, segments, aggregator, driver) and suggest fixes
    ///
    /// Changes nothing and opens no device. Exit codes: 0 no problems, 1 warnings, 2 errors.
    Doctor(DoctorArgs),
    /// Remove the files that dead processes left in /dev/shm
    ///
    /// Running processes are not affected. Only root can remove the files of other users. The table of a killed aggregator
    /// is kept: the next aggregator takes over its history and peaks.
    Clean(CleanArgs),
    /// Simulate a workload in real processes and watch it; needs no hardware
    Demo(DemoArgs),
    /// Measure what tracking costs on this machine
    ///
    /// Measures, in turn so that ratios hold on a busy machine: the least that an event can cost (the limit), an event
    /// with 1 000, 10 000 and 100 000 live allocations, a dispatch, a call while tracking is off, reading a row, and,
    /// for comparison, sending an event and asking for a row through a socket. Uses a namespace of its own and
    /// leaves nothing behind.
    ///
    /// Keys of --json: CASE_ns is the mean cost of a call; CASE_p50_ns, _p99_ns, _p99_9_ns, _p99_99_ns and _max_ns are
    /// percentiles of single calls; CASE_multiple_of_limit is the ratio to the limit. Cases: limit, emit_exclusive, emit_shared
    /// (1 000 live), each with _10000 and _100000, dispatch_cached, dispatch_first, loop_alone, disabled,
    /// socket_send, row_read, socket_query. dispatch_cached_percent_of_5us (2us, 20us;
    /// dispatch_first) is the slowdown of a loop with that much host work per dispatch.
    Bench(BenchArgs),
    /// Manage the config file: write, show or find it
    Config(ConfigArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one page per command into a folder
    Man(ManArgs),
    /// One process of the demo.
    #[command(hide = true)]
    DemoWorker(WorkerArgs),
}

impl Cli {
    /// Refuses screen options in front of a command that does not use them.
    pub fn check(&self) -> Result<(), &'static str> {
        match self.command.is_some() && self.screen.is_any() {
            true => {
                Err("options of the live screen can be used without a command, or after `top` and `demo`")
            }
            false => Ok(()),
        }
    }

    /// Whether the command depends on the user's settings.
    pub fn wants_config(&self) -> bool {
        use Command::{Aggregate, Completions, Config, DemoWorker, Man};
        !matches!(&self.command, Some(Aggregate(_) | Config(_) | Completions(_) | Man(_) | DemoWorker(_)))
    }

    /// The namespace from the option or the environment. An empty one is refused: it is most likely an unset variable
    /// of a script, and `clean` must not guess whose files to remove.
    pub fn namespace(&self) -> anyhow::Result<Option<Namespace>> {
        let Some(name) = self.namespace.as_deref() else { return Ok(None) };
        let origin = format!("--namespace or {}", tt_shm_os::NAMESPACE_ENV);
        let unset = tt_shm_os::NAMESPACE_ENV;
        anyhow::ensure!(
            !name.is_empty(),
            "{origin} is empty; give 1 to 32 of A-Z a-z 0-9 _ -, or omit the option and unset {unset} \
             to use the namespace default"
        );
        Ok(Some(Namespace::new(name).context(origin)?))
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

    /// The help is at most 100 columns wide; longer lines would wrap in the middle of a table.
    #[test]
    fn examples_fit_into_the_help_and_are_there() {
        for command in std::iter::once(&Cli::command()).chain(Cli::command().get_subcommands()) {
            let name = command.get_name();
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            text.lines().for_each(|line| assert!(line.chars().count() <= 100, "{name}: {line}"));
            // Beside the name in the list of commands.
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(about.chars().count() <= 85, "{name}: {about}");
            let is_plain = ["top", "list", "help"].contains(&name) || command.is_hide_set();
            assert!(is_plain || text.contains("Examples:"), "{name} has no examples");
        }
    }

    #[test]
    fn options_of_the_screen_go_with_the_screen() {
        let check = |arguments: &[&str]| Cli::try_parse_from(arguments).unwrap().check();
        assert!(check(&["tt-smi", "--readonly", "--device", "0", "--view", "charts"]).is_ok());
        assert!(check(&["tt-smi", "top", "--theme", "safe", "--interval", "100ms", "--ascii"]).is_ok());
        assert!(check(&["tt-smi", "demo", "--readonly"]).is_ok());
        assert!(check(&["tt-smi", "--readonly", "snapshot"]).is_err());
    }

    #[test]
    fn every_command_and_option_says_what_it_does() {
        let mut all = vec![Cli::command()];
        while let Some(command) = all.pop() {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name} has no text");
            for argument in command.get_arguments() {
                let text = argument.get_help().or(argument.get_long_help());
                assert!(text.is_some(), "{name} {} has no text", argument.get_id());
            }
            all.extend(command.get_subcommands().filter(|inner| !inner.is_hide_set()).cloned());
        }
    }

    #[test]
    fn options_of_the_official_tool() {
        let official = |arguments: &[&str]| {
            Cli::try_parse_from([&["tt-smi"], arguments].concat()).map(|cli| cli.official)
        };
        let list = official(&["-ls"]).unwrap();
        assert!(list.list && list.is_any());
        let reset = official(&["-r", "0,1"]).unwrap().reset.unwrap();
        assert_eq!(reset, ["0", "1"]);
        assert!(official(&["-s", "-f", "x.json"]).unwrap().filename.is_some());
        assert!(official(&["-f", "x.json"]).is_err());
        assert!(!official(&["snapshot", "--json"]).unwrap().is_any());
    }

    #[test]
    fn namespaces_and_globals_go_anywhere() {
        let cli = Cli::try_parse_from(["tt-smi", "snapshot", "--json", "--namespace", "ci"]).unwrap();
        assert_eq!(cli.namespace().unwrap().unwrap().as_str(), "ci");
        assert!(matches!(cli.command, Some(Command::Snapshot(SnapshotArgs { json: true, .. }))));
        assert!(Cli::try_parse_from(["tt-smi", "allocations", "--class", "nope"]).is_err());
        let empty = Cli::try_parse_from(["tt-smi", "clean", "--namespace="]).unwrap().namespace();
        assert!(empty.unwrap_err().to_string().contains("is empty; give 1 to 32"));
    }
}
