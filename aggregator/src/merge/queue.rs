//! What waits for its turn in the merge. Read in place, in batches, and moved as rarely as possible.

use shm_layout::{Counters, Event};

use crate::merge::catch_up::ReadReason;

/// An item that waits.
#[derive(Debug)]
pub(crate) enum Item {
    /// An event of the ring.
    Event(Event),
    /// All counters, read in full because the events before them were not read.
    FullRead(Box<FullRead>),
}

/// The counters of every device of a process, read in full.
#[derive(Debug)]
pub(crate) struct FullRead {
    pub(crate) devices: Vec<Counters>,
    pub(crate) position: u64,
    pub(crate) reason: ReadReason,
    pub(crate) missed: u64,
}

/// Items with their times, in the order of their turns. An event may be older than counters before it.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    items: Vec<(u64, Item)>,
    /// How many of them are done. They are removed when something new is queued.
    done: usize,
}

impl Queue {
    /// The items that wait, earliest first.
    #[inline]
    pub(crate) fn waiting(&self) -> &[(u64, Item)] {
        self.items.get(self.done..).unwrap_or_default()
    }

    /// The time of the first item that waits.
    #[inline]
    pub(crate) fn head(&self) -> Option<u64> {
        self.items.get(self.done).map(|(time, _)| *time)
    }

    /// The number of items that wait.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.items.len() - self.done
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.done == self.items.len()
    }

    /// Marks the first `count` items that wait as done.
    pub(crate) fn pass(&mut self, count: usize) {
        self.done += count.min(self.len());
    }

    /// Removes the items that are done.
    pub(crate) fn tidy(&mut self) {
        self.items.drain(..self.done);
        self.done = 0;
    }

    #[inline]
    pub(crate) fn push_back(&mut self, item: (u64, Item)) {
        self.items.push(item);
    }
}

/// The part of a queue that is folded in one go: the items up to a time.
pub(crate) struct Batch<'a> {
    items: &'a [(u64, Item)],
    until: u64,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(items: &'a [(u64, Item)], until: u64) -> Batch<'a> {
        Batch { items, until }
    }

    /// The number of items left in the queue, in this batch or after it.
    pub(crate) fn left(&self) -> usize {
        self.items.len()
    }

    /// The items of this batch.
    pub(crate) fn due(&self) -> &'a [(u64, Item)] {
        let count = self.items.iter().position(|(time, _)| *time > self.until).unwrap_or(self.items.len());
        self.items.get(..count).unwrap_or_default()
    }

    /// The next item and its time, if it is an event.
    #[inline]
    pub(crate) fn event(&self) -> Option<(u64, &'a Event)> {
        match self.items.first()? {
            (time, Item::Event(event)) if *time <= self.until => Some((*time, event)),
            _ => None,
        }
    }

    /// The next item and its time, if it is an event on this device.
    #[inline]
    pub(crate) fn event_on(&self, device: u8) -> Option<(u64, &'a Event)> {
        self.event().filter(|(_, event)| event.device == device)
    }

    /// The next item and its time, if it is a full read.
    pub(crate) fn full_read(&self) -> Option<(u64, &'a FullRead)> {
        match self.items.first()? {
            (time, Item::FullRead(read)) if *time <= self.until => Some((*time, read)),
            _ => None,
        }
    }

    /// Skips the next item, which is done.
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
    fn items_that_are_done_wait_no_longer() {
        let mut queue = Queue::default();
        assert!(queue.is_empty() && queue.head().is_none());
        (1..=3).for_each(|time| queue.push_back((time, Item::Event(Event::new(EventKind::Marker, 0)))));
        queue.pass(1);
        assert_eq!((queue.is_empty(), queue.len(), queue.head()), (false, 2, Some(2)));
        queue.tidy();
        assert_eq!((queue.is_empty(), queue.len(), queue.head()), (false, 2, Some(2)));
        assert_eq!(queue.items.len(), 2, "what is done takes no memory");
        queue.pass(5);
        assert_eq!((queue.is_empty(), queue.len(), queue.head()), (true, 0, None));
    }

    /// Whatever others did before counters were read is folded before them.
    #[test]
    fn each_item_waits_for_its_time() {
        let read = FullRead { devices: Vec::new(), position: 0, reason: ReadReason::Again, missed: 0 };
        let event = Event::new(EventKind::Marker, 0);
        let items = [(5, Item::Event(event)), (7, Item::FullRead(Box::new(read)))];
        let turns = |until| {
            let mut batch = Batch::new(&items, until);
            let event = batch.event().map(|(time, _)| time);
            batch.pass();
            (event, batch.full_read().map(|(time, _)| time))
        };
        assert_eq!([4, 5, 6].map(turns), [(None, None), (Some(5), None), (Some(5), None)]);
        assert_eq!(turns(7), (Some(5), Some(7)));
        let batch = Batch::new(&items, 9);
        assert!(batch.full_read().is_none() && batch.event_on(0).is_some() && batch.event_on(1).is_none());
    }
}
