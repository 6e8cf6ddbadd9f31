//! What a record says, process by process and by time.

use std::collections::{BTreeMap, VecDeque};

use shm_layout::{DeviceEntry, Event, Row};
use tt_shm_record::{EndEntry, Entry, ProcessEntry, ReadError, Record, StateEntry};

/// One thing that happens to a replica.
#[derive(Debug)]
pub(crate) enum Item {
    Found(Box<ProcessEntry>),
    Devices(Vec<(u64, DeviceEntry)>),
    Names(Vec<(u16, Vec<u8>)>),
    State(Box<StateEntry>, Vec<Row>),
    Event(Event),
    /// Events up to this position are missing.
    Gap(u64),
    End(EndEntry),
}

impl Item {
    /// Whether observers have to look right after it: a process comes, goes, or is another than the events before say.
    pub(crate) fn is_turn(&self) -> bool {
        matches!(self, Item::State(..) | Item::Gap(_) | Item::End(_))
    }
}

/// What waits of one process, in its own order.
#[derive(Debug, Default)]
struct Waiting {
    /// With the time at which each happens, which never falls.
    items: VecDeque<(u64, Item)>,
    latest_ns: u64,
    /// A checkpoint of which rows are still to come, with what follows it.
    assembling: Option<Assembling>,
}

#[derive(Debug)]
struct Assembling {
    state: Box<StateEntry>,
    rows: Vec<Row>,
    /// Events that came in between.
    held: Vec<Event>,
}

/// Reads a record once, from its beginning.
#[derive(Debug)]
pub(crate) struct Feed {
    next_frame: usize,
    /// For each frame, the earliest event in it and all later ones.
    earliest: Vec<u64>,
    /// The latest time in what was read.
    reached_ns: u64,
    waiting: BTreeMap<u32, Waiting>,
}

impl Feed {
    pub(crate) fn new(record: &Record) -> Feed {
        let mut earliest: Vec<u64> = record.frames().iter().map(|frame| frame.first_ns).collect();
        for place in (1..earliest.len()).rev() {
            earliest[place - 1] = earliest[place - 1].min(earliest[place]);
        }
        Feed { next_frame: 0, earliest, reached_ns: 0, waiting: BTreeMap::new() }
    }

    /// The next thing that happens not later than `until`, with its process and time.
    pub(crate) fn next(
        &mut self,
        record: &Record,
        until: u64,
    ) -> Result<Option<(u32, u64, Item)>, ReadError> {
        loop {
            let heads = self
                .waiting
                .iter()
                .filter_map(|(number, waiting)| waiting.items.front().map(|(ns, _)| (*ns, *number)));
            let head = heads.min();
            let limit = head.map_or(until, |(ns, _)| ns.min(until));
            if self.may_have(limit) {
                self.read_frame(record)?;
                continue;
            }
            let Some((ns, number)) = head.filter(|(ns, _)| *ns <= until) else { return Ok(None) };
            let item = self.waiting.get_mut(&number).and_then(|waiting| waiting.items.pop_front());
            return Ok(item.map(|(_, item)| (number, ns, item)));
        }
    }

    /// The run of events of one process that all happen before anything else does and not later than `until`; at most
    /// `most` of them.
    pub(crate) fn run_of(&mut self, number: u32, until: u64, most: usize, out: &mut Vec<Event>) -> u64 {
        let others = self.waiting.iter().filter(|(other, _)| **other != number);
        let others = others.filter_map(|(_, waiting)| waiting.items.front().map(|(ns, _)| *ns)).min();
        let horizon = self.earliest.get(self.next_frame).copied().unwrap_or(u64::MAX);
        let bound = others.unwrap_or(u64::MAX).min(horizon.saturating_sub(1)).min(until);
        let mut last = 0;
        let Some(waiting) = self.waiting.get_mut(&number) else { return last };
        while let Some((ns, Item::Event(event))) = waiting.items.front() {
            if *ns > bound || out.len() >= most {
                break;
            }
            (last, _) = (*ns, out.push(*event));
            waiting.items.pop_front();
        }
        last
    }

    /// Whether a frame that was not read may have something of this time or before it.
    fn may_have(&self, ns: u64) -> bool {
        let Some(earliest) = self.earliest.get(self.next_frame) else { return false };
        // Frames say when their first event was, and are otherwise in the order of time.
        let is_torn = self.waiting.values().any(|waiting| waiting.assembling.is_some());
        *earliest <= ns || self.reached_ns <= ns || is_torn
    }

    fn read_frame(&mut self, record: &Record) -> Result<(), ReadError> {
        let entries = record.read_frame(self.next_frame)?;
        self.reached_ns = self.reached_ns.max(record.frames()[self.next_frame].last_ns);
        self.next_frame += 1;
        entries.into_iter().for_each(|entry| self.take(record, entry));
        Ok(())
    }

    fn take(&mut self, record: &Record, entry: Entry) {
        let Some(number) = entry.process() else { return };
        let Some(process) = record.process(number) else { return };
        let waiting = self.waiting.entry(number).or_default();
        match entry {
            Entry::Process(process) => waiting.push(process.seen_ns, Item::Found(process)),
            Entry::Devices { devices, .. } => waiting.push(0, Item::Devices(devices)),
            Entry::Names { names, .. } => waiting.push(0, Item::Names(names)),
            Entry::State { state, .. } => {
                waiting.finish_state();
                let is_whole = state.row_count == 0;
                waiting.assembling = Some(Assembling { state, rows: Vec::new(), held: Vec::new() });
                if is_whole {
                    waiting.finish_state();
                }
            }
            Entry::Rows { position, rows, .. } => waiting.rows(position, rows),
            Entry::Events { events, .. } => {
                for event in events {
                    let ns = record.to_monotonic_ns(process, event.time);
                    waiting.event(Event { time: ns, ..event });
                }
            }
            Entry::Gap(gap) => waiting.push(0, Item::Gap(gap.last)),
            Entry::End(end) => {
                waiting.finish_state();
                waiting.push(end.noticed_ns, Item::End(end));
            }
            _ => {}
        }
    }
}

impl Waiting {
    fn push(&mut self, ns: u64, item: Item) {
        let ns = ns.max(self.latest_ns);
        self.latest_ns = ns;
        self.items.push_back((ns, item));
    }

    fn event(&mut self, event: Event) {
        if let Some(assembling) = &mut self.assembling {
            return assembling.held.push(event);
        }
        // What was read before it, such as a checkpoint, was there before it happened, whenever that was noted.
        let ns = event.time;
        for (time, item) in self.items.iter_mut().rev() {
            if matches!(item, Item::Event(_)) || *time <= ns {
                break;
            }
            *time = ns;
        }
        let events = self.items.iter().rev().map(|(time, _)| *time).next();
        self.latest_ns = events.map_or(ns, |before| before.max(ns));
        self.items.push_back((self.latest_ns, Item::Event(event)));
    }

    fn rows(&mut self, position: u64, rows: Vec<Row>) {
        let Some(assembling) = self.assembling.as_mut().filter(|a| a.state.position == position) else {
            return;
        };
        assembling.rows.extend(rows);
        if assembling.rows.len() as u64 >= assembling.state.row_count {
            self.finish_state();
        }
    }

    fn finish_state(&mut self) {
        let Some(Assembling { mut state, rows, held }) = self.assembling.take() else { return };
        // A checkpoint that was torn is not one of all rows.
        state.exact &= rows.len() as u64 >= state.row_count;
        self.push(state.time_ns, Item::State(state, rows));
        held.into_iter().for_each(|event| self.event(event));
    }
}
