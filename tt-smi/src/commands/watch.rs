//! `tt-smi watch`: a snapshot at every interval.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::thread::{NanosleepRelativeResult, Timespec, nanosleep};

use crate::cli::{WatchArgs, WatchFormat};
use crate::model::Reading;
use crate::model::{Model, directory};
use crate::output::snapshot_json::SnapshotJson;
use crate::output::table::{self, Parts};
use crate::output::{csv, json};
use crate::procinfo::Cache;
use crate::select::DeviceSelector;
use crate::settings::Settings;
use crate::signals::Stop;
use crate::source::Source;
use crate::threshold::ensure_below;

/// Longest pause: a signal interrupts it, unless it arrives just before; then this is the delay.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &WatchArgs, settings: &Settings) -> anyhow::Result<()> {
    let stop = Stop::on_signals().context("cannot catch signals")?;
    let mut source = Source::open(&settings.namespace)?;
    let mut processes = Cache::default();
    let mut beat = Beat::new(Instant::now(), args.interval.unwrap_or(settings.config.interval));
    let most = args.samples.unwrap_or(u64::MAX);
    for sample in 0..most {
        let reading = source.read()?;
        let mut model = match sample {
            0 => super::Now::of(&reading, &args.only.on.device)?.model,
            _ => still_there(&reading, &args.only.on.device),
        };
        model.look_up(&mut processes);
        model.processes.retain(|process| args.only.query.matches(process));
        let mut out = super::stdout();
        write(&mut out, &model, sample == 0, args, settings)?;
        // Flushed, so that a reader gets each snapshot when it is made, also through a pipe.
        out.flush()?;
        drop(out);
        ensure_below(&args.limits.fail_above, &model)?;
        if sample + 1 < most {
            wait_until(beat.next(Instant::now()), &mut source, &stop);
        }
        if stop.is_set() {
            break;
        }
    }
    Ok(())
}

/// The model of a later reading: a device that is gone may come back, so its absence is no error.
fn still_there(reading: &Reading, devices: &[DeviceSelector]) -> Model {
    let mut model = Model::new(reading);
    if !devices.is_empty() {
        let directory = directory(&reading.snapshot);
        let meant: Vec<usize> = devices.iter().flat_map(|device| device.meant(&directory)).collect();
        model.keep(|device| meant.contains(&device.index));
    }
    model
}

fn write(
    out: &mut dyn Write,
    model: &Model,
    is_first: bool,
    args: &WatchArgs,
    settings: &Settings,
) -> io::Result<()> {
    let namespace = settings.namespace.as_str();
    match args.format {
        WatchFormat::Ndjson => json::write_line(out, &SnapshotJson::new(model, namespace)),
        WatchFormat::Table => {
            if !is_first {
                writeln!(out)?;
            }
            table::write(out, model, Parts { processes: args.processes, detail: false }, settings.paint)
        }
        WatchFormat::Csv => {
            let mut text = Vec::new();
            match args.processes {
                true => csv::write_processes(&mut text, model, namespace)?,
                false => csv::write_devices(&mut text, model, namespace)?,
            }
            // The headings stand in the first line, once.
            let heads = text.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            out.write_all(if is_first { &text } else { &text[heads..] })
        }
    }
}

/// Polls the rings meanwhile, so that none wraps around unread.
fn wait_until(time: Instant, source: &mut Source, stop: &Stop) {
    while !stop.is_set() {
        let left = time.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        source.poll();
        pause(left.min(source.poll_interval()).min(LONGEST_PAUSE));
    }
}

/// Unlike `std::thread::sleep`, ends when a signal arrives.
fn pause(time: Duration) {
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    match nanosleep(&time) {
        NanosleepRelativeResult::Ok | NanosleepRelativeResult::Interrupted(_) => {}
        NanosleepRelativeResult::Err(errno) => debug_assert!(false, "cannot pause: {errno}"),
    }
}

/// When lines are due: whole numbers of intervals after the first, however long each takes.
struct Beat {
    next: Instant,
    interval: Duration,
}

impl Beat {
    fn new(first: Instant, interval: Duration) -> Beat {
        Beat { next: first, interval }
    }

    /// When the next line is due; missed ones are skipped, not caught up on in a burst.
    fn next(&mut self, now: Instant) -> Instant {
        let behind = now.saturating_duration_since(self.next).as_nanos() / self.interval.as_nanos();
        self.next += self.interval * (u32::try_from(behind).unwrap_or(u32::MAX - 1) + 1);
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_do_not_drift_and_do_not_catch_up() {
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        let mut beat = Beat::new(start, Duration::from_millis(100));
        assert_eq!(beat.next(at(30)), at(100));
        assert_eq!(beat.next(at(190)), at(200));
        assert_eq!(beat.next(at(200)), at(300));
        assert_eq!(beat.next(at(777)), at(800));
        assert_eq!(beat.next(at(800)), at(900));
    }
}
