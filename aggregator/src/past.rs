//! Histories of previous backends, so that a change of the backend loses nothing.

use std::collections::HashMap;

use tt_shm_reader::{Bucket, HISTORY_BUCKETS, HISTORY_RESOLUTIONS, bucket_flags};

/// Histories by chip and resolution.
#[derive(Debug, Default)]
pub(crate) struct Past(HashMap<(u64, usize), Vec<Bucket>>);

impl Past {
    /// Keeps a backend's history of a chip. It saw only a part of the newest bucket.
    pub(crate) fn keep(&mut self, chip_id: u64, resolution: usize, mut buckets: Vec<Bucket>) {
        if let Some(newest) = buckets.last_mut() {
            newest.flags |= bucket_flags::INEXACT;
        }
        let kept = self.0.entry((chip_id, resolution)).or_default();
        *kept = merged(kept, &buckets, HISTORY_RESOLUTIONS[resolution]);
    }

    /// The current backend's history of a chip, preceded by those of earlier ones.
    pub(crate) fn with(&self, chip_id: u64, resolution: usize, now: Vec<Bucket>) -> Vec<Bucket> {
        match self.0.get(&(chip_id, resolution)) {
            Some(kept) => merged(kept, &now, HISTORY_RESOLUTIONS[resolution]),
            None => now,
        }
    }
}

/// Merges two histories by time. Each may have seen only a part of a bucket that both have: its range covers both.
fn merged(earlier: &[Bucket], later: &[Bucket], length: u64) -> Vec<Bucket> {
    let number = |bucket: &Bucket| bucket.start / length;
    let mut all: Vec<Bucket> = earlier.iter().chain(later).copied().collect();
    // Stable: the earlier backend stays before the later one.
    all.sort_by_key(number);
    all.dedup_by(|later, earlier| {
        let is_same = number(later) == number(earlier);
        if is_same {
            *earlier = Bucket { start: later.start, ..earlier.joined(later) };
        }
        is_same
    });
    let newest = all.last().map_or(0, number);
    all.retain(|bucket| number(bucket) + HISTORY_BUCKETS as u64 > newest);
    all
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::*;

    const LENGTH: u64 = HISTORY_RESOLUTIONS[0];

    fn bucket(number: u64, dram: u64) -> Bucket {
        let (start, dram_min, dram_max, dram_last) = (number * LENGTH, dram, dram, dram);
        Bucket { start, dram_min, dram_max, dram_last, ..Bucket::zeroed() }
    }

    #[test]
    fn a_new_source_begins_where_the_old_one_ended() {
        let mut past = Past::default();
        past.keep(7, 0, vec![bucket(1, 10), bucket(2, 20), bucket(3, 30)]);
        let all = past.with(7, 0, vec![bucket(3, 5), bucket(4, 40)]);
        let seen: Vec<_> =
            all.iter().map(|b| (b.start / LENGTH, b.dram_min, b.dram_max, b.dram_last)).collect();
        assert_eq!(seen, [(1, 10, 10, 10), (2, 20, 20, 20), (3, 5, 30, 5), (4, 40, 40, 40)]);
        let inexact = all.iter().map(|bucket| bucket.flags == bucket_flags::INEXACT);
        let inexact: Vec<bool> = inexact.collect();
        assert_eq!(inexact, [false, false, true, false], "of the third each saw a part");
        let gap = past.with(7, 0, vec![bucket(5, 40)]);
        assert_eq!(gap[2].flags, bucket_flags::INEXACT, "also where the next one begins later");
        assert_eq!(past.with(8, 0, vec![bucket(4, 40)]).len(), 1, "of another chip");
        assert_eq!(past.with(7, 1, vec![]).len(), 0, "at another resolution");
        let late = past.with(7, 0, vec![bucket(2 + HISTORY_BUCKETS as u64, 1)]);
        assert_eq!(late.len(), 2, "no older than a history is");
    }
}
