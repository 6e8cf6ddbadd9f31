//! Dispatches per second, from two lists.

use std::collections::HashMap;

use crate::lists::programs::Entry;

/// Shortest meaningful time between two lists.
const LEAST_NS: u64 = 200_000_000;

/// The last counts, and the rates computed from them.
#[derive(Debug, Default)]
pub(super) struct Rates {
    counted: HashMap<(u32, u64), u64>,
    counted_ns: Option<u64>,
    rates: HashMap<(u32, u64), f64>,
}

impl Rates {
    /// Takes in a new list.
    pub(super) fn take(&mut self, entries: &[Entry], now_ns: u64) {
        let time_ns = self.counted_ns.map(|counted| now_ns.saturating_sub(counted));
        if time_ns.is_some_and(|time_ns| time_ns < LEAST_NS) {
            return;
        }
        let key = |entry: &Entry| (entry.pid, entry.program.id);
        let rate = |entry: &Entry| {
            // A lower count means another program with the same id.
            let more = entry.program.dispatches.checked_sub(*self.counted.get(&key(entry))?)?;
            Some((key(entry), more as f64 * 1e9 / time_ns? as f64))
        };
        self.rates = entries.iter().filter_map(rate).collect();
        self.counted = entries.iter().map(|entry| (key(entry), entry.program.dispatches)).collect();
        self.counted_ns = Some(now_ns);
    }

    /// A program's dispatches per second; `None` if it was seen only once.
    pub(super) fn of(&self, entry: &Entry) -> Option<f64> {
        self.rates.get(&(entry.pid, entry.program.id)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_reader::Program;

    const SECOND: u64 = 1_000_000_000;

    fn entry(id: u64, dispatches: u64) -> Entry {
        let program = Program { id, dispatches, ..Program::default() };
        Entry { pid: 1, claimed: false, program, devices: vec![0], last_dispatch_ns: None }
    }

    #[test]
    fn a_rate_needs_two_lists() {
        let mut rates = Rates::default();
        rates.take(&[entry(1, 100)], SECOND);
        assert_eq!(rates.of(&entry(1, 100)), None);
        rates.take(&[entry(1, 300), entry(2, 5)], 3 * SECOND);
        assert_eq!(rates.of(&entry(1, 300)), Some(100.0));
        assert_eq!(rates.of(&entry(2, 5)), None, "new");
        rates.take(&[entry(1, 300), entry(2, 4)], 4 * SECOND);
        assert_eq!(rates.of(&entry(1, 300)), Some(0.0), "known to be none");
        assert_eq!(rates.of(&entry(2, 4)), None, "another program");
    }
}
