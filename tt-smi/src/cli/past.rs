//! Arguments of the commands about records: `replay`, `diff`; and times of a record.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::query::time_ns;

/// `replay`
#[derive(Debug, Args)]
#[command(after_help = "\
TIME is one of
  2026-11-18T03:12:09.5Z   a time of day, as every output has it
  +12.5s, -3s              from the beginning, before the end of the record
  peak                     when most DRAM was in use on a device; L1 where no DRAM was
  failure, failure#2       the last allocation that failed, or the second one
  marker:NAME, marker:NAME#3  the first marker of that name, or the third one

COMMAND is one of snapshot, list, ps, allocations, programs, cores, events, history, peak and oom,
with its own options; its figures are those of TIME, and so is \"now\" in ages.

Examples:
  tt-smi replay night.ttrec --at peak -- snapshot --detail
  tt-smi replay night.ttrec --at failure -- oom
  tt-smi replay night.ttrec --at 2026-11-18T03:12:09Z -- allocations --top 20
  tt-smi replay night.ttrec --at marker:step#100 -- ps --json")]
pub struct ReplayArgs {
    /// Record to replay
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Moment to show [default: the end of the record]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = when)]
    pub at: Option<When>,
    /// Command to run over the record, after `--` [default: snapshot]
    #[arg(value_name = "COMMAND", last = true)]
    pub command: Vec<OsString>,
}

/// `diff`
#[derive(Debug, Args)]
#[command(after_help = "\
Compares what is live at two moments: sums by device and class, then each name. Devices on which
the same differs are one line, `0-7 x8`. Without times, the ends of two records are compared; with
one record, its beginning and its end. TIME: see `tt-smi replay --help`.

Examples:
  tt-smi diff before.ttrec after.ttrec
  tt-smi diff run.ttrec --at-a marker:step#10 --at-b marker:step#20
  tt-smi diff good.ttrec bad.ttrec --at-a peak --at-b peak --json")]
pub struct DiffArgs {
    /// First record
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub a: PathBuf,
    /// Second record [default: the first one again]
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub b: Option<PathBuf>,
    /// Moment of the first record
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = when)]
    pub at_a: Option<When>,
    /// Moment of the second record [default: its end]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = when)]
    pub at_b: Option<When>,
    /// Print at most N names, those with the largest difference first
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub top: usize,
    /// Print JSON; it has all names
    #[arg(long)]
    pub json: bool,
}

/// A moment of a record, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// A time of day, nanoseconds since 1970.
    Wall(u64),
    /// Nanoseconds after the beginning.
    AfterStart(u64),
    /// Nanoseconds before the end.
    BeforeEnd(u64),
    /// The peak of the device that used most.
    Peak,
    /// A failed allocation, counted from 1; the last one if `None`.
    Failure(Option<usize>),
    /// A marker of this name, counted from 1.
    Marker(String, usize),
}

/// What a moment may be, for messages.
const FORMS: &str = "a time such as 2026-11-18T03:12:09Z, +12.5s or -3s, or peak, failure, failure#2, marker:NAME, marker:NAME#3";

fn when(text: &str) -> Result<When, String> {
    let wrong = || format!("{text:?} is not {FORMS}");
    let number = |digits: &str| digits.parse().ok().filter(|number: &usize| *number > 0).ok_or_else(wrong);
    if let Some(name) = text.strip_prefix("marker:") {
        // A name may have a # of its own.
        let numbered = name.rsplit_once('#').and_then(|(name, digits)| Some((name, number(digits).ok()?)));
        let (name, number) = numbered.unwrap_or((name, 1));
        return if name.is_empty() { Err(wrong()) } else { Ok(When::Marker(name.to_owned(), number)) };
    }
    match text {
        "peak" => return Ok(When::Peak),
        "failure" => return Ok(When::Failure(None)),
        _ => {}
    }
    if let Some(digits) = text.strip_prefix("failure#") {
        return number(digits).map(|number| When::Failure(Some(number)));
    }
    let span = |text: &str| time_ns(text).map_err(|_| wrong());
    match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(after), _) => span(after).map(When::AfterStart),
        (_, Some(before)) => span(before).map(When::BeforeEnd),
        _ => {
            let time: jiff::Timestamp = text.parse().map_err(|_| wrong())?;
            u64::try_from(time.as_nanosecond()).map(When::Wall).map_err(|_| wrong())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_in_every_form() {
        let second = 1_000_000_000;
        for (text, moment) in [
            ("+12.5s", When::AfterStart(12_500_000_000)),
            ("-3s", When::BeforeEnd(3 * second)),
            ("peak", When::Peak),
            ("failure", When::Failure(None)),
            ("failure#2", When::Failure(Some(2))),
            ("marker:step", When::Marker("step".into(), 1)),
            ("marker:step#3", When::Marker("step".into(), 3)),
            ("marker:a#b", When::Marker("a#b".into(), 1)),
            ("1970-01-01T00:00:02Z", When::Wall(2 * second)),
        ] {
            assert_eq!(when(text).as_ref(), Ok(&moment), "{text}");
        }
        for text in ["", "noon", "+", "-x", "failure#0", "failure#x", "marker:", "12:00"] {
            assert!(when(text).is_err_and(|error| error.contains("is not a time such as")), "{text}");
        }
    }
}
