//! Reading a segment: attach to the exact state at a position, then follow the events after it.

use crate::control::{DEVICE_COUNT, HEAD};
use crate::counters::{Counters, Implausible, MAX_COUNT};
use crate::device::MAX_DEVICES;
use crate::event::{Event, NO_DEVICE};
use crate::protocol::{commit::checkpoint_lag, latch, stamped};
use crate::segment::{SLOT_WORDS, SegmentWords};
use crate::words::{Word, load_pod};

/// The most events that are replayed because a device's counters were read later than the head.
const MAX_BEHIND: u64 = 1 << 13;

/// The number of attempts at a latch before giving up.
const ATTEMPTS: usize = 64;

/// The content of the slot of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The event of that position.
    Ready(Event),
    /// That event has not happened yet.
    Pending,
    /// That event has been overwritten.
    Lapped,
}

impl<W: Word> SegmentWords<'_, W> {
    /// The position of the last complete event.
    #[inline]
    pub fn head(&self) -> u64 {
        let head = self.control.get(HEAD).map_or(0, Word::load);
        // Acquire: pairs with the release store in publish_head().
        W::fence_acquire();
        head
    }

    /// The number of devices listed; their entries and counters may be read.
    pub fn device_count(&self) -> usize {
        let count = self.control.get(DEVICE_COUNT).map_or(0, Word::load);
        // Acquire: pairs with the release store by which the writer publishes an entry.
        W::fence_acquire();
        // An observer may have limited the blocks to what it has seen published before.
        (count as usize).min(self.counters.len())
    }

    /// Reads the event at a position.
    #[inline]
    pub fn read_slot(&self, position: u64) -> Slot {
        let Some(slot) = self.slot(position) else { return Slot::Pending };
        match stamped::read_expected::<Event, W>(slot, position) {
            Ok(event) => Slot::Ready(event),
            Err(0) => self.read_changing_slot(slot, position),
            Err(stamp) if stamp < position => Slot::Pending,
            Err(_) => Slot::Lapped,
        }
    }

    /// Handles a slot that was being written, by this position or by the one that overwrites it.
    #[cold]
    fn read_changing_slot(&self, slot: &[W; SLOT_WORDS], position: u64) -> Slot {
        // Acquire: pairs with the release of the 0 in stamped::write(). A reader that sees the slot being
        // overwritten also sees a head that is not before it.
        W::fence_acquire();
        if self.head() < position {
            return Slot::Pending;
        }
        // The event is complete by now. If it is not here, it was overwritten.
        stamped::read_expected(slot, position).map_or(Slot::Lapped, Slot::Ready)
    }

    /// A device's checkpoint and the position up to which it is complete, given a head that was loaded
    /// before; `None` if the latch kept turning, which happens only with a hostile writer.
    pub fn read_counters(&self, device: usize, head: u64) -> Option<(Counters, u64)> {
        let latch = self.counters.get(device)?;
        let counters = latch::read(latch, ATTEMPTS, load_pod::<Counters, W>)?;
        // Events older than the lag were in the checkpoint before the head was published.
        let complete = head.saturating_sub(checkpoint_lag(self.ring.len()));
        Some((counters, complete.max(counters.position)))
    }
}

/// The exact counters of every device of a segment, each complete up to a position of its own.
#[derive(Clone, Debug)]
pub struct Attached {
    /// For each device, its counters and the position up to which they are complete.
    pub devices: Vec<(Counters, u64)>,
    /// Where to follow from; check [`Attached::is_news`] for every event.
    pub cursor: Cursor,
}

/// The writer never paused long enough for its counters to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the counters of device {device} changed during each of {ATTEMPTS} attempts to read them")]
pub struct Busy {
    /// Index of the device.
    pub device: usize,
}

impl Attached {
    /// Attaches to the current state of a segment.
    pub fn new<W: Word>(segment: &SegmentWords<'_, W>) -> Result<Attached, Busy> {
        let head = segment.head();
        let mut devices = Vec::new();
        for device in 0..segment.device_count() {
            devices.push(segment.read_counters(device, head).ok_or(Busy { device })?);
        }
        let start = devices.iter().map(|(_, complete)| *complete).min().unwrap_or(head);
        Ok(Attached { devices, cursor: Cursor::after(start.min(head)) })
    }

    /// A segment from its very beginning: nothing counted, every event still to come.
    pub fn empty() -> Attached {
        Attached { devices: Vec::new(), cursor: Cursor::after(0) }
    }

    /// Whether an event is not in the device's counters yet. A device that was registered meanwhile starts at
    /// zero.
    #[inline]
    pub fn is_news(&mut self, event: &Event) -> bool {
        if event.device == NO_DEVICE {
            return true;
        }
        let device = usize::from(event.device);
        if device >= MAX_DEVICES {
            return false;
        }
        if device >= self.devices.len() {
            self.devices.resize(device + 1, (Counters::ZERO, 0));
        }
        event.stamp > self.devices[device].1
    }

    /// Applies events until the counters of all devices are of one position: right after [`Attached::new`]
    /// that includes every event committed before, and possibly some more. On an error the counters are those
    /// of the last event applied, and the caller should attach again.
    pub fn catch_up<W: Word>(&mut self, segment: &SegmentWords<'_, W>) -> Result<(), CatchUpError> {
        let newest = self.devices.iter().map(|(_, complete)| *complete).max().unwrap_or(0);
        let behind = newest.saturating_sub(self.cursor.position());
        // Bounded, and not by the ring, whose size the writer chose: neither a writer at full speed nor a
        // hostile one must keep its observer here.
        let steps = behind.min(MAX_BEHIND) + 2 * checkpoint_lag(segment.ring.len()) + 1;
        for _ in 0..steps {
            match self.cursor.next(segment) {
                Step::Event(event)
                    if event.device != NO_DEVICE && usize::from(event.device) >= MAX_DEVICES =>
                {
                    return Err(Implausible::new(event).into());
                }
                Step::Event(event) if self.is_news(&event) && event.device != NO_DEVICE => {
                    self.devices[usize::from(event.device)].0.apply(&event)?;
                }
                Step::Event(_) => {}
                Step::Idle => break,
                Step::Lapped { missed } => return Err(CatchUpError::Lapped { missed }),
            }
        }
        match newest.saturating_sub(self.cursor.position()) {
            0 => Ok(()),
            events => Err(CatchUpError::Behind { events }),
        }
    }
}

/// Why the state could not be advanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatchUpError {
    /// Events were overwritten.
    #[error("{missed} events were overwritten before they could be read")]
    Lapped {
        /// The number of events that were not seen.
        missed: u64,
    },
    /// The counters of some device are ahead of the ring.
    #[error("the counters are {events} events ahead of the ring")]
    Behind {
        /// By how many events.
        events: u64,
    },
    /// The segment is broken.
    #[error(transparent)]
    Implausible(#[from] Implausible),
}

/// A position in a ring that one observer keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    next: u64,
}

/// The result of advancing a [`Cursor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next event.
    Event(Event),
    /// Nothing new.
    Idle,
    /// Events were overwritten before they were read; the cursor is now after the last one.
    Lapped {
        /// How many.
        missed: u64,
    },
}

impl Cursor {
    /// A cursor after `position`.
    pub fn after(position: u64) -> Cursor {
        // No process gets beyond that. At the last possible position there would be no next one, and its
        // event would be read forever.
        Cursor { next: position.min(MAX_COUNT) + 1 }
    }

    /// The position of the last event passed.
    pub fn position(&self) -> u64 {
        self.next - 1
    }

    /// Takes the next event, if it has happened.
    #[inline]
    pub fn next<W: Word>(&mut self, segment: &SegmentWords<'_, W>) -> Step {
        match segment.read_slot(self.next) {
            Slot::Ready(event) => {
                self.next += 1;
                Step::Event(event)
            }
            Slot::Pending => Step::Idle,
            Slot::Lapped => self.skip(segment),
        }
    }

    #[cold]
    fn skip<W: Word>(&mut self, segment: &SegmentWords<'_, W>) -> Step {
        let head = segment.head().max(self.next);
        let missed = head - self.position();
        *self = Cursor::after(head);
        Step::Lapped { missed }
    }
}
