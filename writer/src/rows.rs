//! The free rows of the live list. Rows never move; freed ones are reused last in, first out, which keeps
//! them in cache.

use crate::segment::{GROWTH, Segment};
use shm_layout::control;
use shm_layout::{NO_ROW, SLOT_WORDS, Word};

const ROW_BYTES: usize = SLOT_WORDS * 8;
/// The number of allocations between two attempts to grow after one failed: each attempt is a system call.
const RETRY_AFTER: u32 = 4096;

pub(crate) struct Rows {
    free: Vec<u32>,
    /// Rows below this number have been used.
    used: u32,
    published: u32,
    capacity: u32,
    retry_in: u32,
}

impl Rows {
    pub(crate) fn new(segment: &Segment) -> Rows {
        let published = Word::load(&segment.words().control[control::ROWS_PUBLISHED]) as u32;
        let capacity = segment.header().rows.capacity as u32;
        Rows { free: Vec::new(), used: 0, published, capacity, retry_in: 0 }
    }

    /// Takes a row to write, if there is room.
    #[inline(always)]
    pub(crate) fn take(&mut self, segment: &Segment) -> Option<u32> {
        match self.free.pop() {
            Some(row) => Some(row),
            None => self.take_new(segment),
        }
    }

    #[cold]
    #[inline(never)]
    fn take_new(&mut self, segment: &Segment) -> Option<u32> {
        if self.used == self.published && !self.grow(segment) {
            return None;
        }
        self.used += 1;
        Some(self.used - 1)
    }

    /// Frees a row.
    #[inline]
    pub(crate) fn put(&mut self, row: u32) {
        if row != NO_ROW {
            self.free.push(row);
        }
    }

    fn grow(&mut self, segment: &Segment) -> bool {
        if self.retry_in > 0 {
            self.retry_in -= 1;
            return false;
        }
        let more = (self.capacity - self.published).min((GROWTH / ROW_BYTES) as u32);
        let offset = segment.header().rows.offset as usize + self.published as usize * ROW_BYTES;
        if more == 0 || segment.populate(offset, more as usize * ROW_BYTES).is_err() {
            self.retry_in = RETRY_AFTER;
            return false;
        }
        self.published += more;
        shm_layout::point!(GrowthPopulated);
        // Release: pairs with the acquire fence of a reader that walks the live list.
        segment.words().control[control::ROWS_PUBLISHED].store_release(u64::from(self.published));
        true
    }
}
