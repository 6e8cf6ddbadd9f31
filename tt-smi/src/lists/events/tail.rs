//! One process's ring, followed by position.

use std::collections::HashMap;

use shm_layout::protocol::observe::{Cursor, Step};
use tt_shm_reader::{DeviceEntry, Event, Segment};

use super::seen::Seen;
use super::totals::Totals;
use crate::directory::Directory;
use crate::escape::Foreign;
use crate::model::Moment;
use crate::segments::{Called, called};

/// Most bytes of names that the events of one read get, as many as a ring of the usual size can name. Names are ids in
/// the ring and text in the list, so a process can repeat a long one in every event.
const MOST_NAME_BYTES: usize = 16 << 20;
/// Characters of a name that are kept beyond that.
const CUT_NAME: usize = 64;

/// A segment, and how far it was read.
#[derive(Debug)]
pub struct Tail {
    pub segment: Segment,
    /// Pid of its process in this namespace.
    pub pid: u32,
    /// Whether that is only claimed.
    claimed: bool,
    /// Events that the ring no longer held when it was first read.
    pub older: u64,
    /// Events that were overwritten while the ring was followed.
    pub missed: u64,
    /// Events that the ring held, but that were too many for one read.
    pub skipped: u64,
    cursor: Cursor,
    /// What the process calls itself.
    process: Foreign,
    names: ShownNames,
    /// `None` until they are known, and again after events were missed.
    totals: Option<Totals>,
}

impl Tail {
    /// Starts at the oldest event that the ring still holds.
    pub fn from_start(segment: Segment) -> Tail {
        let words = segment.words();
        let (head, slots) = (words.head(), words.ring.len() as u64);
        // The oldest are about to be overwritten: starting after them avoids a gap.
        let start = if head > slots { head - slots + slots / 16 } else { 0 };
        let Called { pid, claimed } = called(&segment);
        Tail {
            pid,
            claimed,
            older: start,
            missed: 0,
            skipped: 0,
            cursor: Cursor::after(start),
            process: segment.process_name().into(),
            names: ShownNames::default(),
            totals: None,
            segment,
        }
    }

    /// Starts at the next event.
    pub fn from_now(segment: Segment) -> Tail {
        let cursor = Cursor::after(segment.words().head());
        let Called { pid, claimed } = called(&segment);
        let (process, names) = (segment.process_name().into(), ShownNames::default());
        Tail { pid, claimed, older: 0, missed: 0, skipped: 0, cursor, process, names, totals: None, segment }
    }

    /// Whether the process may emit more events.
    pub fn is_alive(&self) -> bool {
        self.segment.is_alive().unwrap_or(true)
    }

    /// Whether the process registered a device that the directory lacks.
    pub fn has_unknown_device(&self, directory: &Directory) -> bool {
        self.segment.devices().iter().any(|entry| directory.index_of(entry.chip_id).is_none())
    }

    /// New events, each with the total after it; only the last `most` of them.
    pub fn read(&mut self, most: u64) -> Vec<(Event, Option<u64>)> {
        // Its ring may be empty by now, or full of zeros.
        if self.segment.is_lost() {
            return Vec::new();
        }
        self.skip_to_last(most);
        // Read before the events, so that these lead up to it.
        let now = if self.totals.is_none() { self.segment.counters().ok() } else { None };
        let missed = self.missed;
        let events = self.new_events(most);
        if self.missed > missed {
            // Where exactly events are missing does not matter: the next read knows the totals again.
            self.totals = None;
        } else if let Some(now) = now.filter(|now| self.cursor.position() >= now.position) {
            self.totals = Some(Totals::before(&events, &now));
        }
        let totals = &mut self.totals;
        let total = |event: &Event| totals.as_mut().and_then(|totals| totals.apply(event));
        let totals: Vec<Option<u64>> = events.iter().map(total).collect();
        events.into_iter().zip(totals).collect()
    }

    fn skip_to_last(&mut self, most: u64) {
        let start = self.segment.words().head().saturating_sub(most);
        let before = self.cursor.position();
        if start > before {
            self.cursor = Cursor::after(start);
            self.skipped = self.skipped.saturating_add(self.cursor.position() - before);
            self.totals = None;
        }
    }

    fn new_events(&mut self, most: u64) -> Vec<Event> {
        let words = self.segment.words();
        let slots = words.ring.len() as u64;
        let mut events = Vec::new();
        // Bounded, so that a process at full speed cannot hold up the reader.
        for _ in 0..=slots.min(most) {
            let before = self.cursor.position();
            match self.cursor.next(&words) {
                Step::Event(event) => events.push(event),
                Step::Idle => break,
                Step::Lapped { .. } => {
                    // Half a ring behind the head, so that it is not overtaken again at once.
                    let resume = self.cursor.position().saturating_sub(slots / 2).max(before + 1);
                    self.cursor = Cursor::after(resume);
                    self.missed += resume - before;
                }
            }
        }
        events
    }

    /// Resolves ids in events of this process.
    pub fn describe(&mut self, events: &[(Event, Option<u64>)], directory: &Directory) -> Vec<Seen> {
        let clock = self.segment.calibration();
        let chips = self.segment.devices();
        let device = |entry: &DeviceEntry| u16::try_from(directory.index_of(entry.chip_id)?).ok();
        let devices: Vec<_> = chips.iter().map(device).collect();
        self.names.bytes = 0;
        let describe = |(event, total): &(Event, Option<u64>)| {
            let (monotonic_ns, realtime_ns) =
                (clock.to_monotonic_ns(event.time), clock.to_realtime_ns(event.time));
            Seen {
                event: *event,
                time: Moment { monotonic_ns, realtime_ns },
                total: *total,
                name: self.names.get(&self.segment, event.name),
                process: self.process.clone(),
                pid: self.pid,
                claimed: self.claimed,
                device: devices.get(usize::from(event.device)).copied().flatten(),
            }
        };
        events.iter().map(describe).collect()
    }
}

/// The names in events: each looked up once, and limited in total length within a read. Shared by all events that have
/// it, so that a log of many does not repeat it.
#[derive(Debug, Default)]
struct ShownNames {
    known: HashMap<u16, Foreign>,
    bytes: usize,
}

impl ShownNames {
    fn get(&mut self, segment: &Segment, id: u16) -> Option<Foreign> {
        let name = match self.known.get(&id) {
            Some(name) => name.clone(),
            // Not remembered if there is none: there may be later.
            None => self.known.entry(id).or_insert(segment.name(id)?.into()).clone(),
        };
        self.bytes += name.raw().len();
        if self.bytes <= MOST_NAME_BYTES || name.raw().chars().count() <= CUT_NAME {
            return Some(name);
        }
        let mut cut: String = name.raw().chars().take(CUT_NAME).collect();
        cut.push('…');
        Some(Foreign::from(cut))
    }
}
