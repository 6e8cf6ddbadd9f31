//! The judged soak: accidents, readings all the time, and quiet moments in which the readings are judged.

use super::actor::Plan;
use super::claims::{self, Claim, What};
use super::log::Log;
use super::oracle::{CHIPS, Oracle, Source};
use super::shown;
use super::verdict::{Judge, Reading, Verdicts};
use crate::soak::options::{Accident, Options};
use crate::soak::processes::{Role, Stoppable, command};
use crate::space::Space;
use crate::workload::Random;
use anyhow::{Context, Result};
use shm_layout::RowKind;
use shm_layout::protocol::observe::Slot;
use shm_layout::table::{Bucket, HISTORY_RESOLUTIONS};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tt_shm_aggregator::{Aggregator, Config, request_reset};
use tt_shm_os::monotonic_ns;
use tt_shm_reader::{Segment, Table, TableSnapshot};

/// How far behind its heartbeat a table usually is: events wait 0.5 ms to be merged.
const LAG_NS: u64 = 2_000_000;
/// How far the clocks of a writer and an aggregator may be apart.
const CLOCKS_NS: u64 = 200_000;
/// How long the aggregator may take to catch up with writers that do nothing.
const PATIENCE: Duration = Duration::from_secs(15);
/// Stops in a row: few of them hit the span between clock and commit.
const STOPS: usize = 6;
/// Writer processes that last: with them, an aggregator and this process two cores are busy.
const WRITERS: usize = 3;

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

/// A writer that lasts.
struct Writer {
    process: Stoppable,
    source: Source,
    input: Option<ChildStdin>,
    path: PathBuf,
}

impl Writer {
    fn name(&self) -> String {
        self.source.segment.as_ref().map_or(String::new(), |segment| format!("{:x}", segment.identity()))
    }
}

/// A moment at which a writer stood still: events behind `position` with an earlier time came late.
struct Standstill {
    identity: u64,
    position: u64,
    ticks: u64,
}

/// What a soak did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    verdicts: Verdicts,
    calls: u64,
    segments: u64,
    kills: u64,
    stops: u64,
    restarts: u64,
    resets: u64,
    /// Events that a reader could not see for more than the merge window after their time.
    late: u64,
    /// Of these, events seen to be committed only after their thread had stood still.
    delayed: u64,
    readings: u64,
    lists: u64,
    /// What is wrong beside the claims.
    faults: u64,
}

impl Outcome {
    /// Everything that is wrong.
    pub fn wrong(&self) -> u64 {
        self.verdicts.wrong() + self.faults
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { verdicts, calls, segments, kills, stops, restarts, resets, late, delayed, .. } = self;
        let Outcome { readings, lists, faults, .. } = self;
        write!(
            f,
            "{calls} calls of {segments} segments, {kills} kills, {stops} stops, {restarts} restarts, {resets} \
             resets, {late} events late ({delayed} seen delayed between clock and commit), {readings} readings, \
             {lists} live lists, {} claims open, {faults} faults; {verdicts}",
            verdicts.open
        )
    }
}

/// A soak that runs.
pub struct Soak {
    options: Options,
    random: Random,
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
            random: Random::new(seed),
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

    fn start_missing(&mut self) -> Result<()> {
        for number in 0..WRITERS {
            let is_full = |writer: &mut Writer| writer.source.calls + 50_000 > super::log::CAPACITY;
            if self.writers[number].as_mut().is_some_and(is_full) {
                self.end_writer(number)?;
            }
            if self.writers[number].is_none() {
                self.writers[number] = Some(self.start_writer()?);
            }
        }
        let gaps = [Accident::KillAggregator, Accident::EndAggregator];
        let gaps = gaps.iter().any(|accident| self.options.allows(*accident));
        // Now and then nobody aggregates for a while.
        if self.aggregator.is_none() && (!gaps || self.random.below(3) > 0) {
            let mut daemon = command(&self.space, Role::Smi)?;
            daemon.arg("aggregate").stderr(Stdio::null());
            self.aggregator = Some(Stoppable::spawn(daemon));
            self.diary.note("an aggregator is started".to_owned());
            self.count_start();
        }
        Ok(())
    }

    fn count_start(&mut self) {
        self.started += 1;
        self.outcome.restarts = self.started.saturating_sub(WRITERS as u64 + 1);
    }

    fn plan(&mut self, lives: u64) -> Plan {
        let laps = self.options.allows(Accident::Lap);
        let random = &mut self.random;
        let threads = if lives > 0 { 1 } else { 1 + random.below(3) as usize };
        Plan {
            seed: random.below(1 << 40),
            threads: threads.min(CHIPS - 1),
            ring_slots: if lives > 0 {
                64
            } else if laps {
                [64, 1024, 16384, 16384][random.below(4) as usize]
            } else {
                16384
            },
            pause_us: [5000, 20_000, 50_000][random.below(3) as usize],
            burst: [2, 20, 60][random.below(3) as usize],
            lives,
            log: self.folder.join(format!("{}.log", self.started)),
        }
    }

    fn start_writer(&mut self) -> Result<Writer> {
        let plan = self.plan(0);
        self.count_start();
        let log = Log::create(&plan.log)?;
        let mut command = command(&self.space, Role::Judged)?;
        command.arg(serde_json::to_string(&plan)?).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Stoppable::spawn(command);
        let (input, output) = process.take_pipes();
        let mut path = String::new();
        BufReader::new(output.context("stdout is piped")?).read_line(&mut path)?;
        let path = PathBuf::from(path.trim_end());
        let mut source = Source::new(log, plan);
        let segment = Segment::open(&path).context("a writer that has started has a segment")?;
        self.diary.note(format!("{:x} has been started", segment.identity()));
        source.segment = Some(segment);
        Ok(Writer { process, source, input, path })
    }

    /// A process that makes a few segments, each for microseconds, and ends.
    fn start_brief(&mut self) -> Result<()> {
        let lives = 1 + self.random.below(6);
        let plan = self.plan(lives);
        self.count_start();
        let log = Log::create(&plan.log)?;
        let mut command = command(&self.space, Role::Judged)?;
        command.arg(serde_json::to_string(&plan)?);
        let path = plan.log.clone();
        self.diary.note(format!("{lives} short lives"));
        self.brief.push((Stoppable::spawn(command), Source::new(log, plan), path));
        Ok(())
    }

    /// Some time at work, with some accidents in it and readings between them.
    fn accidents(&mut self) -> Result<()> {
        for _ in 0..2 + self.random.below(6) {
            std::thread::sleep(Duration::from_micros(self.random.below(30_000)));
            let writer = self.random.below(WRITERS as u64) as usize;
            let accident = Accident::SUDDEN[self.random.below(Accident::SUDDEN.len() as u64) as usize];
            match accident {
                accident if !self.options.allows(accident) => {}
                Accident::Kill => self.kill_writer(writer),
                Accident::End => self.end_writer(writer)?,
                Accident::Stop => self.stop_at_work(writer)?,
                Accident::Brief => self.start_brief()?,
                Accident::Reset => self.reset(),
                Accident::KillAggregator => self.kill_aggregator(),
                Accident::EndAggregator => self.terminate_aggregator(),
                Accident::StopAggregator => self.stop_aggregator()?,
                Accident::None | Accident::Lap => {}
            }
            self.read_table();
        }
        Ok(())
    }

    fn kill_writer(&mut self, number: usize) {
        let Some(mut writer) = self.writers[number].take() else { return };
        let before = self.oracle.timeline.now();
        self.diary.note(format!("{} is killed", writer.name()));
        writer.process.kill();
        writer.source.killed = Some((before, self.oracle.timeline.now()));
        self.outcome.kills += 1;
        let log = writer.source.plan.log.clone();
        self.ended.push((writer.source, log));
    }

    fn end_writer(&mut self, number: usize) -> Result<()> {
        let Some(mut writer) = self.writers[number].take() else { return Ok(()) };
        self.diary.note(format!("{} is ended", writer.name()));
        writer.input = None;
        if !writer.process.wait() {
            self.fault("a writer did not end in an orderly way");
        }
        let log = writer.source.plan.log.clone();
        self.ended.push((writer.source, log));
        Ok(())
    }

    fn fault(&mut self, text: &str) {
        println!("fault: {text}");
        self.outcome.faults += 1;
    }

    /// Stops a writer again and again, as soon as it does something, for longer than events wait to be merged.
    fn stop_at_work(&mut self, number: usize) -> Result<()> {
        for _ in 0..STOPS {
            self.stop_once(number)?;
            self.read_table();
        }
        Ok(())
    }

    fn stop_once(&mut self, number: usize) -> Result<()> {
        let pause = Duration::from_micros(600 + self.random.below(3_000));
        let Some(writer) = &mut self.writers[number] else { return Ok(()) };
        let Some(segment) = &writer.source.segment else { return Ok(()) };
        let (head, begun) = (segment.words().head(), Instant::now());
        while segment.words().head() == head && begun.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        self.diary.note(format!("{} is stopped for a while", writer.name()));
        writer.process.stop()?;
        let ticks = self.oracle.timeline.now();
        let mut position = segment.words().head();
        while matches!(segment.words().read_slot(position + 1), Slot::Ready(_)) {
            position += 1;
        }
        self.standstills.push(Standstill { identity: segment.identity(), position, ticks });
        self.outcome.stops += 1;
        self.meanwhile((number + 1) % WRITERS, pause)?;
        if let Some(writer) = &mut self.writers[number] {
            writer.process.go_on();
            self.diary.note(format!("{} goes on", writer.name()));
        }
        Ok(())
    }

    /// What happens while a writer stands still: most often nothing. Its next event comes late into what that settled.
    fn meanwhile(&mut self, other: usize, pause: Duration) -> Result<()> {
        let mut pause = pause;
        match self.random.below(12) {
            0 if self.options.allows(Accident::Reset) => self.reset(),
            1 if self.options.allows(Accident::Brief) => self.start_brief()?,
            2 if self.options.allows(Accident::Kill) => {
                self.kill_writer(other);
                // Until its end was noticed.
                pause = Duration::from_millis(400);
            }
            _ => {}
        }
        std::thread::sleep(pause);
        Ok(())
    }

    fn kill_aggregator(&mut self) {
        if let Some(mut aggregator) = self.aggregator.take() {
            aggregator.kill();
            self.diary.note("the aggregator was killed".to_owned());
            self.outcome.kills += 1;
        }
    }

    fn terminate_aggregator(&mut self) {
        if let Some(aggregator) = self.aggregator.take() {
            aggregator.terminate();
            self.diary.note("the aggregator was ended".to_owned());
        }
    }

    fn stop_aggregator(&mut self) -> Result<()> {
        let pause = Duration::from_micros(self.random.below(60_000));
        let Some(aggregator) = &mut self.aggregator else { return Ok(()) };
        aggregator.stop()?;
        self.diary.note("the aggregator is stopped".to_owned());
        std::thread::sleep(pause);
        aggregator.go_on();
        self.diary.note("the aggregator goes on".to_owned());
        self.outcome.stops += 1;
        Ok(())
    }

    fn reset(&mut self) {
        let owner = rustix::process::geteuid().as_raw();
        if self.aggregator.is_some()
            && request_reset(self.space.namespace(), owner, Duration::from_secs(5)).is_ok()
        {
            self.outcome.resets += 1;
            self.diary.note("a window was asked for".to_owned());
        }
    }

    /// The table of the aggregator that runs, if it has one.
    fn table(&self) -> Option<Table> {
        let aggregator = self.aggregator.as_ref()?.pid();
        let table = Table::open(self.space.namespace()).ok()?;
        (table.header().pid == u64::from(aggregator)).then_some(table)
    }

    /// Reads the table. Returns as of when it is.
    fn read_table(&mut self) -> Option<u64> {
        let table = self.table()?;
        let snapshot = table.snapshot();
        let read = self.oracle.timeline.now();
        if !snapshot.consistent || !snapshot.freshness.is_fresh() {
            return None;
        }
        // Clocks differ a little.
        let as_of = snapshot.as_of.saturating_sub(CLOCKS_NS);
        let mut reading = reading("table", &snapshot, as_of, read);
        for device in 0..snapshot.devices.len() {
            self.read_history(&table, &snapshot, device, &mut reading);
        }
        self.readings.push(reading);
        Some(as_of)
    }

    /// Buckets that are complete and old enough to be judged, once each unless they change.
    fn read_history(
        &mut self,
        table: &Table,
        snapshot: &TableSnapshot,
        number: usize,
        reading: &mut Reading,
    ) {
        let (row, device) = &snapshot.devices[number];
        let chip = device.entry.chip_id.saturating_sub(1) as usize;
        for (resolution, length) in HISTORY_RESOLUTIONS.into_iter().enumerate().take(2) {
            for bucket in table.history(*row, resolution) {
                let held = self.shown.insert((chip, resolution, bucket.start), bucket);
                if resolution == 0 && held != Some(bucket) && bucket.start + length < reading.as_of {
                    self.diary.note(format!(
                        "device {chip} bucket {} reads l1 {}..{} flags {} of {:x}",
                        bucket.start,
                        bucket.l1_min,
                        bucket.l1_max,
                        bucket.flags,
                        table.header().identity
                    ));
                }
                let settled = bucket.start + length + 10_000_000;
                if settled > self.oracle.base_ns() || settled > reading.as_of {
                    continue;
                }
                let key = (table.header().identity, chip, resolution, bucket.start);
                if self.buckets.insert(key, bucket) == Some(bucket) {
                    continue;
                }
                reading.claims.figures.extend(claims::of_bucket(chip, resolution, length, &bucket));
            }
        }
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
        if self.random.below(2) == 0 {
            self.read_embedded()?;
        }
        if self.random.below(4) == 0 && (as_of.is_some() || self.aggregator.is_none()) {
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

    /// Waits until the table has seen everything, and reads it. Returns as of when it is.
    fn await_table(&mut self, stopped: u64) -> Option<u64> {
        let begun = Instant::now();
        while self.aggregator.is_some() {
            let heartbeat = self.table().map(|table| table.freshness().heartbeat_ns);
            if heartbeat.is_some_and(|heartbeat| heartbeat > stopped + 2 * LAG_NS) {
                return self.read_table();
            }
            if begun.elapsed() > PATIENCE {
                self.fault("the aggregator publishes nothing");
                return None;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        None
    }

    /// What a tool that aggregates by itself finds.
    fn read_embedded(&mut self) -> Result<()> {
        let mut config = Config::new(self.space.namespace().clone());
        (config.watch, config.reap) = (false, false);
        let as_of = monotonic_ns();
        let mut aggregator = Aggregator::new(config)?;
        aggregator.settle();
        let snapshot = aggregator.snapshot();
        let read = self.oracle.timeline.now();
        self.readings.push(reading("embedded", &snapshot, as_of, read));
        Ok(())
    }

    /// What `tt-smi` prints.
    fn read_shown(&mut self, table: Option<u64>) -> Result<()> {
        let begun = monotonic_ns();
        // The table of a killed aggregator is shown for a second more.
        if table.is_none()
            && Table::open(self.space.namespace()).is_ok_and(|table| table.freshness().is_fresh())
        {
            return Ok(());
        }
        let as_of = table.unwrap_or(begun);
        let peak = command(&self.space, Role::Smi)?.args(["peak", "--json"]).output()?;
        let used = command(&self.space, Role::Smi)?.args(["snapshot", "--json"]).output()?;
        let read = self.oracle.timeline.now();
        let (peaks, since) = shown::of_peak(&peak.stdout, |wall| self.oracle.timeline.from_realtime(wall))?;
        let mut figures = peaks;
        figures.extend(shown::of_snapshot(&used.stdout)?);
        let window = since.map_or((begun, false), |since| (since, true));
        let claims = claims::Claims { figures, ..Default::default() };
        let source = if table.is_some() { "tt-smi of a table" } else { "tt-smi alone" };
        self.readings.push(Reading { source, as_of, read, window, claims });
        Ok(())
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

fn reading(source: &'static str, snapshot: &TableSnapshot, as_of: u64, read: u64) -> Reading {
    let window = (snapshot.window_since, snapshot.windows > 0);
    let claims = claims::of_snapshot(snapshot);
    Reading { source, as_of, read, window, claims }
}

impl Drop for Soak {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(Path::new(&self.folder));
    }
}
