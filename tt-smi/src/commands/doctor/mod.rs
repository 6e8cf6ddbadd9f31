//! `tt-smi doctor`: checks the set-up of the machine and suggests fixes. It changes nothing and opens no device.

mod finding;
mod host;
mod programs;
mod reports;
mod roots;
mod shm;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use serde::Serialize;

use crate::cli::DoctorArgs;
use crate::escape::escape;
use crate::exit::Exit;
use crate::model::Clock;
use crate::output::json::{Envelope, write as write_json};
use crate::output::paint::Paint;
use crate::settings::Settings;
use finding::{Finding, Level};
use roots::Roots;

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
    let mut findings =
        vec![host::kernel(roots), shm::folder(roots), shm::room(roots), reports::namespace(roots)];
    findings.extend(reports::segments(roots));
    findings.extend(reports::aggregator(roots));
    findings.push(host::driver(roots));
    findings.extend(host::container(roots));
    findings.extend([host::remove_ipc(roots), programs::first(roots)]);
    findings
}

fn write(out: &mut dyn Write, findings: &[Finding], paint: Paint) -> io::Result<()> {
    for Finding { check, level, found, advice } in findings {
        let word = format!("{:<4}", level.name());
        let word = if *level == Level::Pass { paint.dim(&word) } else { paint.warn(&word) };
        writeln!(out, "{word}  {check:<15}  {}", escape(found))?;
        if let Some(advice) = advice {
            writeln!(out, "{:<23}{}", "", paint.dim(&escape(advice)))?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct DoctorJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    level: &'static str,
    findings: Vec<FindingJson<'a>>,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    check: &'static str,
    level: &'static str,
    found: &'a str,
    advice: Option<&'a str>,
}

impl<'a> DoctorJson<'a> {
    fn new(findings: &'a [Finding], worst: Level, namespace: &str) -> DoctorJson<'a> {
        let finding = |finding: &'a Finding| FindingJson {
            check: finding.check,
            level: finding.level.name(),
            found: &finding.found,
            advice: finding.advice.as_deref(),
        };
        DoctorJson {
            envelope: Envelope::new(Clock::now(), &crate::model::host(), namespace),
            level: worst.name(),
            findings: findings.iter().map(finding).collect(),
        }
    }
}
