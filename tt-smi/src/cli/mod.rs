//! What the user typed. What it resolves to is [`crate::settings::Settings`] and the commands' own types.

mod about;
mod lists;
mod screen;
mod service;
mod show;
mod trial;
mod values;

pub use about::{CompletionsArgs, ConfigAction, ConfigArgs, ManArgs};
pub use lists::{AllocationsArgs, EventsArgs, OnlyArgs, OomArgs, ProgramsArgs, SortBy};
pub use screen::ScreenArgs;
pub use service::{AggregateArgs, CleanArgs, DoctorArgs, PeakArgs};
pub use show::{Format, ListArgs, OfficialArgs, ProcessSort, PsArgs, SnapshotArgs, WatchArgs};
pub use trial::{BenchArgs, DemoArgs, RunArgs, WorkerArgs};
pub use values::interval;

use anyhow::Context;
use clap::{Parser, Subcommand, ValueEnum};
use tt_shm_os::Namespace;

/// Exact, live memory of Tenstorrent accelerators, per process.
///
/// Reads shared memory only: it never opens a device and cannot disturb a workload. Without a command it
/// shows a live screen, or the snapshot table when stdout is not a terminal.
#[derive(Debug, Parser)]
#[command(name = "tt-smi", version, propagate_version = true, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// Look at the processes that were started with this TT_SHM_NAMESPACE [default: default]
    #[arg(long, global = true, env = tt_shm_os::NAMESPACE_ENV, value_name = "NS", hide_env_values = true)]
    #[arg(help_heading = EVERYWHERE)]
    pub namespace: Option<String>,
    /// When to use colours [default: auto]; NO_COLOR is honoured
    #[arg(long, global = true, value_enum, value_name = "WHEN", help_heading = EVERYWHERE)]
    pub color: Option<ColorChoice>,
    /// Without a command.
    #[command(flatten)]
    pub official: OfficialArgs,
    /// Options of the screen.
    #[command(flatten)]
    pub screen: ScreenArgs,
    /// What to do; a live screen if nothing is said
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Apart from a command's own options, so that those are together.
const EVERYWHERE: &str = "With every command";

const EXAMPLES: &str = "\
Examples:
  tt-smi                                  live screen
  tt-smi snapshot --detail                devices now, with kernels by type and peaks
  tt-smi snapshot --json | jq .devices    the same for scripts; unknown is null
  tt-smi ps --sort dram                   who uses most
  tt-smi allocations --device 0 --top 20  the largest live allocations on device 0
  tt-smi allocations --query 'class=kernel size>1MiB age>1h'
  tt-smi watch --interval 1s              a line of JSON each second
  tt-smi events --follow --pid 4242       what one process allocates, as it happens
  tt-smi run -- python3 train.py          its peaks, and what it never freed, at the end
  tt-smi oom                              why an allocation failed, and who held the memory
  tt-smi doctor                           whether this machine is set up, and what to do if not
  tt-smi bench                            what tracking costs on this machine, in 10 seconds
  tt-smi demo                             real processes with a made-up workload; needs no hardware

Exit codes: 0 success, 1 nothing could be read, 2 wrong usage. `doctor` has 1 for warnings and 2 for
what cannot work; `run` has that of its command.";

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
    /// The live screen, as without a command
    Top(ScreenArgs),
    /// Devices and processes as they are now
    Snapshot(SnapshotArgs),
    /// Snapshots as lines of JSON, one every so often
    Watch(WatchArgs),
    /// The devices: index, board, PCI address, chip id, capacities
    List(ListArgs),
    /// The processes: who they are, what they use, their peaks
    Ps(PsArgs),
    /// Live allocations: sums per device and class, then one by one
    Allocations(AllocationsArgs),
    /// Programs: binaries, circular buffers, dispatches, cache hits
    Programs(ProgramsArgs),
    /// What happened: the last events of each process, or with --follow all from now on
    Events(EventsArgs),
    /// Peaks: the most that was used on each device, when, and by whom
    Peak(PeakArgs),
    /// The last allocations that failed: why, who held what then, and what came before
    ///
    /// A running aggregator keeps the last 32 of the host with exact holders. Without one, only what the processes
    /// themselves still tell is known: what is not is "-" or null.
    Oom(OomArgs),
    /// Run a command with tracking on, and report its peaks and what it never freed
    ///
    /// Signals and the exit code pass through (128 + signal if it was killed), its input and output are not touched; the
    /// report goes to stderr. All that the command starts counts, however briefly it lives, and nothing else in the
    /// namespace. Others may watch the run meanwhile.
    Run(RunArgs),
    /// Run the aggregator: keeps peaks, history and failures while nobody looks
    ///
    /// Stays in the foreground until Ctrl-C or SIGTERM. While it runs, every command reads what it publishes: peaks of
    /// all processes together are exact, events per second are known, and failures keep who held what. Without it each
    /// command aggregates by itself, from when it is started.
    Aggregate(AggregateArgs),
    /// Check this machine (/dev/shm, segments, aggregator, driver), and say what to do
    ///
    /// Changes nothing and opens no device. Exit codes: 0 all is well, 1 there are warnings, 2 something cannot work.
    Doctor(DoctorArgs),
    /// Remove what dead processes left in /dev/shm
    ///
    /// Nobody who lives is disturbed. What other users left only root can remove. The table of a killed aggregator stays: the next one takes history and peaks from it.
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
    /// Manage the config file: write, show or find it
    Config(ConfigArgs),
    /// Completions for a shell, to stdout
    Completions(CompletionsArgs),
    /// The manual page, to stdout; or all of them, to a folder
    Man(ManArgs),
    /// One process of the demo.
    #[command(hide = true)]
    DemoWorker(WorkerArgs),
}

impl Cli {
    /// An error if options of the screen stand before a command that has no use for them.
    pub fn check(&self) -> Result<(), &'static str> {
        match self.command.is_some() && self.screen.is_any() {
            true => Err("options of the live screen go with `tt-smi` alone, or behind `top` and `demo`"),
            false => Ok(()),
        }
    }

    /// Whether what is asked for depends on the user's settings.
    pub fn wants_config(&self) -> bool {
        use Command::{Aggregate, Completions, Config, DemoWorker, Man};
        !matches!(&self.command, Some(Aggregate(_) | Config(_) | Completions(_) | Man(_) | DemoWorker(_)))
    }

    /// The namespace that was asked for, if any. An empty one is a mistake, such as a variable of a script that is not
    /// set: which namespace was meant, and `clean` to remove files of, is not for us to guess.
    pub fn namespace(&self) -> anyhow::Result<Option<Namespace>> {
        let Some(name) = self.namespace.as_deref() else { return Ok(None) };
        let origin = format!("--namespace or {}", tt_shm_os::NAMESPACE_ENV);
        let unset = tt_shm_os::NAMESPACE_ENV;
        anyhow::ensure!(
            !name.is_empty(),
            "{origin} is empty; give 1 to 32 of A-Z a-z 0-9 _ -, or leave out the option and unset {unset} \
             for namespace default"
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

    /// The help is at most 100 columns wide; what is wider would be broken in the middle of a table.
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
