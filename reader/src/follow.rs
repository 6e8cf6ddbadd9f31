//! Following a process's events.

use std::sync::atomic::AtomicU64;

use shm_layout::protocol::observe::{Cursor, Slot, Step};
use shm_layout::{Event, SegmentWords};

use crate::segment::Segment;

/// How often one call looks for a position that is not overwritten meanwhile.
const ATTEMPTS: usize = 8;

/// The events of a process, oldest first. Made by [`Segment::follow`].
///
/// It is an iterator: `None` means that nothing new has happened *now*, and the next call may return an event
/// again. The process never waits for its followers: one that falls behind by more than the ring misses
/// events, which [`Follow::missed`] counts.
///
/// A `for` loop over a process that never pauses does not end; `take` bounds it.
#[derive(Clone)]
pub struct Follow<'a> {
    words: SegmentWords<'a, AtomicU64>,
    cursor: Cursor,
    missed: u64,
}

impl Segment {
    /// Follows the events from now on.
    pub fn follow(&self) -> Follow<'_> {
        let words = self.words();
        Follow { words, cursor: Cursor::after(words.head()), missed: 0 }
    }

    /// Follows the events from the first one. Those that were already overwritten are missed.
    pub fn follow_from_start(&self) -> Follow<'_> {
        let words = self.words();
        let mut start = words.head().saturating_sub(words.ring.len() as u64);
        // The oldest slot is the next to be overwritten, or already is.
        if words.read_slot(start.saturating_add(1)) == Slot::Lapped {
            start = start.saturating_add(1);
        }
        Follow { words, cursor: Cursor::after(start), missed: start }
    }
}

impl Follow<'_> {
    /// The number of events that were overwritten before they were read.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The position of the last event returned or missed. (Through a `&mut Follow` write
    /// `(*follow).position()`: iterators have a method of that name.)
    pub fn position(&self) -> u64 {
        self.cursor.position()
    }

    /// Continues in the middle of what the ring still has, so that the writer does not overtake again at
    /// once. The cursor's own way, to the head, would miss more than was lost.
    fn resume(&mut self, before: u64) {
        let behind = self.words.ring.len() as u64 / 2;
        let resume = self.cursor.position().saturating_sub(behind).max(before.saturating_add(1));
        self.cursor = Cursor::after(resume);
        self.missed = self.missed.saturating_add(resume - before);
    }
}

impl Iterator for Follow<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        for _ in 0..ATTEMPTS {
            let before = self.cursor.position();
            match self.cursor.next(&self.words) {
                // At the largest position a cursor cannot move on; no honest ring gets there.
                Step::Event(event) => return (self.cursor.position() > before).then_some(event),
                Step::Idle => return None,
                Step::Lapped { .. } => self.resume(before),
            }
        }
        None
    }
}
