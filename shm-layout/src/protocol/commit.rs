//! The writer's side of a segment: one event, committed in the order that keeps the state exact.
//!
//! 1. the slot: its stamp is the commit point;
//! 2. the row of the live list;
//! 3. the device's counters;
//! 4. the head.
//!
//! An observer that finds the writer stopped anywhere in between applies slot head + 1 itself. With row
//! or counters first it would see an effect without its cause.

use crate::control::HEAD;
use crate::counters::{COUNTER_PARTS, Counters, PART_WORDS, Parts};
use crate::event::Event;
use crate::protocol::{latch::LatchWriter, stamped};
use crate::row::{Row, RowEffect};
use crate::segment::{LATCH_WORDS, SLOT_WORDS, SegmentWords};
use crate::words::{Word, store_pod};

/// Most events of a device between two checkpoints of its counters. The current latch turns with every
/// event, so a reader cannot finish reading it while the writer runs at full speed; a checkpoint stays
/// valid for this many events, and the ring has what came after it.
const CHECKPOINT_EVERY: u64 = 128;

/// A device's counters: the private truth, and what is needed to publish it.
pub struct DeviceCounters {
    counters: Counters,
    current: LatchWriter,
    checkpoint: LatchWriter,
    /// Parts that the other copy of the current latch lacks.
    stale: Parts,
    /// Events until the next checkpoint; counted down, since a remainder would cost more than the event.
    to_checkpoint: u64,
    checkpoint_every: u64,
}

impl DeviceCounters {
    /// Counters of a device on which nothing happened, in a segment whose ring has that many slots.
    pub fn new(ring_slots: usize) -> DeviceCounters {
        // A checkpoint is of use only while the events after it are in the ring.
        let checkpoint_every = CHECKPOINT_EVERY.min(ring_slots as u64 / 4).max(1);
        DeviceCounters {
            counters: Counters::ZERO,
            current: LatchWriter::default(),
            checkpoint: LatchWriter::default(),
            stale: Parts::default(),
            to_checkpoint: checkpoint_every,
            checkpoint_every,
        }
    }

    /// The counters as of the last committed event.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Counts an event in, privately. To be followed by [`DeviceCounters::publish`].
    #[inline(always)]
    fn apply(&mut self, event: &Event) -> Parts {
        // The writer checks sizes and liveness before it emits, so its own events are plausible.
        self.counters.apply(event).unwrap_or_default()
    }

    #[inline(always)]
    fn publish<W: Word>(&mut self, block: &[W], changed: Parts) {
        let Some((current, checkpoint)) = block.split_at_checked(LATCH_WORDS) else { return };
        let counters: &[u64; COUNTER_PARTS * PART_WORDS] = bytemuck::must_cast_ref(&self.counters);
        let parts = changed | self.stale;
        self.current.turn(current, |copy| store_parts(copy, counters, parts));
        self.stale = changed;
        self.to_checkpoint -= 1;
        if self.to_checkpoint == 0 {
            self.to_checkpoint = self.checkpoint_every;
            let counters = &self.counters;
            self.checkpoint.turn(checkpoint, |copy| store_pod(copy, counters));
        }
    }
}

#[inline]
fn store_parts<W: Word>(copy: &[W], values: &[u64; COUNTER_PARTS * PART_WORDS], parts: Parts) {
    let Some(copy) = copy.first_chunk::<{ COUNTER_PARTS * PART_WORDS }>() else { return };
    let (copy, _) = copy.as_chunks::<PART_WORDS>();
    let (values, _) = values.as_chunks::<PART_WORDS>();
    let mut left = parts.0;
    while left != 0 {
        let part = left.trailing_zeros() as usize;
        left &= left - 1;
        if let (Some(copy), Some(values)) = (copy.get(part), values.get(part)) {
            for (word, value) in copy.iter().zip(values) {
                word.store(*value);
            }
        }
    }
}

impl<W: Word> SegmentWords<'_, W> {
    /// The slot of a position.
    #[inline]
    pub fn slot(&self, position: u64) -> Option<&[W; SLOT_WORDS]> {
        self.ring.get(position as usize & self.ring.len().wrapping_sub(1))
    }

    /// Commits an event that concerns a device. `event.stamp` is its position, one more than the last.
    #[inline(always)]
    pub fn commit(&self, event: &Event, program_row: Option<&Row>, device: &mut DeviceCounters) {
        self.write_slot(event);
        self.change_row(event, program_row);
        let changed = device.apply(event);
        if let Some(block) = self.counters.get(usize::from(event.device)) {
            device.publish(block, changed);
        }
        self.publish_head(event.stamp);
    }

    /// Commits an event that concerns no device.
    pub fn commit_plain(&self, event: &Event) {
        self.write_slot(event);
        self.publish_head(event.stamp);
    }

    /// Step 1: writes the slot. From the moment its stamp is stored, the event has happened.
    #[inline(always)]
    pub fn write_slot(&self, event: &Event) {
        if let Some(slot) = self.slot(event.stamp) {
            stamped::write_words(slot, event.to_words());
        }
    }

    /// Step 2: does to the live list what the event says. A dispatch brings the program row to write.
    #[inline(always)]
    pub fn change_row(&self, event: &Event, program_row: Option<&Row>) {
        let row = |index: u32| self.rows.get(index as usize);
        match (RowEffect::of(event), row(event.row)) {
            (RowEffect::Set(_), Some(cell)) => match program_row {
                Some(program) => stamped::write(cell, program),
                None => stamped::write_words(cell, event.to_words()),
            },
            (RowEffect::Clear, Some(cell)) => stamped::clear(cell),
            (RowEffect::ClearPair, Some(cell)) => {
                stamped::clear(cell);
                if let Some(partner) = row(event.cores) {
                    stamped::clear(partner);
                }
            }
            _ => {}
        }
    }

    /// Step 4: everything up to here is complete.
    #[inline]
    pub fn publish_head(&self, position: u64) {
        if let Some(head) = self.control.get(HEAD) {
            // Release: pairs with the acquire fence in head(). Who sees the head sees rows and
            // counters of every event up to it.
            head.store_release(position);
        }
    }
}
