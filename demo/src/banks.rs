//! Where buffers lie: first fit in a worker's part of every bank, as an allocator in lockstep does it. A buffer
//! that is spread over the banks has the same address on each of them.

use std::collections::BTreeMap;

/// A part of every bank of a kind of memory.
#[derive(Clone, Debug)]
pub(crate) struct Banks {
    base: u64,
    length: u64,
    banks: u64,
    /// Start and length of what is taken, by the id of the buffer.
    taken: BTreeMap<u64, (u64, u64)>,
}

/// A place for a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// On every bank.
    pub address: u64,
    /// On every bank.
    pub bytes_per_bank: u64,
}

impl Banks {
    /// The `worker`-th of `workers` equal parts of banks of this size.
    pub(crate) fn part(bank_bytes: u64, banks: u64, worker: u64, workers: u64) -> Banks {
        let length = bank_bytes / workers / 32 * 32;
        Banks { base: length * worker, length, banks, taken: BTreeMap::new() }
    }

    /// Finds a place for a buffer, if there is one.
    pub(crate) fn take(&mut self, id: u64, size: u64) -> Option<Place> {
        let needed = size.div_ceil(self.banks).next_multiple_of(32);
        let mut taken: Vec<(u64, u64)> = self.taken.values().copied().collect();
        taken.sort_unstable();
        let mut address = self.base;
        for (start, length) in taken {
            if start - address >= needed {
                break;
            }
            address = start + length;
        }
        if address + needed > self.base + self.length {
            return None;
        }
        self.taken.insert(id, (address, needed));
        Some(Place { address, bytes_per_bank: needed })
    }

    /// The buffer is gone.
    pub(crate) fn give_back(&mut self, id: u64) {
        self.taken.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_gap_that_is_large_enough_is_taken() {
        let mut banks = Banks::part(1 << 20, 4, 1, 2);
        let base = 1 << 19;
        let place = |address, bytes_per_bank| Some(Place { address, bytes_per_bank });
        assert_eq!(banks.take(1, 4096), place(base, 1024));
        assert_eq!(banks.take(2, 4096), place(base + 1024, 1024));
        assert_eq!(banks.take(3, 4096), place(base + 2048, 1024));
        banks.give_back(2);
        assert_eq!(banks.take(4, 8192), place(base + 3072, 2048), "the gap is too small");
        assert_eq!(banks.take(5, 1), place(base + 1024, 32));
        assert_eq!(banks.take(6, 4 << 20), None);
    }
}
