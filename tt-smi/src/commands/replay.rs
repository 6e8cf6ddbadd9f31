//! `tt-smi replay`: every command over a record, at any of its times.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use tt_shm_record::{MergedEvent, Record};
use tt_shm_replay::Replay;

use crate::cli::{Cli, Command, ReplayArgs, When};
use crate::exit::Usage;
use crate::model::rfc3339;
use crate::procinfo;
use crate::settings::Settings;

/// A replay that takes longer than this says how far it is.
const PATIENCE: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &ReplayArgs, settings: &Settings) -> anyhow::Result<()> {
    // Before anything is read: a wrong command would be noticed late.
    let cli = command(&args.command)?;
    let record = open(&args.file)?;
    let people = procinfo::recorded_people(&record);
    let mut replay =
        Replay::open(record).with_context(|| format!("cannot replay {}", args.file.display()))?;
    let time = match &args.at {
        Some(When::Peak) => peak(&mut replay)?,
        at => resolve(at.as_ref(), replay.record())?,
    };
    seek(&mut replay, time)?;
    procinfo::replay_as(people);
    let mut settings = settings.clone();
    settings.namespace = replay.namespace().clone();
    tell(&replay);
    super::run(cli, &settings)
}

/// Opens a record, and says on stderr what is wrong with it.
pub(super) fn open(file: &Path) -> anyhow::Result<Record> {
    let record = Record::open(file)?;
    if let Some(damage) = record.damage() {
        eprintln!("tt-smi: {}: {damage}", file.display());
    }
    let (lost, gaps) = (record.totals().lost, record.totals().gaps);
    if lost > 0 {
        eprintln!("tt-smi: {}: {lost} events are missing in {gaps} gaps", file.display());
    }
    Ok(record)
}

/// The command to run: one that only looks.
fn command(typed: &[OsString]) -> anyhow::Result<Cli> {
    let name = [OsString::from("tt-smi")];
    let typed = if typed.is_empty() { &[OsString::from("snapshot")] } else { typed };
    let cli = Cli::try_parse_from(name.iter().chain(typed)).unwrap_or_else(|error| error.exit());
    let refused = |what: &str| {
        Err(Usage(format!(
            "{what} cannot be replayed; give snapshot, list, ps, allocations, programs, cores, events, history, peak or \
             oom"
        ))
        .into())
    };
    match &cli.command {
        Some(Command::Events(args)) if args.follow => refused("`events --follow`"),
        Some(Command::Peak(args)) if args.reset => refused("`peak --reset`"),
        Some(
            Command::Snapshot(_)
            | Command::List(_)
            | Command::Ps(_)
            | Command::Allocations(_)
            | Command::Programs(_)
            | Command::Cores(_)
            | Command::Events(_)
            | Command::History(_)
            | Command::Peak(_)
            | Command::Oom(_),
        ) => Ok(cli),
        _ => refused("this command"),
    }
}

/// Says on stderr what is shown: figures of the past look like those of now.
fn tell(replay: &Replay) {
    let record = replay.record();
    let (first, _) = replay.span();
    let after = replay.now().saturating_sub(first) as f64 / 1e9;
    let host = crate::escape::escape(&record.begin().host);
    let time = rfc3339(record.to_realtime_ns(replay.now()));
    eprintln!("tt-smi: replay of {} on {host} at {time} (+{after:.3}s)", record.path().display());
}

/// Goes to a time, and says how far it is if that takes long.
pub(super) fn seek(replay: &mut Replay, time: u64) -> anyhow::Result<()> {
    let (begun, mut told) = (Instant::now(), false);
    let (from, mut due) = (replay.now(), PATIENCE);
    replay.seek(time, &mut |now| {
        if begun.elapsed() >= due {
            let share = now.saturating_sub(from) as f64 / time.saturating_sub(from).max(1) as f64;
            eprint!("\rtt-smi: replaying, {:3.0} %", 100.0 * share);
            (told, due) = (true, begun.elapsed() + PATIENCE);
        }
        true
    })?;
    if told {
        eprintln!();
    }
    Ok(())
}

/// The time that was asked for, CLOCK_MONOTONIC of the record. The peak is not found here: see [`peak`].
pub(super) fn resolve(at: Option<&When>, record: &Record) -> anyhow::Result<u64> {
    let (first, last) = Replay::span_of(record);
    let time = match at {
        None | Some(When::Peak) => last,
        Some(When::Wall(wall)) => record.clocks().to_monotonic_of_wall(*wall),
        Some(When::AfterStart(ns)) => first.saturating_add(*ns),
        Some(When::BeforeEnd(ns)) => last.saturating_sub(*ns),
        Some(When::Failure(number)) => failure(record, *number)?,
        Some(When::Marker(name, number)) => marker(record, name, *number)?,
    };
    if (first..=last).contains(&time) {
        return Ok(time);
    }
    let wall = |ns| rfc3339(record.to_realtime_ns(ns));
    let (time, first, last) = (wall(time), wall(first), wall(last));
    Err(Usage(format!("{time} is not in the record, which is from {first} to {last}")).into())
}

fn failure(record: &Record, number: Option<usize>) -> anyhow::Result<u64> {
    let failures = record.failures();
    let place = number.map_or(failures.len().checked_sub(1), |number| Some(number - 1));
    let found = place.and_then(|place| failures.get(place)).map(|event| event.ns);
    Ok(found.ok_or_else(|| Usage(format!("the record has {} failed allocations", failures.len())))?)
}

fn marker(record: &Record, name: &str, number: usize) -> anyhow::Result<u64> {
    let name_of = |event: &MergedEvent| record.process(event.process)?.name(event.event.name).cloned();
    let mut named = record.markers().iter().filter(|event| name_of(event).as_deref() == Some(name));
    let found = named.clone().count();
    let known = || {
        let mut names: Vec<String> =
            record.markers().iter().filter_map(|event| Some(name_of(event)?.to_string())).collect();
        names.sort_unstable();
        names.dedup();
        names.truncate(10);
        if names.is_empty() { "it has no markers".to_owned() } else { format!("it has {}", names.join(", ")) }
    };
    let moment = named.nth(number - 1).map(|event| event.ns);
    Ok(moment.ok_or_else(|| {
        let what = if found == 0 { format!("; {}", known()) } else { String::new() };
        Usage(format!("the record has {found} markers named {name:?}{what}"))
    })?)
}

/// When most was in use on one device, as the aggregation over the whole record says.
pub(super) fn peak(replay: &mut Replay) -> anyhow::Result<u64> {
    let (_, last) = replay.span();
    seek(replay, last)?;
    let snapshot = replay.aggregator().context("nothing was replayed")?.snapshot();
    let of = |which: fn(&tt_shm_reader::DeviceStats) -> tt_shm_reader::Peak| {
        let peaks = snapshot.devices.iter().map(|(_, device)| which(device));
        peaks.filter(|peak| peak.time != 0 && peak.low > 0).max_by_key(|peak| peak.low)
    };
    let peak = of(|device| device.dram_peak).or_else(|| of(|device| device.l1_peak));
    Ok(peak.map(|peak| peak.time).ok_or_else(|| {
        Usage(
            "the record has no peak whose time is known: nothing was allocated, or events are missing".into(),
        )
    })?)
}
