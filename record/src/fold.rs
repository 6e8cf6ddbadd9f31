//! What a process held at a time: a checkpoint, and the events after it.

use std::collections::{BTreeMap, HashMap};

use shm_layout::{Counters, Event, MAX_DEVICES, MAX_ROWS, NO_DEVICE, Row, RowEffect, RowKind};

use crate::entry::{Entry, StateEntry};
use crate::error::ReadError;
use crate::record::{Checkpoint, Process, Record};

/// What a process held at a time, as an observer would have seen it then.
#[derive(Clone, Debug)]
pub struct State {
    /// The process.
    pub process: u32,
    /// The time that was asked for.
    pub time_ns: u64,
    /// The position of the last event that is included.
    pub position: u64,
    /// The counters, by device index.
    pub counters: Vec<Counters>,
    /// What is live: buffers, circular buffers and kernels, and one row per program, oldest first.
    pub rows: Vec<Row>,
    /// What the process said of itself at the checkpoint that this was folded from: flags, anomalies, self-checks.
    pub checkpoint: StateEntry,
    /// Whether there is a checkpoint from before the time. If not, everything above is empty and means nothing.
    pub known: bool,
    /// Whether events from before the time are missing, or may be: the counters and rows are those before the gap.
    pub missing: bool,
}

impl State {
    /// Whether the counters are exactly those of the time.
    pub fn is_exact(&self) -> bool {
        self.known && !self.missing
    }

    /// Whether the rows are all that was live at the time.
    pub fn are_rows_exact(&self) -> bool {
        self.is_exact() && self.checkpoint.exact && self.checkpoint.unlisted == 0
    }

    fn unknown(process: u32, time_ns: u64) -> State {
        State {
            process,
            time_ns,
            position: 0,
            counters: Vec::new(),
            rows: Vec::new(),
            checkpoint: StateEntry::nothing(0),
            known: false,
            missing: true,
        }
    }
}

impl Record {
    /// What a process held at a time. Events of that nanosecond are included.
    ///
    /// Reads from the last checkpoint before the time. After the end of the record it is what was held at the end, and
    /// exact only if the record is [complete](Record::complete_until_ns) until then.
    pub fn state_at(&self, number: u32, time_ns: u64) -> Result<State, ReadError> {
        let process = self.known(number)?;
        let mut state = State::unknown(number, time_ns);
        let Some(checkpoint) = self.checkpoint_before(process, time_ns) else { return Ok(state) };
        let mut fold = Fold::new(self, process, checkpoint, time_ns);
        fold.run()?;
        (state.missing, state.known) = (fold.missing, true);
        // A process that had ended has nothing left to report.
        let is_over = process.end.is_some_and(|end| end.position <= fold.position);
        state.missing |= !is_over && !fold.is_past && time_ns > self.as_of_ns;
        state.position = fold.position;
        state.rows = fold.live.finish();
        state.counters = fold.counters;
        state.checkpoint = fold.state;
        Ok(state)
    }

    /// What every process held at a time that had been found and had not ended by then.
    pub fn states_at(&self, time_ns: u64) -> Result<Vec<State>, ReadError> {
        let is_there = |process: &&Process| {
            process.started_ns().is_none_or(|started| started <= time_ns)
                && process.end.is_none_or(|end| end.noticed_ns > time_ns)
        };
        self.processes().filter(is_there).map(|process| self.state_at(process.number(), time_ns)).collect()
    }

    /// The last checkpoint that has nothing from after the time.
    fn checkpoint_before(&self, process: &Process, time_ns: u64) -> Option<Checkpoint> {
        let ns = |ticks: u64| if ticks == 0 { 0 } else { self.to_monotonic_ns(process, ticks) };
        process.checkpoints.iter().rev().find(|checkpoint| ns(checkpoint.ticks) <= time_ns).copied()
    }
}

struct Fold<'a> {
    record: &'a Record,
    process: &'a Process,
    from: Checkpoint,
    time_ns: u64,
    state: StateEntry,
    counters: Vec<Counters>,
    live: Live,
    position: u64,
    latest_ns: u64,
    rows_left: u64,
    has_begun: bool,
    missing: bool,
    /// Whether frames were lost since the last entry that proves that nothing of the process was in them.
    in_doubt: bool,
    /// Whether an event from after the time was seen.
    is_past: bool,
}

impl<'a> Fold<'a> {
    fn new(record: &'a Record, process: &'a Process, from: Checkpoint, time_ns: u64) -> Fold<'a> {
        Fold {
            record,
            process,
            from,
            time_ns,
            state: StateEntry::nothing(0),
            counters: Vec::new(),
            live: Live::default(),
            position: 0,
            latest_ns: 0,
            rows_left: 0,
            has_begun: false,
            missing: false,
            in_doubt: false,
            is_past: false,
        }
    }

    fn run(&mut self) -> Result<(), ReadError> {
        let number = self.process.number();
        for place in self.from.frame..self.record.frames.len() {
            let frame = &self.record.frames[place];
            self.in_doubt |= frame.follows_loss && place != self.from.frame;
            if !frame.processes.contains(&number) {
                continue;
            }
            let begins = if place == self.from.frame { self.from.place } else { 0 };
            for entry in self.record.read_frame(place)?.into_iter().skip(begins) {
                if entry.process() == Some(number) && !self.entry(entry)? {
                    return Ok(());
                }
            }
        }
        self.missing |= self.in_doubt;
        Ok(())
    }

    /// Takes in an entry, and returns whether more are needed.
    fn entry(&mut self, entry: Entry) -> Result<bool, ReadError> {
        match entry {
            Entry::State { state, .. } if !self.has_begun => {
                (self.position, self.rows_left, self.has_begun) = (state.position, state.row_count, true);
                self.counters = state.counters.clone();
                self.state = *state;
            }
            // A later checkpoint: everything up to it should have been here.
            Entry::State { state, .. } => self.prove(state.position == self.position),
            Entry::Rows { position, rows, .. } if position == self.from.position && self.rows_left > 0 => {
                self.rows_left = self.rows_left.saturating_sub(rows.len() as u64);
                rows.iter().for_each(|row| self.live.insert(*row));
            }
            Entry::Events { events, .. } => return self.events(&events),
            Entry::Gap(gap) if gap.last > self.position => {
                self.missing = true;
                return Ok(false);
            }
            Entry::End(end) => self.prove(end.position == self.position),
            _ => {}
        }
        Ok(true)
    }

    fn prove(&mut self, is_complete: bool) {
        self.in_doubt &= !is_complete;
    }

    fn events(&mut self, events: &[Event]) -> Result<bool, ReadError> {
        for event in events {
            if event.stamp <= self.position {
                continue;
            }
            let ns = self.record.clocks.to_monotonic_ns(&self.process.entry, event.time);
            self.latest_ns = self.latest_ns.max(ns);
            self.is_past = self.latest_ns > self.time_ns;
            if event.stamp != self.position + 1 {
                // What is missing may be from before the time.
                self.missing = true;
                return Ok(false);
            }
            self.in_doubt = false;
            if self.is_past {
                return Ok(false);
            }
            self.apply(event)?;
        }
        Ok(true)
    }

    fn apply(&mut self, event: &Event) -> Result<(), ReadError> {
        self.position = event.stamp;
        if event.device == NO_DEVICE {
            return Ok(());
        }
        let (number, device) = (self.process.number(), usize::from(event.device));
        if device >= MAX_DEVICES {
            return Err(ReadError::UnlistedDevice { number, device: event.device });
        }
        if device >= self.counters.len() {
            self.counters.resize(device + 1, Counters::ZERO);
        }
        self.counters[device].apply(event).map_err(|cause| ReadError::Implausible { number, cause })?;
        self.live.apply(event);
        if self.live.rows.len() as u64 > MAX_ROWS {
            return Err(ReadError::TooManyRows { number });
        }
        Ok(())
    }
}

/// Live rows by their numbers, changed event by event. Rows of a program come in pairs, as in a segment.
#[derive(Clone, Debug, Default)]
pub struct Live {
    rows: HashMap<u32, Row>,
}

impl Live {
    /// The row with this number, if it is live.
    pub fn get(&self, row: u32) -> Option<&Row> {
        self.rows.get(&row)
    }

    /// Adds a row of a checkpoint.
    pub fn insert(&mut self, row: Row) {
        self.rows.insert(row.row, row);
    }

    /// Applies an event.
    pub fn apply(&mut self, event: &Event) {
        match RowEffect::of(event) {
            RowEffect::None => {}
            RowEffect::Rename => {
                if let Some(row) = self.rows.get_mut(&event.row) {
                    row.rename(event);
                }
            }
            RowEffect::Set(RowKind::Program) => {
                let row = Row::after_dispatch(self.program_before(event).as_ref(), event);
                self.insert(row);
            }
            RowEffect::Set(_) => self.insert(Row::from_event(event)),
            RowEffect::Clear => drop(self.rows.remove(&event.row)),
            RowEffect::ClearPair => {
                self.rows.remove(&event.row);
                self.rows.remove(&event.partner());
            }
        }
    }

    /// What is known of the program before a dispatch: the newer row of its pair.
    fn program_before(&self, event: &Event) -> Option<Row> {
        [event.row, event.partner()]
            .into_iter()
            .filter_map(|number| self.rows.get(&number).copied())
            .filter(|row| row.kind() == Some(RowKind::Program))
            .filter(|row| row.id == event.id && row.device == event.device)
            .max_by_key(|row| row.stamp)
    }

    /// What is live: one row per program, oldest first.
    pub fn finish(self) -> Vec<Row> {
        let mut programs: BTreeMap<(u8, u64), Row> = BTreeMap::new();
        let mut rows = Vec::with_capacity(self.rows.len());
        for row in self.rows.into_values() {
            if row.kind == RowKind::Program as u8 {
                let newest = programs.entry((row.device, row.id)).or_insert(row);
                if row.stamp > newest.stamp {
                    *newest = row;
                }
            } else {
                rows.push(row);
            }
        }
        rows.extend(programs.into_values());
        rows.sort_unstable_by_key(|row| row.stamp);
        rows
    }
}
