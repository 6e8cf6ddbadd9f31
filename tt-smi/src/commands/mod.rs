//! The commands, one file or folder each.

mod aggregate;
pub(crate) mod allocations;
mod attach;
mod bench;
mod bridge;
mod clean;
mod completions;
mod config;
pub(crate) mod cores;
mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
mod env;
mod events;
pub(crate) mod history;
pub(crate) mod list;
mod man;
mod official;
pub(crate) mod oom;
pub(crate) mod peak;
pub(crate) mod programs;
pub(crate) mod ps;
mod record;
mod replay;
mod report;
pub(crate) mod run;
mod serve;
mod snapshot;
mod top;
mod watch;

pub(crate) use clean::remove_dead;

use std::io::{self, Write};

use anyhow::Context;

use crate::cli::{Cli, Command, ScreenArgs, SnapshotArgs};
use crate::directory::Directory;
use crate::model::Reading;
use crate::model::{Model, directory};
use crate::output::paint::Paint;
use crate::output::table::write_problems;
use crate::procinfo::Cache;
use crate::query::Query;
use crate::segments::Segments;
use crate::select::{DeviceSelector, select};
use crate::settings::Settings;
use crate::source::Source;
use crate::units::plural;

/// Runs a command, or the live screen if there is none.
pub(crate) fn run(cli: Cli, settings: &Settings) -> anyhow::Result<()> {
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
        Some(Command::Cores(args)) => cores::run(&args, settings),
        Some(Command::Events(args)) => events::run(&args, settings),
        Some(Command::History(args)) => history::run(&args, settings),
        Some(Command::Peak(args)) => peak::run(&args, settings),
        Some(Command::Oom(args)) => oom::run(&args, settings),
        Some(Command::Replay(args)) => replay::run(&args, settings),
        Some(Command::Diff(args)) => diff::run(&args, settings),
        Some(Command::Run(args)) => run::run(&args, settings),
        Some(Command::Record(args)) => record::run(&args, settings),
        Some(Command::Report(args)) => report::run(&args),
        Some(Command::Env(args)) => env::run(&args, settings),
        Some(Command::Attach(args)) => attach::attach(&args, settings),
        Some(Command::Detach(args)) => attach::detach(&args),
        Some(Command::Doctor(args)) => doctor::run(&args, settings),
        Some(Command::Aggregate(args)) => aggregate::run(&args, settings),
        Some(Command::Serve(args)) => serve::run(&args, settings),
        Some(Command::Bridge(args)) => bridge::run(&args, settings),
        Some(Command::Clean(args)) => clean::run(&args, settings),
        Some(Command::Bench(args)) => bench::run(&args, settings),
        Some(Command::Demo(args)) => demo::run(&args, settings),
        Some(Command::Config(args)) => config::run(&args, settings),
        Some(Command::Completions(args)) => completions::run(&args),
        Some(Command::Man(args)) => man::run(&args),
        Some(Command::DemoWorker(args)) => crate::demo::worker::run(&args, settings),
    }
}

/// The screen, or the snapshot table when stdout is not a terminal.
fn top_or_snapshot(args: &ScreenArgs, settings: &Settings) -> anyhow::Result<()> {
    match settings.stdout_is_terminal {
        true => top::run(args, settings),
        false => {
            if args.is_any() {
                eprintln!(
                    "tt-smi: stdout is not a terminal: printing the snapshot table; options of the live screen are ignored"
                );
            }
            snapshot::run(&SnapshotArgs::default(), settings)
        }
    }
}

/// The current state of the selected devices and their processes.
struct Now {
    model: Model,
    /// Segments that were skipped, if nothing could be read at all.
    unread: u64,
}

impl Now {
    /// Reads it, with what /proc says about the processes.
    fn read(settings: &Settings, devices: &[DeviceSelector]) -> anyhow::Result<Now> {
        let mut now = Now::of(&Source::open(&settings.namespace)?.read()?, devices)?;
        now.model.look_up(&mut Cache::default());
        Ok(now)
    }

    /// Takes it from a reading. Fails if the reading has none of these devices.
    fn of(reading: &Reading, devices: &[DeviceSelector]) -> anyhow::Result<Now> {
        let mut model = Model::new(reading);
        let is_nothing = model.processes.is_empty();
        let unread = if is_nothing { model.refused + model.hidden } else { 0 };
        if !devices.is_empty() {
            let selected = select(devices, &directory(&reading.snapshot))?;
            model.keep(|device| selected.contains(&device.index));
        }
        Ok(Now { model, unread })
    }

    /// Keeps the devices that match. Returns whether there were devices and none of them matches.
    fn match_devices(&mut self, query: &Query) -> bool {
        let is_any = !self.model.devices.is_empty();
        self.model.keep(|device| query.matches(device));
        is_any && self.model.devices.is_empty()
    }

    /// Writes the table of its devices, or that no device matches.
    fn write_devices(
        &self,
        out: &mut dyn Write,
        paint: Paint,
        none_matches: bool,
        table: impl FnOnce(&mut dyn Write, &Model, Paint) -> io::Result<()>,
    ) -> io::Result<()> {
        if !none_matches {
            return table(out, &self.model, paint);
        }
        writeln!(out, "No matching devices.")?;
        write_problems(out, &self.model, paint)
    }

    /// Fails if there are segments and none could be read. Call it after printing what is known.
    fn ensure_readable(&self) -> anyhow::Result<()> {
        let skipped = plural(self.unread, "segment");
        anyhow::ensure!(self.unread == 0, "nothing could be read: {skipped} skipped");
        Ok(())
    }
}

/// The segments and their devices, for commands that list what is in segments.
fn look(settings: &Settings) -> anyhow::Result<(Segments, Directory)> {
    let mut segments = Segments::open(&settings.namespace).context("cannot list the segments")?;
    let table = crate::source::table_snapshot(&settings.namespace);
    table.iter().for_each(|table| segments.compare(table));
    segments.warn_dead()?;
    let directory = segments.directory(table.as_ref());
    Ok((segments, directory))
}

/// The reason to add to an empty listing, if no process reports.
fn why_nothing_listed(segments: &Segments) -> &'static str {
    match segments.live.is_empty() {
        true => ": no process reports in this namespace (see `tt-smi doctor`)",
        false => "",
    }
}

/// Locked and buffered stdout for a command's data.
fn stdout() -> io::BufWriter<io::StdoutLock<'static>> {
    io::BufWriter::new(io::stdout().lock())
}
