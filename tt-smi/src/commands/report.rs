//! `tt-smi report`: a record as one page.

use std::io::{BufWriter, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tt_shm_record::Record;
use tt_shm_report::{Options, Report};

use crate::cli::ReportArgs;

/// How long the work may take without a word.
const PATIENCE: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let output = output(args)?;
    if let Some(path) = &output
        && path.exists()
        && !args.force
    {
        bail!("{} exists: choose another name with -o, or replace it with --force", path.display());
    }
    let mut progress = Progress::new();
    progress.tell("reading", 0.0);
    let record = Record::open(&args.file)?;
    if let Some(damage) = record.damage() {
        eprintln!("tt-smi: {}: {damage}", args.file.display());
    }
    let options = Options { title: args.title.clone() };
    let report = Report::of(&record, &options, &mut |part| progress.tell("reading", part))
        .with_context(|| format!("{} could not be read again", args.file.display()))?;
    progress.end();
    match output {
        None => {
            let mut out = super::stdout();
            report.write_html(&mut out)?;
            Ok(out.flush()?)
        }
        Some(path) => {
            let mode = std::fs::metadata(&args.file)?.permissions().mode() & 0o666;
            write(&report, &path, mode, args.force)
                .with_context(|| format!("{} could not be written", path.display()))?;
            let len = std::fs::metadata(&path)?.len();
            eprintln!("tt-smi: {} written: {}", path.display(), crate::units::bytes(len));
            Ok(())
        }
    }
}

/// The file that is written; `None` for stdout.
fn output(args: &ReportArgs) -> anyhow::Result<Option<PathBuf>> {
    match &args.output {
        Some(path) if path == Path::new("-") => Ok(None),
        Some(path) => Ok(Some(path.clone())),
        None => {
            let name =
                args.file.file_name().with_context(|| format!("{} is not a file", args.file.display()))?;
            Ok(Some(Path::new(name).with_extension("html")))
        }
    }
}

/// Writes the page beside its name first, so that a name always has a whole page.
fn write(report: &Report, path: &Path, mode: u32, force: bool) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = tempfile::Builder::new().prefix(".tt-smi-report-").tempfile_in(folder)?;
    let mut out = BufWriter::new(file);
    report.write_html(&mut out)?;
    let file = out.into_inner()?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    match force {
        true => drop(file.persist(path)?),
        false => drop(file.persist_noclobber(path)?),
    }
    Ok(())
}

/// A line on the terminal that says how far the work is, if it takes long.
struct Progress {
    since: Instant,
    told: Option<Instant>,
    is_terminal: bool,
}

impl Progress {
    fn new() -> Progress {
        Progress { since: Instant::now(), told: None, is_terminal: std::io::stderr().is_terminal() }
    }

    fn tell(&mut self, what: &str, part: f64) {
        let now = Instant::now();
        let is_due = self.told.map_or(now - self.since >= PATIENCE, |told| now - told >= PATIENCE / 4);
        if self.is_terminal && is_due {
            eprint!("\rtt-smi: {what} {:3.0} %", 100.0 * part);
            self.told = Some(now);
        }
    }

    fn end(&mut self) {
        if self.told.take().is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
