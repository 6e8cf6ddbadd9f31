//! A slice of a window of peaks: for each figure, the range of its largest value in that slice.

use shm_layout::UNKNOWN;

use crate::model::figures::{FIGURES, Sums};

/// The range of a figure's largest value in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    /// The value that is certain.
    pub(crate) low: u64,
    /// The value that is possible; [`UNKNOWN`] if it has no bound.
    pub(crate) high: u64,
    /// When the value was `low`; 0 if that is not known or was before the slice.
    pub(crate) time: u64,
    /// Whether that is certainly the first time the value was reached.
    pub(crate) first: bool,
    /// The number of allocations at that time.
    pub(crate) count: u64,
}

impl Range {
    pub(crate) fn exactly(value: u64, time: u64, count: u64) -> Range {
        Range { low: value, high: value, time, first: true, count }
    }

    /// Applies a change to the whole slice.
    pub(crate) fn shift(&mut self, change: &Change) {
        self.low = change.apply(self.low);
        if self.high != UNKNOWN {
            self.high = change.apply(self.high);
        }
        self.count = self.count.wrapping_add(change.count);
    }

    /// Notes a value that was reached at `time`.
    pub(crate) fn raise(&mut self, value: u64, time: u64, count: u64) {
        if value > self.low {
            let first = value > self.high;
            *self = Range { low: value, high: self.high.max(value), time, first, count };
        }
    }

    /// Applies a change from `since` on, in the middle of the slice.
    pub(crate) fn shift_since(&mut self, since: u64, change: &Change) {
        let reached_later = self.time >= since;
        if change.less == 0 {
            self.high = add(self.high, change.more);
            if reached_later {
                self.low = change.apply(self.low);
                self.count = self.count.wrapping_add(change.count);
            }
        } else {
            // The value before `since` may have been more than what is left after it.
            self.lower_since(since, change);
        }
    }

    /// Lowers what is certain from `since` on.
    pub(crate) fn lower_since(&mut self, since: u64, change: &Change) {
        if change.less > 0 && (self.time >= since || self.time == 0) {
            self.low = change.apply(self.low);
            self.count = self.count.wrapping_add(change.count);
        }
    }

    /// Notes that at some time of the span the value may have been this much less, or this much more.
    pub(crate) fn doubt(&mut self, span: Span, less: u64, more: u64) {
        if less > 0 && (self.time == 0 || (span.from..=span.to).contains(&self.time)) {
            (self.low, self.time) = (self.low.saturating_sub(less), 0);
        }
        self.high = add(self.high, more);
    }

    /// The larger of two ranges; if they are equal, the earlier one.
    pub(crate) fn join(&self, later: &Range) -> Range {
        let high = self.high.max(later.high);
        if later.low <= self.low {
            return Range { high, ..*self };
        }
        Range { high, first: later.first && self.high < later.low, ..*later }
    }
}

pub(crate) fn add(value: u64, more: u64) -> u64 {
    value.saturating_add(more)
}

/// The change of one figure by an event.
pub(crate) struct Change {
    pub(crate) more: u64,
    pub(crate) less: u64,
    /// The change of the count, wrapping.
    pub(crate) count: u64,
}

impl Change {
    pub(crate) fn of(figure: usize, old: &Sums, new: &Sums) -> Change {
        let (before, after) = (old.bytes[figure], new.bytes[figure]);
        Change {
            more: after.saturating_sub(before),
            less: before.saturating_sub(after),
            count: new.counts[figure].wrapping_sub(old.counts[figure]),
        }
    }

    pub(crate) fn apply(&self, value: u64) -> u64 {
        value.saturating_add(self.more).saturating_sub(self.less)
    }
}

/// A span of merged time, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Span {
    /// The smallest span that contains both.
    pub(crate) fn union(self, other: Span) -> Span {
        Span { from: self.from.min(other.from), to: self.to.max(other.to) }
    }
}

/// How far a sum may differ from what was merged: for each figure, by this much less or this much more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubt {
    pub(crate) less: [u64; FIGURES],
    /// [`UNKNOWN`] if it has no bound.
    pub(crate) more: [u64; FIGURES],
}

impl Doubt {
    /// Other processes may have held any amount.
    pub(crate) const ANYTHING_MORE: Doubt = Doubt { less: [0; FIGURES], more: [UNKNOWN; FIGURES] };
    /// Nothing that was merged is certain, and other processes may have held any amount.
    pub(crate) const ANYTHING: Doubt = Doubt { less: [u64::MAX; FIGURES], more: [UNKNOWN; FIGURES] };

    /// The sums may have been this much less.
    pub(crate) fn up_to(less: [u64; FIGURES]) -> Doubt {
        Doubt { less, more: [0; FIGURES] }
    }
}

/// A part of the window, from `since` to the beginning of the next slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub(crate) since: u64,
    pub(crate) ranges: [Range; FIGURES],
    /// Whether a process that is not on the device now may have held memory in it.
    pub(crate) others: bool,
}

impl Slice {
    /// A slice that begins with these sums.
    pub(crate) fn new(since: u64, time: u64, sums: &Sums) -> Slice {
        let range = |figure: usize| Range::exactly(sums.bytes[figure], time, sums.counts[figure]);
        Slice { since, ranges: std::array::from_fn(range), others: false }
    }

    /// Removes the upper bound of all figures.
    pub(crate) fn unbound(&mut self) {
        self.others = true;
        self.ranges.iter_mut().for_each(|range| range.high = UNKNOWN);
    }

    pub(crate) fn join(&self, later: &Slice) -> Slice {
        let ranges = std::array::from_fn(|figure| self.ranges[figure].join(&later.ranges[figure]));
        Slice { since: self.since, ranges, others: self.others || later.others }
    }
}
