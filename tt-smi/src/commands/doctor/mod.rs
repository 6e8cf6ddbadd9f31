//! `tt-smi doctor`: checks the set-up of the machine and suggests fixes. It changes nothing and opens no device.

mod holders;
mod host;
mod reports;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;
use tt_shm_os::Namespace;

use crate::cli::DoctorArgs;
use crate::escape::escape;
use crate::exit::Exit;
use crate::model::{Clock, Word, words};
use crate::output::json::{Envelope, write as write_json};
use crate::output::paint::Paint;
use crate::settings::Settings;

/// Runs the command; the exit code is 0, 1 or 2 for the worst finding.
pub(crate) fn run(args: &DoctorArgs, settings: &Settings) -> anyhow::Result<()> {
    let findings = examine(&Roots::here(&settings.namespace, settings.namespace_given));
    let worst = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Pass);
    let mut out = super::stdout();
    if args.json {
        write_json(&mut out, &DoctorJson::new(&findings, worst, settings.namespace.as_str()))?;
    } else {
        write(&mut out, &findings, settings.paint)?;
    }
    out.flush()?;
    match worst {
        Level::Pass => Ok(()),
        Level::Warn => Err(Exit(1).into()),
        Level::Fail => Err(Exit(2).into()),
    }
}

/// Runs all checks.
fn examine(roots: &Roots) -> Vec<Finding> {
    let mut findings = vec![
        host::kernel(roots),
        host::shm_permissions(roots),
        host::shm_room(roots),
        reports::namespace(roots),
    ];
    findings.extend(reports::segments(roots));
    findings.extend(reports::aggregator(roots));
    findings.push(host::driver(roots));
    findings.extend(holders::holders(roots));
    findings.extend(host::container(roots));
    findings.extend([host::remove_ipc(roots), host::path(roots)]);
    findings
}

fn write(out: &mut dyn Write, findings: &[Finding], paint: Paint) -> io::Result<()> {
    for Finding { check, level, found, advice } in findings {
        let word = format!("{:<4}", level.word());
        let word = if *level == Level::Pass { paint.dim(&word) } else { paint.warn(&word) };
        writeln!(out, "{word}  {check:<15}  {}", escape(found))?;
        if let Some(advice) = advice {
            writeln!(out, "{:<23}{}", "", paint.dim(&escape(advice)))?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DoctorJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    /// The worst of all; the exit code is its place here: 0, 1, 2.
    level: Level,
    /// In the order of the checks.
    findings: &'a [Finding],
}

impl<'a> DoctorJson<'a> {
    fn new(findings: &'a [Finding], worst: Level, namespace: &str) -> DoctorJson<'a> {
        DoctorJson {
            envelope: Envelope::new(Clock::now(), &crate::model::host(), namespace),
            level: worst,
            findings,
        }
    }
}

/// Severity; the highest one is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Pass,
    /// Something is missing or limited; the rest works.
    Warn,
    /// Something cannot work.
    Fail,
}

words!(Level { Pass => "pass", Warn => "warn", Fail => "fail" });

/// The result of a check.
///
/// Texts may contain foreign names: escape them before printing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Finding {
    /// What was looked at, such as kernel, segments or aggregator; a check may find several things.
    check: &'static str,
    /// pass: well; warn: something is missing or limited; fail: it cannot work like this.
    level: Level,
    /// What was found, for people.
    found: String,
    /// What to do; `None` if nothing needs to be done.
    advice: Option<String>,
}

impl Finding {
    /// No problem.
    fn pass(check: &'static str, found: impl Into<String>) -> Finding {
        Finding { check, level: Level::Pass, found: found.into(), advice: None }
    }

    /// A limitation.
    fn warn(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { check, level: Level::Warn, found: found.into(), advice: Some(advice.into()) }
    }

    /// An error.
    fn fail(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { level: Level::Fail, ..Finding::warn(check, found, advice) }
    }

    /// Adds a hint without making it a warning.
    fn hint(self, advice: impl Into<String>) -> Finding {
        Finding { advice: Some(advice.into()), ..self }
    }
}

/// Where the checks look: the folders of a machine, and the user who asks. Passed to them, so that tests can provide made-up
/// machines.
#[derive(Clone, Debug)]
struct Roots {
    sys: PathBuf,
    proc: PathBuf,
    /// Where the driver tells of devices, and of who holds them.
    driver: tt_shm_driver::Roots,
    shm: PathBuf,
    etc: PathBuf,
    run: PathBuf,
    /// The PATH to search for programs.
    path: Option<OsString>,
    /// The path of this program.
    program: Option<PathBuf>,
    uid: u32,
    namespace: Namespace,
    /// Whether the user chose the namespace.
    namespace_given: bool,
}

impl Roots {
    /// Those of this machine.
    fn here(namespace: &Namespace, namespace_given: bool) -> Roots {
        Roots {
            sys: "/sys".into(),
            proc: "/proc".into(),
            driver: crate::driver::roots(),
            shm: tt_shm_os::SHM_DIR.into(),
            etc: "/etc".into(),
            run: "/run".into(),
            path: std::env::var_os("PATH"),
            program: std::env::current_exe().ok(),
            uid: rustix::process::geteuid().as_raw(),
            namespace: namespace.clone(),
            namespace_given,
        }
    }
}

/// The first line of a small file, trimmed.
fn first_line(path: PathBuf) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests;
