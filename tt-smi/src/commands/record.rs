//! `tt-smi record`: writes every event of every process to a file.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::run::child::{Running, start};
use super::run::membership::RunId;
use super::run::watch::remove;
use crate::cli::{RecordArgs, RunArgs};
use crate::exit::Exit;
use crate::recording::{Open, Parts, Recorded, Recording, Status};
use crate::settings::Settings;
use crate::signals::Stop;
use crate::units::{bytes, count, plural};

/// The interval of the line that shows how far it is.
const PROGRESS: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &RecordArgs, settings: &Settings) -> anyhow::Result<()> {
    let recording = Recording {
        namespace: settings.namespace.clone(),
        parts: Parts::new(args.output.clone(), args.rotate, args.force),
        command: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
    };
    match args.command.is_empty() {
        true => record(args, recording),
        false => record_command(args, settings, recording),
    }
}

/// Records until a signal.
fn record(args: &RecordArgs, recording: Recording) -> anyhow::Result<()> {
    let stop = Stop::on_signals().context("cannot catch signals")?;
    let open = recording.open()?;
    let mut shown = Shown::new(args, &open);
    let begun = Instant::now();
    let is_over = || stop.is_set() || args.duration.is_some_and(|limit| begun.elapsed() >= limit);
    let recorded = open.run(is_over, |status| shown.progress(status), |_| false);
    shown.report(recorded)
}

/// Records while a command runs; returns its exit code.
fn record_command(args: &RecordArgs, settings: &Settings, recording: Recording) -> anyhow::Result<()> {
    let id = RunId::random().context("cannot get a random number")?;
    let open = recording.open()?;
    let mut shown = Shown::new(args, &open);
    let run_args =
        RunArgs { json: None, no_tap: args.no_tap, no_region: false, command: args.command.clone() };
    let running: Running = match start(&run_args, settings, id) {
        Ok(running) => running,
        Err(error) => {
            open.run(|| true, |_| (), |_| false);
            let program = args.command[0].to_string_lossy();
            eprintln!("tt-smi: cannot run {}: {error}", crate::escape::escape(&program));
            return Err(Exit(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }).into());
        }
    };
    let (is_ended, begun) = (AtomicBool::new(false), Instant::now());
    let (end, recorded) = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let end = running.wait();
            // Relaxed: the flag guards no other memory.
            is_ended.store(true, Ordering::Relaxed);
            end
        });
        let is_over = || {
            is_ended.load(Ordering::Relaxed) || args.duration.is_some_and(|limit| begun.elapsed() >= limit)
        };
        let recorded = open.run(is_over, |status| shown.progress(status), |segment| id.is_of(segment));
        // With a limit, the command goes on after the recording.
        let end = waiter.join();
        (end, recorded)
    });
    remove_left(settings, id);
    shown.report(recorded)?;
    let end = end.map_err(|_| anyhow::anyhow!("waiting for the command panicked"))?;
    match end.context("cannot wait for the command")?.code() {
        0 => Ok(()),
        code => Err(Exit(code).into()),
    }
}

/// Removes what ended processes left to us because they carry our number.
fn remove_left(settings: &Settings, id: RunId) {
    for path in tt_shm_reader::segment_paths(&settings.namespace).unwrap_or_default() {
        if let Ok(segment) = tt_shm_reader::Segment::open(&path)
            && id.is_of(&segment)
            && !segment.is_alive().unwrap_or(true)
        {
            remove(&segment);
        }
    }
}

/// What the user sees meanwhile, and at the end.
struct Shown {
    path: String,
    is_live: bool,
    last: Option<Instant>,
}

impl Shown {
    fn new(args: &RecordArgs, open: &Open) -> Shown {
        let path = crate::escape::escape(&open.path().to_string_lossy());
        eprintln!(
            "tt-smi: recording to {path}{}",
            if args.command.is_empty() { "; Ctrl-C ends it" } else { "" }
        );
        // A command has the terminal for itself.
        let is_live = std::io::stderr().is_terminal() && args.command.is_empty();
        Shown { path, is_live, last: None }
    }

    fn progress(&mut self, status: &Status) {
        if !self.is_live || self.last.is_some_and(|last| last.elapsed() < PROGRESS) {
            return;
        }
        self.last = Some(Instant::now());
        // Not fatal: the recording is what counts.
        let _ = write!(std::io::stderr(), "\r\x1b[K{}", line(status));
    }

    fn report(&self, recorded: Recorded) -> anyhow::Result<()> {
        let Recorded { status, failure } = recorded;
        if self.is_live && self.last.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
        let files = match status.files {
            0 | 1 => String::new(),
            files => format!(" and {} after it", plural(files - 1, "file")),
        };
        let per_event =
            status.bytes_per_event().map_or_else(String::new, |each| format!(", {each:.1} B per event"));
        eprintln!("tt-smi: recorded {} to {}{files}{per_event}", line(&status), self.path);
        if status.counts.lost > 0 {
            eprintln!(
                "tt-smi: {} were overwritten before they could be read, in {}; TT_SHM_RING_SLOTS makes rings larger",
                plural(status.counts.lost, "event"),
                plural(status.counts.gaps, "gap")
            );
        }
        failure.map_or(Ok(()), Err)
    }
}

fn line(status: &Status) -> String {
    let lost = match status.counts.lost {
        0 => "none lost".to_owned(),
        lost => format!("{} lost", count(lost as f64)),
    };
    format!(
        "{:.1} s: {} events of {}, {lost}, {}",
        status.elapsed.as_secs_f64(),
        count(status.counts.events as f64),
        plural(status.counts.processes, "process"),
        bytes(status.bytes),
    )
}
