//! The time window, and the data in parts of it.

use std::ops::Range;

use tt_shm_reader::{
    Bucket, Class, HISTORY_BUCKETS, TELEMETRY_RESOLUTIONS, TelemetryBucket, Told, bucket_flags,
};

/// Consecutive buckets, by number: a bucket's number times its length is its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Length of a bucket in nanoseconds.
    pub length: u64,
    /// The first bucket; negative if the machine booted later: now is always at the right edge.
    pub first: i64,
    pub count: u64,
    /// The bucket under the cursor.
    pub cursor: Option<u64>,
}

/// The classes that a memory's history tells apart, in the order of [`Values::parts`].
pub(crate) const DRAM_PARTS: [Class; 2] = [Class::Dram, Class::Trace];
pub(crate) const L1_PARTS: [Class; 3] = [Class::L1, Class::L1Small, Class::Cb];

/// Lowest, highest and last value in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values {
    pub min: u64,
    pub max: u64,
    pub last: u64,
    /// What the last value is made of.
    pub parts: [u64; 3],
}

/// Both curves in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Both {
    pub dram: Values,
    pub l1: Values,
    /// Steps that ended.
    pub steps: u64,
    /// Whether everything was followed throughout.
    pub exact: bool,
}

impl Window {
    /// The latest buckets, or those around the cursor when zoomed in.
    pub(crate) fn new(length: u64, zoom: u32, now: u64, cursor: Option<u64>) -> Window {
        let all = HISTORY_BUCKETS as u64;
        let (newest, count) = (now / length, (all >> zoom).max(1));
        let oldest = newest.saturating_sub(all - 1);
        let cursor = cursor.map(|cursor| cursor.clamp(oldest, newest));
        let before_newest = |buckets: u64| newest as i64 - (buckets as i64 - 1);
        let first = match cursor {
            None => before_newest(count),
            Some(cursor) => {
                (cursor as i64 - (count / 2) as i64).clamp(before_newest(all), before_newest(count))
            }
        };
        Window { length, first, count, cursor }
    }

    /// The buckets of a column: every bucket is in some column, and every column has at least one.
    pub(crate) fn covered(&self, place: usize, places: usize) -> Range<i64> {
        let at = |place: usize| self.first + (place as u64 * self.count / (places as u64).max(1)) as i64;
        at(place)..at(place + 1).max(at(place) + 1)
    }

    /// The first column of a bucket.
    pub(crate) fn place_of(&self, bucket: u64, places: usize) -> Option<usize> {
        (0..places).find(|place| self.covered(*place, places).contains(&(bucket as i64)))
    }

    /// All buckets.
    pub(crate) fn all(&self) -> Range<i64> {
        self.first..self.first + self.count as i64
    }

    /// Merges some buckets, oldest first; `None` if none of them is known.
    pub(crate) fn merge(&self, buckets: &[Bucket], range: &Range<i64>) -> Option<Both> {
        let number = |bucket: &Bucket| (bucket.start / self.length) as i64;
        let start = buckets.partition_point(|bucket| number(bucket) < range.start);
        let within = buckets[start..].iter().take_while(|bucket| number(bucket) < range.end);
        within.map(Both::from).reduce(Both::then)
    }

    /// The most that was measured in the time of some buckets. Telemetry has longer buckets than memory has.
    pub(crate) fn most_measured(
        &self,
        buckets: &[TelemetryBucket],
        range: &Range<i64>,
        told: Told,
    ) -> Option<i64> {
        let length = TELEMETRY_RESOLUTIONS.into_iter().find(|length| *length >= self.length)?;
        let within = |bucket: &&TelemetryBucket| self.overlaps(range, (bucket.start, bucket.start + length));
        buckets.iter().filter(within).filter_map(|bucket| Some(bucket.trend(told)?.range().1)).max()
    }

    /// Whether a period overlaps with some buckets.
    pub(crate) fn overlaps(&self, range: &Range<i64>, (start, end): (u64, u64)) -> bool {
        let at = |bucket: i64| i128::from(bucket) * i128::from(self.length);
        i128::from(start) < at(range.end) && i128::from(end) > at(range.start)
    }
}

impl From<&Bucket> for Both {
    fn from(bucket: &Bucket) -> Both {
        let Bucket { dram_last, trace_last, l1_last, l1_small_last, cb_last, .. } = *bucket;
        let buffers = l1_last.saturating_sub(l1_small_last).saturating_sub(cb_last);
        Both {
            dram: Values {
                min: bucket.dram_min,
                max: bucket.dram_max,
                last: dram_last,
                parts: [dram_last.saturating_sub(trace_last), trace_last, 0],
            },
            l1: Values {
                min: bucket.l1_min,
                max: bucket.l1_max,
                last: l1_last,
                parts: [buffers, l1_small_last, cb_last],
            },
            steps: bucket.steps,
            exact: bucket.flags & bucket_flags::INEXACT == 0,
        }
    }
}

impl Both {
    fn then(self, later: Both) -> Both {
        Both {
            dram: self.dram.then(later.dram),
            l1: self.l1.then(later.l1),
            steps: self.steps.saturating_add(later.steps),
            exact: self.exact && later.exact,
        }
    }
}

impl Values {
    fn then(self, later: Values) -> Values {
        Values { min: self.min.min(later.min), max: self.max.max(later.max), ..later }
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;
    use proptest::prelude::*;

    use super::*;

    fn bucket(number: u64, value: u64) -> Bucket {
        let (dram_min, dram_max, dram_last) = (value, value + 2, value + 1);
        Bucket { start: number * 10, dram_min, dram_max, dram_last, ..Bucket::zeroed() }
    }

    #[test]
    fn a_spike_survives_merging_and_a_gap_stays_unknown() {
        let window = Window::new(10, 0, 10_000, None);
        let buckets = [bucket(900, 5), bucket(901, 99), bucket(902, 1)];
        let all = window.merge(&buckets, &(899..910)).unwrap().dram;
        assert_eq!(all, Values { min: 1, max: 101, last: 2, parts: [2, 0, 0] });
        assert_eq!(window.merge(&buckets, &(903..910)), None);
        assert_eq!(window.merge(&[], &(0..2000)), None);
        assert!(window.overlaps(&(900..901), (9005, 9006)) && !window.overlaps(&(900..901), (9010, 9020)));
    }

    /// A machine that booted within the window: now is at the right edge.
    #[test]
    fn now_is_at_the_right_edge() {
        for (zoom, up) in [(0, 3), (0, 60), (2, 3), (0, 1000)] {
            let window = Window::new(10, zoom, up * 10 + 5, None);
            assert_eq!(window.place_of(up, 60), Some(59), "zoom {zoom}, up {up}");
            let covered = window.covered(59, 60);
            assert!(window.merge(&[bucket(up, 5)], &covered).is_some());
        }
        let window = Window::new(10, 0, 35, Some(1));
        assert_eq!(
            window.place_of(1, HISTORY_BUCKETS),
            Some(HISTORY_BUCKETS - 3),
            "the cursor where its time is"
        );
    }

    #[test]
    fn a_bucket_that_is_not_exact_makes_the_column_doubtful() {
        let window = Window::new(10, 0, 10_000, None);
        let doubtful = Bucket { flags: bucket_flags::INEXACT, ..bucket(901, 9) };
        let exact = |range| window.merge(&[bucket(900, 5), doubtful], &range).unwrap().exact;
        assert_eq!((exact(900..901), exact(900..902)), (true, false));
    }

    #[test]
    fn what_was_used_is_told_apart() {
        let bucket =
            Bucket { l1_last: 9, l1_small_last: 2, cb_last: 3, trace_last: 1, steps: 2, ..bucket(1, 4) };
        let both = Both::from(&bucket).then(Both::from(&bucket));
        assert_eq!((both.dram.parts, both.l1.parts, both.steps), ([4, 1, 0], [4, 2, 3], 4));
    }

    proptest! {
        #[test]
        fn columns_cover_every_bucket_once_or_repeat_one(
            zoom in 0..5_u32,
            now in 0..100_000_u64,
            cursor in prop::option::of(0..11_000_u64),
            places in 1..500_usize,
        ) {
            let window = Window::new(10, zoom, now, cursor);
            let mut next = window.first;
            for place in 0..places {
                let covered = window.covered(place, places);
                prop_assert!(covered.start <= next && covered.end > covered.start);
                next = next.max(covered.end);
            }
            prop_assert_eq!(next, window.all().end);
            if let Some(cursor) = window.cursor {
                prop_assert!(window.place_of(cursor, places).is_some());
            }
        }
    }
}
