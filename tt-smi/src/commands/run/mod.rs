//! `tt-smi run`: runs a command with tracking on, and reports what it used.
//!
//! The command is not affected: it has the same terminal, files and process group, and reports to shared memory as it
//! would anyway. Two threads observe it from outside. One waits for new segments and keeps those with the run's number
//! until their processes end; one merges their rings, with the lowest priority. The report is made from what they have
//! when the command has ended.

mod child;
mod follow;
mod json;
mod lineage;
mod observed;
mod report;
mod run_id;
mod text;
mod watch;

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::fs::{Access, access};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::cli::RunArgs;
use crate::exit::Exit;
use crate::output::json::write as write_json;
use crate::output::paint::Paint;
use crate::private_file;
use crate::settings::Settings;
use child::Running;
use report::Report;
use run_id::RunId;
use watch::{Found, Sweep, Watch};

/// Exit codes of a command that could not be started, as in shells.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;
/// Most checks for processes that end together with the command.
const LAST_SWEEPS: usize = 50;

/// Runs the command; returns its exit code.
pub(crate) fn run(args: &RunArgs, settings: &Settings) -> anyhow::Result<()> {
    args.json.as_deref().filter(|path| !is_stdout(path)).map(warn_early);
    let report = match observe(args, settings)? {
        Ok(report) => report,
        Err(error) => {
            let program = args.command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
            eprintln!("tt-smi: cannot run {}: {error}", crate::escape::escape(&program));
            let missing = error.kind() == ErrorKind::NotFound;
            return Err(Exit(if missing { NOT_FOUND } else { NOT_STARTED }).into());
        }
    };
    // Output may fail; the exit code is what counts.
    let _ = text::write(&mut std::io::stderr().lock(), &report, Paint::PLAIN);
    if let Some(path) = &args.json {
        let document = json::RunJson::new(&report, &args.command, settings.namespace.as_str());
        let mut text = Vec::new();
        let written = write_json(&mut text, &document).and_then(|()| match is_stdout(path) {
            true => std::io::stdout().write_all(&text),
            false => private_file::replace(path, &text),
        });
        if let Err(error) = written {
            eprintln!("tt-smi: cannot write {}: {error}", crate::escape::escape(&path.to_string_lossy()));
        }
    }
    match report.end.code() {
        0 => Ok(()),
        code => Err(Exit(code).into()),
    }
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Warns before a long run, not only after it, that its report cannot be written. The command runs nevertheless.
fn warn_early(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Err(errno) = access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        let (path, error) = (path.to_string_lossy(), std::io::Error::from(errno));
        eprintln!("tt-smi: cannot write the report to {}: {error}", crate::escape::escape(&path));
    }
}

/// Runs and observes the command; the inner error says that it could not be started.
fn observe(args: &RunArgs, settings: &Settings) -> anyhow::Result<Result<Report, std::io::Error>> {
    let run = RunId::random().context("cannot get a random number")?;
    let found = Found::new(run);
    let watch = Watch::new(&settings.namespace, found.clone()).context("cannot watch /dev/shm")?;
    let aggregator = follow::begin(&settings.namespace, found.clone()).context("cannot aggregate")?;
    let (stop, tell) = pipe_with(PipeFlags::CLOEXEC).context("cannot create a pipe")?;
    let begun = Instant::now();
    let running = match Running::start(&args.command, settings, run) {
        Ok(running) => running,
        Err(error) => return Ok(Err(error)),
    };
    let (end, followed) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch.run(&stop));
        let follower = scope.spawn(|| follow::run(aggregator, &found, &stop));
        let end = running.wait();
        drop(tell);
        // Without the result of a thread that panicked, the report has less.
        let _ = watcher.join();
        (end, follower.join().ok())
    });
    // Processes about to end get a moment to do so. Any other, such as a stopped one, is reported as still running.
    for _ in 0..LAST_SWEEPS {
        if !found.sweep(Sweep::Last) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let end = end.context("cannot wait for the command")?;
    Ok(Ok(report::report(end, begun.elapsed(), found.take(), followed.as_ref())))
}
