//! The largest value of a window: exact, or a range that holds it.

use shm_layout::table::Peak;

/// One largest value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeakTracker {
    low: u64,
    time: u64,
    count: u64,
    /// Most that it can have been while something was not followed; below `low` if that says nothing.
    bound: u64,
}

impl PeakTracker {
    /// Goes on with a peak that an earlier aggregator saw.
    pub(crate) fn resume(peak: &Peak) -> PeakTracker {
        PeakTracker { low: peak.low, time: peak.time, count: peak.count, bound: peak.high }
    }

    /// Whether a value would be the largest so far.
    #[inline]
    pub(crate) fn is_below(&self, value: u64) -> bool {
        value > self.low
    }

    /// Notes a value; says whether it is the largest so far.
    #[inline]
    pub(crate) fn raise(&mut self, value: u64, time: u64, count: u64) -> bool {
        let raised = self.is_below(value);
        if raised {
            (self.low, self.time, self.count) = (value, time, count);
        }
        raised
    }

    /// Something was not followed, but the value cannot have been above `bound` then.
    pub(crate) fn widen(&mut self, bound: u64) {
        self.bound = self.bound.max(bound);
    }

    /// It turns out that `bytes` less were used from `since` on. A peak seen after that was seen too
    /// high: what it lacks is certain, what it was is still the most that it can have been.
    pub(crate) fn lower(&mut self, bytes: u64, since: u64, now: u64) {
        if self.time >= since && bytes > 0 {
            self.widen(self.low);
            self.low = self.low.saturating_sub(bytes).max(now);
        }
    }

    /// What was used from `since` on was not what it seemed, and nobody knows by how much.
    pub(crate) fn doubt(&mut self, since: u64, now: u64) {
        self.lower(u64::MAX, since, now);
    }

    pub(crate) fn to_peak(self) -> Peak {
        Peak { low: self.low, high: self.low.max(self.bound), time: self.time, count: self.count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_until_something_is_missed() {
        let mut peak = PeakTracker::default();
        assert!(peak.raise(10, 1, 1));
        assert!(peak.raise(30, 2, 3));
        assert!(!peak.raise(30, 3, 9), "the first time counts");
        assert_eq!(peak.to_peak(), Peak { low: 30, high: 30, time: 2, count: 3 });
        peak.widen(50);
        assert_eq!(peak.to_peak().high, 50);
        assert!(peak.raise(60, 4, 1));
        assert_eq!(peak.to_peak(), Peak { low: 60, high: 60, time: 4, count: 1 });
    }

    #[test]
    fn a_late_free_makes_a_peak_seen_after_it_uncertain() {
        let mut peak = PeakTracker::default();
        peak.raise(100, 10, 2);
        peak.lower(40, 11, 60);
        assert_eq!(peak.to_peak().low, 100, "the peak was before the free");
        peak.lower(40, 10, 60);
        let Peak { low, high, .. } = peak.to_peak();
        assert_eq!((low, high), (60, 100));
    }
}
