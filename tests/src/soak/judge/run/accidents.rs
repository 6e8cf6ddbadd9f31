//! Processes that are started, stopped, killed and ended.

use super::Soak;
use crate::soak::judge::actor::Plan;
use crate::soak::judge::log::{CAPACITY, Log};
use crate::soak::judge::oracle::{CHIPS, Source};
use crate::soak::options::Accident;
use crate::soak::processes::{Role, Stoppable, command};
use anyhow::{Context, Result};
use shm_layout::protocol::observe::Slot;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{ChildStdin, Stdio};
use std::time::{Duration, Instant};
use tt_shm_aggregator::request_reset;
use tt_shm_reader::Segment;

/// Stops in a row: few of them hit the span between clock and commit.
const STOPS: usize = 6;
/// Writer processes that last: with them, an aggregator and this process two cores are busy.
pub(super) const WRITERS: usize = 3;

/// A writer that lasts.
pub(super) struct Writer {
    pub(super) process: Stoppable,
    pub(super) source: Source,
    input: Option<ChildStdin>,
    pub(super) path: PathBuf,
}

impl Writer {
    fn name(&self) -> String {
        self.source.segment.as_ref().map_or(String::new(), |segment| format!("{:x}", segment.identity()))
    }
}

/// A moment at which a writer stood still: events behind `position` with an earlier time came late.
pub(super) struct Standstill {
    pub(super) identity: u64,
    pub(super) position: u64,
    pub(super) ticks: u64,
}

impl Soak {
    /// Starts the writers that are missing and, most of the time, an aggregator.
    pub(super) fn start_missing(&mut self) -> Result<()> {
        for number in 0..WRITERS {
            let is_full = |writer: &mut Writer| writer.source.calls + 50_000 > CAPACITY;
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
        if self.aggregator.is_none() && (!gaps || self.random.u64(..3) > 0) {
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
        let threads = if lives > 0 { 1 } else { 1 + random.usize(..3) };
        Plan {
            seed: random.u64(..1 << 40),
            threads: threads.min(CHIPS - 1),
            ring_slots: if lives > 0 {
                64
            } else if laps {
                [64, 1024, 16384, 16384][random.usize(..4)]
            } else {
                16384
            },
            pause_us: [5000, 20_000, 50_000][random.usize(..3)],
            burst: [2, 20, 60][random.usize(..3)],
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
        let lives = 1 + self.random.u64(..6);
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
    pub(super) fn accidents(&mut self) -> Result<()> {
        for _ in 0..2 + self.random.u64(..6) {
            std::thread::sleep(Duration::from_micros(self.random.u64(..30_000)));
            let writer = self.random.usize(..WRITERS);
            let accident = Accident::SUDDEN[self.random.usize(..Accident::SUDDEN.len())];
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

    /// Stops a writer again and again, as soon as it does something, for longer than events wait to be merged.
    fn stop_at_work(&mut self, number: usize) -> Result<()> {
        for _ in 0..STOPS {
            self.stop_once(number)?;
            self.read_table();
        }
        Ok(())
    }

    fn stop_once(&mut self, number: usize) -> Result<()> {
        let pause = Duration::from_micros(600 + self.random.u64(..3_000));
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
        match self.random.u64(..12) {
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
        let pause = Duration::from_micros(self.random.u64(..60_000));
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
}
