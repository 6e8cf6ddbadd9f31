//! `tt-smi bench`: what tracking costs on this machine.

use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

use anyhow::Context;

use crate::bench::{self, FindingsJson};
use crate::cli::BenchArgs;
use crate::output::json;
use crate::settings::Settings;
use crate::signals::Stop;

pub(crate) fn run(args: &BenchArgs, settings: &Settings) -> anyhow::Result<()> {
    let stop = Stop::on_signals().context("cannot catch signals")?;
    let mut progress = Progress::new(args.seconds);
    let measured = bench::measure(Duration::from_secs(args.seconds), |share| {
        progress.show(share);
        !stop.is_set()
    });
    progress.clear();
    let findings = measured?;
    let mut out = super::stdout();
    if args.json {
        json::write(&mut out, &FindingsJson::new(&findings))?;
    } else {
        bench::write(&mut out, &findings, settings.paint)?;
    }
    Ok(out.flush()?)
}

/// A progress line on stderr, if that is a terminal.
struct Progress {
    shown: bool,
    seconds: u64,
    /// Seconds shown by the last line.
    last: Option<u64>,
}

impl Progress {
    fn new(seconds: u64) -> Progress {
        Progress { shown: stderr().is_terminal(), seconds, last: None }
    }

    /// Writes only when the line changes, so as not to disturb what is measured.
    fn show(&mut self, share: f64) {
        let over = (share * self.seconds as f64) as u64;
        if self.shown && self.last.replace(over) != Some(over) {
            // A failure to show progress must not lose the result.
            let _ = write!(stderr(), "\rmeasuring: {over} of {} s (Ctrl-C stops) ", self.seconds);
        }
    }

    fn clear(&self) {
        if self.last.is_some() && self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
