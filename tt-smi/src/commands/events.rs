//! `tt-smi events`: events of all processes, in order of time.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::cli::EventsArgs;
use crate::lists::events::{Happened, Seen, Tail, Watch};
use crate::output::json::write_line;
use crate::segments::lost;
use crate::select::{refuse_ambiguous, select};
use crate::settings::Settings;
use crate::signals::Stop;
use crate::units::plural;

/// Poll intervals of the rings: while idle, and while there are events.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const LOOK_AGAIN_SOON: Duration = Duration::from_millis(1);
/// Interval at which new processes are looked for.
const RESCAN: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &EventsArgs, settings: &Settings) -> anyhow::Result<()> {
    let stop = args.follow.then(Stop::on_signals).transpose().context("cannot catch signals")?;
    let (segments, directory) = super::look(settings)?;
    segments.warn_unread();
    let devices = &args.only.on.device;
    if args.follow {
        // A device that does not exist yet is no error here: its events are shown once it does.
        refuse_ambiguous(devices, &directory)?;
        for absent in devices.iter().filter(|device| device.meant(&directory).is_empty()) {
            eprintln!("tt-smi: no device {absent} yet; waiting for it");
        }
    } else {
        select(devices, &directory)?;
        segments.of(&args.only.pid).map(drop)?;
    }
    let begin = if args.follow { Tail::from_now } else { Tail::from_start };
    let mut watch = Watch::new(&settings.namespace, &args.only.pid, directory);
    watch.add(segments.live, begin);
    if watch.tails.is_empty() {
        // Otherwise a new user would see nothing and not know why.
        let so = if args.follow { "; waiting" } else { " (see `tt-smi doctor`)" };
        eprintln!("tt-smi: no process reports events in this namespace{so}");
    }
    let result = match stop {
        None => print(&mut watch, args).map(drop),
        Some(stop) => follow(&mut watch, args, &stop),
    };
    watch.tails.iter().for_each(report_missed);
    result
}

fn follow(watch: &mut Watch, args: &EventsArgs, stop: &Stop) -> anyhow::Result<()> {
    let mut scanned = Instant::now();
    while !stop.is_set() {
        if scanned.elapsed() >= RESCAN {
            watch.rescan()?;
            scanned = Instant::now();
        }
        // Checked before the last read, so that the last events of a process are still printed.
        let ended = watch.ended();
        let printed = print(watch, args)?;
        watch.retire(&ended).iter().for_each(report_missed);
        std::thread::sleep(if printed > 0 { LOOK_AGAIN_SOON } else { LOOK_AGAIN });
    }
    // Events from before the signal still belong to the output.
    print(watch, args).map(drop)
}

/// Prints the new events of all rings, by time; returns how many there were.
fn print(watch: &mut Watch, args: &EventsArgs) -> anyhow::Result<usize> {
    let happened: Vec<Happened> = watch.read().iter().map(Seen::happened).collect();
    let mut out = super::stdout();
    let devices = &args.only.on.device;
    let meant: Vec<usize> = devices.iter().flat_map(|device| device.meant(watch.directory())).collect();
    let is_meant =
        |event: &&Happened| devices.is_empty() || event.device.is_some_and(|device| meant.contains(&device));
    for event in happened.iter().filter(is_meant).filter(|event| args.query.matches(*event)) {
        if args.json {
            write_line(&mut out, event)?;
        } else {
            writeln!(out, "{event}")?;
        }
    }
    out.flush()?;
    Ok(happened.len())
}

fn report_missed(tail: &Tail) {
    let pid = tail.pid;
    if tail.older > 0 {
        let older = plural(tail.older, "older event");
        eprintln!(
            "tt-smi: pid {pid}: its ring no longer holds {older} (TT_SHM_RING_SLOTS sets how many it keeps)"
        );
    }
    if tail.skipped > 0 {
        let skipped = plural(tail.skipped, "event");
        eprintln!("tt-smi: pid {pid}: skipped {skipped}: too many at once, only the latest are printed");
    }
    if tail.missed > 0 {
        let missed = plural(tail.missed, "event");
        eprintln!("tt-smi: pid {pid}: {missed} overwritten before they could be read");
    }
    if let Some(lost) = lost(&tail.segment) {
        eprintln!("tt-smi: {lost}");
    }
}
