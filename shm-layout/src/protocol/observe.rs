//! Reading a segment: attach to the exact state at a position, then follow the events after it.

use crate::control::{DEVICE_COUNT, HEAD};
use crate::counters::{Counters, Implausible, MAX_COUNT};
use crate::device::MAX_DEVICES;
use crate::event::{Event, NO_DEVICE};
use crate::protocol::{commit::checkpoint_lag, latch, stamped};
use crate::segment::{SLOT_WORDS, SegmentWords};
use crate::words::{Word, load_pod};

/// Events that are replayed at most because a device's counters were read later than the head.
const MAX_BEHIND: u64 = 1 << 13;

/// Attempts at a latch before giving up on it.
const ATTEMPTS: usize = 64;

/// What is in the slot of a position.
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
    /// Position of the last complete event.
    #[inline]
    pub fn head(&self) -> u64 {
        let head = self.control.get(HEAD).map_or(0, Word::load);
        // Acquire: pairs with the release store in publish_head().
        W::fence_acquire();
        head
    }

    /// Devices listed; their entries and counters may be read.
    pub fn device_count(&self) -> usize {
        let count = self.control.get(DEVICE_COUNT).map_or(0, Word::load);
        // Acquire: pairs with the release store by which the writer publishes an entry.
        W::fence_acquire();
        // An observer may have cut the blocks to what it has seen published before.
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

    /// A slot that was being written: by this position, or by the one that overwrites it.
    #[cold]
    fn read_changing_slot(&self, slot: &[W; SLOT_WORDS], position: u64) -> Slot {
        // Acquire: pairs with the release of the 0 in stamped::write(). Who sees the slot being
        // overwritten sees a head that is not before it.
        W::fence_acquire();
        if self.head() < position {
            return Slot::Pending;
        }
        // The event is complete by now. If it is not here it was overwritten.
        stamped::read_expected(slot, position).map_or(Slot::Lapped, Slot::Ready)
    }

    /// A device's checkpoint and the position up to which it is complete, given a head that was loaded
    /// before; `None` if the latch kept turning, which only a hostile writer's does.
    pub fn read_counters(&self, device: usize, head: u64) -> Option<(Counters, u64)> {
        let latch = self.counters.get(device)?;
        let counters = latch::read(latch, ATTEMPTS, load_pod::<Counters, W>)?;
        // What is older than the lag was in the checkpoint before the head was published.
        let complete = head.saturating_sub(checkpoint_lag(self.ring.len()));
        Some((counters, complete.max(counters.position)))
    }
}

/// The exact counters of every device of a segment, each complete up to a position of its own.
#[derive(Clone, Debug)]
pub struct Attached {
    /// Per device: counters, and the position that they are complete up to.
    pub devices: Vec<(Counters, u64)>,
    /// Follow from here, and ask [`Attached::is_news`] of every event.
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
    /// Attaches to a segment as it is now.
    pub fn new<W: Word>(segment: &SegmentWords<'_, W>) -> Result<Attached, Busy> {
        let head = segment.head();
        let mut devices = Vec::new();
        for device in 0..segment.device_count() {
            devices.push(segment.read_counters(device, head).ok_or(Busy { device })?);
        }
        let start = devices.iter().map(|(_, complete)| *complete).min().unwrap_or(head);
        Ok(Attached { devices, cursor: Cursor::after(start.min(head)) })
    }

    /// A segment from its very beginning: nothing counted, every event to come.
    pub fn empty() -> Attached {
        Attached { devices: Vec::new(), cursor: Cursor::after(0) }
    }

    /// Whether an event is news to the device's counters; a device that was registered meanwhile
    /// starts at zero.
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

    /// Applies events until the counters of all devices are of one position: right after
    /// [`Attached::new`] that is every event which was committed before, and some more if there are any.
    /// On an error the counters are those of the last event applied, and it is time to attach again.
    pub fn catch_up<W: Word>(&mut self, segment: &SegmentWords<'_, W>) -> Result<(), CatchUpError> {
        let newest = self.devices.iter().map(|(_, complete)| *complete).max().unwrap_or(0);
        let behind = newest.saturating_sub(self.cursor.position());
        // Bounded, and not by the ring, whose size the writer chose: neither one at full speed nor a
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

/// Why the state could not be carried forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatchUpError {
    /// The ring went round.
    #[error("{missed} events were overwritten before they could be read")]
    Lapped {
        /// Events that were not seen.
        missed: u64,
    },
    /// The counters of some device are ahead of the ring.
    #[error("the counters are {events} events ahead of the ring")]
    Behind {
        /// By how much.
        events: u64,
    },
    /// The segment is broken.
    #[error(transparent)]
    Implausible(#[from] Implausible),
}

/// A place in a ring that one observer keeps for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    next: u64,
}

/// What a [`Cursor`] met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next event.
    Event(Event),
    /// Nothing new.
    Idle,
    /// Events were overwritten before they were read; the cursor now stands behind the last one.
    Lapped {
        /// How many.
        missed: u64,
    },
}

impl Cursor {
    /// Stands behind `position`.
    pub fn after(position: u64) -> Cursor {
        // No process comes beyond that. From the last position of all there would be no way on, and its
        // event would be read for ever.
        Cursor { next: position.min(MAX_COUNT) + 1 }
    }

    /// Position of the last event passed.
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
