//! Following a process's events.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use shm_layout::protocol::observe::{Cursor, Slot, Step};
use shm_layout::{Event, SegmentWords};

use crate::segment::Segment;

type Words<'a> = SegmentWords<'a, AtomicU64>;

/// How often one call looks for a position that is not overwritten meanwhile.
const ATTEMPTS: usize = 8;

/// A place in a ring, and how many events were overwritten on the way there.
#[derive(Clone, Copy, Debug)]
struct Place {
    cursor: Cursor,
    missed: u64,
}

impl Place {
    /// After the event of a position.
    fn after(position: u64) -> Place {
        Place { cursor: Cursor::after(position), missed: 0 }
    }

    /// Before the oldest event that the ring has. Those before it are missed.
    fn oldest(words: &Words<'_>) -> Place {
        let mut start = words.head().saturating_sub(words.ring.len() as u64);
        // The oldest slot is the next to be overwritten, or already is.
        if words.read_slot(start.saturating_add(1)) == Slot::Lapped {
            start = start.saturating_add(1);
        }
        Place { missed: start, ..Place::after(start) }
    }

    /// Takes the next event, if it has happened. Inlined: out of line, the event would be copied once more.
    #[inline(always)]
    fn next(&mut self, words: &Words<'_>) -> Option<Event> {
        for _ in 0..ATTEMPTS {
            let before = self.cursor.position();
            match self.cursor.next(words) {
                // At the largest position a cursor cannot move on; no honest ring gets there.
                Step::Event(event) => return (self.cursor.position() > before).then_some(event),
                Step::Idle => return None,
                Step::Lapped { .. } => self.resume(before, words),
            }
        }
        None
    }

    /// Takes the next event, if it has happened and was not overwritten.
    fn next_without_gap(&mut self, words: &Words<'_>) -> Option<Event> {
        let mut next = *self;
        match next.cursor.next(words) {
            Step::Event(event) if next.cursor.position() > self.cursor.position() => {
                *self = next;
                Some(event)
            }
            _ => None,
        }
    }

    /// Continues in the middle of what the ring still has, so that the writer does not overtake again at
    /// once. The cursor's own way, to the head, would miss more than was lost.
    #[cold]
    fn resume(&mut self, before: u64, words: &Words<'_>) {
        let behind = words.ring.len() as u64 / 2;
        let resume = self.cursor.position().saturating_sub(behind).max(before.saturating_add(1));
        self.cursor = Cursor::after(resume);
        self.missed = self.missed.saturating_add(resume - before);
    }
}

/// The events of a process, oldest first. Made by [`Segment::follow`].
///
/// It is an iterator: `None` means that nothing new has happened *now*, and the next call may return an event
/// again. The process never waits for its followers: one that falls behind by more than the ring misses
/// events, which [`Follow::missed`] counts.
///
/// A `for` loop over a process that never pauses does not end; `take` bounds it. [`Follower`] is the same
/// without a lifetime, and fills a buffer.
#[derive(Clone)]
pub struct Follow<'a> {
    words: Words<'a>,
    place: Place,
}

/// What [`Segment::read_from`] read. `next` is the position that was given, plus `missed`, plus `read`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadFrom {
    /// The number of events that were read, from the beginning of the buffer.
    pub read: usize,
    /// The number of events that were overwritten before the first one that was read.
    pub missed: u64,
    /// Where to read from next: the position of the last event that was read or missed.
    pub next: u64,
}

impl Segment {
    /// Follows the events from now on.
    pub fn follow(&self) -> Follow<'_> {
        let words = self.words();
        Follow { words, place: Place::after(words.head()) }
    }

    /// Follows the events from the first one. Those that were already overwritten are missed.
    pub fn follow_from_start(&self) -> Follow<'_> {
        let words = self.words();
        Follow { words, place: Place::oldest(&words) }
    }

    /// The position of the last complete event; 0 if there was none. Reading from there is reading what
    /// happens from now on.
    pub fn head(&self) -> u64 {
        self.words().head()
    }

    /// Copies events into a buffer: those after `position`, without a gap between them. From position 0 the
    /// first is the oldest event that the ring still has.
    ///
    /// Neither waits nor allocates. If `read` is less than the length of the buffer, nothing else has
    /// happened by now, or the rest was being overwritten: read again from `next`.
    ///
    /// ```
    /// use tt_shm_reader::{Event, Segment};
    ///
    /// /// Prints what has happened since the position, and returns where to go on.
    /// fn print(segment: &Segment, position: u64) -> u64 {
    ///     let mut events = [Event::NONE; 64];
    ///     let read = segment.read_from(position, &mut events);
    ///     if read.missed > 0 {
    ///         println!("{} events were overwritten", read.missed);
    ///     }
    ///     events[..read.read].iter().for_each(|event| println!("{event:?}"));
    ///     read.next
    /// }
    /// ```
    pub fn read_from(&self, position: u64, events: &mut [Event]) -> ReadFrom {
        let words = self.words();
        let Some((first, rest)) = events.split_first_mut() else {
            return ReadFrom { read: 0, missed: 0, next: position };
        };
        let mut place = if position == 0 { Place::oldest(&words) } else { Place::after(position) };
        let mut read = 0;
        if let Some(event) = place.next(&words) {
            *first = event;
            read = 1;
            for slot in rest {
                let Some(event) = place.next_without_gap(&words) else { break };
                *slot = event;
                read += 1;
            }
        }
        // A position that no ring has is not moved back to one that it could have.
        ReadFrom { read, missed: place.missed, next: place.cursor.position().max(position) }
    }
}

impl Follow<'_> {
    /// The number of events that were overwritten before they were read.
    pub fn missed(&self) -> u64 {
        self.place.missed
    }

    /// The position of the last event returned or missed. (Through a `&mut Follow` write
    /// `(*follow).position()`: iterators have a method of that name.)
    pub fn position(&self) -> u64 {
        self.place.cursor.position()
    }
}

impl Iterator for Follow<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        self.place.next(&self.words)
    }
}

/// Follows the events of a process, and owns what it needs for that: it can be kept in a struct and moved to
/// another thread.
///
/// ```
/// use std::sync::Arc;
/// use tt_shm_reader::{Event, Follower, Segment};
///
/// fn count(segment: Arc<Segment>) -> usize {
///     let mut follower = Follower::new(segment).from(0); // 0: from the oldest that is kept
///     let mut events = [Event::NONE; 256];
///     let mut count = 0;
///     loop {
///         match follower.read(&mut events) {
///             0 => return count + follower.missed() as usize,
///             read => count += read,
///         }
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Follower {
    segment: Arc<Segment>,
    position: u64,
    missed: u64,
}

impl Follower {
    /// Follows the events from now on.
    pub fn new(segment: Arc<Segment>) -> Follower {
        let position = segment.head();
        Follower { segment, position, missed: 0 }
    }

    /// Follows the events after `position` instead, from 0 those that the ring still has: see
    /// [`Segment::read_from`].
    pub fn from(self, position: u64) -> Follower {
        Follower { position, ..self }
    }

    /// Copies the next events into a buffer and returns their number; 0 if nothing new has happened now.
    /// Neither waits nor allocates.
    pub fn read(&mut self, events: &mut [Event]) -> usize {
        let ReadFrom { read, missed, next } = self.segment.read_from(self.position, events);
        self.position = next;
        self.missed = self.missed.saturating_add(missed);
        read
    }

    /// The number of events that were overwritten before they were read.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The position of the last event read or missed.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// What is followed.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }
}
