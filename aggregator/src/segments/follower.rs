//! A segment that is followed: a position in its ring, and the events that wait for their turn.

use shm_layout::protocol::observe::{Attached, CatchUpError, Cursor, Slot};
use shm_layout::{Counters, DeviceEntry, Event, MAX_COUNT, NO_DEVICE};
use tt_shm_os::{ClockKind, monotonic_ns};
use tt_shm_reader::Segment;

use crate::merge::catch_up::ReadReason;
use crate::merge::queue::{Batch, FullRead, Item, Queue};
use crate::segments::attach::CHECK_NS;
use crate::segments::clock::Clock;

/// The most events that wait; more stay in the ring. Bounds memory, whatever a segment holds.
const MAX_QUEUED: usize = 4096;
/// An event further in the future than this has a wrong clock, and is taken as happening now.
const MAX_AHEAD_NS: u64 = 50_000_000;

/// The result of draining a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    /// Everything that was there is queued.
    All,
    /// The queue is full and the ring may have more.
    More,
    /// The segment holds impossible values.
    Broken(String),
}

/// The last event of a process that an earlier aggregator saw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenBefore {
    pub(crate) position: u64,
    pub(crate) time: u64,
}

/// A followed segment.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) segment: Segment,
    /// Its process row.
    pub(crate) process: usize,
    /// The clock of its events; `None` if its times cannot be converted here.
    pub(crate) clock: Option<ClockKind>,
    cursor: Cursor,
    /// For each device, the position up to which its counters were complete when they were read in full.
    complete: Vec<u64>,
    /// The position of the last event taken from the ring.
    position: u64,
    /// The last event an earlier aggregator saw, until a later one is taken.
    seen_before: Option<SeenBefore>,
    /// Set if the counters have to be read in full, with the reason.
    detached: Option<ReadReason>,
    /// The head when the counters could not be read the last time.
    busy_at: Option<u64>,
    queue: Queue,
    /// The time of the last event. Times of one process never run backwards.
    event_time: u64,
    /// The latest time of anything that waits or waited.
    last_time: u64,
    /// The time of the last full read, and `last_time` before it.
    state_at: u64,
    before_state: u64,
    pub(crate) devices: usize,
    /// The `known` bits of each device when it was last looked at.
    told: Vec<u64>,
    pub(crate) next_check: u64,
    /// When it was found.
    pub(crate) attached: u64,
    /// When it was last known to be alive.
    pub(crate) seen_alive: u64,
    pub(crate) died: Option<u64>,
    pub(crate) broken: bool,
    pub(crate) drained: bool,
}

impl Follower {
    /// Follows a segment from its first event if the ring still has it, otherwise from now on.
    pub(crate) fn new(
        segment: Segment,
        process: usize,
        clock: Option<ClockKind>,
        seen_before: Option<SeenBefore>,
        (started, now): (u64, u64),
    ) -> Follower {
        let words = segment.words();
        let whole = words.head() < words.ring.len() as u64 && clock.is_some();
        Follower {
            process,
            clock,
            cursor: Cursor::after(0),
            complete: Vec::new(),
            position: 0,
            seen_before,
            detached: (!whole).then_some(ReadReason::First),
            busy_at: None,
            queue: Queue::default(),
            event_time: 0,
            // Before it was started, it held nothing.
            last_time: started.min(now),
            state_at: 0,
            before_state: 0,
            devices: 0,
            told: Vec::new(),
            // Spread over time, so that no poll checks all locks.
            next_check: now + CHECK_NS * (process as u64 % 16) / 16,
            attached: now,
            seen_alive: now,
            died: None,
            broken: false,
            drained: false,
            segment,
        }
    }

    /// Reads the counters if they have to be read in full: the sooner they are read, the sooner they can be
    /// folded.
    pub(crate) fn begin(&mut self) {
        if let Some(reason) = self.detached {
            // Errors are left to the next drain.
            self.attach(reason);
        }
    }

    /// Checks whether its process is alive. It was alive before the check began, or dead once it was
    /// answered; events in between may have happened while it held its memory.
    pub(crate) fn look(&mut self) {
        let asked = monotonic_ns();
        self.next_check = asked + CHECK_NS;
        match self.segment.is_alive() {
            Ok(true) => self.seen_alive = asked,
            Ok(false) => self.died = self.died.or_else(|| Some(monotonic_ns())),
            // Not a death: the next check tries again.
            Err(_) => {}
        }
    }

    /// Moves the new events of the ring into the queue.
    pub(crate) fn drain(&mut self, clock: &Clock, now: u64) -> Drained {
        if self.broken {
            return Drained::All;
        }
        let drained = self.drain_ring(clock, now);
        // Checked afterwards: what was read meanwhile may be zeros that the guard put there.
        if let Some(loss) = self.segment.loss() {
            return Drained::Broken(loss.to_string());
        }
        drained
    }

    fn drain_ring(&mut self, clock: &Clock, now: u64) -> Drained {
        if let Some(reason) = self.detached {
            return self.attach(reason);
        }
        let words = self.segment.words();
        if self.clock.is_none() {
            // The times of its events are not known, so they cannot be merged. Its counters are, each time
            // they have changed.
            return if words.head() == self.position { Drained::All } else { self.attach(ReadReason::Again) };
        }
        self.queue.tidy();
        // Bounded by the slots read, not only by what is queued: events that are not news are not queued.
        for _ in 0..MAX_QUEUED {
            if self.queue.len() >= MAX_QUEUED {
                break;
            }
            // Not through the cursor: an event is 64 bytes, and each call that it passes through copies them.
            let position = self.cursor.position() + 1;
            match words.read_slot(position) {
                Slot::Ready(_) if position > MAX_COUNT => {
                    return Drained::Broken(format!(
                        "an event at position {position}, which no process reaches"
                    ));
                }
                Slot::Ready(event) => {
                    self.cursor = Cursor::after(position);
                    self.position = position;
                    if is_news(&self.complete, &event) {
                        // Not raised to the time of counters that were read before it was committed: then it
                        // is late.
                        let time = not_ahead(clock.to_ns(self.clock, event.time), now);
                        self.event_time = self.event_time.max(time);
                        self.last_time = self.last_time.max(time);
                        self.queue.push_back((self.event_time, Item::Event(event)));
                    }
                }
                Slot::Pending => return Drained::All,
                // Reading all counters may take long, so it is done once per drain; the rest waits.
                Slot::Lapped => return self.attach(ReadReason::Again),
            }
        }
        Drained::More
    }

    fn attach(&mut self, reason: ReadReason) -> Drained {
        self.detached = Some(reason);
        let state = match now_of(&self.segment) {
            Ok(state) => state,
            // The process changed them meanwhile; the next poll tries again.
            Err(Unread::Busy) => return self.give_time(),
            Err(Unread::Broken(why)) => return Drained::Broken(why),
        };
        let Attached { devices, cursor } = state;
        let missed = match reason {
            ReadReason::Again if self.clock.is_some() => cursor.position().saturating_sub(self.position),
            ReadReason::Again | ReadReason::First => 0,
        };
        // While an earlier full read waits to be folded, what came before that one is not folded either.
        let waits = self.queue.waiting().iter().any(|(_, item)| matches!(item, Item::FullRead(_)));
        if !waits {
            self.before_state = self.last_time;
        }
        // Now, not the time of the last event: the counters are known to be of this moment.
        self.last_time = self.last_time.max(monotonic_ns());
        let read = FullRead {
            devices: devices.iter().map(|(counters, _)| *counters).collect(),
            position: cursor.position(),
            reason,
            missed,
        };
        self.complete = devices.iter().map(|(_, complete)| *complete).collect();
        self.state_at = self.last_time;
        self.queue.push_back((self.last_time, Item::FullRead(Box::new(read))));
        (self.cursor, self.position, self.detached, self.busy_at) = (cursor, cursor.position(), None, None);
        Drained::All
    }

    /// Handles counters that could not be read. That is expected of a process that emits, not of an idle one.
    fn give_time(&mut self) -> Drained {
        let head = self.segment.words().head();
        match self.busy_at.replace(head) {
            Some(before) if before == head => {
                Drained::Broken("its counters cannot be read although it is idle".into())
            }
            _ => Drained::All,
        }
    }

    /// The devices that were registered since the last call.
    pub(crate) fn new_devices(&mut self) -> Vec<DeviceEntry> {
        if self.broken {
            return Vec::new();
        }
        let words = self.segment.words();
        let count = words.device_count();
        let new: Vec<DeviceEntry> = (self.devices..count).filter_map(|device| words.device(device)).collect();
        self.devices = self.devices.max(count);
        new
    }

    /// The devices about which the process told more since the last call, by index.
    pub(crate) fn changed_devices(&mut self) -> Vec<(usize, DeviceEntry)> {
        if self.broken {
            return Vec::new();
        }
        let words = self.segment.words();
        let entries = (0..self.devices).filter_map(|device| Some((device, words.device(device)?)));
        let changed: Vec<(usize, DeviceEntry)> =
            entries.filter(|(device, entry)| self.told.get(*device) != Some(&entry.known)).collect();
        for (device, entry) in &changed {
            self.told.resize(self.told.len().max(device + 1), 0);
            self.told[*device] = entry.known;
        }
        changed
    }

    /// The time of the first item that waits.
    #[inline]
    pub(crate) fn head(&self) -> Option<u64> {
        self.queue.head()
    }

    /// The time of the last item that waits or waited.
    pub(crate) fn tail(&self) -> u64 {
        self.last_time
    }

    /// Returns once, when an event that an earlier aggregator did not see was taken from the ring, the
    /// earliest time at which it can have happened. Times of a process never run backwards, so the first such
    /// event decides.
    pub(crate) fn take_news(&mut self, clock: &Clock) -> Option<u64> {
        let seen = self.seen_before.take_if(|seen| self.position > seen.position)?;
        Some(match self.segment.words().read_slot(seen.position + 1) {
            Slot::Ready(event) if self.clock.is_some() => clock.to_ns(self.clock, event.time),
            // All that is known is that it was not before the last event seen: several events of one call
            // have one time.
            _ => seen.time,
        })
    }

    /// The position of the last event that was taken from the ring.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The items that wait up to a time.
    #[inline]
    pub(crate) fn batch(&self, until: u64) -> Batch<'_> {
        Batch::new(self.queue.waiting(), until)
    }

    /// Marks all but the last `left` items as done.
    #[inline]
    pub(crate) fn pass_to(&mut self, left: usize) {
        self.queue.pass(self.queue.len() - left);
    }

    /// Whether nothing of it is left to fold.
    pub(crate) fn is_done(&self) -> bool {
        self.broken || (self.drained && self.queue.is_empty() && self.detached.is_none())
    }

    /// Whether the last drain left something in its segment.
    pub(crate) fn is_behind(&self) -> bool {
        !self.broken && (!self.drained || self.detached.is_some())
    }

    /// The time up to which everything it reported is folded, given that everything queued up to
    /// `folded_through` is.
    pub(crate) fn known_until(&self, folded_through: u64) -> u64 {
        if self.is_behind() {
            self.last_time.min(folded_through)
        } else if self.state_at > folded_through && !self.broken {
            self.before_state.min(folded_through)
        } else {
            folded_through
        }
    }

    /// Whether something waits to be folded.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.queue.is_empty() || (self.detached.is_some() && !self.broken)
    }

    /// Stops following: what it reports is impossible.
    pub(crate) fn give_up(&mut self) {
        self.broken = true;
        self.queue = Queue::default();
    }
}

/// Whether an event is later than the counters that were read for its device.
#[inline]
fn is_news(complete: &[u64], event: &Event) -> bool {
    let complete = complete.get(usize::from(event.device)).copied().unwrap_or(0);
    event.device == NO_DEVICE || event.stamp > complete
}

/// Limits a time to how far clocks can differ from ours. `now` is when the poll began, which may be long ago:
/// the aggregator may have been stopped since.
#[inline]
fn not_ahead(time: u64, now: u64) -> u64 {
    if time > now.saturating_add(MAX_AHEAD_NS) { not_ahead_of_now(time) } else { time }
}

#[cold]
fn not_ahead_of_now(time: u64) -> u64 {
    let now = monotonic_ns();
    if time > now.saturating_add(MAX_AHEAD_NS) { now } else { time }
}

/// Why the counters of a segment could not be read.
enum Unread {
    Busy,
    Broken(String),
}

/// The current counters. A checkpoint alone is some time old, and what the process held then may never have
/// been held together with what others hold now.
fn now_of(segment: &Segment) -> Result<Attached, Unread> {
    let words = segment.words();
    let mut attached = Attached::new(&words).map_err(|_| Unread::Busy)?;
    // Checked before anything is added: sums of plausible counters do not overflow.
    check(&attached)?;
    match attached.catch_up(&words) {
        Ok(()) => {}
        Err(CatchUpError::Lapped { .. } | CatchUpError::Behind { .. }) => return Err(Unread::Busy),
        Err(CatchUpError::Implausible(why)) => return Err(Unread::Broken(why.to_string())),
    }
    check(&attached)?;
    Ok(attached)
}

fn check(attached: &Attached) -> Result<(), Unread> {
    match attached.devices.iter().position(|(counters, _)| !counters.is_plausible()) {
        None => Ok(()),
        Some(device) => Err(Unread::Broken(format!("impossible counters on device {device}"))),
    }
}

/// The current counters; `None` if they cannot be read or are impossible.
pub(crate) fn counters_now(segment: &Segment) -> Option<Attached> {
    now_of(segment).ok()
}

/// The counters that a dead process left; `None` if they are impossible.
pub(crate) fn last_counters(segment: &Segment) -> Option<Vec<Counters>> {
    let attached = counters_now(segment)?;
    Some(attached.devices.iter().map(|(counters, _)| *counters).collect())
}
