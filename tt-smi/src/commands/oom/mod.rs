//! `tt-smi oom`: recent allocation failures, who held the memory, and what came before.

pub(crate) mod json;
mod rings;
mod text;

use std::cmp::Reverse;
use std::io::Write;

use anyhow::Context;
use tt_shm_os::{Namespace, boot_id};
use tt_shm_reader::{Table, TableSnapshot, device_flags};

use crate::cli::OomArgs;
use crate::directory::Directory;
use crate::model::{Clock, Failure, Model, Problem, directory};
use crate::model::{Origin, Reading};
use crate::output::json::write as write_json;
use crate::segments::Segments;
use crate::select::DeviceSelector;
use crate::settings::Settings;
use crate::source::Source;
use crate::unread::Unread;

pub(crate) fn run(args: &OomArgs, settings: &Settings) -> anyhow::Result<()> {
    let reading = Source::open(&settings.namespace)?.read()?;
    let mut segments = Segments::open(&settings.namespace).context("cannot list the segments")?;
    segments.compare(&reading.snapshot);
    let directory = directory(&reading.snapshot);
    crate::select::refuse_ambiguous(&args.on.device, &directory)?;
    let clock = Clock::now();
    let mut failures = Failure::all(&reading.snapshot, &directory, clock);
    if reading.origin == Origin::Embedded {
        // A killed aggregator left its table behind.
        failures = merge(left_behind(&settings.namespace, &directory, clock), failures);
    }
    let most = args.last as usize;
    let found = segments.live.iter().chain(&segments.dead);
    let found = found.flat_map(|segment| rings::failures(segment, &directory, clock, most)).collect();
    let mut failures = merge(failures, found);
    failures.sort_by_key(|failure| (Reverse(failure.time), failure.key));
    let known = failures.len();
    failures.retain(|failure| is_meant(&args.on.device, failure, &directory));
    refuse_nobodys_device(&args.on.device, &failures, &directory)?;
    failures.retain(|failure| args.query.matches(failure));
    failures.truncate(most);
    // A process whose file cannot be found may have held memory, and failed, too.
    if is_incomplete(&reading.snapshot) || segments.unread.is_nameless {
        failures.iter_mut().for_each(Failure::doubt);
    }
    let errors = errors(&reading, &segments.unread);
    let is_part = !(args.on.device.is_empty() && args.query.is_empty());
    let report = Report { failures, known, is_part, clock, origin: reading.origin, errors };
    let mut out = super::stdout();
    if args.json {
        write_json(&mut out, &json::OomJson::new(&report, settings.namespace.as_str()))?;
    } else {
        text::write(&mut out, &report, settings.paint)?;
    }
    out.flush()?;
    report.errors.iter().for_each(|error| eprintln!("tt-smi: {error}"));
    // Checked last: a table, or a process that died, may have provided something.
    let unread = report.known == 0 && segments.live.is_empty() && !segments.unread.is_empty();
    anyhow::ensure!(!unread, "nothing could be read");
    Ok(())
}

/// The failures to print.
pub(super) struct Report {
    /// Newest first.
    pub(super) failures: Vec<Failure>,
    /// Number of known failures on all devices.
    pub(super) known: usize,
    /// Only some were asked for.
    pub(super) is_part: bool,
    pub(super) clock: Clock,
    pub(super) origin: Origin,
    /// What could not be read: failures and holders there are missing.
    pub(super) errors: Vec<String>,
}

/// What the table's aggregator could not read, then what this process could not. An embedded aggregation has read the
/// same files.
fn errors(reading: &Reading, unread: &Unread) -> Vec<String> {
    let mut errors = match reading.origin {
        Origin::Table { .. } => Model::new(reading).problems.iter().map(Problem::line).collect(),
        Origin::Embedded => Vec::new(),
    };
    errors.extend(unread.errors());
    errors
}

fn left_behind(namespace: &Namespace, directory: &Directory, clock: Clock) -> Vec<Failure> {
    let table = Table::open(namespace).ok().filter(|table| boot_id() == Some(table.header().boot_id));
    table.map(|table| Failure::all(&table.snapshot(), directory, clock)).unwrap_or_default()
}

/// Adds new failures; for one that both lists have, `more` may know the holders.
fn merge(mut failures: Vec<Failure>, more: Vec<Failure>) -> Vec<Failure> {
    for failure in more {
        match failures.iter_mut().find(|known| known.key == failure.key) {
            None => failures.push(failure),
            Some(known) if known.holders.is_none() => known.holders = failure.holders,
            Some(_) => {}
        }
    }
    failures
}

fn is_meant(selectors: &[DeviceSelector], failure: &Failure, directory: &Directory) -> bool {
    let is_meant = |selector: &DeviceSelector| {
        // A device that no process uses any more has no index.
        let index = failure.device;
        selector.is_chip(failure.chip_id)
            || index.is_some_and(|index| selector.meant(directory).contains(&index))
    };
    selectors.is_empty() || selectors.iter().any(is_meant)
}

/// Refuses a selector that matches neither a device nor a failure.
fn refuse_nobodys_device(
    selectors: &[DeviceSelector],
    failures: &[Failure],
    directory: &Directory,
) -> anyhow::Result<()> {
    if failures.is_empty() && !selectors.is_empty() {
        crate::select::select(selectors, directory)?;
    }
    Ok(())
}

/// Whether a process that could not be read may hold memory on a device.
fn is_incomplete(snapshot: &TableSnapshot) -> bool {
    snapshot.devices.iter().any(|(_, stats)| stats.flags & device_flags::INCOMPLETE != 0)
}
