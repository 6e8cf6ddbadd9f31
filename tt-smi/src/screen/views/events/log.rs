//! The latest events.

use crate::lists::events::Happened;
use crate::screen::data::NewEvents;

/// Number of events kept at least.
const KEPT: usize = 20_000;
/// Number of further events that may be kept: dropping one for each new one would cost more than all the rest.
const SLACK: usize = 5_000;

/// An event, and its sequence number in the log.
#[derive(Debug)]
pub(super) struct LogEntry {
    pub number: u64,
    pub event: Happened,
}

/// The result of taking in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// They were already known.
    Nothing,
    /// The log restarted with them: they are what the rings held, of any age.
    First,
    /// They happened since the last ones.
    More,
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
        self.append(&new.events);
        if is_first { Taken::First } else { Taken::More }
    }

    fn append(&mut self, events: &[Happened]) {
        let surplus = events.len().saturating_sub(KEPT);
        self.dropped += surplus as u64;
        self.next += surplus as u64;
        let kept = &events[surplus..];
        if self.entries.len() + kept.len() > KEPT + SLACK {
            let old = (self.entries.len() + kept.len() - KEPT).min(self.entries.len());
            self.entries.drain(..old);
            self.dropped += old as u64;
        }
        for event in kept {
            self.entries.push(LogEntry { number: self.next, event: event.clone() });
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(pass: u64, read: u64, count: u64) -> NewEvents {
        let event = |id| Happened { id, ..Happened::default() };
        NewEvents { pass, read, events: (0..count).map(event).collect(), missed: 1, older: 2 }
    }

    #[test]
    fn the_same_news_count_once_and_another_following_begins_anew() {
        let mut log = Log::default();
        assert_eq!(log.take(&new(1, 1, 5)), Taken::First);
        assert_eq!(log.take(&new(1, 1, 5)), Taken::Nothing, "a frozen screen");
        assert_eq!(log.take(&new(1, 2, 3)), Taken::More);
        assert_eq!(log.entries().len(), 8);
        assert_eq!(log.take(&new(2, 1, 4)), Taken::First);
        assert_eq!((log.entries().len(), log.entries()[0].number), (4, 8), "numbers are not used twice");
        assert_eq!((log.missed, log.older, log.dropped), (1, 2, 0));
    }

    #[test]
    fn the_log_is_bounded_and_says_what_it_dropped() {
        let mut log = Log::default();
        for read in 1..=30 {
            log.take(&new(1, read, 1000));
        }
        let kept = log.entries().len() as u64;
        assert!((KEPT as u64..=(KEPT + SLACK) as u64).contains(&kept), "{kept}");
        assert_eq!(kept + log.dropped, 30_000);
        log.take(&new(1, 31, 50_000));
        assert_eq!((log.entries().len(), log.dropped), (KEPT, 60_000));
        assert_eq!(log.entries().last().map(|entry| entry.event.id), Some(49_999));
        let numbers: Vec<u64> = log.entries().iter().map(|entry| entry.number).collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
    }
}
