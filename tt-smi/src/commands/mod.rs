//! One file per command.

mod aggregate;
mod allocations;
mod bench;
mod clean;
mod demo;
mod doctor;
mod events;
mod oom;
mod peak;
mod programs;
mod run;
mod snapshot;
mod top;

pub(crate) use clean::remove_dead;
pub use doctor::args::DoctorArgs;
pub use oom::args::OomArgs;
pub use run::args::RunArgs;

use anyhow::Context;

use crate::cli::{Command, SnapshotArgs};
use crate::directory::Directory;
use crate::segments::Segments;
use crate::settings::Settings;

/// Runs a command; the live screen if there is none.
pub fn run(command: Option<Command>, settings: &Settings) -> anyhow::Result<()> {
    match command {
        None if settings.stdout_is_terminal => top::run(settings),
        None => snapshot::run(&SnapshotArgs::default(), settings),
        Some(Command::Snapshot(args)) => snapshot::run(&args, settings),
        Some(Command::Allocations(args)) => allocations::run(&args, settings),
        Some(Command::Programs(args)) => programs::run(&args, settings),
        Some(Command::Events(args)) => events::run(&args, settings),
        Some(Command::Peak(args)) => peak::run(&args, settings),
        Some(Command::Aggregate(args)) => aggregate::run(&args, settings),
        Some(Command::Clean(args)) => clean::run(&args, settings),
        Some(Command::Bench(args)) => bench::run(&args, settings),
        Some(Command::Demo(args)) => demo::run(&args, settings),
        Some(Command::DemoWorker(args)) => crate::demo::worker::run(&args, settings),
        Some(Command::Oom(args)) => oom::run(&args, settings),
        Some(Command::Run(args)) => run::run(&args, settings),
        Some(Command::Doctor(args)) => doctor::run(&args, settings),
    }
}

/// The segments for a command that lists what is in them, and their devices. Says on stderr what is left out.
fn look(settings: &Settings) -> anyhow::Result<(Segments, Directory)> {
    let segments = Segments::open(&settings.namespace).context("cannot list the segments")?;
    segments.warn()?;
    let table = crate::source::table_snapshot(&settings.namespace);
    let directory = segments.directory(table.as_ref());
    Ok((segments, directory))
}

/// Stdout for a command's data: locked, and buffered until it is flushed.
fn stdout() -> std::io::BufWriter<std::io::StdoutLock<'static>> {
    std::io::BufWriter::new(std::io::stdout().lock())
}
