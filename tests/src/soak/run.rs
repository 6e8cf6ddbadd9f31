//! The soak itself: accidents, then a quiet moment in which everything is compared, again and again.

use super::compare::Said;
use super::evidence::Evidence;
use super::options::Options;
use super::processes::{Role, Stoppable, Writer, command};
use super::replay::State;
use super::snapshot;
use super::table::{self, Known};
use super::tally::Tally;
use super::writer::Plan;
use crate::space::Space;
use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tt_shm_reader::{Table, TableSnapshot};

/// How long the monitor may take to catch up with writers that do nothing. It takes milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(15);
const READERS: usize = 2;
/// Failed comparisons after which more of them tell nothing.
const ENOUGH: u64 = 5;

/// A writer that was killed while an aggregator followed it: that one has to say what it held.
struct Grave {
    pid: u32,
    file: String,
    held: State,
    aggregator: u32,
}

/// A soak that runs.
pub struct Soak {
    options: Options,
    seed: u64,
    random: Rng,
    folder: PathBuf,
    writers: Vec<Option<Writer>>,
    aggregator: Option<Stoppable>,
    readers: Vec<Option<Stoppable>>,
    graves: Vec<Grave>,
    started: u64,
    tally: Tally,
    /// Last: what it removes, a process that still runs would make again.
    space: Space,
}

impl Soak {
    /// Nothing is started yet.
    pub fn new(options: Options, seed: u64) -> Result<Soak> {
        let folder = std::env::temp_dir().join(format!("tt-shm-soak-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Soak {
            seed,
            random: Rng::with_seed(seed),
            space: Space::new(),
            folder,
            writers: (0..options.writers).map(|_| None).collect(),
            aggregator: None,
            readers: (0..READERS).map(|_| None).collect(),
            graves: Vec::new(),
            started: 0,
            tally: Tally::default(),
            options,
        })
    }

    /// Runs until the time is over or `interrupted`.
    pub fn run(mut self, interrupted: &AtomicBool) -> Result<Tally> {
        let begin = Instant::now();
        let mut told = begin;
        let over =
            |soak: &Soak| begin.elapsed().as_secs() >= soak.options.seconds || soak.tally.wrong >= ENOUGH;
        while !over(&self) && !interrupted.load(Ordering::Relaxed) {
            self.start_missing()?;
            self.accidents()?;
            self.quiet_moment()?;
            if told.elapsed() >= Duration::from_secs(1) && std::io::stderr().is_terminal() {
                told = Instant::now();
                eprint!("\r\x1b[K{} s: {}", begin.elapsed().as_secs(), self.tally);
            }
        }
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
        let all: Vec<usize> = (0..self.writers.len()).collect();
        for number in all {
            self.end_writer(number)?;
        }
        if self.tally.wrong == 0 {
            std::fs::remove_dir_all(&self.folder)?;
        }
        Ok(self.tally)
    }

    fn start_missing(&mut self) -> Result<()> {
        for number in 0..self.writers.len() {
            if self.writers[number].is_none() {
                self.writers[number] = Some(self.start_writer(number)?);
            }
        }
        // Now and then nobody aggregates for a while.
        if self.aggregator.is_none() && self.random.u64(..3) > 0 {
            let mut daemon = command(&self.space, Role::Smi)?;
            daemon.arg("aggregate").stderr(Stdio::null());
            self.aggregator = Some(Stoppable::spawn(daemon));
            self.count_start();
        }
        for number in 0..self.readers.len() {
            if self.readers[number].is_none() {
                self.readers[number] = Some(self.start_reader(number)?);
            }
        }
        Ok(())
    }

    fn count_start(&mut self) {
        self.started += 1;
        let first = self.options.writers + READERS as u64 + 1;
        self.tally.restarts = self.started.saturating_sub(first);
    }

    fn start_writer(&mut self, number: usize) -> Result<Writer> {
        let random = &mut self.random;
        let rings = [64, 256, 1024, 16384];
        let plan = Plan {
            seed: random.u64(..1 << 40),
            threads: 1 + random.u64(..self.options.threads) as usize,
            ring_slots: rings[random.usize(..4)],
            pause_us: [100, 1000, 5000][random.usize(..3)],
            burst: [2, 50, 1000, 5000][random.usize(..4)],
            lies: self.options.lie && self.started == 0,
            notes: self.folder.join(format!("writer-{number}-{}.notes", self.started)),
        };
        self.count_start();
        Writer::start(&self.space, plan)
    }

    fn start_reader(&mut self, number: usize) -> Result<Stoppable> {
        let mut reader = match number {
            0 => command(&self.space, Role::Reader)?,
            _ => {
                let mut events = command(&self.space, Role::Smi)?;
                // It says on stderr what it missed, which is a lot.
                events.args(["events", "--follow", "--json"]).stderr(Stdio::null());
                events
            }
        };
        reader.stdout(Stdio::null());
        self.count_start();
        Ok(Stoppable::spawn(reader))
    }

    /// Some time at work, with some accidents in it.
    fn accidents(&mut self) -> Result<()> {
        for _ in 0..1 + self.random.u64(..4) {
            std::thread::sleep(Duration::from_micros(self.random.u64(..40_000)));
            let writer = self.random.u64(..self.options.writers) as usize;
            let reader = self.random.usize(..READERS);
            match self.random.u64(..16) {
                0 | 1 => self.kill_writer(writer)?,
                2 => self.end_writer(writer)?,
                3..6 => {
                    self.stop_for_a_while(|soak| soak.writers[writer].as_mut().map(|w| &mut w.process))?
                }
                6 => self.kill_aggregator(),
                7 => self.terminate_aggregator()?,
                8 | 9 => self.stop_for_a_while(|soak| soak.aggregator.as_mut())?,
                10 => {
                    if let Some(mut reader) = self.readers[reader].take() {
                        reader.kill();
                        self.tally.kills += 1;
                    }
                }
                11 => self.stop_for_a_while(|soak| soak.readers[reader].as_mut())?,
                12 | 13 => drop(self.smi_snapshot()?),
                _ => {}
            }
        }
        Ok(())
    }

    fn stop_for_a_while(&mut self, of: impl Fn(&mut Soak) -> Option<&mut Stoppable>) -> Result<()> {
        // Mostly short; now and then so long that a heartbeat becomes stale.
        let long = self.random.u64(..40) == 0;
        let longest = if long { 1_500_000 } else { 20_000 };
        let pause = Duration::from_micros(self.random.u64(..longest));
        let Some(process) = of(self) else { return Ok(()) };
        process.stop()?;
        std::thread::sleep(pause);
        if let Some(process) = of(self) {
            process.go_on();
        }
        self.tally.stops += 1;
        Ok(())
    }

    fn kill_writer(&mut self, number: usize) -> Result<()> {
        let Some(mut writer) = self.writers[number].take() else { return Ok(()) };
        writer.process.kill();
        self.tally.kills += 1;
        let state = self.compare_segment(&mut writer)?;
        let followed =
            self.aggregator.as_ref().map(Stoppable::pid).filter(|pid| writer.followed_by == Some(*pid));
        if let (Some(held), Some(aggregator)) = (state, followed) {
            let (pid, file) = (writer.process.pid(), writer.segment.file_name().to_owned());
            self.graves.push(Grave { pid, file, held, aggregator });
        }
        std::fs::remove_file(&writer.plan.notes)?;
        Ok(())
    }

    fn end_writer(&mut self, number: usize) -> Result<()> {
        let Some(mut writer) = self.writers[number].take() else { return Ok(()) };
        if !writer.finish() {
            self.wrong(Some(&writer), "it did not end in an orderly way", "")?;
        }
        self.compare_segment(&mut writer)?;
        std::fs::remove_file(&writer.plan.notes)?;
        Ok(())
    }

    fn kill_aggregator(&mut self) {
        if let Some(mut aggregator) = self.aggregator.take() {
            aggregator.kill();
            self.tally.kills += 1;
        }
    }

    fn terminate_aggregator(&mut self) -> Result<()> {
        let Some(aggregator) = self.aggregator.take() else { return Ok(()) };
        // One that has not installed its handlers yet is ended by the signal; its table says whether it had.
        let ready = self.table().is_some_and(|table| table.1 == aggregator.pid());
        if !aggregator.terminate() && ready {
            self.wrong(None, "the aggregator did not end in an orderly way", "")?;
        }
        Ok(())
    }

    /// Stops all writers and compares everything.
    fn quiet_moment(&mut self) -> Result<()> {
        for reader in self.readers.iter_mut().flatten() {
            if !reader.is_stopped() && reader.has_ended() {
                self.tally.wrong += 1;
                println!("wrong: reader {} ended by itself; what it says of that is above", reader.pid());
            }
        }
        let mut writers: Vec<Writer> = self.writers.iter_mut().filter_map(Option::take).collect();
        let mut states = Vec::new();
        for writer in &mut writers {
            writer.process.stop()?;
            self.tally.stops += 1;
        }
        for writer in &mut writers {
            states.push(self.compare_segment(writer)?);
        }
        // A writer whose segment is wrong already says nothing about the table.
        if states.iter().all(Option::is_some) {
            let states: Vec<State> = states.into_iter().flatten().collect();
            self.compare_monitors(&mut writers, &states)?;
        }
        for (slot, mut writer) in self.writers.iter_mut().zip(writers) {
            writer.process.go_on();
            *slot = Some(writer);
        }
        Ok(())
    }

    /// A stopped or dead writer's segment; returns the state that it is in, unless that is wrong.
    fn compare_segment(&mut self, writer: &mut Writer) -> Result<Option<State>> {
        self.tally.operations += writer.replay.advance(&writer.notes);
        self.tally.comparisons += 1;
        if writer.refused() > 0 {
            self.wrong(Some(writer), &format!("{} calls were refused", writer.refused()), "")?;
        }
        self.tally.in_flight += u64::from(!writer.replay.in_flight().is_empty());
        let candidates = writer.replay.candidates();
        let found = Said::read(&writer.segment).map_err(|why| vec![why]).and_then(|said| {
            let state = said.identify(writer.process.pid(), &candidates);
            state.cloned().map_err(|differences| differences.iter().map(ToString::to_string).collect())
        });
        match found {
            Ok(state) => Ok(Some(state)),
            Err(why) => {
                let calls = writer.replay.in_flight();
                self.wrong(Some(writer), &format!("{}\nin flight: {calls:?}", why.join("\n")), "")?;
                Ok(None)
            }
        }
    }

    fn compare_monitors(&mut self, writers: &mut [Writer], states: &[State]) -> Result<()> {
        let known: Vec<Known<'_>> = writers
            .iter()
            .zip(states)
            .map(|(writer, state)| {
                let (pid, identity) = (writer.process.pid(), writer.segment.identity());
                Known { pid, identity, state }
            })
            .collect();
        if let Some(aggregator) = self.aggregator.as_ref().map(Stoppable::pid) {
            self.tally.comparisons += 1;
            match self.await_table(aggregator, &known) {
                Ok(table) => self.compare_graves(&table, aggregator)?,
                Err(why) => self.wrong(None, &format!("the table of aggregator {aggregator}: {why}"), "")?,
            }
        }
        if self.random.u64(..3) == 0 {
            self.compare_snapshot(&known)?;
        }
        let aggregator = self.aggregator.as_ref().map(Stoppable::pid);
        writers.iter_mut().for_each(|writer| writer.followed_by = aggregator);
        Ok(())
    }

    fn compare_snapshot(&mut self, known: &[Known<'_>]) -> Result<()> {
        let text = self.smi_snapshot()?;
        let aggregator = self.aggregator.as_ref().map(Stoppable::pid);
        let compared = snapshot::parse(&text).and_then(|shown| {
            if !snapshot::is_current(&shown, aggregator) {
                return Ok(());
            }
            self.tally.comparisons += 1;
            snapshot::compare(&shown, known)
        });
        match compared {
            Ok(()) => Ok(()),
            Err(why) => {
                let text = String::from_utf8_lossy(&text);
                self.wrong(None, &format!("tt-smi snapshot: {why}"), &text)
            }
        }
    }

    /// The table of this aggregator, as soon as it says exactly what the writers noted.
    fn await_table(&self, aggregator: u32, known: &[Known<'_>]) -> Result<TableSnapshot, String> {
        let begin = Instant::now();
        loop {
            let compared = match self.table() {
                Some((table, pid)) if pid == aggregator => table::compare(&table, known).map(|()| table),
                _ => Err("it is not there".to_owned()),
            };
            match compared {
                Err(why) if begin.elapsed() >= PATIENCE => return Err(why),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
                Ok(table) => return Ok(table),
            }
        }
    }

    fn table(&self) -> Option<(TableSnapshot, u32)> {
        let table = Table::open(self.space.namespace()).ok()?;
        Some((table.snapshot(), table.header().pid as u32))
    }

    /// The table shows no dead process as alive, so it must say what each of them held.
    fn compare_graves(&mut self, table: &TableSnapshot, aggregator: u32) -> Result<()> {
        for grave in std::mem::take(&mut self.graves) {
            if grave.aggregator != aggregator {
                continue;
            }
            self.tally.comparisons += 1;
            if let Err(why) = table::compare_reclaimed(table, grave.pid, &grave.file, &grave.held) {
                self.wrong(None, &why, "")?;
            }
        }
        Ok(())
    }

    /// What `tt-smi snapshot --json` prints now. It must always work.
    fn smi_snapshot(&mut self) -> Result<Vec<u8>> {
        let output = command(&self.space, Role::Smi)?.args(["snapshot", "--json"]).output()?;
        ensure!(
            output.status.success(),
            "tt-smi snapshot failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(output.stdout)
    }

    /// Tells what is wrong and keeps what it can be seen from.
    fn wrong(&mut self, writer: Option<&Writer>, why: &str, details: &str) -> Result<()> {
        self.tally.wrong += 1;
        let evidence = Evidence::new(&self.folder, self.tally.wrong)?;
        let seed = self.seed;
        println!("wrong: {why}\nseed {seed}; evidence in {}", evidence.folder().display());
        let mut text = format!("seed {seed}\n{why}\n{details}\n");
        if let Some(writer) = writer {
            text += &format!("pid {} {:?}\n", writer.process.pid(), writer.plan);
            evidence.file(&writer.plan.notes)?;
            let file = writer.file.try_clone()?;
            evidence.copy(file, Path::new(writer.segment.file_name()))?;
        }
        for file in self.space.files() {
            evidence.file(&file)?;
        }
        Ok(evidence.text("why.txt", &text)?)
    }
}
