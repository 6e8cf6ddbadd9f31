//! The peaks of a device's figures in the current window, each as an interval.
//!
//! This is the one place that decides what is certain and what is possible about a peak. The window is
//! divided into slices of merged time. For each slice and figure it keeps the largest sum that was merged;
//! events in order only raise the open slice. Whatever is learned later is applied to the slices it concerns:
//!
//! - a late event ([`Timeline::shift`]) changes every later slice by exactly its bytes, and leaves a doubt
//!   only in the slice that it falls into;
//! - a span in which something was not followed ([`Timeline::doubt`]) lowers what is certain and raises what
//!   is possible in the slices it touches;
//! - what a process reached by itself ([`Timeline::attest`]) is certain, regardless of other processes.
//!
//! The peak of the window is the largest of its slices, at both ends of the interval; it is exact if the ends
//! are equal.

use shm_layout::UNKNOWN;
use shm_layout::table::Peak;

use crate::model::figures::{FIGURES, Sums};
use crate::model::slice::{Change, Doubt, Range, Slice, Span, add};

/// The number of closed slices that are kept. Older slices are joined: the older, the coarser.
const MAX_CLOSED: usize = 24;
/// The age at which a slice is closed if something has changed in it.
const SLICE_NS: u64 = 10_000_000;

/// The slices of a window. See the [module documentation](self).
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    open: Slice,
    /// Oldest first.
    closed: Vec<Slice>,
    /// Before this time nobody followed the device. What is learned about that time adds to what is certain,
    /// and does not change what was merged since.
    followed: u64,
    /// The time of the last change.
    latest: u64,
    /// Up to this time, something that was not followed may have been held in addition to what is merged from
    /// now on.
    doubted: u64,
    /// The amount of that.
    beside: [u64; FIGURES],
    /// The time at which the open slice ends at the latest.
    boundary: u64,
    /// The certain peak of each figure in the whole window, so that a new peak is noticed at once.
    best: [u64; FIGURES],
    /// Whether a figure reached a new peak since [`Timeline::take_rose`] was last called.
    rose: bool,
    /// Whether a process that cannot be read may be on the device, so that there is no upper bound.
    unbounded: bool,
}

impl Timeline {
    /// The window of a device about which nothing is known. Before `followed` nobody watched it, so any
    /// amount may have been held.
    pub(crate) fn new(since: u64, followed: u64) -> Timeline {
        let mut timeline = Timeline {
            open: Slice::new(since, 0, &Sums::ZERO),
            closed: Vec::new(),
            followed,
            latest: 0,
            doubted: 0,
            beside: [0; FIGURES],
            boundary: u64::MAX,
            best: [0; FIGURES],
            rose: false,
            unbounded: false,
        };
        if since < followed {
            timeline.boundary = followed;
            timeline.open.unbound();
        }
        timeline
    }

    /// Prepends the peaks of an earlier aggregator, which cover the window up to the gap.
    pub(crate) fn adopt(&mut self, peaks: [Peak; FIGURES], gap: u64) {
        let range = |Peak { low, high, time, count }: Peak| Range { low, high, time, first: true, count };
        let earlier = Slice { since: self.open.since, ranges: peaks.map(range), others: true };
        self.open.since = gap.max(self.open.since);
        self.closed.insert(0, earlier);
        self.find_best();
    }

    /// Whether a change at this time only raises the open slice: nothing later is merged, and no doubt
    /// reaches this far.
    #[inline]
    pub(crate) fn is_in_order(&self, time: u64) -> bool {
        time >= self.latest && time < self.boundary && time >= self.open.since && time >= self.doubted
    }

    /// Advances to the time of a change that is in order.
    #[inline]
    pub(crate) fn advance(&mut self, time: u64) {
        self.latest = time;
    }

    /// Advances to the time at which sums were read, if it is later.
    pub(crate) fn advance_to(&mut self, time: u64) {
        self.latest = self.latest.max(time);
    }

    /// The time of the last change.
    pub(crate) fn latest(&self) -> u64 {
        self.latest
    }

    /// Whether a later change than this time is merged already.
    pub(crate) fn is_late(&self, time: u64) -> bool {
        time < self.latest
    }

    /// Notes a figure's sum at the current time; returns whether it is a new peak of the window.
    #[inline]
    pub(crate) fn raise(&mut self, figure: usize, value: u64, count: u64) -> bool {
        let range = &mut self.open.ranges[figure];
        if value <= range.low {
            return false;
        }
        range.raise(value, self.latest, count);
        let is_peak = value > self.best[figure];
        if is_peak {
            (self.best[figure], self.rose) = (value, true);
        }
        is_peak
    }

    /// Whether a figure reached a new peak since the last call.
    pub(crate) fn take_rose(&mut self) -> bool {
        std::mem::take(&mut self.rose)
    }

    /// Sets whether a process that cannot be read may be on the device. Returns whether that changed.
    pub(crate) fn set_unbounded(&mut self, unbounded: bool) -> bool {
        if unbounded {
            self.open.unbound();
        }
        std::mem::replace(&mut self.unbounded, unbounded) != unbounded
    }

    /// Recomputes the certain peaks after a change other than raising them.
    fn find_best(&mut self) {
        self.best = std::array::from_fn(|figure| self.peak(figure).low);
    }

    /// Notes all sums at the time of the last change, if that is in the open slice.
    pub(crate) fn raise_all(&mut self, sums: &Sums) {
        let figures = if self.latest >= self.open.since { 0..FIGURES } else { 0..0 };
        for figure in figures {
            self.raise(figure, sums.bytes[figure], sums.counts[figure]);
        }
    }

    /// Notes sums that were read, not followed: when they were reached is not known.
    pub(crate) fn find(&mut self, sums: &Sums) {
        for (figure, range) in self.open.ranges.iter_mut().enumerate() {
            range.raise(sums.bytes[figure], 0, sums.counts[figure]);
        }
        self.rose = true;
        self.find_best();
    }

    /// Begins a new slice if one is due before a change at `time`. Until then the sums were `sums`.
    pub(crate) fn cross_boundary(&mut self, time: u64, sums: &Sums) {
        if time >= self.boundary {
            let boundary = std::mem::replace(&mut self.boundary, u64::MAX);
            self.cut(boundary, sums);
        }
    }

    /// Ends the open slice if it is old enough. The merge has come to `time`, with these sums.
    pub(crate) fn close_due_slice(&mut self, time: u64, sums: &Sums) {
        self.cross_boundary(time, sums);
        let time = time.max(self.latest);
        let changed = self.latest > self.open.since;
        if changed && self.boundary == u64::MAX && time >= self.open.since.saturating_add(SLICE_NS) {
            self.cut(time, sums);
        }
    }

    /// Begins a new slice at `time`, with these sums.
    pub(crate) fn cut(&mut self, time: u64, sums: &Sums) {
        let fresh = self.fresh(time, 0, sums);
        self.closed.push(std::mem::replace(&mut self.open, fresh));
        if self.unbounded {
            self.open.unbound();
        }
        if self.closed.len() > MAX_CLOSED {
            self.thin();
        }
    }

    /// A slice that begins with these sums, and with what may have been held in addition.
    fn fresh(&self, since: u64, time: u64, sums: &Sums) -> Slice {
        let mut slice = Slice::new(since, time, sums);
        if since < self.doubted {
            slice
                .ranges
                .iter_mut()
                .zip(self.beside)
                .for_each(|(range, more)| range.high = add(range.high, more));
        }
        slice
    }

    /// Joins the oldest two adjacent slices that are short relative to their age, or else the oldest two.
    fn thin(&mut self) {
        let now = self.open.since;
        let end = |index: usize| self.closed.get(index + 1).map_or(now, |next| next.since);
        let is_short = |index: &usize| {
            let (start, end) = (self.closed[*index].since, end(index + 1));
            end.saturating_sub(start) < now.saturating_sub(end) / 4
        };
        let index = (0..self.closed.len() - 1).find(is_short).unwrap_or(0);
        let later = self.closed.remove(index + 1);
        self.closed[index] = self.closed[index].join(&later);
    }

    /// Begins a new window; earlier values do not count in it.
    pub(crate) fn restart(&mut self, since: u64, sums: &Sums) {
        self.boundary = u64::MAX;
        self.open = self.fresh(since, since, sums);
        self.closed.clear();
        if self.unbounded {
            self.open.unbound();
        }
        self.find_best();
        // The holders of what the window begins with must be known to be alive.
        self.rose = true;
    }

    /// Applies a change that is not in order: all sums since then differ by it. `sums` includes it.
    pub(crate) fn shift(&mut self, since: u64, old: &Sums, new: &Sums, sums: &Sums) {
        let changes: [Change; FIGURES] = std::array::from_fn(|figure| Change::of(figure, old, new));
        // If nothing changed after it, the sums have been these ever since.
        let (settled, followed) = (since >= self.latest, self.followed);
        let beside = if since < self.doubted { self.beside } else { [0; FIGURES] };
        for (slice, _) in self.slices_mut().filter(|(_, end)| since < *end) {
            for (figure, range) in slice.ranges.iter_mut().enumerate() {
                let change = &changes[figure];
                match (slice.since >= followed, since <= slice.since) {
                    (true, true) => range.shift(change),
                    (true, false) if !settled => range.shift_since(since, change),
                    (_, false) if settled => {
                        range.raise(sums.bytes[figure], since, sums.counts[figure]);
                        range.high = range.high.max(add(sums.bytes[figure], beside[figure]));
                    }
                    // Before the device was followed, what is certain was derived from counters: an addition
                    // may be part of it already, a removal is not.
                    (false, _) if !settled => range.lower_since(since, change),
                    _ => {}
                }
            }
        }
        self.latest = self.latest.max(since);
        self.rose = true;
        self.find_best();
    }

    /// Doubts a span: the sums need not have been those that were merged, nor those that will be merged for
    /// it later.
    pub(crate) fn doubt(&mut self, span: Span, doubt: &Doubt) {
        for (slice, end) in self.slices_mut() {
            if span.from < end && span.to >= slice.since {
                for (figure, range) in slice.ranges.iter_mut().enumerate() {
                    range.doubt(span, doubt.less[figure], doubt.more[figure]);
                }
            }
        }
        if span.to > self.latest {
            let before = if self.doubted > self.latest { self.beside } else { [0; FIGURES] };
            self.beside = std::array::from_fn(|figure| add(before[figure], doubt.more[figure]));
            self.doubted = self.doubted.max(span.to);
        }
        self.find_best();
    }

    /// Notes that a process that is not on the device now was there in this span.
    pub(crate) fn note_others(&mut self, span: Span) {
        let slices = self.slices_mut().filter(|(slice, end)| span.from < *end && span.to >= slice.since);
        slices.for_each(|(slice, _)| slice.others = true);
    }

    /// Bounds the peaks by the most that the processes now on the device can have held together.
    pub(crate) fn cap(&mut self, most: &[u64; FIGURES]) {
        for (slice, _) in self.slices_mut().filter(|(slice, _)| !slice.others) {
            for (range, most) in slice.ranges.iter_mut().zip(most) {
                range.high = range.high.min(*most).max(range.low);
            }
        }
    }

    /// Raises a figure to a value that a process is certain to have held at `time`. `reached` tells that it
    /// did not hold as much before.
    pub(crate) fn attest(&mut self, figure: usize, value: u64, time: u64, count: u64, reached: bool) {
        for (slice, end) in self.slices_mut() {
            let range = &mut slice.ranges[figure];
            if (slice.since..end).contains(&time) && value > range.low {
                // Other processes may have brought the sum this far earlier, unless none are known.
                let first = reached && (range.high == UNKNOWN || value > range.high);
                range.raise(value, if reached { time } else { 0 }, count);
                range.first = first;
            }
        }
        self.best[figure] = self.peak(figure).low;
    }

    /// The peak of a figure in the window.
    pub(crate) fn peak(&self, figure: usize) -> Peak {
        let ranges = self.closed.iter().chain([&self.open]).map(|slice| slice.ranges[figure]);
        let joined = ranges.reduce(|earlier, later| earlier.join(&later)).unwrap_or_default();
        let Range { low, high, time, first, count } = joined;
        // The time of a peak is when it was first reached.
        Peak { low, high, time: if low < high || first { time } else { 0 }, count }
    }

    /// Every slice with its end.
    fn slices_mut(&mut self) -> impl Iterator<Item = (&mut Slice, u64)> {
        let starts = self.closed.iter().map(|slice| slice.since).chain([self.open.since]);
        let ends: Vec<u64> = starts.skip(1).chain([u64::MAX]).collect();
        self.closed.iter_mut().chain([&mut self.open]).zip(ends)
    }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
