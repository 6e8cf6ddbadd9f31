//! A record as a sequence of changes, in the order of time: events, and from when to when the state of a process is known.

use std::collections::HashMap;

use shm_layout::Event;
use tt_shm_record::{Entry, Process, ReadError, Record, State};

/// How late after the beginning a process may be read for the first time so that the report still begins there.
const LATE_NS: u64 = 1_000_000_000;
/// The most checkpoints that are read to go on after a gap: no record may take for ever.
const MAX_RESUMES: usize = 20_000;

/// What changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'a> {
    /// The state of the process is known from now on: this.
    Known(&'a State),
    /// The next event of a process whose state is known.
    Event(&'a Event),
    /// From now on the state of the process is not known.
    Unknown,
    /// The process may have ended from now on. It does nothing more.
    MayHaveEnded,
    /// The process has ended.
    Ended,
    /// The report begins: peaks are those from now on. Of no process.
    Begin,
    /// From now on events of any process may be missing. Of no process.
    Incomplete,
}

/// When something changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    /// In nanoseconds of CLOCK_MONOTONIC; never goes back.
    pub(crate) ns: u64,
    /// The number of the change, the same each time that a record is followed.
    pub(crate) number: u64,
}

/// Takes changes.
pub(crate) trait Visitor {
    /// Takes a change of a process, given by its place. Returns false if an event cannot have happened, so that the state
    /// of the process is not known any more.
    fn visit(&mut self, at: At, process: usize, change: Change<'_>) -> bool;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A checkpoint is of this moment.
    Checkpoint,
    Unknown,
    MayHaveEnded,
    Ended,
    Incomplete,
    Begin,
}

/// What is known of a process before its events are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    /// When it appeared in the time of the report.
    pub(crate) since_ns: u64,
    /// When it ended, if it did: when that was noticed, or when it closed its segment.
    pub(crate) until_ns: Option<u64>,
    /// The times of its checkpoints, as the last event that they include has it.
    checkpoints: Vec<u64>,
    closed_ns: Option<u64>,
    /// Whether it says of itself that its figures are not all.
    pub(crate) is_partial: bool,
    /// How often its sums differed from its allocator's.
    pub(crate) differences: u64,
    /// The most live allocations without a row.
    pub(crate) unlisted: u64,
}

impl Summary {
    /// Whether its figures are only a part of what it holds.
    pub(crate) fn is_doubted(&self) -> bool {
        self.is_partial || self.differences > 0
    }
}

/// The order of changes, which is the same each time that a record is followed.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// First and last time of the report.
    pub(crate) span_ns: (u64, u64),
    /// The time from which on peaks are told.
    pub(crate) begin_ns: u64,
    pub(crate) processes: Vec<Summary>,
    numbers: HashMap<u32, usize>,
    moments: Vec<(u64, Kind, usize)>,
}

impl Schedule {
    pub(crate) fn of(record: &Record) -> Result<Schedule, ReadError> {
        let span_ns = record.span_ns();
        let numbers = record.processes().enumerate().map(|(place, process)| (process.number(), place));
        let mut schedule = Schedule {
            span_ns,
            begin_ns: span_ns.0,
            processes: vec![Summary::default(); record.processes().len()],
            numbers: numbers.collect(),
            moments: Vec::new(),
        };
        schedule.read_checkpoints(record)?;
        for (place, process) in record.processes().enumerate() {
            schedule.plan(place, process);
            if record.damage().is_some_and(|damage| damage.lost_frames > 0) && process.end.is_none() {
                // What a lost frame had of it cannot be told from its events: the record knows.
                if record.state_at(process.number(), span_ns.1)?.missing {
                    schedule.push(process.span_ns.1, Kind::Unknown, place);
                }
            }
        }
        if record.finished_ns().is_none() {
            schedule.push(record.complete_until_ns(), Kind::Incomplete, 0);
        }
        schedule.push(schedule.begin_ns, Kind::Begin, 0);
        schedule.moments.sort_unstable();
        Ok(schedule)
    }

    fn push(&mut self, ns: u64, kind: Kind, process: usize) {
        let (first, last) = self.span_ns;
        self.moments.push((ns.clamp(first, last), kind, process));
    }

    fn read_checkpoints(&mut self, record: &Record) -> Result<(), ReadError> {
        let frames = record.frames().iter().enumerate().filter(|(_, frame)| frame.has_checkpoint);
        for (place, _) in frames {
            for entry in record.read_frame(place)? {
                let Entry::State { process: number, state } = entry else { continue };
                let (Some(place), Some(process)) = (self.numbers.get(&number), record.process(number)) else {
                    continue;
                };
                let ns = |ticks: u64| record.to_monotonic_ns(process, ticks);
                let ticks = state.counters.iter().map(|counters| counters.time).max().unwrap_or(0);
                let summary = &mut self.processes[*place];
                summary.checkpoints.push(if ticks == 0 { 0 } else { ns(ticks) });
                summary.is_partial |= state.is_partial();
                summary.differences = summary.differences.max(state.self_checks[1]);
                summary.unlisted = summary.unlisted.max(state.unlisted);
                if state.closed_at != 0 {
                    summary.closed_ns = Some(ns(state.closed_at));
                }
            }
        }
        Ok(())
    }

    /// When the state of a process is known, and when it ends.
    fn plan(&mut self, place: usize, process: &Process) {
        let first = self.span_ns.0;
        let started = process.started_ns().unwrap_or(first);
        let earliest = if process.events > 0 { process.span_ns.0 } else { u64::MAX };
        let since = started.min(earliest).max(first);
        let checkpoints = std::mem::take(&mut self.processes[place].checkpoints);
        let known = checkpoints.first().map(|ns| (*ns).max(since));
        if known != Some(since) {
            self.push(since, Kind::Unknown, place);
        }
        // What was there before the recorder is known from when it was read, and so is the time of the report.
        if let Some(known) = known
            && started <= first
            && known - first <= LATE_NS
        {
            self.begin_ns = self.begin_ns.max(known);
        }
        checkpoints.iter().for_each(|ns| self.push((*ns).max(since), Kind::Checkpoint, place));
        process.gaps.iter().for_each(|gap| self.push(gap.after_ns.max(since), Kind::Unknown, place));
        self.processes[place].since_ns = since;
        let Some(end) = process.end else { return };
        let last = if process.events > 0 { process.span_ns.1 } else { since };
        let closed = self.processes[place].closed_ns.map(|ns| ns.max(last));
        let until = closed.unwrap_or(end.noticed_ns.max(last));
        self.processes[place].until_ns = Some(until);
        self.push(closed.unwrap_or(last), Kind::MayHaveEnded, place);
        self.push(until, Kind::Ended, place);
    }

    /// The place of the process with this number.
    pub(crate) fn place(&self, number: u32) -> Option<usize> {
        self.numbers.get(&number).copied()
    }

    /// Gives every change to a visitor. Calls `progress` now and then with the part of the events that was read.
    pub(crate) fn follow(
        &self,
        record: &Record,
        visitor: &mut dyn Visitor,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Followed, ReadError> {
        let mut run = Run::new(self, record, visitor);
        let (mut events, mut count) = (record.events(), 0_u64);
        let all = record.totals().events.max(1) as f64;
        while let Some(event) = events.next().transpose()? {
            run.reach(event.ns)?;
            run.event(event.process, &event.event);
            count += 1;
            if count.is_multiple_of(1 << 16) {
                progress(count as f64 / all);
            }
        }
        run.reach(u64::MAX)?;
        progress(1.0);
        Ok(Followed { refused: run.refused, out_of_order: events.out_of_order() })
    }
}

/// What could not be followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Followed {
    /// Events that cannot have happened.
    pub(crate) refused: u64,
    /// Events that were merged too late.
    pub(crate) out_of_order: u64,
}

/// What is followed of a process.
#[derive(Clone, Copy, Default)]
struct Cursor {
    is_known: bool,
    has_ended: bool,
    position: u64,
}

struct Run<'a> {
    schedule: &'a Schedule,
    record: &'a Record,
    visitor: &'a mut dyn Visitor,
    cursors: Vec<Cursor>,
    next: usize,
    at: At,
    resumes: usize,
    refused: u64,
}

impl<'a> Run<'a> {
    fn new(schedule: &'a Schedule, record: &'a Record, visitor: &'a mut dyn Visitor) -> Run<'a> {
        let cursors = vec![Cursor::default(); schedule.processes.len()];
        let at = At { ns: schedule.span_ns.0, number: 0 };
        Run { schedule, record, visitor, cursors, next: 0, at, resumes: 0, refused: 0 }
    }

    fn visit(&mut self, process: usize, change: Change<'_>) -> bool {
        self.at.number += 1;
        self.visitor.visit(self.at, process, change)
    }

    /// Handles all moments before a time.
    fn reach(&mut self, ns: u64) -> Result<(), ReadError> {
        while let Some((moment, kind, process)) = self.schedule.moments.get(self.next).copied() {
            if moment >= ns {
                break;
            }
            self.next += 1;
            self.at.ns = self.at.ns.max(moment);
            self.moment(kind, process)?;
        }
        self.at.ns = self.at.ns.max(ns.min(self.schedule.span_ns.1));
        Ok(())
    }

    fn moment(&mut self, kind: Kind, process: usize) -> Result<(), ReadError> {
        let is_known = self.cursors.get(process).is_some_and(|cursor| cursor.is_known);
        match kind {
            Kind::Checkpoint if !is_known => self.resume(process)?,
            Kind::Checkpoint => {}
            Kind::Unknown => self.lose(process),
            Kind::MayHaveEnded => drop(self.visit(process, Change::MayHaveEnded)),
            Kind::Ended => {
                self.cursors[process].has_ended = true;
                self.visit(process, Change::Ended);
            }
            Kind::Incomplete => drop(self.visit(process, Change::Incomplete)),
            Kind::Begin => drop(self.visit(process, Change::Begin)),
        }
        Ok(())
    }

    fn lose(&mut self, process: usize) {
        self.cursors[process].is_known = false;
        self.visit(process, Change::Unknown);
    }

    fn resume(&mut self, process: usize) -> Result<(), ReadError> {
        let Some(known) = self.record.processes().nth(process) else { return Ok(()) };
        if self.cursors[process].has_ended || self.resumes >= MAX_RESUMES {
            return Ok(());
        }
        self.resumes += 1;
        let state = match self.record.state_at(known.number(), self.at.ns) {
            Ok(state) => state,
            Err(ReadError::Implausible { .. } | ReadError::TooManyRows { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let is_plausible = state.counters.iter().all(|counters| counters.is_plausible());
        // Missing only because it is after the last moment that the record is complete: told for all processes.
        let is_late = self.record.finished_ns().is_none() && self.at.ns > self.record.complete_until_ns();
        if state.known && is_plausible && (!state.missing || is_late) {
            self.cursors[process].is_known = true;
            self.cursors[process].position = state.position;
            self.visit(process, Change::Known(&state));
        }
        Ok(())
    }

    #[inline]
    fn event(&mut self, number: u32, event: &Event) {
        let Some(process) = self.schedule.place(number) else { return };
        let cursor = &mut self.cursors[process];
        if !cursor.is_known || cursor.has_ended || event.stamp <= cursor.position {
            return;
        }
        let follows = event.stamp == cursor.position + 1;
        cursor.position = event.stamp;
        if !follows {
            self.lose(process);
        } else if !self.visit(process, Change::Event(event)) {
            self.refused += 1;
            self.lose(process);
        }
    }
}
