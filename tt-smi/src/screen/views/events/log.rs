//! The latest events.

use crate::lists::events::Seen;
use crate::screen::data::NewEvents;

/// Number of events kept at least.
pub(super) const KEPT: usize = 200_000;
/// Number of further events that may be kept: dropping one for each new one would cost more than all the rest.
const SLACK: usize = 50_000;

/// An event, and its sequence number in the log.
#[derive(Debug)]
pub(super) struct LogEntry {
    pub number: u64,
    /// The devices that its line stands for, as bits; 0 if it has none, or one beyond 63.
    pub devices: u64,
    pub seen: Seen,
}

/// What the log takes at most, but for names, which events share: 44 MB.
const _: () = assert!(size_of::<LogEntry>() <= 176);

/// The result of taking in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// They were already known.
    Nothing,
    /// The log restarted with them: they are what the rings held, of any age.
    First,
    /// They happened since the last ones, and are behind them; so many of the oldest were dropped.
    More { dropped: usize, count: usize },
}

#[derive(Debug, Default)]
pub(super) struct Log {
    entries: Vec<LogEntry>,
    next: u64,
    /// Pass and read number of the last events taken in.
    last: (u64, u64),
    /// Overwritten before they were read.
    pub missed: u64,
    /// No longer in the rings when these were first read.
    pub older: u64,
    /// Dropped from the log.
    pub dropped: u64,
}

impl Log {
    /// The events kept, oldest first.
    pub(super) fn entries(&self) -> &[LogEntry] {
        &self.entries
    }

    pub(super) fn entries_mut(&mut self) -> &mut [LogEntry] {
        &mut self.entries
    }

    /// Takes in new events.
    pub(super) fn take(&mut self, new: &NewEvents) -> Taken {
        let (pass, read) = self.last;
        if new.pass == pass && new.read <= read {
            return Taken::Nothing;
        }
        let is_first = new.pass != pass;
        if is_first {
            // A new pass starts with what the rings still hold, which was here before.
            *self = Log { next: self.next, ..Log::default() };
        }
        self.last = (new.pass, new.read);
        (self.missed, self.older) = (new.missed, new.older);
        let (dropped, count) = self.append(&new.events);
        if is_first { Taken::First } else { Taken::More { dropped, count } }
    }

    /// How many of the entries were dropped, and how many were added.
    fn append(&mut self, events: &[Seen]) -> (usize, usize) {
        let surplus = events.len().saturating_sub(KEPT);
        self.dropped += surplus as u64;
        self.next += surplus as u64;
        let kept = &events[surplus..];
        let mut old = 0;
        if self.entries.len() + kept.len() > KEPT + SLACK {
            old = (self.entries.len() + kept.len() - KEPT).min(self.entries.len());
            self.entries.drain(..old);
            self.dropped += old as u64;
        }
        for seen in kept {
            self.entries.push(LogEntry { number: self.next, devices: 0, seen: seen.clone() });
            self.next += 1;
        }
        (old, kept.len())
    }
}

/// An event of this kind and id, on device 0.
#[cfg(test)]
pub(super) fn seen(kind: tt_shm_reader::EventKind, id: u64) -> Seen {
    Seen {
        event: tt_shm_reader::Event { id, ..tt_shm_reader::Event::new(kind, 0) },
        time: crate::model::Moment::default(),
        total: None,
        name: None,
        process: "".into(),
        pid: 1,
        claimed: false,
        device: Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_reader::EventKind;

    fn new(pass: u64, read: u64, count: usize) -> NewEvents {
        let events = (0..count).map(|id| seen(EventKind::Alloc, id as u64)).collect();
        NewEvents { pass, read, events, missed: 1, older: 2 }
    }

    #[test]
    fn the_same_news_count_once_and_another_following_begins_anew() {
        let mut log = Log::default();
        assert_eq!(log.take(&new(1, 1, 5)), Taken::First);
        assert_eq!(log.take(&new(1, 1, 5)), Taken::Nothing, "a frozen screen");
        assert_eq!(log.take(&new(1, 2, 3)), Taken::More { dropped: 0, count: 3 });
        assert_eq!(log.entries().len(), 8);
        assert_eq!(log.take(&new(2, 1, 4)), Taken::First);
        assert_eq!((log.entries().len(), log.entries()[0].number), (4, 8), "numbers are not used twice");
        assert_eq!((log.missed, log.older, log.dropped), (1, 2, 0));
    }

    #[test]
    fn the_log_is_bounded_and_says_what_it_dropped() {
        let mut log = Log::default();
        for read in 1..=30 {
            log.take(&new(1, read, KEPT / 20));
        }
        let kept = log.entries().len();
        assert!((KEPT..=KEPT + SLACK).contains(&kept), "{kept}");
        assert_eq!(kept as u64 + log.dropped, 30 * KEPT as u64 / 20);
        let before = log.entries().len();
        assert_eq!(log.take(&new(1, 31, KEPT + 50)), Taken::More { dropped: before, count: KEPT });
        assert_eq!(log.entries().len(), KEPT);
        assert_eq!(log.entries().last().map(|entry| entry.seen.event.id), Some(KEPT as u64 + 49));
        let numbers: Vec<u64> = log.entries().iter().map(|entry| entry.number).collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
    }
}
