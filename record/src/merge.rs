//! The events of all processes, in the order in which they happened.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::RangeInclusive;

use shm_layout::Event;

use crate::entry::Entry;
use crate::error::ReadError;
use crate::record::Record;

/// The most events that are kept because an earlier one may follow: some 300 MB.
const MAX_HELD: usize = 4 << 20;

/// An event, with its process and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergedEvent {
    /// The number of the process in the record.
    pub process: u32,
    /// When it happened, in nanoseconds of CLOCK_MONOTONIC.
    pub ns: u64,
    /// The event as the process wrote it.
    pub event: Event,
}

/// What is read ahead of a process.
#[derive(Debug, Default)]
struct Ahead {
    /// Events, each with the time by which it is merged: never less than that of the one before it.
    events: VecDeque<(u64, MergedEvent)>,
    position: u64,
    latest_ns: u64,
}

/// The events of a record, merged by time. Made by [`Record::events`].
///
/// Events of one process are in its own order, also where its ticks step back by some nanoseconds.
#[derive(Debug)]
pub struct Merged<'a> {
    record: &'a Record,
    range: RangeInclusive<u64>,
    next_frame: usize,
    ahead: BTreeMap<u32, Ahead>,
    /// The next event of each process that has one: its time and the process.
    heads: BinaryHeap<Reverse<(u64, u32)>>,
    held: usize,
    failed: bool,
    emitted_ns: u64,
    out_of_order: u64,
}

impl Record {
    /// The events of all processes, merged by time.
    pub fn events(&self) -> Merged<'_> {
        self.events_between(0..=u64::MAX)
    }

    /// The events of all processes in a span of time, merged by time.
    pub fn events_between(&self, range: RangeInclusive<u64>) -> Merged<'_> {
        Merged {
            record: self,
            next_frame: self.frame_of(*range.start()),
            range,
            ahead: BTreeMap::new(),
            heads: BinaryHeap::new(),
            held: 0,
            failed: false,
            emitted_ns: 0,
            out_of_order: 0,
        }
    }
}

impl Merged<'_> {
    /// The number of events so far that came before one that was returned earlier. Only a record in which an event
    /// follows millions of later ones has such.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// The time before which no event is still to be read.
    fn horizon(&self) -> u64 {
        self.record.earliest.get(self.next_frame).copied().unwrap_or(u64::MAX)
    }

    fn read_frame(&mut self) -> Result<(), ReadError> {
        let entries = self.record.read_frame(self.next_frame)?;
        self.next_frame += 1;
        for entry in entries {
            if let Entry::Events { process, events } = entry {
                self.take(process, &events);
            }
        }
        Ok(())
    }

    fn take(&mut self, number: u32, events: &[Event]) {
        let Some(process) = self.record.process(number) else { return };
        let ahead = self.ahead.entry(number).or_default();
        let was_empty = ahead.events.is_empty();
        for event in events.iter().filter(|event| event.stamp > ahead.position) {
            let ns = self.record.clocks.to_monotonic_ns(&process.entry, event.time);
            ahead.latest_ns = ahead.latest_ns.max(ns);
            let merged = MergedEvent { process: number, ns, event: *event };
            ahead.events.push_back((ahead.latest_ns, merged));
            self.held += 1;
        }
        ahead.position = events.last().map_or(ahead.position, |last| last.stamp.max(ahead.position));
        if was_empty && let Some((key, _)) = ahead.events.front() {
            self.heads.push(Reverse((*key, number)));
        }
    }

    fn pop(&mut self) -> Option<(u64, MergedEvent)> {
        let Reverse((_, number)) = self.heads.pop()?;
        let ahead = self.ahead.get_mut(&number)?;
        let popped = ahead.events.pop_front()?;
        if let Some((key, _)) = ahead.events.front() {
            self.heads.push(Reverse((*key, number)));
        }
        self.held -= 1;
        Some(popped)
    }
}

impl Iterator for Merged<'_> {
    type Item = Result<MergedEvent, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            let is_due = self.heads.peek().is_some_and(|Reverse((key, _))| *key <= self.horizon());
            let has_frames = self.next_frame < self.record.frames.len();
            if !is_due && has_frames && self.held < MAX_HELD {
                if let Err(error) = self.read_frame() {
                    self.failed = true;
                    return Some(Err(error));
                }
                continue;
            }
            let (key, event) = self.pop()?;
            self.out_of_order += u64::from(key < self.emitted_ns);
            self.emitted_ns = self.emitted_ns.max(key);
            if key > *self.range.end() && self.horizon() > *self.range.end() {
                self.failed = true;
                return None;
            }
            if self.range.contains(&key) {
                return Some(Ok(event));
            }
        }
        None
    }
}
