//! One file per command.

mod aggregate;
mod allocations;
mod clean;
mod demo;
mod events;
mod peak;
mod programs;
mod snapshot;
mod top;

pub(crate) use clean::remove_dead;

use crate::cli::{Command, SnapshotArgs};
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
        Some(Command::Demo(args)) => demo::run(&args, settings),
        Some(Command::DemoWorker(args)) => crate::demo::worker::run(&args, settings),
    }
}

/// Stdout for a command's data: locked, and buffered until it is flushed.
fn stdout() -> std::io::BufWriter<std::io::StdoutLock<'static>> {
    std::io::BufWriter::new(std::io::stdout().lock())
}
