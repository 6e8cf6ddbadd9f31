//! The allocator of a worker: first fit in its part of every bank, in lock step. A buffer that is spread over the banks
//! has the same address in each of them, on each device of the mesh.
//!
//! Workers are processes of their own, as those of tt-metal are, and share no allocator. So each has a part of the banks
//! to itself: what is free is free in that part, and nobody takes what another one holds.

use std::ops::Range;

/// What every address and length is a multiple of.
const ALIGNMENT: u64 = 32;

/// A part of every bank of a memory.
#[derive(Clone, Debug)]
pub(crate) struct Banks {
    base: u64,
    /// Bytes in each bank.
    length: u64,
    banks: u64,
    /// By address.
    taken: Vec<Taken>,
}

#[derive(Clone, Debug)]
struct Taken {
    id: u64,
    start: u64,
    /// Bytes in each bank of the device that needs most.
    length: u64,
    /// Bytes in each bank, by device; empty if it is the same on all of them.
    lengths: Vec<u64>,
}

/// Why a buffer has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    /// The device on which it lacks most.
    pub(crate) device: usize,
    /// Bytes needed in each bank.
    pub(crate) needed: u64,
    /// Bytes free in each bank.
    pub(crate) free: u64,
    /// The largest block of them that is free on all devices.
    pub(crate) largest: u64,
}

impl Banks {
    /// These addresses of so many banks.
    pub(crate) fn new(addresses: Range<u64>, banks: u64) -> Banks {
        Banks { base: addresses.start, length: addresses.end - addresses.start, banks, taken: Vec::new() }
    }

    /// How many banks it has.
    pub(crate) fn banks(&self) -> u64 {
        self.banks
    }

    /// What a buffer of this size takes of each bank.
    pub(crate) fn per_bank(&self, size: u64) -> u64 {
        size.div_ceil(self.banks).next_multiple_of(ALIGNMENT)
    }

    /// Finds an address for a buffer of these sizes, by device; of a single size if it is the same on all.
    pub(crate) fn take(&mut self, id: u64, sizes: &[u64]) -> Result<u64, Shortage> {
        let mut lengths: Vec<u64> = sizes.iter().map(|size| self.per_bank(*size)).collect();
        let length = lengths.iter().copied().max().unwrap_or(0);
        let Some((place, start)) = self.first_fit(length) else { return Err(self.shortage(length)) };
        if lengths.len() == 1 {
            lengths.clear();
        }
        self.taken.insert(place, Taken { id, start, length, lengths });
        Ok(start)
    }

    /// The buffer is gone.
    pub(crate) fn give_back(&mut self, id: u64) {
        self.taken.retain(|taken| taken.id != id);
    }

    /// Bytes taken on a device, in all banks.
    #[cfg(test)]
    pub(crate) fn used(&self, device: usize) -> u64 {
        self.used_per_bank(device) * self.banks
    }

    fn used_per_bank(&self, device: usize) -> u64 {
        self.taken.iter().map(|taken| taken.lengths.get(device).unwrap_or(&taken.length)).sum()
    }

    /// The free blocks in order: where the next buffer would be in the list, start and length.
    fn blocks(&self) -> impl Iterator<Item = (usize, u64, u64)> {
        let ends = self.taken.iter().map(|taken| taken.start + taken.length);
        let starts = self.taken.iter().map(|taken| taken.start).chain([self.base + self.length]);
        [self.base]
            .into_iter()
            .chain(ends)
            .zip(starts)
            .enumerate()
            .map(|(place, (from, to))| (place, from, to - from))
    }

    fn first_fit(&self, length: u64) -> Option<(usize, u64)> {
        self.blocks().find(|block| block.2 >= length).map(|(place, start, _)| (place, start))
    }

    fn shortage(&self, needed: u64) -> Shortage {
        let devices = self.taken.iter().map(|taken| taken.lengths.len()).max().unwrap_or(0).max(1);
        let (device, used) = (0..devices)
            .map(|device| (device, self.used_per_bank(device)))
            .max_by_key(|of| of.1)
            .unwrap_or((0, 0));
        let largest = self.blocks().map(|block| block.2).max().unwrap_or(0);
        Shortage { device, needed, free: self.length - used, largest }
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    const BASE: u64 = 1 << 19;

    #[test]
    fn the_first_gap_that_is_large_enough_is_taken() {
        let mut banks = Banks::new(BASE..2 * BASE, 4);
        assert_eq!(banks.take(1, &[4096]), Ok(BASE));
        assert_eq!(banks.take(2, &[4096]), Ok(BASE + 1024));
        assert_eq!(banks.take(3, &[4096]), Ok(BASE + 2048));
        banks.give_back(2);
        assert_eq!(banks.take(4, &[8192]), Ok(BASE + 3072), "the gap is too small");
        assert_eq!(banks.take(5, &[1]), Ok(BASE + 1024));
        let free = BASE - 4096 - 32;
        let largest = BASE - 5120;
        let shortage = Shortage { device: 0, needed: 1 << 20, free, largest };
        assert_eq!(banks.take(6, &[4 << 20]), Err(shortage));
        assert_eq!(banks.used(0), 4 * (4096 + 32), "a request that fails takes nothing");
    }

    #[test]
    fn a_buffer_takes_its_own_length_on_each_device() {
        let mut banks = Banks::new(0..1024, 2);
        assert_eq!(banks.take(1, &[64, 1024, 128]), Ok(0));
        assert_eq!([0, 1, 2].map(|device| banks.used(device)), [64, 1024, 128]);
        assert_eq!(banks.take(2, &[64]), Ok(512), "in lock step, behind the longest");
        let shortage = Shortage { device: 1, needed: 512, free: 1024 - 512 - 32, largest: 480 };
        assert_eq!(banks.take(3, &[1024]), Err(shortage));
    }

    /// Against a bank byte by byte, in units of the alignment.
    #[test]
    fn it_never_lies() {
        for seed in 0..50 {
            let mut random = Rng::with_seed(seed);
            let (units, mut banks) = (64_usize, Banks::new(BASE..BASE + 64 * ALIGNMENT, 3));
            let mut bytes = vec![None; units];
            for id in 0..300 {
                if random.bool() {
                    let gone = random.u64(..=id);
                    banks.give_back(gone);
                    bytes.iter_mut().filter(|owner| **owner == Some(gone)).for_each(|owner| *owner = None);
                }
                let length = random.usize(1..20);
                let free = bytes.iter().filter(|owner| owner.is_none()).count();
                let blocks =
                    bytes.chunk_by(|a, b| a.is_none() == b.is_none()).filter(|block| block[0].is_none());
                let largest = blocks.map(<[_]>::len).max().unwrap_or(0);
                match banks.take(id, &[length as u64 * ALIGNMENT * 3]) {
                    Ok(address) => {
                        let at = ((address - BASE) / ALIGNMENT) as usize;
                        assert!(bytes[at..at + length].iter().all(Option::is_none), "taken twice");
                        bytes[at..at + length].fill(Some(id));
                    }
                    Err(shortage) => {
                        assert!(largest < length, "it had room");
                        let said = (shortage.free / ALIGNMENT, shortage.largest / ALIGNMENT);
                        assert_eq!(said, (free as u64, largest as u64));
                    }
                }
                let used = bytes.iter().filter(|owner| owner.is_some()).count() as u64;
                assert_eq!(banks.used(0), used * ALIGNMENT * 3);
            }
        }
    }
}
