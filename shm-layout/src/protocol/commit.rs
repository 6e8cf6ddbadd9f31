//! The writer's side of a segment: one event, committed in the order that keeps the state exact.
//!
//! 1. the slot: its stamp is the commit point;
//! 2. the row of the live list;
//! 3. the checkpoint of a device's counters, if one is due;
//! 4. the head.
//!
//! Before that, the event is counted privately, or refused, in which case nothing has happened. An observer
//! that finds the writer stopped anywhere in between applies slot head + 1 itself. If the row or the counters
//! came first, it would see an effect without its cause.

use crate::control::HEAD;
use crate::counters::Counters;
use crate::device::MAX_DEVICES;
use crate::event::{Event, EventKind, NO_DEVICE};
use crate::protocol::{latch::LatchWriter, stamped};
use crate::row::{Row, RowEffect, RowKind};
use crate::segment::{SLOT_WORDS, SegmentWords};
use crate::words::{Word, store_pod};
use std::collections::VecDeque;

/// The most events, over all devices, by which a checkpoint may lag behind the head. Publishing counters
/// costs as much as the rest of an event, and the ring has what a checkpoint lacks.
const MAX_LAG: u64 = 1024;

/// The lag in a segment whose ring has this many slots: an observer must have time to replay it before it is
/// overwritten.
#[inline]
pub fn checkpoint_lag(ring_slots: usize) -> u64 {
    (ring_slots as u64 / 4).clamp(1, MAX_LAG)
}

/// A device's counters: the private, exact copy, and what is needed to publish it. Aligned to cache lines so
/// that an event touches as few as possible.
#[repr(align(64))]
struct DeviceCounters {
    counters: Counters,
    checkpoint: LatchWriter,
}

/// A device whose checkpoint is behind.
#[derive(Clone, Copy)]
struct Waiting {
    device: u8,
    /// The position of the first event that the checkpoint lacks.
    since: u64,
}

/// Why an event was not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The device is not registered.
    UnknownDevice,
    /// The event is impossible after those counted before: see [`Counters::apply`].
    Implausible,
}

/// The counters of all devices, and the order in which their checkpoints are due.
pub struct Accounts {
    devices: Vec<DeviceCounters>,
    /// The position at which the first checkpoint is due. An event belongs to one device, so no two are due
    /// at once.
    due: u64,
    lag: u64,
    /// Ordered by the age of what they lack.
    waiting: VecDeque<Waiting>,
    /// Whether a device's checkpoint is behind. Indexed by any `u8`, so that no bounds check is needed.
    waits: [bool; 1 + u8::MAX as usize],
}

impl Accounts {
    /// No devices yet, in a segment whose ring has this many slots.
    pub fn new(ring_slots: usize) -> Accounts {
        Accounts {
            devices: Vec::new(),
            due: u64::MAX,
            lag: checkpoint_lag(ring_slots),
            // Never grows, so that no event waits for an allocation.
            waiting: VecDeque::with_capacity(MAX_DEVICES),
            waits: [false; _],
        }
    }

    /// Adds a device on which nothing has happened.
    pub fn add_device(&mut self) {
        let (counters, checkpoint) = (Counters::ZERO, LatchWriter::default());
        self.devices.push(DeviceCounters { counters, checkpoint });
    }

    /// A device's counters as of the last committed event.
    #[inline]
    pub fn counters(&self, device: u8) -> Option<&Counters> {
        self.devices.get(usize::from(device)).map(|device| &device.counters)
    }

    /// Counts an event privately. A refused event has changed nothing.
    #[inline(always)]
    pub fn count(&mut self, event: &Event) -> Result<(), Refused> {
        let Some(device) = self.devices.get_mut(usize::from(event.device)) else {
            // Checked last: most events have a device. All but markers need one: a host may name any number.
            let needs_none = event.device == NO_DEVICE && event.kind == EventKind::Marker as u8;
            return if needs_none { Ok(()) } else { Err(Refused::UnknownDevice) };
        };
        device.counters.apply(event).map_err(|_| Refused::Implausible)?;
        if !self.waits[usize::from(event.device)] {
            self.wait(event.device, event.stamp);
        }
        Ok(())
    }

    #[cold]
    fn wait(&mut self, device: u8, since: u64) {
        self.waits[usize::from(device)] = true;
        self.waiting.push_back(Waiting { device, since });
        self.due = self.due.min(since.saturating_add(self.lag));
    }

    /// Publishes the counters of the device that has waited longest.
    #[cold]
    fn checkpoint<W: Word>(&mut self, segment: &SegmentWords<'_, W>) {
        if let Some(Waiting { device: number, .. }) = self.waiting.pop_front() {
            self.waits[usize::from(number)] = false;
            let number = usize::from(number);
            if let (Some(device), Some(latch)) = (self.devices.get_mut(number), segment.counters.get(number))
            {
                let DeviceCounters { counters, checkpoint } = device;
                checkpoint.turn(latch, |copy| store_pod(copy, counters));
            }
        }
        self.due = self.waiting.front().map_or(u64::MAX, |next| next.since.saturating_add(self.lag));
    }
}

/// Changes the name in a row that is otherwise unchanged. It is one word, so no reader sees it torn, and the
/// stamp stays, because it tells when the allocation was made.
#[cold]
fn rename<W: Word>(cell: &[W; SLOT_WORDS], event: &Event) {
    let Some(class) = event.class() else { return };
    let meta = event.meta() & !u64::from(u8::MAX) | class.row_kind() as u64;
    // Release: pairs with the acquire fence in drain() of the live list. A reader that reads this name from
    // the row also sees the event that gave it, in its slot.
    cell[META].store_release(meta);
}

/// The word of a row that holds kind, class, flags, device, name and site.
const META: usize = core::mem::offset_of!(Row, kind) / 8;

impl<W: Word> SegmentWords<'_, W> {
    /// The slot of a position.
    #[inline]
    pub fn slot(&self, position: u64) -> Option<&[W; SLOT_WORDS]> {
        self.ring.get(position as usize & self.ring.len().wrapping_sub(1))
    }

    /// Commits an event, or refuses it. `event.stamp` is its position, one more than the last. A dispatch
    /// comes with the program row to write.
    #[inline(always)]
    pub fn commit(
        &self,
        event: &Event,
        program_row: Option<&Row>,
        accounts: &mut Accounts,
    ) -> Result<(), Refused> {
        accounts.count(event)?;
        self.publish(event, program_row, accounts);
        Ok(())
    }

    /// Makes an event visible, whether or not it was counted.
    #[inline(always)]
    pub fn publish(&self, event: &Event, program_row: Option<&Row>, accounts: &mut Accounts) {
        let words = event.to_words();
        self.write_slot(words);
        self.change_row(event, program_row.map_or(words, Row::to_words));
        if event.stamp >= accounts.due {
            accounts.checkpoint(self);
        }
        self.publish_head(event.stamp);
    }

    /// Step 1: writes the slot. From the moment its stamp is stored, the event has happened.
    #[inline(always)]
    pub fn write_slot(&self, event: [u64; SLOT_WORDS]) {
        let [stamp, ..] = event;
        if let Some(slot) = self.slot(stamp) {
            stamped::write_words(slot, event);
        }
    }

    /// Step 2: applies the event to the live list.
    #[inline(always)]
    pub fn change_row(&self, event: &Event, words: [u64; SLOT_WORDS]) {
        let row = |index: u32| self.rows.get(index as usize);
        // NO_ROW is beyond all rows.
        match (RowEffect::of_kind(event.kind()), row(event.row)) {
            // The row of the pair that holds the dispatch before the last.
            (RowEffect::Set(RowKind::Program), Some(cell)) => stamped::write_words(cell, words),
            // A row that was never used, or was cleared when its allocation ended.
            (RowEffect::Set(_), Some(cell)) => stamped::fill_words(cell, words),
            (RowEffect::Clear, Some(cell)) => stamped::clear(cell),
            (RowEffect::ClearPair, Some(cell)) => {
                stamped::clear(cell);
                if let Some(partner) = row(event.partner()) {
                    stamped::clear(partner);
                }
            }
            (RowEffect::Rename, Some(cell)) => rename(cell, event),
            _ => {}
        }
    }

    /// Step 4: publishes that everything up to this event is complete.
    #[inline]
    pub fn publish_head(&self, position: u64) {
        if let Some(head) = self.control.get(HEAD) {
            // Release: pairs with the acquire fence in head(). A reader that sees the head also sees the rows
            // of every event up to it, and checkpoints that lack no event older than the lag.
            head.store_release(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_can_be_asked_for() {
        let mut accounts = Accounts::new(64);
        accounts.add_device();
        let event = Event { stamp: 1, size: 5, aux: 5, ..Event::new(EventKind::Alloc, 0) };
        assert_eq!(accounts.count(&event), Ok(()));
        assert_eq!(accounts.counters(0).map(Counters::dram_used), Some(5));
        assert_eq!(accounts.count(&Event { device: 1, ..event }), Err(Refused::UnknownDevice));
        assert!(accounts.counters(1).is_none());
        assert_eq!(accounts.count(&Event { device: NO_DEVICE, ..event }), Err(Refused::UnknownDevice));
        assert_eq!(accounts.count(&Event::new(EventKind::Marker, NO_DEVICE)), Ok(()));
    }
}
