//! One process's ring, followed by position.

use std::collections::HashMap;

use shm_layout::protocol::observe::{Cursor, Step};
use tt_shm_reader::{Event, Segment};

use super::line::{Happened, When};
use super::totals::Totals;
use crate::directory::Directory;
use crate::escape::Foreign;
use crate::segments::{Called, called};

/// Bytes of names that the events of one look have at most, as many as a ring of the usual size can name: names are
/// short in numbers and long in text, and a process may repeat one in every event.
const MOST_NAME_BYTES: usize = 16 << 20;
/// Characters that are left of a name beyond that.
const CUT_NAME: usize = 64;

/// A segment, and how far it was read.
#[derive(Debug)]
pub struct Tail {
    pub segment: Segment,
    /// How its process is called here.
    pub pid: u32,
    /// Whether that is only claimed.
    claimed: bool,
    /// Events that the ring no longer held when it was looked at first.
    pub older: u64,
    /// Events that were overwritten while the ring was followed.
    pub missed: u64,
    /// Events that the ring held, but that were too many for one look.
    pub skipped: u64,
    cursor: Cursor,
    /// `None` until they are known, and again after events were missed.
    totals: Option<Totals>,
}

impl Tail {
    /// From the oldest event that the ring still holds.
    pub fn from_start(segment: Segment) -> Tail {
        let words = segment.words();
        let (head, slots) = (words.head(), words.ring.len() as u64);
        // The oldest are about to be overwritten; better to begin behind them than to lose the thread.
        let start = if head > slots { head - slots + slots / 16 } else { 0 };
        let Called { pid, claimed } = called(&segment);
        Tail {
            pid,
            claimed,
            older: start,
            missed: 0,
            skipped: 0,
            cursor: Cursor::after(start),
            totals: None,
            segment,
        }
    }

    /// From now on.
    pub fn from_now(segment: Segment) -> Tail {
        let cursor = Cursor::after(segment.words().head());
        let Called { pid, claimed } = called(&segment);
        Tail { pid, claimed, older: 0, missed: 0, skipped: 0, cursor, totals: None, segment }
    }

    /// Whether the process may have more to tell.
    pub fn is_alive(&self) -> bool {
        self.segment.is_alive().unwrap_or(true)
    }

    /// Whether the process registered a device that the directory lacks.
    pub fn has_unknown_device(&self, directory: &Directory) -> bool {
        self.segment.devices().iter().any(|entry| directory.index_of(entry.chip_id).is_none())
    }

    /// What is new, each with the total after it; if it is more than `most`, the last of it.
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
            // Between which two of them something is missing does not matter: the next read knows again.
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
        // Bounded: a process at full speed must not keep us here.
        for _ in 0..=slots.min(most) {
            let before = self.cursor.position();
            match self.cursor.next(&words) {
                Step::Event(event) => events.push(event),
                Step::Idle => break,
                Step::Lapped { .. } => {
                    // Half a ring behind the head, so as not to be overtaken again at once.
                    let resume = self.cursor.position().saturating_sub(slots / 2).max(before + 1);
                    self.cursor = Cursor::after(resume);
                    self.missed += resume - before;
                }
            }
        }
        events
    }

    /// What events of this process mean.
    pub fn describe(&self, events: &[(Event, Option<u64>)], directory: &Directory) -> Vec<Happened> {
        let clock = self.segment.calibration();
        let chips = self.segment.devices();
        let devices: Vec<_> = chips.iter().map(|entry| directory.index_of(entry.chip_id)).collect();
        let mut names = ShownNames::default();
        let describe = |(event, total): &(Event, Option<u64>)| {
            let device = devices.get(usize::from(event.device)).copied().flatten();
            let (monotonic_ns, realtime_ns) =
                (clock.to_monotonic_ns(event.time), clock.to_realtime_ns(event.time));
            let when = When { monotonic_ns, realtime_ns };
            let name = names.get(&self.segment, event.name);
            let happened = Happened::new(self.pid, device, when, *total, name, event);
            Happened { claimed: self.claimed, ..happened }
        };
        events.iter().map(describe).collect()
    }
}

/// The names of one look's events: looked up once each, and bounded in what they add up to.
#[derive(Default)]
struct ShownNames {
    known: HashMap<u16, Option<Foreign>>,
    bytes: usize,
}

impl ShownNames {
    fn get(&mut self, segment: &Segment, id: u16) -> Option<Foreign> {
        let name = self.known.entry(id).or_insert_with(|| segment.name(id).map(Foreign::from)).clone()?;
        self.bytes += name.raw().len();
        if self.bytes <= MOST_NAME_BYTES || name.raw().chars().count() <= CUT_NAME {
            return Some(name);
        }
        let mut cut: String = name.raw().chars().take(CUT_NAME).collect();
        cut.push('…');
        Some(Foreign::from(cut))
    }
}
