//! How large allocations are: numbers and bytes by powers of two.

/// Allocations of about one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// Which power of two: see [`bucket`].
    pub bucket: u32,
    /// How many there are.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The bin of a size: 0 has one of its own, then 1, 2-3, 4-7 and so on.
pub fn bucket(size: u64) -> u32 {
    size.checked_ilog2().map_or(0, |power| power + 1)
}

/// The smallest and the largest size in a bin.
pub fn bounds(bucket: u32) -> (u64, u64) {
    match bucket {
        0 => (0, 0),
        1..=64 => (1 << (bucket - 1), u64::MAX >> (64 - bucket)),
        _ => (u64::MAX, u64::MAX),
    }
}

/// The bins from the smallest to the largest size that there is, those between that are empty too: what is
/// missing is part of the picture.
pub fn histogram(sizes: impl IntoIterator<Item = u64>) -> Vec<Bin> {
    let mut all: Vec<Bin> = (0..=64).map(|bucket| Bin { bucket, count: 0, bytes: 0 }).collect();
    for size in sizes {
        let bin = &mut all[bucket(size) as usize];
        bin.count += 1;
        bin.bytes = bin.bytes.saturating_add(size);
    }
    let is_used = |bin: &Bin| bin.count > 0;
    let (first, last) = (all.iter().position(is_used), all.iter().rposition(is_used));
    match (first, last) {
        (Some(first), Some(last)) => all[first..=last].to_vec(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_within_its_bin() {
        for size in [0, 1, 2, 3, 4, 1023, 1024, 1025, 1 << 40, u64::MAX - 1, u64::MAX] {
            let (low, high) = bounds(bucket(size));
            assert!((low..=high).contains(&size), "{size}");
        }
        assert_eq!(bounds(bucket(1024)), (1024, 2047));
        assert_eq!(bounds(64), (1 << 63, u64::MAX));
        assert_eq!(bounds(1), (1, 1));
    }

    #[test]
    fn empty_bins_between_are_kept() {
        let bins = histogram([1024, 1500, 5000, 0]);
        assert_eq!(bins.first(), Some(&Bin { bucket: 0, count: 1, bytes: 0 }));
        assert_eq!(bins.last(), Some(&Bin { bucket: 13, count: 1, bytes: 5000 }));
        assert_eq!(bins[11], Bin { bucket: 11, count: 2, bytes: 2524 });
        assert_eq!(bins[12].count, 0);
        assert_eq!(bins.len(), 14);
        assert_eq!(histogram([]), []);
        assert_eq!(histogram([u64::MAX, u64::MAX])[0].bytes, u64::MAX, "a hostile size");
    }
}
