//! The judged soak: accidents, readings all the time, and quiet moments in which the readings are judged.

mod accidents;
mod outcome;
mod readings;

pub use outcome::Outcome;

use super::claims::{Claim, What};
use super::oracle::{Oracle, Source};
use super::verdict::{Judge, Reading};
use crate::soak::options::Options;
use crate::soak::processes::Stoppable;
use crate::space::Space;
use accidents::{Standstill, WRITERS, Writer};
use anyhow::{Context, Result};
use fastrand::Rng;
use shm_layout::RowKind;
use shm_layout::table::{Bucket, HISTORY_RESOLUTIONS};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tt_shm_os::monotonic_ns;

/// What was done to the processes lately, for whoever has to find out why a claim was false.
#[derive(Default)]
struct Diary(VecDeque<(u64, String)>);

/// How far back it reaches.
const DIARY_NS: u64 = 8_000_000_000;

impl Diary {
    fn note(&mut self, what: String) {
        let now = monotonic_ns();
        self.0.push_back((now, what));
        while self.0.pop_front_if(|(time, _)| *time + DIARY_NS < now).is_some() {}
    }
}

impl fmt::Display for Diary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(time, what)| writeln!(f, "  {time} {what}"))
    }
}

/// A soak that runs.
pub struct Soak {
    options: Options,
    random: Rng,
    folder: PathBuf,
    writers: Vec<Option<Writer>>,
    /// Writers that ended, to be read once more.
    ended: Vec<(Source, PathBuf)>,
    /// Processes that make segments which live for microseconds.
    brief: Vec<(Stoppable, Source, PathBuf)>,
    aggregator: Option<Stoppable>,
    oracle: Oracle,
    readings: Vec<Reading>,
    standstills: Vec<Standstill>,
    /// Events that were committed only after their writer had stood still.
    stood: u64,
    /// The buckets that were judged, by table, device, resolution and start.
    buckets: HashMap<(u64, usize, usize, u64), Bucket>,
    /// What was last read of each bucket.
    shown: HashMap<(usize, usize, u64), Bucket>,
    planted: bool,
    diary: Diary,
    started: u64,
    outcome: Outcome,
    /// Last: what it removes, a process that still runs would make again.
    space: Space,
}

impl Soak {
    /// Nothing is started yet.
    pub fn new(options: Options, seed: u64) -> Result<Soak> {
        let folder = std::env::temp_dir().join(format!("tt-shm-judge-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Soak {
            options,
            random: Rng::with_seed(seed),
            space: Space::new(),
            folder,
            writers: (0..WRITERS).map(|_| None).collect(),
            ended: Vec::new(),
            brief: Vec::new(),
            aggregator: None,
            oracle: Oracle::begin(),
            readings: Vec::new(),
            standstills: Vec::new(),
            stood: 0,
            buckets: HashMap::new(),
            shown: HashMap::new(),
            planted: false,
            diary: Diary::default(),
            started: 0,
            outcome: Outcome::default(),
        })
    }

    /// Runs until the time is over or `interrupted`.
    pub fn run(mut self, interrupted: &AtomicBool) -> Result<Outcome> {
        let begin = Instant::now();
        let mut told = begin;
        while begin.elapsed().as_secs() < self.options.seconds && !interrupted.load(Ordering::Relaxed) {
            self.start_missing()?;
            self.accidents()?;
            self.quiet_moment()?;
            if told.elapsed() >= Duration::from_secs(1) && std::io::stderr().is_terminal() {
                told = Instant::now();
                eprint!("\r\x1b[K{} s: {}", begin.elapsed().as_secs(), self.outcome);
            }
        }
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
        for (kind, count) in &self.outcome.verdicts.kinds {
            println!("in all {count} x {kind}");
        }
        std::fs::remove_dir_all(&self.folder)?;
        Ok(std::mem::take(&mut self.outcome))
    }

    fn fault(&mut self, text: &str) {
        println!("fault: {text}");
        self.outcome.faults += 1;
    }

    /// Stops all writers, reads everything and judges it.
    fn quiet_moment(&mut self) -> Result<()> {
        for (mut process, source, log) in std::mem::take(&mut self.brief) {
            if !process.wait() {
                self.fault("a process of short lives did not end in an orderly way");
            }
            self.ended.push((source, log));
        }
        for writer in self.writers.iter_mut().flatten() {
            writer.process.stop()?;
        }
        let stopped = monotonic_ns();
        self.diary.note("all writers stand still".to_owned());
        self.collect()?;
        let as_of = self.await_table(stopped);
        if self.random.u64(..2) == 0 {
            self.read_embedded()?;
        }
        if self.random.u64(..4) == 0 && (as_of.is_some() || self.aggregator.is_none()) {
            self.read_shown(as_of)?;
        }
        self.plant();
        for reading in std::mem::take(&mut self.readings) {
            self.outcome.readings += 1;
            let known = self.outcome.verdicts.falsehoods.len();
            Judge::judge(&self.oracle, &reading, &mut self.outcome.verdicts);
            let news = &self.outcome.verdicts.falsehoods[known..];
            news.iter().for_each(|falsehood| println!("{falsehood}"));
            if !news.is_empty() {
                print!("{}", self.diary);
                self.oracle
                    .late_since(reading.as_of.saturating_sub(DIARY_NS))
                    .iter()
                    .for_each(|l| println!("  {l}"));
            }
        }
        self.judge_lists();
        for writer in self.writers.iter_mut().flatten() {
            writer.process.go_on();
        }
        Ok(())
    }

    /// Reads all logs.
    fn collect(&mut self) -> Result<()> {
        let lasting = self.writers.iter_mut().flatten().map(|writer| &mut writer.source);
        let judged = self.readings.iter().map(|reading| reading.as_of).min().unwrap_or(u64::MAX);
        let judged = self.oracle.timeline.to_ticks(judged);
        let late =
            self.oracle.collect(lasting.chain(self.ended.iter_mut().map(|(source, _)| source)), judged);
        // Buckets that were true without them have to be judged again.
        let ends = late.iter().map(|late| self.oracle.timeline.to_ns(late.ticks));
        if let Some(first) = ends.min() {
            self.buckets
                .retain(|(_, _, resolution, start), _| start + HISTORY_RESOLUTIONS[*resolution] < first);
        }
        self.outcome.segments = self.oracle.processes.len() as u64;
        for standstill in std::mem::take(&mut self.standstills) {
            let process = self.oracle.process(standstill.identity);
            let next = process.and_then(|p| p.recent.iter().find(|r| r.position == standstill.position + 1));
            self.stood += u64::from(next.is_some_and(|event| event.ticks < standstill.ticks));
        }
        for (source, log) in std::mem::take(&mut self.ended) {
            self.note(&source);
            std::fs::remove_file(log)?;
        }
        for number in 0..WRITERS {
            if let Some(complaints) =
                self.writers[number].as_ref().map(|writer| writer.source.log.complaints())
                && complaints > 0
            {
                self.fault(&format!("{complaints} events are not what their writer reported"));
            }
        }
        self.outcome.delayed = self.stood + self.oracle.delayed;
        self.outcome.late = self.oracle.late_events;
        self.outcome.calls = self.oracle.calls;
        Ok(())
    }

    fn note(&mut self, source: &Source) {
        if source.log.complaints() > 0 {
            self.fault(&format!("{} events are not what their writer reported", source.log.complaints()));
        }
    }

    /// Makes one claim wrong by a byte.
    fn plant(&mut self) {
        let wanted =
            |claim: &&mut Claim| matches!(claim.what, What::Own(..)) && claim.is_exact() && claim.low > 0;
        let mut figures = self.readings.iter_mut().rev().flat_map(|reading| &mut reading.claims.figures);
        if let Some(claim) = figures.find(wanted).filter(|_| self.options.plant && !self.planted) {
            println!(
                "planted: {} of device {} is {}, not {}",
                claim.what,
                claim.device,
                claim.low + 1,
                claim.low
            );
            (claim.low, claim.high) = (claim.low + 1, Some(claim.low + 1));
            self.planted = true;
        }
    }

    /// The live lists of the segments, where no call is in flight.
    fn judge_lists(&mut self) {
        let mut wrong = Vec::new();
        for writer in self.writers.iter().flatten() {
            let Some(segment) = &writer.source.segment else { continue };
            if writer.source.in_flight.is_some() {
                continue;
            }
            self.outcome.lists += 1;
            let list = segment.live_list();
            let things = list.rows.iter().filter(|row| row.kind() != Some(RowKind::Program));
            let mut live: Vec<_> = things.map(|row| (row.device, row.class, row.id, row.size)).collect();
            live.sort_unstable();
            let truth = self.oracle.live(segment.identity());
            if list.exact && list.unlisted == 0 && live != truth {
                let only = |list: &[(u8, u8, u64, u64)], other: &[(u8, u8, u64, u64)]| -> Vec<_> {
                    list.iter().filter(|row| !other.contains(row)).copied().take(10).collect()
                };
                wrong.push(format!(
                    "live list of {}: surplus {:?}, missing {:?}",
                    writer.path.display(),
                    only(&live, &truth),
                    only(&truth, &live)
                ));
            }
        }
        wrong.iter().for_each(|text| self.fault(text));
    }
}

impl Drop for Soak {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(Path::new(&self.folder));
    }
}
