//! The gaps in the addresses that a pool of L1 provides on a core.

use std::ops::Range;

use crate::lists::extents::{Extent, Survey};

/// The gaps in a range of addresses.
pub(super) struct Gaps {
    pub(super) free: u64,
    /// The lowest of the largest ones; empty if nothing is free.
    pub(super) largest: Range<u64>,
    /// Bytes that are claimed more than once.
    pub(super) overlapping: u64,
    /// Whether everything lies inside the range.
    pub(super) are_inside: bool,
}

impl Gaps {
    pub(super) fn new(extents: &[Extent], range: &Range<u64>) -> Gaps {
        let are_inside = extents.iter().all(|extent| range.start <= extent.start && extent.end <= range.end);
        // What lies outside takes nothing of the range.
        let cut = |extent: &Extent| Extent {
            start: extent.start.clamp(range.start, range.end),
            end: extent.end.clamp(range.start, range.end),
            ..*extent
        };
        let extents: Vec<Extent> =
            extents.iter().map(cut).filter(|extent| extent.start < extent.end).collect();
        let lowest = extents.iter().map(|extent| extent.start).min().unwrap_or(range.end);
        // A survey begins at the lowest claim.
        let below = range.start..lowest;
        let survey = Survey::new(&extents, Some(range.end));
        let above = survey.largest.map_or(0..0, |(start, end)| start..end);
        let length = |range: &Range<u64>| range.end - range.start;
        Gaps {
            free: survey.free + length(&below),
            overlapping: survey.overlapping,
            largest: if length(&above) > length(&below) { above } else { below },
            are_inside,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lists::extents::Owner;

    fn extent(start: u64, bytes: u64, is_program: bool) -> Extent {
        let owner = Owner { process: 1, entry: 0, is_program };
        Extent { start, end: start + bytes, owner, item: 0 }
    }

    #[test]
    fn what_lies_below_the_first_and_above_the_last_is_free() {
        let gaps = |extents: &[Extent]| {
            let Gaps { free, largest, overlapping, are_inside } = Gaps::new(extents, &(100..200));
            (free, largest, overlapping, are_inside)
        };
        assert_eq!(gaps(&[]), (100, 100..200, 0, true));
        assert_eq!(gaps(&[extent(100, 100, false)]), (0, 100..100, 0, true));
        assert_eq!(gaps(&[extent(150, 20, false), extent(165, 10, true)]), (75, 100..150, 5, true));
        assert_eq!(gaps(&[extent(90, 20, false), extent(195, 10, false)]), (85, 110..195, 0, false));
        assert_eq!(gaps(&[extent(300, 5, false)]), (100, 100..200, 0, false));
    }

    proptest! {
        #[test]
        fn the_same_as_byte_by_byte(claims in prop::collection::vec((0..70_u64, 0..20_u64, any::<bool>()), 0..9)) {
            let extents: Vec<Extent> = claims.iter().map(|claim| extent(claim.0, claim.1, claim.2)).collect();
            let range = 10..60_u64;
            let is_taken = |at: &u64| extents.iter().any(|extent| (extent.start..extent.end).contains(at));
            let bytes: Vec<bool> = range.clone().map(|at| is_taken(&at)).collect();
            let runs = bytes.chunk_by(|a, b| a == b).filter(|run| !run[0]).map(<[bool]>::len);
            let gaps = Gaps::new(&extents, &range);
            prop_assert_eq!(gaps.free, bytes.iter().filter(|taken| !**taken).count() as u64);
            prop_assert_eq!(gaps.largest.end - gaps.largest.start, runs.max().unwrap_or(0) as u64);
            prop_assert!(gaps.largest.clone().all(|at| range.contains(&at) && !is_taken(&at)));
        }
    }
}
