//! `tt-smi run`: runs a command with tracking on, and reports what it used.
//!
//! The command is not affected: it has the same terminal, files and process group, and reports to shared memory as it
//! would anyway. Two threads observe it from outside. One waits for new segments and keeps those with the run's number
//! until their processes end; one merges their rings, with the lowest priority. The report is made from what they have
//! when the command has ended.

pub(in crate::commands) mod child;
mod chip;
mod composition;
pub(crate) mod json;
mod loadable;
pub(in crate::commands) mod membership;
mod notices;
mod peaks;
mod report;
mod text;
pub(in crate::commands) mod watch;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::setpriority_process;
use tt_shm_aggregator::{Aggregator, Config, Observe, Only, StartError};
use tt_shm_os::Namespace;
use tt_shm_reader::TableSnapshot;

use crate::cli::RunArgs;
use crate::exit::Exit;
use crate::output::json::write as write_json;
use crate::output::paint::Paint;
use crate::private_file;
use crate::settings::Settings;
use child::Running;
use composition::{Composer, Observer};
use loadable::Obstacle;
use membership::RunId;
use notices::{Notice, Notices};
use report::Report;
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
            let missing = error.kind() == ErrorKind::NotFound;
            let program: &OsStr = args.command.first().map(|program| program.as_ref()).unwrap_or_default();
            let (why, program) = (why_not_started(program, &error), program.to_string_lossy());
            eprintln!(
                "tt-smi: cannot run {}: {error}{}",
                crate::escape::escape(&program),
                crate::escape::escape(&why)
            );
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

/// What the kernel's error does not say: `; ` and the reason, or nothing.
fn why_not_started(program: &OsStr, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => loadable::missing_interpreter(program).map_or_else(String::new, |needed| {
            format!("; it is there, but needs {}, which is not: install that", needed.display())
        }),
        _ if error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => match Obstacle::of(program) {
            Some(obstacle) => format!("; {obstacle}"),
            None => {
                "; it is neither a program nor a script that begins with #! and its interpreter".to_owned()
            }
        },
        _ => String::new(),
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
    let observer = Observer::default();
    let aggregator = begin_following(&settings.namespace, found.clone(), observer.clone());
    let aggregator = aggregator.context("cannot aggregate")?;
    let (stop, tell) = pipe_with(PipeFlags::CLOEXEC).context("cannot create a pipe")?;
    let begun = Instant::now();
    // Without it, the report has less.
    let notices = Notices::new().ok();
    let command = args.command.first().filter(|_| !args.no_tap);
    let obstacle = command.and_then(|command| Obstacle::of(command.as_ref()));
    let loads_tap = !args.no_tap && !obstacle.as_ref().is_some_and(Obstacle::prevents_start);
    let running = match Running::start(args, settings, run, notices.as_ref(), loads_tap) {
        Ok(running) => running,
        Err(error) => return Ok(Err(error)),
    };
    let pid = running.pid();
    let (end, followed) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch.run(&stop));
        let follower = scope.spawn(|| follow(aggregator, &observer, &found, &stop));
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
    let notices = notices.map_or_else(Vec::new, |notices| notices.read());
    let mut report = report::report(end, begun.elapsed(), found.take(), followed.as_ref(), notices);
    if report.processes.is_empty() {
        report.notices.extend(obstacle.map(|obstacle| Notice {
            unobserved: true,
            text: obstacle.to_string().into(),
            pids: vec![pid],
        }));
    }
    Ok(Ok(report))
}

/// Result of merging the rings.
struct Followed {
    snapshot: TableSnapshot,
    /// Identities of all segments that were followed.
    identities: HashSet<u64>,
    /// What their peaks were made of.
    composer: Composer,
}

/// An aggregation of the run alone. It starts before the command, so that it misses nothing.
fn begin_following(
    namespace: &Namespace,
    found: Found,
    observer: Observer,
) -> Result<Aggregator, StartError> {
    let only = Only::those(move |segment| found.is_to_follow(segment));
    let observer: Option<Box<dyn Observe>> = Some(Box::new(observer));
    // The watch removes the files that are this run's to remove.
    Aggregator::new(Config { reap: false, only, observer, ..Config::new(namespace.clone()) })
}

/// Follows until the other end of `stop` is closed.
fn follow(mut aggregator: Aggregator, observer: &Observer, found: &Found, stop: &OwnedFd) -> Followed {
    // Of this thread alone: with few cores, the command goes first. Missed events turn a peak into a range, which is
    // reported as one.
    let _ = setpriority_process(None, 19);
    let mut identities = HashSet::new();
    loop {
        aggregator.poll();
        identities.extend(aggregator.followed());
        found.add_followed(aggregator.followed());
        if is_over(stop) {
            break;
        }
        aggregator.wait(aggregator.sleep_hint(), Some(stop.as_fd()));
    }
    // By then the last events are older than the merge window.
    aggregator.settle();
    identities.extend(aggregator.followed());
    Followed { snapshot: aggregator.snapshot(), identities, composer: observer.take() }
}

fn is_over(stop: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(stop, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}
