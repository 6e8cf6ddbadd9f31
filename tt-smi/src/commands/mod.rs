//! One file per command.

mod aggregate;
mod allocations;
mod bench;
mod clean;
mod completions;
mod config;
mod demo;
mod doctor;
mod events;
mod list;
mod man;
mod official;
mod oom;
mod peak;
mod programs;
mod ps;
mod run;
mod snapshot;
mod top;
mod watch;

pub(crate) use clean::remove_dead;

use anyhow::Context;

use crate::cli::{Cli, Command, ScreenArgs, SnapshotArgs};
use crate::directory::Directory;
use crate::model::Model;
use crate::output::units::plural;
use crate::segments::Segments;
use crate::settings::Settings;
use crate::source::Source;

/// Runs a command; the live screen if there is none.
pub fn run(cli: Cli, settings: &Settings) -> anyhow::Result<()> {
    let Cli { command, official, screen, .. } = cli;
    if official.is_any() {
        return official::run(&official, command.is_some(), settings);
    }
    match command {
        None => top_or_snapshot(&screen, settings),
        Some(Command::Top(args)) => top_or_snapshot(&args, settings),
        Some(Command::Snapshot(args)) => snapshot::run(&args, settings),
        Some(Command::Watch(args)) => watch::run(&args, settings),
        Some(Command::List(args)) => list::run(&args, settings),
        Some(Command::Ps(args)) => ps::run(&args, settings),
        Some(Command::Allocations(args)) => allocations::run(&args, settings),
        Some(Command::Programs(args)) => programs::run(&args, settings),
        Some(Command::Events(args)) => events::run(&args, settings),
        Some(Command::Peak(args)) => peak::run(&args, settings),
        Some(Command::Oom(args)) => oom::run(&args, settings),
        Some(Command::Run(args)) => run::run(&args, settings),
        Some(Command::Doctor(args)) => doctor::run(&args, settings),
        Some(Command::Aggregate(args)) => aggregate::run(&args, settings),
        Some(Command::Clean(args)) => clean::run(&args, settings),
        Some(Command::Bench(args)) => bench::run(&args, settings),
        Some(Command::Demo(args)) => demo::run(&args, settings),
        Some(Command::Config(args)) => config::run(&args, settings),
        Some(Command::Completions(args)) => completions::run(&args),
        Some(Command::Man(args)) => man::run(&args),
        Some(Command::DemoWorker(args)) => crate::demo::worker::run(&args, settings),
    }
}

/// Where nobody looks, a screen is of no use.
fn top_or_snapshot(args: &ScreenArgs, settings: &Settings) -> anyhow::Result<()> {
    match settings.stdout_is_terminal {
        true => top::run(args, settings),
        false => {
            if args.is_any() {
                eprintln!(
                    "tt-smi: stdout is not a terminal: printing the snapshot table and ignoring the options of the live screen"
                );
            }
            snapshot::run(&SnapshotArgs::default(), settings)
        }
    }
}

/// Devices and processes as they are now, with what the system knows of the processes.
fn model_now(settings: &Settings) -> anyhow::Result<Model> {
    let mut model = Model::new(&Source::open(&settings.namespace)?.read()?);
    model.look_up(&mut crate::procinfo::Cache::default());
    Ok(model)
}

/// An error if there is something, and none of it can be read. Asked after all that is known was written.
fn ensure_readable(model: &Model) -> anyhow::Result<()> {
    let unread = model.refused + model.hidden;
    anyhow::ensure!(
        unread == 0 || !model.processes.is_empty(),
        "nothing could be read: {} left out",
        plural(unread, "segment")
    );
    Ok(())
}

/// The segments for a command that lists what is in them, and their devices.
fn look(settings: &Settings) -> anyhow::Result<(Segments, Directory)> {
    let mut segments = Segments::open(&settings.namespace).context("cannot list the segments")?;
    let table = crate::source::table_snapshot(&settings.namespace);
    table.iter().for_each(|table| segments.compare(table));
    segments.warn_dead()?;
    let directory = segments.directory(table.as_ref());
    Ok((segments, directory))
}

/// What to add to "nothing is there", if that is since nobody reports.
fn why_nothing_listed(segments: &Segments) -> &'static str {
    match segments.live.is_empty() {
        true => ": no process reports here (`tt-smi doctor` says what to do)",
        false => "",
    }
}

/// Stdout for a command's data: locked, and buffered until it is flushed.
fn stdout() -> std::io::BufWriter<std::io::StdoutLock<'static>> {
    std::io::BufWriter::new(std::io::stdout().lock())
}
