//! The largest values of a device's figures in the window of peaks, each as an interval.
//!
//! This is the one place that decides what is certain of a peak and what is possible. The window is cut into
//! slices of merged time. Of each slice and figure it keeps the largest sum that was merged; events that come in
//! order only raise the slice that is open. Whatever is learned afterwards is applied to the slices it concerns:
//!
//! - an event from before what was merged already ([`Timeline::shift`]) changes every later slice by exactly its
//!   bytes, and leaves a doubt only in the slice that it falls into;
//! - a span in which something was not followed ([`Timeline::doubt`]) lowers what is certain and raises what is
//!   possible in the slices that it touches;
//! - what a process reached by itself ([`Timeline::attest`]) is certain, whoever else was there.
//!
//! A window's peak is the largest of its slices, at both ends; it is exact if the ends meet.

use shm_layout::UNKNOWN;
use shm_layout::table::Peak;

use crate::model::figures::{FIGURES, Sums};

/// Slices that are kept behind the open one. Older ones are joined: the longer ago, the coarser.
const MAX_CLOSED: usize = 24;
/// A slice is closed when it is that old and something has changed in it.
const SLICE_NS: u64 = 10_000_000;

/// The largest value of a figure in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Range {
    /// Certain.
    low: u64,
    /// Possible; [`UNKNOWN`] if nothing bounds it.
    high: u64,
    /// When it was `low`, 0 if that is not known or was before the slice.
    time: u64,
    /// Whether it cannot have been as much before.
    first: bool,
    /// Allocations at that time.
    count: u64,
}

impl Range {
    fn exactly(value: u64, time: u64, count: u64) -> Range {
        Range { low: value, high: value, time, first: true, count }
    }

    /// Everything in the slice was more, or less, by so much.
    fn shift(&mut self, change: &Change) {
        self.low = change.apply(self.low);
        if self.high != UNKNOWN {
            self.high = change.apply(self.high);
        }
        self.count = self.count.wrapping_add(change.count);
    }

    /// Notes a value that was reached at a time.
    fn raise(&mut self, value: u64, time: u64, count: u64) {
        if value > self.low {
            let first = value > self.high;
            *self = Range { low: value, high: self.high.max(value), time, first, count };
        }
    }

    /// The same from `since` on, in the middle of the slice.
    fn shift_since(&mut self, since: u64, change: &Change) {
        let reached_later = self.time >= since;
        if change.less == 0 {
            self.high = add(self.high, change.more);
            if reached_later {
                self.low = change.apply(self.low);
                self.count = self.count.wrapping_add(change.count);
            }
        } else {
            // What there was before `since` may have been more than what is left of this.
            self.lower_since(since, change);
        }
    }

    /// What is certain was less from `since` on.
    fn lower_since(&mut self, since: u64, change: &Change) {
        if change.less > 0 && (self.time >= since || self.time == 0) {
            self.low = change.apply(self.low);
            self.count = self.count.wrapping_add(change.count);
        }
    }

    /// At some time of the span there may have been that much less, or that much more.
    fn doubt(&mut self, span: Span, less: u64, more: u64) {
        if less > 0 && (self.time == 0 || (span.from..=span.to).contains(&self.time)) {
            (self.low, self.time) = (self.low.saturating_sub(less), 0);
        }
        self.high = add(self.high, more);
    }

    /// The larger of two; at equal values the first, whose time is earlier.
    fn join(&self, later: &Range) -> Range {
        let high = self.high.max(later.high);
        if later.low <= self.low {
            return Range { high, ..*self };
        }
        Range { high, first: later.first && self.high < later.low, ..*later }
    }
}

fn add(value: u64, more: u64) -> u64 {
    value.saturating_add(more)
}

/// What an event did to one figure.
struct Change {
    more: u64,
    less: u64,
    /// Wrapping.
    count: u64,
}

impl Change {
    fn of(figure: usize, old: &Sums, new: &Sums) -> Change {
        let (before, after) = (old.bytes[figure], new.bytes[figure]);
        Change {
            more: after.saturating_sub(before),
            less: before.saturating_sub(after),
            count: new.counts[figure].wrapping_sub(old.counts[figure]),
        }
    }

    fn apply(&self, value: u64) -> u64 {
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
    /// The least span that has both.
    pub(crate) fn union(self, other: Span) -> Span {
        Span { from: self.from.min(other.from), to: self.to.max(other.to) }
    }
}

/// How far a sum may be from what was merged: in each figure so much less, and so much more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubt {
    pub(crate) less: [u64; FIGURES],
    /// [`UNKNOWN`] if nothing bounds it.
    pub(crate) more: [u64; FIGURES],
}

impl Doubt {
    /// Nobody knows what else there was.
    pub(crate) const ANYTHING_MORE: Doubt = Doubt { less: [0; FIGURES], more: [UNKNOWN; FIGURES] };
    /// Nothing of what was merged is certain, and nobody knows what else there was.
    pub(crate) const ANYTHING: Doubt = Doubt { less: [u64::MAX; FIGURES], more: [UNKNOWN; FIGURES] };

    /// There may have been that much less.
    pub(crate) fn up_to(less: [u64; FIGURES]) -> Doubt {
        Doubt { less, more: [0; FIGURES] }
    }
}

/// A part of the window: from `since` to the beginning of the next one.
#[derive(Clone, Copy, Debug)]
struct Slice {
    since: u64,
    ranges: [Range; FIGURES],
    /// Whether somebody may have had something in it who is not on the device now.
    others: bool,
}

impl Slice {
    /// A slice that begins with these sums.
    fn new(since: u64, time: u64, sums: &Sums) -> Slice {
        let range = |figure: usize| Range::exactly(sums.bytes[figure], time, sums.counts[figure]);
        Slice { since, ranges: std::array::from_fn(range), others: false }
    }

    /// Nothing bounds what is possible.
    fn unbound(&mut self) {
        self.others = true;
        self.ranges.iter_mut().for_each(|range| range.high = UNKNOWN);
    }

    fn join(&self, later: &Slice) -> Slice {
        let ranges = std::array::from_fn(|figure| self.ranges[figure].join(&later.ranges[figure]));
        Slice { since: self.since, ranges, others: self.others || later.others }
    }
}

/// The slices of a window. See the module.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    open: Slice,
    /// Oldest first.
    closed: Vec<Slice>,
    /// Before this nobody watched. What is learned of that time adds to what is certain, and is no change of what
    /// was merged since.
    followed: u64,
    /// Time of the last change.
    latest: u64,
    /// Before this, something that was not followed may have been there beside what is merged after it was learned of.
    doubted: u64,
    /// How much that may have been.
    beside: [u64; FIGURES],
    /// The open slice ends here at the latest.
    boundary: u64,
    /// What is certain of each figure's peak in the whole window, so that a new one is noticed at once.
    best: [u64; FIGURES],
    /// Whether a figure reached a new peak since this was last asked.
    rose: bool,
    /// Somebody may be there who cannot be read: nothing bounds what is possible.
    unbounded: bool,
}

impl Timeline {
    /// The window of a device that nothing is known of. Before `followed` nobody watched, so that anything may
    /// have been there.
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

    /// Puts what an earlier aggregator knew in front. It had the window up to the gap before us.
    pub(crate) fn adopt(&mut self, peaks: [Peak; FIGURES], gap: u64) {
        let range = |Peak { low, high, time, count }: Peak| Range { low, high, time, first: true, count };
        let earlier = Slice { since: self.open.since, ranges: peaks.map(range), others: true };
        self.open.since = gap.max(self.open.since);
        self.closed.insert(0, earlier);
        self.find_best();
    }

    /// Whether a change at this time only raises the open slice: nothing later was merged, and no doubt reaches as far.
    #[inline]
    pub(crate) fn is_in_order(&self, time: u64) -> bool {
        time >= self.latest && time < self.boundary && time >= self.open.since && time >= self.doubted
    }

    /// A change is merged that is in order.
    #[inline]
    pub(crate) fn advance(&mut self, time: u64) {
        self.latest = time;
    }

    /// Sums were found as of a time.
    pub(crate) fn advance_to(&mut self, time: u64) {
        self.latest = self.latest.max(time);
    }

    /// Time of the last change.
    pub(crate) fn latest(&self) -> u64 {
        self.latest
    }

    /// Whether a change at this time comes after a later one was merged.
    pub(crate) fn is_late(&self, time: u64) -> bool {
        time < self.latest
    }

    /// Notes a figure's sum at the time that was advanced to; says whether it is a new peak of the window.
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

    /// From now on somebody may be there who cannot be read, or no longer. Says whether that is news.
    pub(crate) fn set_unbounded(&mut self, unbounded: bool) -> bool {
        if unbounded {
            self.open.unbound();
        }
        std::mem::replace(&mut self.unbounded, unbounded) != unbounded
    }

    /// What is certain of the whole window changed otherwise than by raising it.
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

    /// Notes sums that were found, not followed: nobody knows when they were reached.
    pub(crate) fn find(&mut self, sums: &Sums) {
        for (figure, range) in self.open.ranges.iter_mut().enumerate() {
            range.raise(sums.bytes[figure], 0, sums.counts[figure]);
        }
        self.rose = true;
        self.find_best();
    }

    /// Begins a new slice where one is due, before a change at `time`. Until then the sums were these.
    pub(crate) fn cross_boundary(&mut self, time: u64, sums: &Sums) {
        if time >= self.boundary {
            let boundary = std::mem::replace(&mut self.boundary, u64::MAX);
            self.cut(boundary, sums);
        }
    }

    /// Ends the open slice if it is long enough; the merge has come to `time`, with these sums.
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

    /// A slice that begins with these sums, and with what may be there beside them.
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

    /// Joins the oldest two neighbours that are short beside their age, else the oldest two.
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

    /// Begins a new window: what was before does not count.
    pub(crate) fn restart(&mut self, since: u64, sums: &Sums) {
        self.boundary = u64::MAX;
        self.open = self.fresh(since, since, sums);
        self.closed.clear();
        if self.unbounded {
            self.open.unbound();
        }
        self.find_best();
        // Who holds what the window begins with must be known to live.
        self.rose = true;
    }

    /// A change that is not in order: since then all sums were other by it. `sums` are those with it.
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
                    // Before anybody watched, what is certain was put together from what was found: more may have been
                    // part of it already, less was not.
                    (false, _) if !settled => range.lower_since(since, change),
                    _ => {}
                }
            }
        }
        self.latest = self.latest.max(since);
        self.rose = true;
        self.find_best();
    }

    /// In that span, the sums need not have been those that were merged, nor those that are merged of it afterwards.
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

    /// Somebody was there in that span who is not on the device now.
    pub(crate) fn note_others(&mut self, span: Span) {
        let slices = self.slices_mut().filter(|(slice, end)| span.from < *end && span.to >= slice.since);
        slices.for_each(|(slice, _)| slice.others = true);
    }

    /// Nobody who is on the device now ever had more than this together.
    pub(crate) fn cap(&mut self, most: &[u64; FIGURES]) {
        for (slice, _) in self.slices_mut().filter(|(slice, _)| !slice.others) {
            for (range, most) in slice.ranges.iter_mut().zip(most) {
                range.high = range.high.min(*most).max(range.low);
            }
        }
    }

    /// There was at least that much at that time, by what a process knows of itself. `reached`: and not before.
    pub(crate) fn attest(&mut self, figure: usize, value: u64, time: u64, count: u64, reached: bool) {
        for (slice, end) in self.slices_mut() {
            let range = &mut slice.ranges[figure];
            if (slice.since..end).contains(&time) && value > range.low {
                // Others may have brought the sum as far before, unless nobody knows of any others.
                let first = reached && (range.high == UNKNOWN || value > range.high);
                range.raise(value, if reached { time } else { 0 }, count);
                range.first = first;
            }
        }
        self.best[figure] = self.peak(figure).low;
    }

    /// The largest value of the window.
    pub(crate) fn peak(&self, figure: usize) -> Peak {
        let ranges = self.closed.iter().chain([&self.open]).map(|slice| slice.ranges[figure]);
        let joined = ranges.reduce(|earlier, later| earlier.join(&later)).unwrap_or_default();
        let Range { low, high, time, first, count } = joined;
        // The time of a peak is when it was reached first.
        Peak { low, high, time: if low < high || first { time } else { 0 }, count }
    }

    /// Every slice and where it ends.
    fn slices_mut(&mut self) -> impl Iterator<Item = (&mut Slice, u64)> {
        let starts = self.closed.iter().map(|slice| slice.since).chain([self.open.since]);
        let ends: Vec<u64> = starts.skip(1).chain([u64::MAX]).collect();
        self.closed.iter_mut().chain([&mut self.open]).zip(ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(value: u64) -> Sums {
        let mut sums = Sums::ZERO;
        (sums.bytes[0], sums.counts[0]) = (value, value);
        sums
    }

    fn fill(value: u64) -> [u64; FIGURES] {
        [value; FIGURES]
    }

    /// A timeline with the sum of one figure, as a device has it.
    struct Watched {
        timeline: Timeline,
        sum: u64,
    }

    impl Watched {
        fn new() -> Watched {
            Watched { timeline: Timeline::new(1, 1), sum: 0 }
        }

        /// A share changes, in order or not.
        fn change(&mut self, time: u64, old: u64, new: u64) {
            self.sum = self.sum - old + new;
            if self.timeline.is_in_order(time) {
                self.timeline.advance(time);
            } else {
                self.timeline.shift(time, &sums(old), &sums(new), &sums(self.sum));
            }
            self.timeline.raise_all(&sums(self.sum));
        }

        fn peak(&self) -> (u64, u64, u64) {
            let Peak { low, high, time, .. } = self.timeline.peak(0);
            (low, high, time)
        }
    }

    #[test]
    fn events_in_order_are_exact() {
        let mut watched = Watched::new();
        watched.change(10, 0, 10);
        watched.change(20, 10, 30);
        watched.change(30, 30, 5);
        watched.timeline.close_due_slice(10 + 2 * SLICE_NS, &sums(5));
        watched.change(20 + 2 * SLICE_NS, 5, 30);
        assert_eq!(watched.peak(), (30, 30, 20), "the first time counts");
        assert_eq!(watched.timeline.peak(0).count, 30);
    }

    /// Every slice after a late allocation was more by its bytes; only in its own slice is there a doubt.
    #[test]
    fn a_late_change_shifts_what_came_after_it() {
        let mut watched = Watched::new();
        watched.change(10, 0, 100);
        watched.change(20, 100, 0);
        watched.timeline.cut(50, &sums(0));
        watched.change(60, 0, 70);
        watched.change(50, 0, 50);
        assert_eq!(watched.peak(), (120, 120, 60));
        // Where it falls, nobody knows how much there was at that time.
        watched.change(40, 0, 50);
        assert_eq!(watched.peak(), (170, 170, 60));
        let mut watched = Watched::new();
        watched.change(10, 0, 100);
        watched.change(30, 100, 0);
        watched.change(20, 0, 50);
        assert_eq!(watched.peak(), (100, 150, 10));
    }

    #[test]
    fn a_late_free_lowers_what_is_certain_after_it() {
        let mut watched = Watched::new();
        watched.change(10, 0, 40);
        watched.change(30, 0, 60);
        watched.change(20, 40, 0);
        assert_eq!(watched.peak().0, 60);
        assert_eq!(watched.peak().1, 100);
        watched.timeline.cut(50, &sums(60));
        watched.timeline.restart(60, &sums(60));
        // From before the window: it never counted in it.
        watched.change(55, 60, 0);
        assert_eq!(watched.peak(), (0, 0, 60));
    }

    /// A tick after the last change does not make the next event late.
    #[test]
    fn nothing_changed_after_it() {
        let mut watched = Watched::new();
        watched.change(10, 0, 40);
        watched.timeline.close_due_slice(2 * SLICE_NS, &sums(40));
        watched.change(SLICE_NS, 0, 5);
        assert_eq!(watched.peak(), (45, 45, SLICE_NS));
    }

    #[test]
    fn a_doubt_concerns_its_span_only() {
        let mut watched = Watched::new();
        watched.change(10, 0, 100);
        watched.timeline.cut(50, &sums(100));
        watched.change(60, 100, 140);
        watched.timeline.doubt(Span { from: 55, to: 70 }, &Doubt { less: fill(60), more: fill(7) });
        assert_eq!(watched.peak(), (100, 147, 10));
        watched.timeline.attest(0, 120, 65, 1, true);
        assert_eq!(watched.peak(), (120, 147, 65));
        watched.timeline.doubt(Span { from: 65, to: 70 }, &Doubt::ANYTHING_MORE);
        assert_eq!(watched.peak().1, UNKNOWN);
        watched.timeline.restart(80, &sums(140));
        assert_eq!(watched.peak(), (140, 140, 80));
    }

    /// What is merged after a doubt was learned of, and lies in its span, may have had that much beside it.
    #[test]
    fn a_doubt_reaches_beyond_what_was_merged() {
        let mut watched = Watched::new();
        watched.change(10, 0, 100);
        watched.timeline.doubt(Span { from: 5, to: 50 }, &Doubt { less: fill(0), more: fill(30) });
        assert_eq!(watched.peak(), (100, 130, 10));
        watched.change(20, 100, 150);
        assert_eq!(watched.peak(), (150, 180, 20));
        watched.timeline.cut(30, &sums(150));
        watched.change(35, 150, 160);
        watched.change(60, 160, 165);
        assert_eq!(watched.peak(), (165, 190, 60));
        watched.change(70, 165, 200);
        assert_eq!(watched.peak(), (200, 200, 70), "not after it");
        watched.timeline.doubt(Span { from: 65, to: 90 }, &Doubt { less: fill(0), more: fill(7) });
        watched.timeline.restart(80, &sums(200));
        assert_eq!(watched.peak(), (200, 207, 80), "a window that begins in it");
        watched.timeline.restart(90, &sums(200));
        assert_eq!(watched.peak(), (200, 200, 90));
    }

    #[test]
    fn before_it_was_followed_nothing_is_bounded() {
        let mut timeline = Timeline::new(0, 100);
        timeline.advance(50);
        timeline.raise(0, 30, 1);
        assert_eq!((timeline.peak(0).low, timeline.peak(0).high), (30, UNKNOWN));
        assert!(!timeline.is_in_order(100));
        timeline.cross_boundary(100, &sums(30));
        assert!(timeline.is_in_order(100));
        timeline.restart(200, &sums(30));
        assert_eq!((timeline.peak(0).low, timeline.peak(0).high), (30, 30));
    }

    #[test]
    fn an_unread_process_may_have_anything_while_it_is_there() {
        let mut watched = Watched::new();
        assert!(watched.timeline.set_unbounded(true) && !watched.timeline.set_unbounded(true));
        watched.timeline.cut(10, &sums(0));
        assert_eq!(watched.peak().1, UNKNOWN);
        assert!(watched.timeline.set_unbounded(false));
        watched.timeline.restart(20, &sums(0));
        assert_eq!(watched.peak().1, 0);
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (x ^ (x >> 31)) % limit
        }
    }

    /// The largest true sum from `since` on and when it was reached first, given all changes of all shares: time,
    /// share, new value.
    fn truth(changes: &[(u64, usize, u64)], since: u64) -> (u64, u64) {
        let mut sorted: Vec<_> = changes.to_vec();
        sorted.sort_by_key(|(time, ..)| *time);
        let (before, within): (Vec<_>, Vec<_>) = sorted.into_iter().partition(|(time, ..)| *time < since);
        let mut shares = [0; 4];
        before.into_iter().for_each(|(_, share, value)| shares[share] = value);
        let mut most = (shares.iter().sum(), since);
        for (time, share, value) in within {
            shares[share] = value;
            if shares.iter().sum::<u64>() > most.0 {
                most = (shares.iter().sum(), time);
            }
        }
        most
    }

    /// Random changes of four shares, some of which are merged long after others that came later, with ticks and
    /// windows in between: what is exact is true, a range holds the truth.
    #[test]
    fn late_changes_against_the_truth() {
        let mut random = Random(42);
        let (mut exact, mut timed, mut ranges) = (0, 0, 0);
        for _ in 0..300 {
            let mut watched = Watched::new();
            let (mut changes, mut waiting): (Vec<_>, Vec<(u64, usize, u64)>) = (Vec::new(), Vec::new());
            let (mut shares, mut merged, mut since) = ([0; 4], [0; 4], 1);
            for step in 1..80 {
                let time = step * SLICE_NS / 3;
                let share = random.below(4) as usize;
                shares[share] = random.below(100);
                // A share's own changes are never out of order.
                let late = random.below(6) == 0 || waiting.iter().any(|(_, other, _)| *other == share);
                if late {
                    waiting.push((time, share, shares[share]));
                }
                let mut now = if late { Vec::new() } else { vec![(time, share, shares[share])] };
                if random.below(4) == 0 {
                    now.append(&mut waiting);
                }
                for (time, share, value) in now {
                    watched.change(time, merged[share], value);
                    merged[share] = value;
                    changes.push((time, share, value));
                }
                watched.timeline.close_due_slice(time, &sums(watched.sum));
                if random.below(20) == 0 {
                    since = time + 1;
                    watched.timeline.restart(since, &sums(watched.sum));
                }
                let (low, high, time) = watched.peak();
                let (truth, reached) = truth(&changes, since);
                assert!((low..=high).contains(&truth), "{low}..={high} does not hold {truth} at {step}");
                if low == high && time != 0 {
                    assert_eq!(time, reached, "{truth} at {step}");
                    timed += 1;
                }
                *(if low == high { &mut exact } else { &mut ranges }) += 1;
            }
        }
        assert!(
            exact > 10_000 && ranges > 1000 && timed > 10_000,
            "{exact} ({timed}) exact, {ranges} ranges"
        );
    }
}
