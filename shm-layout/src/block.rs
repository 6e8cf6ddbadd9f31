//! The position of a block of equal entries in a file.

use crate::describe::constants;
use crate::error::LayoutError;
use crate::words::{Word, shared_struct};

constants! {
    pub(crate) LIMITS;
    /// The alignment of every block, in bytes.
    ///
    /// Also that of every line that both sides touch often. 128, not 64: x86 fetches lines in pairs, and some
    /// aarch64 cores have lines of 128 bytes.
    pub const ALIGN: u64 = 128;
}

shared_struct! {
    /// Offset and capacity of a block.
    pub struct Block, size 16 {
        /// Byte offset from the start of the file, a multiple of [`ALIGN`].
        0 => pub offset: u64,
        /// Number of entries.
        8 => pub capacity: u64,
    }
}

impl Block {
    /// The first byte after the block.
    pub const fn end(&self, entry_bytes: u64) -> u64 {
        self.offset + self.capacity * entry_bytes
    }

    /// Returns an error unless the whole block is inside a file of `len` bytes.
    pub fn check(
        &self,
        block: &'static str,
        entry_bytes: u64,
        max: u64,
        len: u64,
    ) -> Result<(), LayoutError> {
        let Block { offset, capacity } = *self;
        let bytes = capacity.checked_mul(entry_bytes);
        let end = bytes.and_then(|bytes| bytes.checked_add(offset));
        let fits = end.is_some_and(|end| end <= len);
        if fits && capacity > 0 && capacity <= max && offset.is_multiple_of(ALIGN) {
            Ok(())
        } else {
            Err(LayoutError::Block { block, offset, capacity, len })
        }
    }

    /// The block's words as entries of `N` words; empty if it is not inside the file.
    pub fn entries<'a, const N: usize, W: Word>(&self, words: &'a [W]) -> &'a [[W; N]] {
        let (start, count) = ((self.offset / 8) as usize, self.capacity as usize);
        let words = words.get(start..).and_then(|words| words.get(..count * N)).unwrap_or_default();
        words.as_chunks().0
    }
}

/// Places blocks one after another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planner {
    next: u64,
}

impl Planner {
    /// Starts after the first `reserved` bytes.
    pub(crate) const fn after(reserved: u64) -> Planner {
        Planner { next: reserved.next_multiple_of(ALIGN) }
    }

    /// Places the next block.
    pub(crate) const fn place(&mut self, capacity: u64, entry_bytes: u64) -> Block {
        let block = Block { offset: self.next, capacity };
        self.next = block.end(entry_bytes).next_multiple_of(ALIGN);
        block
    }

    /// The number of bytes planned so far.
    pub(crate) const fn len(&self) -> u64 {
        self.next
    }
}
