//! Address ranges of allocations, the gaps between them, and fragmentation.
//!
//! An address on a Tenstorrent chip refers to one bank of DRAM, or to the L1 of one core: a buffer has the same address
//! in each bank, with a part of its bytes in each. So everything here is about one bank.
//!
//! What overlaps: claims of two processes, of two allocators (device entries) of one process, as of a mesh and its
//! submesh, and of program memory and a buffer. Also two buffers of one allocator: it never hands out the same bytes
//! twice, so a free was missed or an address is wrong, and nothing else would detect it. Two pieces of program memory
//! of one allocator do not overlap in this sense: programs take turns.

use std::collections::BTreeMap;

use serde::Serialize;
use tt_shm_reader::{Class, Memory};

use super::allocations::{Item, Listing};
use crate::model::words;

/// A range of addresses that an allocation claims; `end` is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    pub owner: Owner,
    /// Its index in the list it was made from.
    pub item: usize,
}

impl Extent {
    /// The extent of an item; `None` if its process does not report it, or if it has no bytes of its own.
    pub fn of(place: usize, item: &Item) -> Option<Extent> {
        let (start, bytes) = (item.address?, item.bank_bytes?);
        let end = start.checked_add(bytes).filter(|_| bytes > 0 && !item.globally_allocated)?;
        Some(Extent { start, end, owner: Owner::of(item), item: place })
    }
}

/// The allocator that claims memory, and the purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Identity of the process's segment.
    pub process: u64,
    /// The process's number of the device: its allocator.
    pub entry: u8,
    /// Program memory, not a buffer.
    pub is_program: bool,
}

impl Owner {
    fn of(item: &Item) -> Owner {
        Owner { process: item.identity, entry: item.entry, is_program: item.class == Class::Cb }
    }
}

/// A range claimed by the same owners from end to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    start: u64,
    end: u64,
    /// Whether claims overlap there.
    is_shared: bool,
}

/// A memory of a device that has addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum BankKind {
    /// A bank of DRAM.
    #[default]
    Dram,
    /// The L1 of a Tensix core.
    L1,
}

words!(BankKind { Dram => "dram", L1 => "l1" });

impl BankKind {
    pub(crate) fn other(self) -> BankKind {
        match self {
            BankKind::Dram => BankKind::L1,
            BankKind::L1 => BankKind::Dram,
        }
    }

    /// The memory of an item. Kernels have no addresses, and system memory is not the device's.
    pub fn of(item: &Item) -> Option<BankKind> {
        match item.class.memory() {
            Memory::Dram => Some(BankKind::Dram),
            Memory::L1 => Some(BankKind::L1),
            Memory::Kernels | Memory::Host => None,
        }
    }
}

/// What overlaps in a memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Overlaps {
    /// Index of the device.
    pub device: usize,
    /// A bank of DRAM, or the L1 of a core.
    pub memory: BankKind,
    /// Ranges of addresses that are claimed more than once; `None` if no address is known.
    pub overlap_count: Option<u64>,
    /// Bytes in these, in one bank or core; `None`: no address is known.
    pub overlap_bank_bytes: Option<u64>,
    /// Whether these are all; otherwise it is at least that many, since not every address is known or the list is not
    /// complete.
    pub exact: bool,
}

impl Overlaps {
    /// The overlaps in each memory that is in use. `is_part`: the list was filtered.
    pub fn all(listing: &Listing, is_part: bool) -> Vec<Overlaps> {
        let mut banks: BTreeMap<(usize, BankKind), (Vec<Extent>, u64)> = BTreeMap::new();
        // A circular buffer inside an L1 buffer is in that one's extent.
        let own =
            listing.items.iter().enumerate().filter(|(_, item)| !item.globally_allocated && item.size > 0);
        for (place, item) in own {
            let Some(bank) = BankKind::of(item) else { continue };
            let (extents, unknown) = banks.entry((item.device, bank)).or_default();
            match Extent::of(place, item) {
                Some(extent) => extents.push(extent),
                None => *unknown += 1,
            }
        }
        let all = banks.into_iter().map(|((device, memory), (extents, unknown))| {
            let survey = Some(Survey::new(&extents, None)).filter(|_| !extents.is_empty());
            Overlaps {
                device,
                memory,
                overlap_count: survey.map(|survey| survey.overlaps),
                overlap_bank_bytes: survey.map(|survey| survey.overlapping),
                exact: unknown == 0 && !is_part && listing.is_exact(),
            }
        });
        all.collect()
    }
}

/// Use and fragmentation of a bank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The lowest claimed address. Memory below is not counted as free: firmware and kernels are there, and their
    /// addresses are not reported.
    pub lowest: u64,
    /// Where counting ended: the end of the bank if known, else the highest claimed address.
    pub end: u64,
    /// Claimed bytes, each counted once.
    pub used: u64,
    /// Number of gaps between and after claimed ranges.
    pub gaps: u64,
    /// Bytes in all of them.
    pub free: u64,
    /// The largest of them, the first if there are several: start and end.
    pub largest: Option<(u64, u64)>,
    /// Ranges where claims overlap.
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
            let is_shared = piece.is_shared;
            survey.used += bytes;
            survey.overlapping += if is_shared { bytes } else { 0 };
            // Adjacent pieces are one range.
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

    /// Fragmentation of the free memory: 1 - largest gap / all free bytes. 0 if it is in one piece, near 1 if it is in
    /// many small ones, `None` if nothing is free.
    pub fn fragmentation(&self) -> Option<f64> {
        let (start, end) = self.largest?;
        Some(1.0 - (end - start) as f64 / self.free as f64)
    }
}

/// The ranges where claims overlap, in order.
pub fn overlaps(extents: &[Extent]) -> Vec<(u64, u64)> {
    let shared = pieces(extents).into_iter().filter(|piece| piece.is_shared);
    shared.map(|piece| (piece.start, piece.end)).collect()
}

/// Claimed memory in order, cut wherever the claims change.
fn pieces(extents: &[Extent]) -> Vec<Piece> {
    let ends = |extent: &Extent| [(extent.start, extent.owner, true), (extent.end, extent.owner, false)];
    let mut edges: Vec<(u64, Owner, bool)> = extents.iter().flat_map(ends).collect();
    edges.sort_unstable();
    let mut claims: BTreeMap<Owner, u64> = BTreeMap::new();
    // Buffers of one allocator that share bytes with each other.
    let mut twice = 0_u64;
    let mut pieces = Vec::new();
    let mut before = 0;
    for (at, owner, begins) in edges {
        if at > before && !claims.is_empty() {
            pieces.push(Piece { start: before, end: at, is_shared: claims.len() > 1 || twice > 0 });
        }
        before = at;
        let claim = claims.entry(owner).or_default();
        twice -= u64::from(!owner.is_program && *claim > 1);
        *claim = if begins { *claim + 1 } else { claim.saturating_sub(1) };
        twice += u64::from(!owner.is_program && *claim > 1);
        if *claim == 0 {
            claims.remove(&owner);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn extent(start: u64, bytes: u64, process: u64) -> Extent {
        let owner = Owner { process, entry: 0, is_program: false };
        Extent { start, end: start + bytes, owner, item: 0 }
    }

    fn program(extent: Extent) -> Extent {
        Extent { owner: Owner { is_program: true, ..extent.owner }, ..extent }
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

    #[track_caller]
    fn assert_overlap(a: Extent, b: Extent, expected: (u64, u64)) {
        let survey = Survey::new(&[a, b, extent(30, 1, 1)], None);
        assert_eq!((survey.overlaps, survey.overlapping), expected);
        assert_eq!(survey.used, b.end - a.start + 1);
    }

    #[test]
    fn processes_allocators_and_kinds_overlap_and_programs_take_turns() {
        let (a, b) = (extent(0, 10, 1), extent(5, 10, 1));
        assert_overlap(a, extent(5, 10, 2), (1, 5));
        let submesh = Extent { owner: Owner { entry: 1, ..b.owner }, ..b };
        assert_overlap(a, submesh, (1, 5));
        assert_overlap(a, program(b), (1, 5));
        assert_overlap(a, b, (1, 5));
        assert_overlap(program(a), program(b), (0, 0));
        assert_overlap(program(a), program(submesh), (1, 5));
        assert_overlap(a, extent(10, 5, 2), (0, 0));
    }

    #[test]
    fn what_overlaps_is_exact_only_if_every_address_is_known() {
        let at = |class, address| Item {
            class,
            address,
            bank_bytes: Some(10),
            ..crate::lists::groups::tests::item(None, 10, 0)
        };
        let all = |items: Vec<Item>, is_part| {
            Overlaps::all(&Listing { items, ..Listing::default() }, is_part)
                .into_iter()
                .map(|o| (o.memory, o.overlap_count, o.overlap_bank_bytes, o.exact))
                .collect::<Vec<_>>()
        };
        let (buffer, cb) = (at(Class::L1, Some(0)), at(Class::Cb, Some(4)));
        let both = vec![buffer, cb];
        assert_eq!(all(both.clone(), false), [(BankKind::L1, Some(1), Some(6), true)]);
        assert_eq!(
            all(both.clone(), true),
            [(BankKind::L1, Some(1), Some(6), false)],
            "not all was asked for"
        );
        let unknown = [both, vec![at(Class::L1, None), at(Class::Dram, None)]].concat();
        assert_eq!(
            all(unknown, false),
            [(BankKind::Dram, None, None, false), (BankKind::L1, Some(1), Some(6), false)]
        );
    }

    /// Byte by byte.
    fn naive(extents: &[Extent], end: Option<u64>) -> Survey {
        let claims = |at: u64| {
            let there = extents.iter().filter(|extent| (extent.start..extent.end).contains(&at));
            let there: Vec<Owner> = there.map(|extent| extent.owner).collect();
            let owners = there.iter().collect::<BTreeSet<_>>().len();
            // Each buffer counts, program memory counts once.
            owners.max(there.iter().filter(|owner| !owner.is_program).count())
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
            claims in prop::collection::vec((0..60_u64, 1..20_u64, 1..4_u64, any::<bool>()), 0..12),
            end in prop::option::of(0..120_u64),
        ) {
            let extents: Vec<Extent> = claims
                .iter()
                .map(|(start, bytes, process, is_program)| {
                    let extent = extent(*start, *bytes, *process);
                    if *is_program { program(extent) } else { extent }
                })
                .collect();
            prop_assert_eq!(Survey::new(&extents, end), naive(&extents, end));
        }
    }
}
