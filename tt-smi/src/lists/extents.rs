//! Where in memory things lie: stretches of addresses, the gaps between them, and how broken up these are.
//!
//! Addresses on Tenstorrent chips are those of one bank of DRAM, or of the L1 of one core: a buffer lies at the
//! same address in each bank, with a part of its bytes. So all of this is about one bank.

use std::collections::BTreeMap;

use super::allocations::Item;

/// A stretch of addresses that something claims; `end` is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First address.
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// Who claims it.
    pub pid: u32,
    /// Its place in the list that it was made of.
    pub item: usize,
}

impl Extent {
    /// Where an item lies; `None` if its process does not say so, or if it has no bytes of its own.
    pub fn of(place: usize, item: &Item) -> Option<Extent> {
        let (start, bytes) = (item.address?, item.bank_bytes?);
        let end = start.checked_add(bytes).filter(|_| bytes > 0 && !item.globally_allocated)?;
        Some(Extent { start, end, pid: item.pid, item: place })
    }
}

/// A piece of memory that the same processes claim from end to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    start: u64,
    end: u64,
    /// How many.
    processes: usize,
}

/// What a bank looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The lowest address that is claimed. What is below is not counted as free: firmware and kernels lie
    /// there, and nobody tells their addresses.
    pub lowest: u64,
    /// Where counting ended: the end of the bank if known, else the highest address that is claimed.
    pub end: u64,
    /// Bytes that are claimed, however often.
    pub used: u64,
    /// Gaps between what is claimed, and after it.
    pub gaps: u64,
    /// Bytes in all of them.
    pub free: u64,
    /// The largest of them, the first if there are several: start and end.
    pub largest: Option<(u64, u64)>,
    /// Stretches that several processes claim.
    pub overlaps: u64,
    /// Bytes in these.
    pub overlapping: u64,
}

impl Survey {
    /// Counts extents in a bank that ends at `end`, if that is known.
    pub fn new(extents: &[Extent], end: Option<u64>) -> Survey {
        let pieces = pieces(extents);
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return Survey::default() };
        let end = end.map_or(last.end, |end| end.max(last.end));
        let mut survey = Survey { lowest: first.start, end, ..Survey::default() };
        let mut before = first.start;
        let mut was_shared = false;
        for piece in &pieces {
            survey.add_gap(before, piece.start);
            let bytes = piece.end - piece.start;
            let is_shared = piece.processes > 1;
            survey.used += bytes;
            survey.overlapping += if is_shared { bytes } else { 0 };
            // Neighbours are one stretch.
            survey.overlaps += u64::from(is_shared && !(was_shared && before == piece.start));
            (before, was_shared) = (piece.end, is_shared);
        }
        survey.add_gap(before, end);
        survey
    }

    fn add_gap(&mut self, start: u64, end: u64) {
        if start < end {
            self.gaps += 1;
            self.free += end - start;
            if self.largest.is_none_or(|(largest, largest_end)| largest_end - largest < end - start) {
                self.largest = Some((start, end));
            }
        }
    }

    /// How broken up the free memory is: 1 - largest gap / all free bytes. 0 if it is in one piece, near 1 if it
    /// is in many small ones, `None` if nothing is free.
    pub fn fragmentation(&self) -> Option<f64> {
        let (start, end) = self.largest?;
        Some(1.0 - (end - start) as f64 / self.free as f64)
    }
}

/// The stretches that several processes claim, in order.
pub fn overlaps(extents: &[Extent]) -> Vec<(u64, u64)> {
    let shared = pieces(extents).into_iter().filter(|piece| piece.processes > 1);
    shared.map(|piece| (piece.start, piece.end)).collect()
}

/// Claimed memory in order, cut wherever the claims change.
fn pieces(extents: &[Extent]) -> Vec<Piece> {
    let ends = |extent: &Extent| [(extent.start, extent.pid, true), (extent.end, extent.pid, false)];
    let mut edges: Vec<(u64, u32, bool)> = extents.iter().flat_map(ends).collect();
    edges.sort_unstable();
    let mut claims: BTreeMap<u32, u64> = BTreeMap::new();
    let mut pieces = Vec::new();
    let mut before = 0;
    for (at, pid, begins) in edges {
        if at > before && !claims.is_empty() {
            pieces.push(Piece { start: before, end: at, processes: claims.len() });
        }
        before = at;
        let claim = claims.entry(pid).or_default();
        *claim = if begins { *claim + 1 } else { claim.saturating_sub(1) };
        if *claim == 0 {
            claims.remove(&pid);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn extent(start: u64, bytes: u64, pid: u32) -> Extent {
        Extent { start, end: start + bytes, pid, item: 0 }
    }

    #[test]
    fn gaps_and_fragmentation() {
        let survey = Survey::new(&[extent(100, 50, 1), extent(200, 100, 1)], Some(450));
        assert_eq!(
            (survey.lowest, survey.end, survey.used, survey.gaps, survey.free),
            (100, 450, 150, 2, 200)
        );
        assert_eq!(survey.largest, Some((300, 450)));
        assert_eq!(survey.fragmentation(), Some(0.25));
        assert_eq!(Survey::new(&[extent(0, 10, 1)], None).fragmentation(), None, "nothing is free");
        assert_eq!(Survey::new(&[], Some(10)), Survey::default());
    }

    #[test]
    fn only_other_processes_overlap() {
        let own = Survey::new(&[extent(0, 10, 1), extent(5, 10, 1)], None);
        assert_eq!((own.used, own.overlaps, own.overlapping), (15, 0, 0));
        let other = Survey::new(&[extent(0, 10, 1), extent(5, 10, 2), extent(30, 1, 1)], None);
        assert_eq!((other.used, other.overlaps, other.overlapping), (16, 1, 5));
    }

    /// Byte by byte.
    fn naive(extents: &[Extent], end: Option<u64>) -> Survey {
        let claims = |at: u64| {
            let there = extents.iter().filter(|extent| (extent.start..extent.end).contains(&at));
            there.map(|extent| extent.pid).collect::<BTreeSet<u32>>().len()
        };
        let Some(lowest) = extents.iter().map(|extent| extent.start).min() else { return Survey::default() };
        let highest = extents.iter().map(|extent| extent.end).max().unwrap_or(0);
        let end = end.map_or(highest, |end| end.max(highest));
        let kinds: Vec<(u64, usize)> = (lowest..end).map(|at| (at, claims(at).min(2))).collect();
        let mut survey = Survey { lowest, end, ..Survey::default() };
        for run in kinds.chunk_by(|a, b| a.1 == b.1) {
            let (start, bytes) = (run[0].0, run.len() as u64);
            match run[0].1 {
                0 => survey.add_gap(start, start + bytes),
                1 => survey.used += bytes,
                _ => {
                    survey.used += bytes;
                    survey.overlaps += 1;
                    survey.overlapping += bytes;
                }
            }
        }
        survey
    }

    proptest! {
        #[test]
        fn the_same_as_byte_by_byte(
            claims in prop::collection::vec((0..60_u64, 1..20_u64, 1..4_u32), 0..12),
            end in prop::option::of(0..120_u64),
        ) {
            let extents: Vec<Extent> = claims.iter().map(|(start, bytes, pid)| extent(*start, *bytes, *pid)).collect();
            prop_assert_eq!(Survey::new(&extents, end), naive(&extents, end));
        }
    }
}
