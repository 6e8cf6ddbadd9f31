//! `tt-smi watch`: one snapshot per interval, one per line.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::thread::{NanosleepRelativeResult, Timespec, nanosleep};

use crate::cli::WatchArgs;
use crate::model::Model;
use crate::output::json;
use crate::output::snapshot_json::SnapshotJson;
use crate::procinfo::Cache;
use crate::settings::Settings;
use crate::signals::Stop;
use crate::source::Source;

/// Longest pause: a signal interrupts it, unless it arrives just before; then this is the delay.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Runs the command.
pub(crate) fn run(args: &WatchArgs, settings: &Settings) -> anyhow::Result<()> {
    let stop = Stop::on_signals().context("cannot catch signals")?;
    let mut source = Source::open(&settings.namespace)?;
    let mut processes = Cache::default();
    let mut beat = Beat::new(Instant::now(), args.interval.unwrap_or(settings.config.interval));
    let mut left = args.samples.unwrap_or(u64::MAX);
    while !stop.is_set() {
        let mut model = Model::new(&source.read()?);
        model.look_up(&mut processes);
        let mut out = super::stdout();
        json::write_line(&mut out, &SnapshotJson::new(&model, settings.namespace.as_str()))?;
        // Flushed, so that a reader gets each line when it is made, also through a pipe.
        out.flush()?;
        left -= 1;
        if left == 0 {
            break;
        }
        wait_until(beat.next(Instant::now()), &mut source, &stop);
    }
    Ok(())
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
