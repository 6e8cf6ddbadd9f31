//! Events per second, over the last second.

/// The length of a slot. The rate changes only when a slot is complete, so an idle row is not written again.
const SLOT_NS: u64 = 125_000_000;
const SLOTS: usize = 8;

/// The number of events in the last [`SLOTS`] complete slots, which make up one second.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rate {
    slots: [u64; SLOTS],
    /// The number of the slot that is being filled.
    index: u64,
    pending: u64,
    per_1000s: u64,
}

impl Rate {
    /// Adds events that happened now.
    #[inline]
    pub(crate) fn add(&mut self, count: u64) {
        self.pending += count;
    }

    /// Closes the slots that ended by `now`; returns whether the rate changed.
    pub(crate) fn advance(&mut self, now: u64) -> bool {
        let index = now / SLOT_NS;
        if index <= self.index {
            return false;
        }
        let passed = (index - self.index).min(SLOTS as u64 + 1);
        self.slots[(self.index % SLOTS as u64) as usize] = std::mem::take(&mut self.pending);
        for empty in 1..passed {
            self.slots[((self.index + empty) % SLOTS as u64) as usize] = 0;
        }
        self.index = index;
        let sum: u64 = self.slots.iter().sum();
        let before = std::mem::replace(&mut self.per_1000s, sum.saturating_mul(1000));
        before != self.per_1000s
    }

    /// Thousandths per second.
    pub(crate) fn per_1000s(&self) -> u64 {
        self.per_1000s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_second_counts() {
        let mut rate = Rate::default();
        rate.advance(10 * SLOT_NS);
        for _ in 0..5 {
            rate.add(1);
        }
        assert!(!rate.advance(10 * SLOT_NS + 1), "the slot is not over");
        assert!(rate.advance(11 * SLOT_NS));
        assert_eq!(rate.per_1000s(), 5_000);
        assert!(!rate.advance(18 * SLOT_NS), "still within the second");
        assert!(rate.advance(19 * SLOT_NS));
        assert_eq!(rate.per_1000s(), 0);
    }

    #[test]
    fn a_long_pause_forgets_everything() {
        let mut rate = Rate::default();
        for slot in 1..20 {
            rate.add(1);
            rate.advance(slot * SLOT_NS);
        }
        assert_eq!(rate.per_1000s(), 8_000);
        rate.advance(u64::MAX);
        assert_eq!(rate.per_1000s(), 0);
    }
}
