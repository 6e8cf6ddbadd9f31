//! What waits for its turn in the merge: read in place, in runs, and moved as rarely as can be.

use shm_layout::{Counters, Event};

use crate::merge::catch_up::ReadReason;

/// What waits.
#[derive(Debug)]
pub(crate) enum Item {
    /// An event of the ring.
    Event(Event),
    /// All counters, read as a whole because the events before it were not.
    FullRead(Box<FullRead>),
}

/// Counters of every device.
#[derive(Debug)]
pub(crate) struct FullRead {
    pub(crate) devices: Vec<Counters>,
    pub(crate) position: u64,
    pub(crate) known: ReadReason,
    pub(crate) missed: u64,
}

/// Things with their times, in the order in which they have their turn. An event may be older than counters before it.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    items: Vec<(u64, Item)>,
    /// How many of them had their turn. They go when there is something new to be queued.
    done: usize,
}

impl Queue {
    /// What waits, the earliest first.
    #[inline]
    pub(crate) fn waiting(&self) -> &[(u64, Item)] {
        self.items.get(self.done..).unwrap_or_default()
    }

    /// Time of the first thing that waits.
    #[inline]
    pub(crate) fn head(&self) -> Option<u64> {
        self.items.get(self.done).map(|(time, _)| *time)
    }

    /// How many wait.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.items.len() - self.done
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.done == self.items.len()
    }

    /// The first so many had their turn.
    pub(crate) fn pass(&mut self, count: usize) {
        self.done += count.min(self.len());
    }

    /// Forgets what had its turn.
    pub(crate) fn tidy(&mut self) {
        self.items.drain(..self.done);
        self.done = 0;
    }

    #[inline]
    pub(crate) fn push_back(&mut self, item: (u64, Item)) {
        self.items.push(item);
    }
}

/// The part of a queue that is folded in one go: the events up to a moment.
pub(crate) struct Batch<'a> {
    items: &'a [(u64, Item)],
    until: u64,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(items: &'a [(u64, Item)], until: u64) -> Batch<'a> {
        Batch { items, until }
    }

    /// How many things are left of the queue, this run's and others.
    pub(crate) fn left(&self) -> usize {
        self.items.len()
    }

    /// The next event and its time.
    #[inline]
    pub(crate) fn event(&self) -> Option<(u64, &'a Event)> {
        match self.items.first()? {
            (time, Item::Event(event)) if *time <= self.until => Some((*time, event)),
            _ => None,
        }
    }

    /// The next event and its time, if it is on this device.
    #[inline]
    pub(crate) fn event_on(&self, device: u8) -> Option<(u64, &'a Event)> {
        self.event().filter(|(_, event)| event.device == device)
    }

    /// The state that comes next, and its time.
    pub(crate) fn state(&self) -> Option<(u64, &'a FullRead)> {
        match self.items.first()? {
            (time, Item::FullRead(state)) if *time <= self.until => Some((*time, state)),
            _ => None,
        }
    }

    /// What was next had its turn.
    #[inline]
    pub(crate) fn pass(&mut self) {
        self.items = self.items.get(1..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm_layout::EventKind;

    #[test]
    fn what_had_its_turn_waits_no_longer() {
        let mut queue = Queue::default();
        assert!(queue.is_empty() && queue.head().is_none());
        (1..=3).for_each(|time| queue.push_back((time, Item::Event(Event::new(EventKind::Marker, 0)))));
        queue.pass(1);
        assert_eq!((queue.is_empty(), queue.len(), queue.head()), (false, 2, Some(2)));
        queue.tidy();
        assert_eq!((queue.is_empty(), queue.len(), queue.head()), (false, 2, Some(2)));
        queue.pass(5);
        assert_eq!((queue.is_empty(), queue.len(), queue.head()), (true, 0, None));
    }
}
