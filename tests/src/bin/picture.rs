//! Makes the pictures of the README from a real run: the demonstration in a real pseudo-terminal, or a job.
//!
//! `cargo run --release -p tt-shm-tests --bin picture -- docs/images`, and `.ci/tt-metal-picture`. With `--every-view` all
//! views at several sizes, to be looked at, also with `--trouble` and with `--devices 32 --workers 8`; with `--session` a
//! short session that moves.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use portable_pty::CommandBuilder;
use rustix::process::{Pid, Signal, kill_process};
use tt_shm_tests::executable::copy_program;
use tt_shm_tests::picture::{animated, svg};
use tt_shm_tests::space::{Process, Space};
use tt_shm_tests::terminal::{self, Terminal};
use tt_smi::screen::View;

/// Set for the processes that this one starts: they are tt-smi.
const ROLE: &str = "TT_PICTURE_IS_SMI";

/// What is pressed, and what must be on the screen before the picture is taken.
const PICTURES: [(&str, &str, &str); 5] = [
    ("overview", "0", "all devices"),
    ("detail", "1", "Fabric"),
    ("charts", "2", "DRAM"),
    ("map", "7", "one bank"),
    ("cores", "9", "kernel-config ring"),
];

/// The same for a job.
const JOB_PICTURES: [(&str, &str, &str); 2] =
    [("ttnn", "8", "MatmulDeviceOperation"), ("ttnn-overview", "0", "all devices")];

/// The same where things go wrong.
const TROUBLE_PICTURES: [(&str, &str, &str); 1] = [("trouble", "0", "all devices")];

/// Workers of the demonstration that are killed and stopped, by number. Another one leaks, and allocations fail without
/// help.
const KILLED: usize = 0;
const STOPPED: usize = 3;
/// How long before the pictures.
const AFTER_TROUBLE: Duration = Duration::from_secs(12);

/// Pictures of tt-smi, made from a real run.
#[derive(Parser)]
struct Options {
    /// Where to put them
    folder: PathBuf,
    /// How long the workload runs before the first: so much history there is
    #[arg(long, default_value_t = 65)]
    seconds: u64,
    /// Columns of the terminal
    #[arg(long, default_value_t = 120)]
    columns: u16,
    /// Rows of the terminal
    #[arg(long, default_value_t = 34)]
    rows: u16,
    /// All views, each at 60x15, 80x24, 120x40 and 200x50
    #[arg(long)]
    every_view: bool,
    /// A session of half a minute that moves, in session.svg
    #[arg(long, conflicts_with = "every_view")]
    session: bool,
    /// A host where things go wrong: a leak, failed allocations, a stopped and a killed process
    #[arg(long, conflicts_with_all = ["session", "job"])]
    trouble: bool,
    /// Devices of the demonstration
    #[arg(long, default_value_t = 4)]
    devices: u32,
    /// Processes of the demonstration
    #[arg(long, default_value_t = 3)]
    workers: u32,
    /// A job to look at, instead of the demonstration
    #[arg(last = true)]
    job: Vec<String>,
}

fn main() -> ExitCode {
    if std::env::var_os(ROLE).is_some() {
        return tt_smi::run();
    }
    match take(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("picture: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn take(options: &Options) -> Result<()> {
    // Under its own name, and not where it was built: the screen shows commands.
    let place = tempfile::tempdir()?;
    let this = place.path().join("tt-smi");
    copy_program(std::env::current_exe()?, &this);
    let this = this.to_str().context("the program's path is no text")?;
    std::fs::create_dir_all(&options.folder)?;
    let space = Space::new();
    let mut aggregator = space.command(this);
    aggregator.arg("aggregate").env(ROLE, "1").stderr(Stdio::null());
    let _aggregator = Process::spawn(aggregator);
    let is_demo = options.job.is_empty();
    let _job = (!is_demo).then(|| {
        let mut job = space.command(this);
        job.args(["run", "--"]).args(&options.job).env(ROLE, "1");
        job.stdout(Stdio::null()).stderr(Stdio::null());
        Process::spawn(job)
    });
    let workers = if options.trouble { options.workers.max(STOPPED as u32 + 1) } else { options.workers };
    let (devices, workers) = (options.devices.to_string(), workers.to_string());
    let demo = ["demo", "--devices", &devices, "--workers", &workers];
    // Not on the screen itself: its workers are to be told by their parent.
    let troubled = options.trouble.then(|| {
        let mut beside = space.command(this);
        beside.args(demo).env(ROLE, "1").stdout(Stdio::null()).stderr(Stdio::null());
        Process::spawn(beside)
    });
    let shown: &[&str] = if is_demo && !options.trouble { &demo } else { &[] };
    let mut shown: CommandBuilder = terminal::program(&space, this, shown);
    shown.env(ROLE, "1");
    let mut terminal = Terminal::start(shown, options.columns, options.rows);
    terminal.await_text("aggregator");
    eprintln!("picture: the workload runs {} s first", options.seconds);
    let before = Duration::from_secs(options.seconds);
    let _stopped = match &troubled {
        Some(demo) => {
            std::thread::sleep(before.saturating_sub(AFTER_TROUBLE));
            let stopped = make_trouble(demo)?;
            std::thread::sleep(AFTER_TROUBLE.min(before));
            Some(stopped)
        }
        None => {
            std::thread::sleep(before);
            None
        }
    };
    if options.session {
        write(&options.folder.join("session.svg"), &animated(&session(&mut terminal)))?;
    } else if options.every_view {
        take_every_view(&mut terminal, &options.folder)?;
    } else {
        let pictures: &[(&str, &str, &str)] = match (is_demo, options.trouble) {
            (false, _) => &JOB_PICTURES,
            (true, true) => &TROUBLE_PICTURES,
            (true, false) => &PICTURES,
        };
        take_some(&mut terminal, &options.folder, pictures)?;
    }
    terminal.press("q");
    anyhow::ensure!(terminal.await_end().success(), "the screen failed");
    Ok(())
}

/// A worker that was stopped: it would not notice that the demonstration has ended, so it is killed.
struct Stopped(Pid);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// Kills one worker and stops another.
fn make_trouble(demo: &Process) -> Result<Stopped> {
    let pid = demo.0.id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .context("cannot tell the workers of the demonstration")?;
    let workers: Vec<i32> = children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    let worker =
        |number: usize| workers.get(number).and_then(|pid| Pid::from_raw(*pid)).context("a worker is gone");
    kill_process(worker(KILLED)?, Signal::KILL)?;
    let stopped = worker(STOPPED)?;
    kill_process(stopped, Signal::STOP)?;
    Ok(Stopped(stopped))
}

/// What the view needs is read after the key.
const SETTLES: Duration = Duration::from_secs(2);

fn take_every_view(terminal: &mut Terminal, folder: &Path) -> Result<()> {
    for (columns, rows) in [(60, 15), (80, 24), (120, 40), (200, 50)] {
        terminal.resize(columns, rows);
        for view in View::ALL {
            terminal.press(&view.digit().to_string());
            std::thread::sleep(SETTLES);
            let path = folder.join(format!("{}-{columns}x{rows}.svg", view.name()));
            write(&path, &svg(&terminal.screen()))?;
        }
    }
    Ok(())
}

/// What is pressed, and how long the screen is shown after it.
const SESSION: [(&str, u64); 16] = [
    ("0", 3000),
    ("\r", 2500),
    ("\x1b", 1500),
    ("\t", 1500),
    ("j", 1000),
    ("/", 1000),
    ("b", 500),
    ("e", 500),
    ("r", 1500),
    ("\x1b", 1500),
    ("2", 3500),
    ("b", 2500),
    ("5", 3000),
    ("7", 3000),
    ("6", 3000),
    ("0", 2500),
];

fn session(terminal: &mut Terminal) -> Vec<(vt100::Screen, Duration)> {
    let scene = |(key, shown): (&str, u64)| {
        terminal.press(key);
        std::thread::sleep(Duration::from_millis(shown).max(Duration::from_millis(1200)));
        (terminal.screen(), Duration::from_millis(shown))
    };
    SESSION.into_iter().map(scene).collect()
}

fn take_some(terminal: &mut Terminal, folder: &Path, pictures: &[(&str, &str, &str)]) -> Result<()> {
    for (name, key, text) in pictures {
        terminal.press(key);
        terminal.await_text(text);
        std::thread::sleep(SETTLES);
        write(&folder.join(format!("{name}.svg")), &svg(&terminal.screen()))?;
    }
    Ok(())
}

fn write(path: &Path, svg: &str) -> Result<()> {
    std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("picture: {}", path.display());
    Ok(())
}
