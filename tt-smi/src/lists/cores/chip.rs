//! What lies on the cores of a chip, from what all processes claim there.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use tt_shm_reader::Class;

use super::claims::{Claim, Entry, Where};
use super::gaps::Gaps;
use super::ranges::{CoreRanges, Grid};
use super::{Core, DeviceCores, Fullest, Held, Occupant, Ring, Unplaced};
use crate::escape::Foreign;
use crate::lists::extents::Extent;

/// Occupants of the fullest core that are named.
const OCCUPANTS: usize = 5;

/// A chip as all processes together describe it.
pub(super) struct Chip<'a> {
    entries: &'a [&'a Entry],
    claims: Vec<&'a Claim>,
    grid: Option<Grid>,
    banks: Option<u64>,
    /// Bytes of the L1 pool on a core.
    pool: Option<u64>,
    /// Its addresses.
    range: Option<Range<u64>>,
    small_pool: Option<u64>,
    /// Whether what they say goes together.
    agree: bool,
}

/// What all say who say anything; `None` with `false` if they differ.
fn common<T: PartialEq>(said: impl Iterator<Item = Option<T>>) -> (Option<T>, bool) {
    let mut said = said.flatten();
    let first = said.next();
    let agree = said.all(|other| first.as_ref() == Some(&other));
    (first.filter(|_| agree), agree)
}

impl<'a> Chip<'a> {
    pub(super) fn new(entries: &'a [&'a Entry]) -> Chip<'a> {
        let of = |class| entries.iter().map(move |entry| entry.entry.pool(class));
        let (banks, same_banks) = common(of(Class::L1).map(|pool| Some(pool?.banks)));
        let (pool, same_pool) = common(of(Class::L1).map(|pool| Some(pool?.bank_bytes)));
        let (small_pool, same_small) = common(of(Class::L1Small).map(|pool| Some(pool?.bank_bytes)));
        let (range, same_range) = common(entries.iter().map(|entry| entry.entry.l1_range()));
        let (grid, same_grid) = common(entries.iter().map(|entry| entry.entry.grid()));
        let grid = grid.and_then(|(columns, rows)| Grid::new(columns, rows));
        Chip {
            entries,
            claims: entries.iter().flat_map(|entry| &entry.claims).collect(),
            // Each core of the grid is a bank, or the grid is not that of the banks.
            grid: grid.filter(|grid| banks == Some(grid.count())),
            banks,
            pool,
            range,
            small_pool,
            agree: same_banks && same_pool && same_small && same_range && same_grid,
        }
    }

    pub(super) fn cores(&self, device: usize, is_missing: bool) -> DeviceCores {
        let mut is_exact = self.agree && !is_missing && self.entries.iter().all(|entry| entry.is_whole);
        let (everywhere, partial) = self.split();
        let mut alike: BTreeMap<Vec<usize>, (Held, Arc<[Occupant]>)> = BTreeMap::new();
        let mut held = |on: Vec<usize>| {
            let figures = alike.entry(on).or_insert_with_key(|on| {
                let claims = || everywhere.iter().copied().chain(on.iter().map(|number| partial[*number].1));
                let (held, is_certain) = self.held(claims);
                is_exact &= is_certain;
                (held, occupants(claims()).into())
            });
            figures.clone()
        };
        let cores: Vec<Core> = match self.grid {
            None => {
                let (held, occupants) = held(Vec::new());
                vec![Core { x: None, y: None, count: self.banks, held, occupants }]
            }
            Some(grid) => {
                let core = |(x, y)| {
                    let on = partial.iter().enumerate().filter(|(_, (ranges, _))| ranges.contains((x, y)));
                    let (held, occupants) = held(on.map(|(number, _)| number).collect());
                    Core { x: Some(x), y: Some(y), count: Some(1), held, occupants }
                };
                grid.cores().map(core).collect()
            }
        };
        let unplaced = self.unplaced();
        let fullest = fullest(&cores).map(|(core, count)| Fullest {
            x: core.x,
            y: core.y,
            count,
            free_bytes: core.held.free_bytes.unwrap_or(0),
            largest_gap_bytes: core.held.largest_gap_bytes,
            occupants: core.occupants.to_vec(),
        });
        let is_whole = is_exact;
        is_exact &= unplaced.is_empty();
        let pending: u64 = unplaced.iter().map(|unplaced| unplaced.core_bytes).fold(0, u64::saturating_add);
        let least = fullest.as_ref().filter(|_| is_whole).map(|core| core.free_bytes.saturating_sub(pending));
        DeviceCores {
            device,
            exact: is_exact,
            grid_columns: self.grid.map(|grid| grid.columns),
            grid_rows: self.grid.map(|grid| grid.rows),
            core_count: self.banks,
            l1_core_bytes: self.pool,
            l1_address: self.range.as_ref().map(|range| range.start),
            l1_small_core_bytes: self.small_pool,
            largest_free_block_bytes: self.largest_free_block(&everywhere, &unplaced),
            free_at_least_bytes: least,
            runs_out_first: fullest,
            cores,
            unplaced,
            kernel_rings: self.rings(),
            resident: self.resident(),
        }
    }

    /// What lies on every core, and what lies on some.
    fn split(&self) -> (Vec<&'a Claim>, Vec<(&'a CoreRanges, &'a Claim)>) {
        let everywhere = self.claims.iter().copied().filter(|claim| claim.at == Where::All).collect();
        let some = |claim: &&'a Claim| match &claim.at {
            Where::Some(ranges) => Some((ranges, *claim)),
            Where::All | Where::Unknown(_) => None,
        };
        (everywhere, self.claims.iter().filter_map(some).collect())
    }

    /// What a core with these claims holds, and whether that is certain.
    fn held<I: Iterator<Item = &'a Claim>>(&self, claims: impl Fn() -> I) -> (Held, bool) {
        let sum = |class| {
            let of = claims().filter(|claim| claim.class == class);
            of.map(|claim| claim.bytes).fold(0, u64::saturating_add)
        };
        let mut held = Held {
            l1_bytes: sum(Class::L1),
            l1_small_bytes: sum(Class::L1Small),
            program_bytes: sum(Class::Cb),
            ..Held::default()
        };
        let extents: Option<Vec<Extent>> =
            claims().filter(|claim| claim.class != Class::L1Small).map(extent).collect();
        let Some((extents, range)) = extents.zip(self.range.as_ref()) else {
            // One allocator's buffers lie beside each other, so that their sum is certain; others may overlap them.
            let taken = held.l1_bytes.saturating_add(held.program_bytes);
            held.free_bytes = self.pool.map(|pool| pool.saturating_sub(taken));
            let mut owners = claims().filter(|claim| claim.class != Class::L1Small).map(|claim| claim.owner);
            let first = owners.next();
            let is_one =
                owners.all(|owner| Some(owner) == first) && first.is_none_or(|owner| !owner.is_program);
            return (held, is_one && self.pool.is_some_and(|pool| taken <= pool));
        };
        let gaps = Gaps::new(&extents, range);
        held.free_bytes = Some(gaps.free);
        held.largest_gap_bytes = Some(gaps.largest.end - gaps.largest.start);
        held.largest_gap_address = Some(gaps.largest.start).filter(|_| !gaps.largest.is_empty());
        held.overlap_bytes = Some(gaps.overlapping);
        (held, gaps.are_inside)
    }

    /// The largest gap between L1 buffers, whatever programs hold.
    fn largest_free_block(&self, everywhere: &[&Claim], unplaced: &[Unplaced]) -> Option<u64> {
        let is_unplaced = unplaced.iter().any(|unplaced| unplaced.class == Class::L1);
        let is_whole = self.entries.iter().all(|entry| entry.is_whole) && !is_unplaced;
        let buffers = everywhere.iter().filter(|claim| claim.class == Class::L1);
        let extents: Vec<Extent> = buffers.map(|claim| extent(claim)).collect::<Option<_>>()?;
        let gaps = Gaps::new(&extents, self.range.as_ref().filter(|_| is_whole)?);
        Some(gaps.largest.end - gaps.largest.start)
    }

    fn unplaced(&self) -> Vec<Unplaced> {
        let mut found: BTreeMap<(u32, Class, u64), (u64, u64)> = BTreeMap::new();
        for claim in &self.claims {
            let Where::Unknown(cores) = claim.at else { continue };
            let (count, bytes) = found.entry((claim.called.pid, claim.class, cores)).or_default();
            *count += 1;
            *bytes = bytes.saturating_add(claim.bytes);
        }
        let unplaced = |((pid, class, core_count), (live_count, core_bytes))| Unplaced {
            pid,
            class,
            core_count,
            live_count,
            core_bytes,
        };
        found.into_iter().map(unplaced).collect()
    }

    fn resident(&self) -> Vec<(u64, u8, Option<u64>)> {
        let programs = self.claims.iter().filter(|claim| claim.class == Class::Cb);
        let mut resident: Vec<_> =
            programs.map(|claim| (claim.owner.process, claim.owner.entry, claim.program)).collect();
        resident.sort_unstable();
        resident.dedup();
        resident
    }

    fn rings(&self) -> Vec<Ring> {
        let ring = |entry: &&Entry| {
            let counters = entry.counters?;
            (counters.kernel_ring_total_bytes > 0).then_some(Ring {
                pid: entry.called.pid,
                total_bytes: counters.kernel_ring_total_bytes,
                used_bytes: counters.kernel_ring_used_bytes,
                programs: counters.kernel_ring_programs,
            })
        };
        self.entries.iter().filter_map(ring).collect()
    }
}

/// `None` if it has no address.
fn extent(claim: &Claim) -> Option<Extent> {
    let start = claim.address?;
    Some(Extent { start, end: start.checked_add(claim.bytes)?, owner: claim.owner, item: 0 })
}

/// The core with least free bytes, and how many are as full.
fn fullest(cores: &[Core]) -> Option<(&Core, Option<u64>)> {
    let key = |core: &Core| Some((core.held.free_bytes?, core.held.largest_gap_bytes.unwrap_or(u64::MAX)));
    let core = cores.iter().min_by_key(|core| key(core))?;
    let least = key(core)?;
    let same = cores.iter().filter(|core| key(core) == Some(least));
    Some((core, same.map(|core| core.count).sum()))
}

/// The largest first.
fn occupants<'a>(claims: impl Iterator<Item = &'a Claim>) -> Vec<Occupant> {
    type Key<'a> = (u32, bool, Class, (Option<u64>, Option<&'a Foreign>), Option<&'a Foreign>);
    let mut found: BTreeMap<Key<'a>, u64> = BTreeMap::new();
    for claim in claims.filter(|claim| claim.class != Class::L1Small) {
        let Claim { called, class, program, program_name, name, .. } = claim;
        let key = (called.pid, called.claimed, *class, (*program, program_name.as_ref()), name.as_ref());
        let bytes = found.entry(key).or_default();
        *bytes = bytes.saturating_add(claim.bytes);
    }
    let occupant = |((pid, claimed, class, (program, program_name), name), bytes): (Key<'a>, u64)| Occupant {
        pid,
        claimed,
        class,
        program,
        program_name: program_name.cloned(),
        name: name.cloned(),
        bytes,
    };
    let mut occupants: Vec<Occupant> = found.into_iter().map(occupant).collect();
    occupants.sort_by_key(|occupant| std::cmp::Reverse(occupant.bytes));
    occupants.truncate(OCCUPANTS);
    occupants
}
