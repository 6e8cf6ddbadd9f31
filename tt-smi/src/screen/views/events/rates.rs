//! Event rates by kind.

use std::collections::VecDeque;

use crate::lists::events::Seen;

/// Period over which rates are measured: long enough to be steady, short enough to be current.
const WINDOW_NS: u64 = 5_000_000_000;
/// Shortest meaningful period.
const LEAST_NS: u64 = 200_000_000;

/// Counts of the last reads, by kind.
#[derive(Debug, Default)]
pub(super) struct EventRates {
    /// When the oldest counted read ended; `None` if there was none.
    start_ns: Option<u64>,
    reads: VecDeque<ReadCounts>,
}

#[derive(Debug)]
struct ReadCounts {
    end_ns: u64,
    kinds: Vec<(&'static str, u64)>,
}

impl EventRates {
    /// Starts now: when the events so far happened is not known.
    pub(super) fn begin(now_ns: u64) -> EventRates {
        EventRates { start_ns: Some(now_ns), reads: VecDeque::new() }
    }

    /// Counts the events since the last read.
    pub(super) fn take(&mut self, events: &[Seen], now_ns: u64) {
        let mut kinds: Vec<(&'static str, u64)> = Vec::new();
        for event in events {
            match kinds.iter_mut().find(|(kind, _)| *kind == event.kind_name()) {
                Some((_, count)) => *count += 1,
                None => kinds.push((event.kind_name(), 1)),
            }
        }
        self.reads.push_back(ReadCounts { end_ns: now_ns, kinds });
        while self.reads.len() > 1 && self.reads[0].end_ns.saturating_add(WINDOW_NS) < now_ns {
            self.start_ns = self.reads.pop_front().map(|read| read.end_ns);
        }
    }

    /// EventRates above zero, highest first; `None` if not known yet.
    pub(super) fn per_second(&self) -> Option<Vec<(&'static str, f64)>> {
        let time_ns = self.reads.back()?.end_ns.saturating_sub(self.start_ns?);
        if time_ns < LEAST_NS {
            return None;
        }
        let mut sums: Vec<(&'static str, u64)> = Vec::new();
        for (kind, count) in self.reads.iter().flat_map(|read| &read.kinds) {
            match sums.iter_mut().find(|(known, _)| known == kind) {
                Some((_, sum)) => *sum += count,
                None => sums.push((kind, *count)),
            }
        }
        sums.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
        let rate = |count: u64| count as f64 * 1e9 / time_ns as f64;
        Some(sums.into_iter().map(|(kind, count)| (kind, rate(count))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_reader::EventKind;

    const SECOND: u64 = 1_000_000_000;

    fn events(kind: EventKind, count: usize) -> Vec<Seen> {
        vec![super::super::log::seen(kind, 0); count]
    }

    #[test]
    fn unknown_at_first_and_measured_over_the_last_seconds() {
        let mut rates = EventRates::begin(SECOND);
        assert_eq!(rates.per_second(), None);
        rates.take(&events(EventKind::Alloc, 10), SECOND + SECOND / 10);
        assert_eq!(rates.per_second(), None, "too short");
        rates.take(&events(EventKind::Free, 30), 2 * SECOND);
        assert_eq!(rates.per_second(), Some(vec![("FREE", 30.0), ("ALLOC", 10.0)]));
        for second in 3..20 {
            rates.take(&events(EventKind::Free, 7), second * SECOND);
        }
        assert_eq!(rates.per_second(), Some(vec![("FREE", 7.0)]), "what is long ago does not count");
    }

    #[test]
    fn nothing_is_known_to_be_nothing() {
        let mut rates = EventRates::begin(0);
        rates.take(&[], SECOND);
        assert_eq!(rates.per_second(), Some(Vec::new()));
        assert_eq!(EventRates::default().per_second(), None);
    }
}
