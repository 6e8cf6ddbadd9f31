//! `tt-smi diff`: what two records, or two times of one, hold differently.

mod held;
pub(crate) mod json;
mod text;

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use tt_shm_record::Record;
use tt_shm_replay::Replay;

use self::held::Held;
use crate::cli::{DiffArgs, When};
use crate::settings::Settings;

/// One side of a comparison.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) file: String,
    pub(crate) host: String,
    /// The wall-clock time of the moment, nanoseconds since 1970.
    pub(crate) time_ns: u64,
    /// Whether everything that was live then is known.
    pub(crate) exact: bool,
}

pub(crate) fn run(args: &DiffArgs, settings: &Settings) -> anyhow::Result<()> {
    let b = args.b.as_deref().unwrap_or(&args.a);
    // One record and no times: its beginning and its end.
    let is_one = args.b.is_none() && args.at_a.is_none();
    let start = When::AfterStart(0);
    let at_a = if is_one { Some(&start) } else { args.at_a.as_ref() };
    let (first, before) = look(&args.a, at_a)?;
    let (second, after) = look(b, args.at_b.as_ref())?;
    let changes = held::compare(&before, &after);
    let mut out = super::stdout();
    match args.json {
        true => json::write(&mut out, settings, [&first, &second], &changes)?,
        false => text::write(&mut out, settings.paint, [&first, &second], &changes, args.top)?,
    }
    Ok(out.flush()?)
}

/// What a record holds at a time.
fn look(file: &Path, at: Option<&When>) -> anyhow::Result<(Side, Held)> {
    let record = super::replay::open(file)?;
    let time = match at {
        Some(When::Peak) => {
            let mut replay = Replay::open(Record::open(file)?)
                .with_context(|| format!("cannot replay {}", file.display()))?;
            super::replay::peak(&mut replay)?
        }
        at => super::replay::resolve(at, &record)?,
    };
    let held = Held::at(&record, time).with_context(|| format!("cannot read {}", file.display()))?;
    let side = Side {
        file: file.display().to_string(),
        host: record.begin().host.clone(),
        time_ns: record.to_realtime_ns(time),
        exact: held.exact,
    };
    Ok((side, held))
}
