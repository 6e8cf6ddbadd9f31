//! What a device used over the last minute, hour and day: minimum, maximum and last value of each bucket.
//!
//! The open bucket of the finest resolution sees every folded event, so it contains a spike of a microsecond.
//! It is flushed into all three resolutions, whose lengths are multiples of the finest.

use shm_layout::table::{Bucket, HISTORY_BUCKETS, HISTORY_RESOLUTIONS, bucket_flags};

use crate::model::slice::Span;

const FINEST: u64 = HISTORY_RESOLUTIONS[0];
const _: () = assert!(HISTORY_RESOLUTIONS[1].is_multiple_of(FINEST));
const _: () = assert!(HISTORY_RESOLUTIONS[2].is_multiple_of(FINEST));

/// Parts of what is used on a device that a graph tells apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Of DRAM.
    pub(crate) trace: u64,
    /// Of L1.
    pub(crate) l1_small: u64,
    /// Of L1: circular buffers that are resident.
    pub(crate) cb: u64,
}

/// The history of one device.
#[derive(Clone, Debug)]
pub(crate) struct History {
    rings: Box<[[Bucket; HISTORY_BUCKETS]; HISTORY_RESOLUTIONS.len()]>,
    open: Option<Bucket>,
    /// The parts of what was used last.
    parts: Parts,
    /// Whether a process that cannot be read may be on the device.
    doubtful: bool,
    /// Whether a bucket was completed since [`History::take_rolled`] was last called.
    rolled: bool,
    /// How often a complete bucket became inexact.
    amendments: u64,
}

impl Default for History {
    fn default() -> History {
        let rings = Box::new(bytemuck::Zeroable::zeroed());
        History { rings, open: None, parts: Parts::default(), doubtful: false, rolled: false, amendments: 0 }
    }
}

impl History {
    /// Notes what is used from `time` on; returns whether a bucket was completed. If the parts of it are others now,
    /// [`set_parts`](Self::set_parts) after it: those of a bucket that is completed are the ones before.
    #[inline]
    pub(crate) fn observe(&mut self, time: u64, dram: u64, l1: u64) -> bool {
        match &mut self.open {
            Some(open) if time < open.start + FINEST => {
                add(open, dram, l1);
                if time < open.start {
                    // It began with what was used before.
                    self.doubt(Span { from: time, to: u64::MAX });
                }
                false
            }
            _ => {
                self.roll(time, dram, l1);
                true
            }
        }
    }

    /// Closes the open bucket and those after it that ended before `time`, and opens the bucket of `time`.
    #[cold]
    fn roll(&mut self, time: u64, dram: u64, l1: u64) {
        self.rolled = true;
        let start = time - time % FINEST;
        self.flush();
        let mut fresh = constant(start, dram, l1);
        if let Some(open) = self.open {
            // Until `time`, everything was as the last event left it. The caller doubts any time that was not
            // followed.
            fresh = constant(start, open.dram_last, open.l1_last);
            self.fill(open.start, &self.with_parts(fresh));
            add(&mut fresh, dram, l1);
        }
        self.open = Some(fresh);
    }

    /// Fills the buckets between those of `from` and `to` with the one value that held meanwhile.
    fn fill(&mut self, from: u64, to: &Bucket) {
        let flags = if self.doubtful { bucket_flags::INEXACT } else { 0 };
        for (ring, length) in self.rings.iter_mut().zip(HISTORY_RESOLUTIONS) {
            let end = to.start - to.start % length;
            // Older ones would be overwritten.
            let first =
                (from - from % length + length).max(end.saturating_sub(length * HISTORY_BUCKETS as u64));
            for start in (first..end).step_by(length as usize) {
                ring[index(start, length)] = Bucket { start, flags, ..*to };
            }
        }
    }

    /// Notes the parts of what is used from the time of the last [`observe`](Self::observe) on.
    #[inline]
    pub(crate) fn set_parts(&mut self, parts: Parts) {
        self.parts = parts;
    }

    fn with_parts(&self, bucket: Bucket) -> Bucket {
        let Parts { trace, l1_small, cb } = self.parts;
        Bucket { trace_last: trace, l1_small_last: l1_small, cb_last: cb, ..bucket }
    }

    /// Counts a step that a process ended.
    pub(crate) fn note_step(&mut self) {
        if let Some(open) = &mut self.open {
            open.steps = open.steps.saturating_add(1);
        }
    }

    /// The start of the open bucket; 0 if there is none.
    pub(crate) fn open_since(&self) -> u64 {
        self.open.map_or(0, |open| open.start)
    }

    /// Whether a bucket was completed since the last call.
    pub(crate) fn take_rolled(&mut self) -> bool {
        std::mem::take(&mut self.rolled)
    }

    /// Whether the open bucket has ended by this time.
    pub(crate) fn is_due(&self, time: u64) -> bool {
        self.open.is_some_and(|open| time >= open.start + FINEST)
    }

    /// Sets whether a process that cannot be read may be on the device.
    pub(crate) fn set_doubtful(&mut self, doubtful: bool) {
        if let Some(open) = self.open.as_mut().filter(|_| self.doubtful) {
            open.flags |= bucket_flags::INEXACT;
        }
        self.doubtful = doubtful;
    }

    /// Marks the buckets of a span as inexact.
    pub(crate) fn doubt(&mut self, span: Span) {
        for (ring, length) in self.rings.iter_mut().zip(HISTORY_RESOLUTIONS) {
            let exact = |bucket: &&mut Bucket| bucket.flags & bucket_flags::INEXACT == 0;
            for bucket in ring.iter_mut().filter(|bucket| is_in(bucket, length, span)).filter(exact) {
                bucket.flags |= bucket_flags::INEXACT;
                self.amendments += 1;
            }
        }
        if let Some(open) = self.open.as_mut().filter(|open| is_in(open, FINEST, span)) {
            open.flags |= bucket_flags::INEXACT;
        }
    }

    /// A count that changes whenever complete buckets become inexact.
    pub(crate) fn amendments(&self) -> u64 {
        self.amendments
    }

    /// Writes the open bucket into the rings.
    pub(crate) fn flush(&mut self) {
        let Some(open) = &mut self.open else { return };
        open.flags |= if self.doubtful { bucket_flags::INEXACT } else { 0 };
        // It is joined with what was flushed of it before, so each step is flushed once.
        let open = Bucket { steps: std::mem::take(&mut open.steps), ..*open };
        let open = self.with_parts(open);
        for (ring, length) in self.rings.iter_mut().zip(HISTORY_RESOLUTIONS) {
            let start = open.start - open.start % length;
            let bucket = &mut ring[index(start, length)];
            *bucket = if bucket.start == start { bucket.joined(&open) } else { Bucket { start, ..open } };
        }
    }

    /// The known buckets of a resolution, oldest first.
    pub(crate) fn buckets(&self, resolution: usize) -> Vec<Bucket> {
        let Some((ring, length)) = self.rings.get(resolution).zip(HISTORY_RESOLUTIONS.get(resolution)) else {
            return Vec::new();
        };
        let newest = ring.iter().map(|bucket| bucket.start).max().unwrap_or(0);
        let oldest = newest.saturating_sub(length * (HISTORY_BUCKETS as u64 - 1));
        let known = |bucket: &&Bucket| bucket.start != 0 && bucket.start >= oldest;
        let mut buckets: Vec<Bucket> = ring.iter().filter(known).copied().collect();
        buckets.sort_unstable_by_key(|bucket| bucket.start);
        buckets
    }

    /// The buckets from `start` on, oldest first, without looking at all of them.
    pub(crate) fn since(&self, resolution: usize, start: u64) -> Vec<Bucket> {
        let (Some(ring), Some(length)) = (self.rings.get(resolution), HISTORY_RESOLUTIONS.get(resolution))
        else {
            return Vec::new();
        };
        let newest = self.open.map_or(0, |open| open.start - open.start % length);
        let steps = (newest.saturating_sub(start)) / length;
        if start == 0 || newest < start || steps >= HISTORY_BUCKETS as u64 {
            return self.buckets(resolution);
        }
        let starts = (0..=steps).map(|step| start + step * length);
        starts.map(|start| ring[index(start, *length)]).filter(|bucket| bucket.start >= start).collect()
    }

    /// Adopts a bucket of an earlier aggregator if it is plausible and not in the future.
    pub(crate) fn adopt(&mut self, resolution: usize, bucket: &Bucket, now: u64) {
        let Some((ring, length)) = self.rings.get_mut(resolution).zip(HISTORY_RESOLUTIONS.get(resolution))
        else {
            return;
        };
        let in_time = bucket.start != 0 && bucket.start <= now && bucket.start.is_multiple_of(*length);
        let dram = bucket.dram_min <= bucket.dram_last && bucket.dram_last <= bucket.dram_max;
        let l1 = bucket.l1_min <= bucket.l1_last && bucket.l1_last <= bucket.l1_max;
        let parts = bucket.trace_last <= bucket.dram_last
            && bucket.l1_small_last.saturating_add(bucket.cb_last) <= bucket.l1_last;
        if in_time && dram && l1 && parts {
            ring[index(bucket.start, *length)] = *bucket;
        }
    }
}

fn is_in(bucket: &Bucket, length: u64, span: Span) -> bool {
    bucket.start != 0 && bucket.start <= span.to && bucket.start.saturating_add(length) > span.from
}

fn index(start: u64, length: u64) -> usize {
    (start / length) as usize % HISTORY_BUCKETS
}

/// Notes in a bucket what is used from now on.
#[inline]
fn add(bucket: &mut Bucket, dram: u64, l1: u64) {
    bucket.dram_min = bucket.dram_min.min(dram);
    bucket.dram_max = bucket.dram_max.max(dram);
    bucket.dram_last = dram;
    bucket.l1_min = bucket.l1_min.min(l1);
    bucket.l1_max = bucket.l1_max.max(l1);
    bucket.l1_last = l1;
}

fn constant(start: u64, dram: u64, l1: u64) -> Bucket {
    Bucket {
        start,
        dram_min: dram,
        dram_max: dram,
        dram_last: dram,
        l1_min: l1,
        l1_max: l1,
        l1_last: l1,
        ..bytemuck::Zeroable::zeroed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: u64 = HISTORY_RESOLUTIONS[2] * 10;

    #[test]
    fn a_bucket_ends_with_what_was_used_last_and_counts_each_step_once() {
        let mut history = History::default();
        let (before, after) =
            (Parts { trace: 4, l1_small: 1, cb: 2 }, Parts { trace: 3, l1_small: 0, cb: 5 });
        history.observe(T0, 9, 8);
        history.note_step();
        history.flush();
        history.note_step();
        history.flush();
        history.flush();
        history.set_parts(before);
        history.observe(T0 + 2 * FINEST, 3, 5);
        history.set_parts(after);
        history.flush();
        let seen =
            |b: &Bucket| (Parts { trace: b.trace_last, l1_small: b.l1_small_last, cb: b.cb_last }, b.steps);
        let buckets: Vec<_> = history.buckets(0).iter().map(seen).collect();
        assert_eq!(buckets, [(before, 2), (before, 0), (after, 0)]);
        assert_eq!(history.buckets(1)[0].steps, 2);
    }

    #[test]
    fn a_spike_between_two_flushes_is_kept_at_every_resolution() {
        let mut history = History::default();
        history.observe(T0, 10, 1);
        history.observe(T0 + 1, 900, 1);
        history.observe(T0 + 2, 20, 2);
        history.flush();
        for resolution in 0..3 {
            let [bucket] = history.buckets(resolution)[..] else { panic!("one bucket") };
            assert_eq!((bucket.dram_min, bucket.dram_max, bucket.dram_last), (10, 900, 20));
            assert_eq!((bucket.l1_min, bucket.l1_max, bucket.l1_last), (1, 2, 2));
        }
    }

    #[test]
    fn idle_stretches_are_filled_with_what_was_used() {
        let mut history = History::default();
        history.observe(T0, 7, 3);
        assert!(history.observe(T0 + 3 * FINEST, 9, 3));
        history.flush();
        let buckets = history.buckets(0);
        let seen: Vec<_> = buckets.iter().map(|b| (b.start - T0, b.dram_min, b.dram_max)).collect();
        assert_eq!(seen, [(0, 7, 7), (FINEST, 7, 7), (2 * FINEST, 7, 7), (3 * FINEST, 7, 9)]);
        assert_eq!(history.buckets(1).len(), 1);
    }

    /// The aggregator was stopped, and nothing happened meanwhile: the hour's bucket begins with what there was.
    #[test]
    fn a_long_pause_is_filled_at_every_resolution() {
        let mut history = History::default();
        history.observe(T0, 7, 3);
        let coarse = HISTORY_RESOLUTIONS[1];
        history.observe(T0 + 3 * coarse + FINEST, 5, 9);
        history.flush();
        assert_eq!(history.buckets(0).len(), (3 * coarse / FINEST) as usize + 2);
        assert!(history.buckets(0).iter().rev().skip(1).all(|b| (b.dram_min, b.dram_max) == (7, 7)));
        let hour: Vec<_> = history.buckets(1).iter().map(|b| (b.dram_min, b.dram_max, b.l1_max)).collect();
        assert_eq!(hour, [(7, 7, 3), (7, 7, 3), (7, 7, 3), (5, 7, 9)]);
        // However long: nothing is kept that is older than the ring.
        history.observe(T0 + HISTORY_RESOLUTIONS[2] * 1000, 1, 1);
        history.flush();
        for resolution in 0..HISTORY_RESOLUTIONS.len() {
            let buckets = history.buckets(resolution);
            assert_eq!(buckets.len(), HISTORY_BUCKETS);
            assert!(buckets.iter().rev().skip(1).all(|b| (b.dram_min, b.dram_max) == (5, 5)));
        }
    }

    #[test]
    fn the_ring_forgets_what_is_too_old() {
        let mut history = History::default();
        for step in 0..2 * HISTORY_BUCKETS as u64 {
            history.observe(T0 + step * FINEST, step, 0);
        }
        history.flush();
        let buckets = history.buckets(0);
        assert_eq!(buckets.len(), HISTORY_BUCKETS);
        assert!(buckets.is_sorted_by_key(|bucket| bucket.start));
        assert_eq!(buckets.last().unwrap().dram_last, 2 * HISTORY_BUCKETS as u64 - 1);
    }

    #[test]
    fn an_event_from_before_the_open_bucket_counts_in_it() {
        let mut history = History::default();
        history.observe(T0, 7, 3);
        history.observe(T0 + FINEST, 7, 3);
        assert!(!history.observe(T0 + 1, 9, 3));
        history.flush();
        let buckets = history.buckets(0);
        let seen: Vec<_> = buckets.iter().map(|b| (b.dram_min, b.dram_max, b.flags)).collect();
        // Since T0 + 1, 7 were not used any more: that they were is not said of the second bucket either.
        assert_eq!(seen, [(7, 7, bucket_flags::INEXACT), (7, 9, bucket_flags::INEXACT)]);
    }

    #[test]
    fn a_doubt_marks_what_it_touches_at_every_resolution() {
        let mut history = History::default();
        for step in 0..4 {
            history.observe(T0 + step * FINEST, 7, 3);
        }
        history.flush();
        history.doubt(Span { from: T0 + FINEST, to: T0 + 2 * FINEST });
        assert_eq!(history.amendments(), 4);
        let flags = |resolution| history.buckets(resolution).iter().map(|b| b.flags).collect::<Vec<_>>();
        assert_eq!((flags(0), flags(1), flags(2)), (vec![0, 1, 1, 0], vec![1], vec![1]));
    }

    #[test]
    fn only_sensible_buckets_are_adopted() {
        let mut history = History::default();
        let good = constant(T0, 5, 5);
        history.adopt(0, &good, T0 + 1);
        history.adopt(0, &Bucket { start: T0 + 1, ..good }, T0 + 2);
        history.adopt(0, &Bucket { start: T0 + 4 * FINEST, ..good }, T0 + 1);
        history.adopt(0, &Bucket { start: T0 - FINEST, dram_min: 6, ..good }, T0 + 1);
        history.adopt(0, &Bucket { start: T0 - FINEST, trace_last: 6, ..good }, T0 + 1);
        history.adopt(0, &Bucket { start: T0 - FINEST, l1_small_last: 3, cb_last: 3, ..good }, T0 + 1);
        history.adopt(9, &good, T0 + 1);
        assert_eq!(history.buckets(0), [good]);
    }
}
