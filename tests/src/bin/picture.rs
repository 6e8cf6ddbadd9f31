//! Makes the pictures of the README from a real run: the demonstration in a real pseudo-terminal, or a job.
//!
//! `cargo run --release -p tt-shm-tests --bin picture -- docs/images`, and `.ci/tt-metal-picture`.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use portable_pty::CommandBuilder;
use tt_shm_tests::picture::svg;
use tt_shm_tests::space::{Process, Space};
use tt_shm_tests::terminal::{self, Terminal};

/// Set for the processes that this one starts: they are tt-smi.
const ROLE: &str = "TT_PICTURE_IS_SMI";

/// What is pressed, and what must be on the screen before the picture is taken.
const PICTURES: [(&str, &str, &str); 3] =
    [("overview", "0", "all devices"), ("detail", "1", "Fabric"), ("charts", "2", "DRAM")];

/// The same for a job.
const JOB_PICTURES: [(&str, &str, &str); 1] = [("ttnn", "8", "MatmulDeviceOperation")];

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
    let this = std::env::current_exe()?;
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
    let shown: &[&str] = if is_demo { &["demo", "--devices", "4"] } else { &[] };
    let mut shown: CommandBuilder = terminal::program(&space, this, shown);
    shown.env(ROLE, "1");
    let mut terminal = Terminal::start(shown, options.columns, options.rows);
    terminal.await_text("aggregator");
    eprintln!("picture: the workload runs {} s first", options.seconds);
    std::thread::sleep(Duration::from_secs(options.seconds));
    for (name, key, text) in if is_demo { &PICTURES[..] } else { &JOB_PICTURES } {
        terminal.press(key);
        terminal.await_text(text);
        // One more refresh: what the view needs was read after the key.
        std::thread::sleep(Duration::from_secs(2));
        write(&options.folder.join(format!("{name}.svg")), &svg(&terminal.screen()))?;
    }
    terminal.press("q");
    anyhow::ensure!(terminal.await_end().success(), "the screen failed");
    Ok(())
}

fn write(path: &Path, svg: &str) -> Result<()> {
    std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("picture: {}", path.display());
    Ok(())
}
