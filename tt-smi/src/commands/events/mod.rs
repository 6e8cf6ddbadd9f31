//! `tt-smi events`: what happened, in the order in which it happened.

mod line;
mod tail;
mod text;
mod totals;

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Context;
use tt_shm_reader::{Segment, segment_paths};

use crate::cli::EventsArgs;
use crate::directory::Directory;
use crate::output::json::write_line;
use crate::output::units::plural;
use crate::segments::lost;
use crate::settings::Settings;
use crate::signals::Stop;
use line::Happened;
use tail::Tail;

/// Between two looks at the rings: while nothing happens, and while something does.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const LOOK_AGAIN_SOON: Duration = Duration::from_millis(1);
/// Between two looks for new processes.
const RESCAN: Duration = Duration::from_millis(50);

/// Runs it.
pub(crate) fn run(args: &EventsArgs, settings: &Settings) -> anyhow::Result<()> {
    let stop = args.follow.then(Stop::on_signals).transpose().context("cannot catch signals")?;
    let (segments, directory) = super::look(settings)?;
    let mut watch = Watch { args, settings, directory, tails: Vec::new() };
    let wanted = segments.live.into_iter().filter(|segment| watch.wants(segment));
    let begin = if args.follow { Tail::from_now } else { Tail::from_start };
    watch.tails = wanted.map(begin).collect();
    let result = match stop {
        None => watch.print().map(drop),
        Some(stop) => watch.follow(&stop),
    };
    watch.tails.iter().for_each(report_missed);
    result
}

/// The rings that are looked at.
struct Watch<'a> {
    args: &'a EventsArgs,
    settings: &'a Settings,
    directory: Directory,
    tails: Vec<Tail>,
}

impl Watch<'_> {
    fn wants(&self, segment: &Segment) -> bool {
        self.args.pid.is_empty() || self.args.pid.contains(&crate::segments::shown_pid(segment))
    }

    fn follow(&mut self, stop: &Stop) -> anyhow::Result<()> {
        let mut scanned = Instant::now();
        while !stop.is_set() {
            if scanned.elapsed() >= RESCAN {
                self.rescan()?;
                scanned = Instant::now();
            }
            // Asked before the last look: what a process did before it ended is still shown.
            let alive: Vec<bool> = self.tails.iter().map(Tail::is_alive).collect();
            let printed = self.print()?;
            let mut alive = alive.into_iter();
            self.tails.retain(|tail| {
                let keep = alive.next().unwrap_or(true);
                if !keep {
                    report_missed(tail);
                }
                keep
            });
            std::thread::sleep(if printed > 0 { LOOK_AGAIN_SOON } else { LOOK_AGAIN });
        }
        // What happened before the signal belongs to it.
        self.print().map(drop)
    }

    /// Finds new processes; their events are shown from the first one on.
    fn rescan(&mut self) -> anyhow::Result<()> {
        for path in segment_paths(&self.settings.namespace)? {
            let known = |tail: &Tail| path.file_name().is_some_and(|name| name == tail.segment.file_name());
            if self.tails.iter().any(known) {
                continue;
            }
            // Refused or just gone: said once at the start, not again and again.
            let Ok(segment) = Segment::open(&path) else { continue };
            if self.wants(&segment) && segment.is_alive().unwrap_or(false) {
                self.tails.push(Tail::from_start(segment));
            }
        }
        Ok(())
    }

    /// Prints what is new in all rings, by time; says how much that was.
    fn print(&mut self) -> anyhow::Result<usize> {
        let mut happened: Vec<Happened> = Vec::new();
        for tail in &mut self.tails {
            let events = tail.read();
            if !events.is_empty() && tail.has_unknown_device(&self.directory) {
                let mut claims = crate::directory::Claims::default();
                claims.add_directory(&self.directory);
                claims.add_segment(&tail.segment);
                self.directory = claims.finish();
            }
            happened.extend(tail.describe(&events, &self.directory));
        }
        // Stable: events of one process stay in their order also if their times are equal.
        happened.sort_by_key(|event| event.realtime_ns);
        let mut out = super::stdout();
        for event in &happened {
            if self.args.json {
                write_line(&mut out, event)?;
            } else {
                writeln!(out, "{event}")?;
            }
        }
        out.flush()?;
        Ok(happened.len())
    }
}

fn report_missed(tail: &Tail) {
    let pid = tail.pid;
    if tail.older > 0 {
        let older = plural(tail.older, "older event");
        eprintln!(
            "tt-smi: pid {pid}: its ring no longer holds {older} (TT_SHM_RING_SLOTS sets how many it keeps)"
        );
    }
    if tail.missed > 0 {
        let missed = plural(tail.missed, "event");
        eprintln!("tt-smi: pid {pid}: {missed} overwritten before they could be read");
    }
    if let Some(lost) = lost(&tail.segment) {
        eprintln!("tt-smi: {lost}");
    }
}
