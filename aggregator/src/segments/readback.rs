//! Reading back the events before a failure from the rings. Failures are rare, so nothing is kept for them in
//! advance.

use shm_layout::protocol::observe::Slot;
use shm_layout::table::{FAILURE_EVENTS, FailureRecord, PastEvent, ProcessStats};
use shm_layout::{Event, EventKind, SegmentWords};
use std::sync::atomic::AtomicU64;
use tt_shm_reader::Segment;

use crate::model::Model;
use crate::model::device::failure_of;
use crate::model::failures::{Past, blank};
use crate::segments::follower::Follower;

/// The slots read in the ring of one dead process.
const MAX_LOOKS_AT_DEAD: usize = 1 << 16;
/// The failures taken from a dead process's ring.
const MAX_OF_DEAD: usize = 4;

/// Adds the preceding events to the failures that were just folded. `all_read` tells whether every existing
/// process could be read.
#[cold]
#[inline(never)]
pub(crate) fn complete_failures(model: &mut Model, followers: &[Follower], all_read: bool) {
    let fresh = model.failures.take_fresh();
    let mut looks = model.failures.looks.past;
    for (row, record) in fresh {
        let past = past_of(followers, model, &record, &mut looks);
        let generation = model.mark_changed();
        model.failures.complete(generation, row, &past, all_read);
    }
    model.failures.looks.past = looks;
}

/// Keeps the failures that the ring of a process that died unfollowed still has, before its file is removed.
/// Who held what at the time is not known. No event is later than `now`.
pub(crate) fn keep_failures_of_dead(model: &mut Model, segment: &Segment, owner: &ProcessStats, now: u64) {
    let words = segment.words();
    let (devices, calibration) = (segment.devices(), segment.calibration());
    let to_ns = |event: &Event| calibration.to_monotonic_ns(event.time).clamp(1, now);
    let most = model.failures.looks.dead.min(MAX_LOOKS_AT_DEAD);
    let mut looks = most;
    let mut ring = Ring { words, position: last_position(&words), looks: &mut looks };
    let failed: Vec<Event> = ring.by_ref().filter(is_failure).take(MAX_OF_DEAD).collect();
    for event in failed {
        let Some(entry) = devices.get(usize::from(event.device)) else { continue };
        if !model.failures.wants(owner, event.stamp) {
            continue;
        }
        let failure = failure_of(&event, owner.pid, to_ns(&event));
        let mut record = blank(owner, entry.chip_id, event.stamp, &failure);
        let mut ring = Ring { words, position: event.stamp - 1, looks: &mut looks };
        let mut past = Past::default();
        let before = ring.by_ref().filter(|past| past.device == event.device).take(FAILURE_EVENTS);
        past.events = before.map(|past| described(&past, to_ns(&past).min(record.time), owner)).collect();
        past.events.reverse();
        past.events.sort_by_key(|event| event.time);
        past.put_into(&mut record);
        let generation = model.mark_changed();
        model.failures.keep(generation, record);
    }
    model.failures.looks.dead -= most - looks;
}

fn is_failure(event: &Event) -> bool {
    event.kind() == Some(EventKind::AllocFailed)
}

fn described(event: &Event, time: u64, owner: &ProcessStats) -> PastEvent {
    PastEvent {
        time,
        identity: owner.identity,
        pid: owner.pid,
        kind: u64::from(event.kind),
        class: u64::from(event.class),
        id: event.id,
        size: event.size,
    }
}

/// The last events of all processes on the chip before a failure.
fn past_of(followers: &[Follower], model: &Model, failure: &FailureRecord, looks: &mut usize) -> Past {
    let chip = model.devices.values().find(|(_, device)| device.entry.chip_id == failure.chip_id);
    let (mut events, mut horizon) = (Vec::new(), chip.map_or(0, |(_, device)| device.gone_until));
    for follower in followers.iter().filter(|follower| !follower.broken) {
        let (found, reached) = past_in(follower, model, failure, looks).unwrap_or_default();
        events.extend(found);
        horizon = horizon.max(reached);
    }
    // The sort is stable: events of one process keep their order even if their times are equal.
    events.sort_by_key(|event: &PastEvent| event.time);
    let oldest = events.len().checked_sub(FAILURE_EVENTS).map(|from| events[from].time);
    Past { complete: horizon == 0 || oldest.is_some_and(|oldest| oldest >= horizon), events }
}

/// The last events of a process on the chip, oldest first, and the time since which they are complete: 0 if
/// older events do not matter.
fn past_in(
    follower: &Follower,
    model: &Model,
    failure: &FailureRecord,
    looks: &mut usize,
) -> Option<(Vec<PastEvent>, u64)> {
    let process = model.processes.get(follower.process)?;
    let on_chip = |device: &u8| {
        let usage = model.usage_of(follower.process, *device).and_then(|row| model.usages.get(row));
        let device = usage.and_then(|usage| model.devices.get(usage.device));
        device.is_some_and(|device| device.entry.chip_id == failure.chip_id)
    };
    let devices: Vec<u8> = (0..=u8::MAX).take(process.usages.len()).filter(on_chip).collect();
    if devices.is_empty() {
        return None;
    }
    let words = follower.segment.words();
    let time = |event: &Event| model.clock.to_ns(follower.clock, event.time).max(1);
    let last = match process.stats.identity == failure.identity {
        true => failure.position - 1,
        false => last_before(&words, follower.position(), looks, |event| time(event) <= failure.time),
    };
    let (mut events, mut reached) = (Vec::new(), failure.time);
    let mut ring = Ring { words, position: last, looks };
    while events.len() < FAILURE_EVENTS
        && let Some(event) = ring.next()
    {
        // Only a hostile process has times that run backwards.
        reached = time(&event).min(reached);
        if devices.contains(&event.device) {
            events.push(described(&event, reached, &process.stats));
        }
    }
    events.reverse();
    let whole = ring.position == 0 || events.len() == FAILURE_EVENTS;
    Some((events, if whole { 0 } else { reached }))
}

/// The events of a ring, backwards from a position, as far as they are still there.
struct Ring<'a, 'b> {
    words: SegmentWords<'a, AtomicU64>,
    /// The position of the next event.
    position: u64,
    looks: &'b mut usize,
}

impl Iterator for Ring<'_, '_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        if self.position == 0 {
            return None;
        }
        *self.looks = self.looks.checked_sub(1)?;
        let Slot::Ready(event) = self.words.read_slot(self.position) else { return None };
        self.position -= 1;
        Some(event)
    }
}

/// The last position of a process that no longer writes; it may not have published its head.
fn last_position(words: &SegmentWords<'_, AtomicU64>) -> u64 {
    let head = words.head();
    let next = head.saturating_add(1);
    if matches!(words.read_slot(next), Slot::Ready(_)) { next } else { head }
}

/// The last position up to `last` whose event is `early`. Times of one ring never run backwards.
fn last_before(
    words: &SegmentWords<'_, AtomicU64>,
    last: u64,
    looks: &mut usize,
    early: impl Fn(&Event) -> bool,
) -> u64 {
    // Everything up to `low` is early, nothing from `high` on is.
    let (mut low, mut high) = (last.saturating_sub(words.ring.len() as u64), last.saturating_add(1));
    while high - low > 1 && *looks > 0 {
        *looks -= 1;
        let middle = low + (high - low) / 2;
        let is_early = match words.read_slot(middle) {
            Slot::Ready(event) => early(&event),
            Slot::Lapped => true,
            Slot::Pending => false,
        };
        if is_early { low = middle } else { high = middle }
    }
    low
}
