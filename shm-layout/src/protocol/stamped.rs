//! The stamped cell: words, the first of which is a stamp that tells which write they hold.
//!
//! The stamp is 0 while the cell is being written, so a reader that sees the same stamp before and after has
//! the payload of that stamp. A writer killed in between leaves a cell that reads as empty.

use crate::words::{Word, load_pod, words_of};
use bytemuck::Pod;

/// Writes a cell. `value`'s first word must be its stamp, which is not 0.
#[inline]
pub fn write<T: Pod, W: Word>(cell: &[W], value: &T) {
    const { words_of::<T>() };
    let (bytes, _) = bytemuck::bytes_of(value).as_chunks();
    if let Some((stamp, payload)) = bytes.split_first() {
        let payload = payload.iter().map(|bytes| u64::from_le_bytes(*bytes));
        clear(cell);
        fill_with(cell, u64::from_le_bytes(*stamp), payload);
    }
}

/// Writes a cell from words. The first is the stamp, which is not 0.
#[inline(always)]
pub fn write_words<const N: usize, W: Word>(cell: &[W; N], words: [u64; N]) {
    clear(cell);
    fill_words(cell, words);
}

/// Writes an empty cell.
#[inline(always)]
pub fn fill_words<const N: usize, W: Word>(cell: &[W; N], words: [u64; N]) {
    if let Some((stamp, payload)) = words.split_first() {
        fill_with(cell, *stamp, payload.iter().copied());
    }
}

#[inline(always)]
fn fill_with<W: Word>(cell: &[W], stamp: u64, payload: impl Iterator<Item = u64>) {
    let Some((stamp_word, payload_words)) = cell.split_first() else { return };
    // Release: pairs with the second acquire fence in read(). A reader that sees a word of the new payload
    // also sees the 0 of clear(), or a later stamp, when it checks the stamp again.
    W::fence_release();
    for (word, value) in payload_words.iter().zip(payload) {
        word.store(value);
    }
    // Release: pairs with the first acquire fence in read(). A reader that sees the stamp also sees the
    // payload.
    stamp_word.store_release(stamp);
}

/// Empties a cell.
#[inline(always)]
pub fn clear<W: Word>(cell: &[W]) {
    if let Some(stamp) = cell.first() {
        // Release: pairs with the acquire fences in drain() of the live list and in read_slot(). A reader
        // that finds a row empty also sees the event that emptied it, in its slot.
        stamp.store_release(0);
    }
}

/// Reads a cell: `Err(stamp)` if its stamp is not `expected`, `Err(0)` if it changed meanwhile.
#[inline]
pub fn read_expected<T: Pod, W: Word>(cell: &[W], expected: u64) -> Result<T, u64> {
    let Some(stamp) = cell.first() else { return Err(0) };
    let before = stamp.load();
    if before != expected {
        return Err(before);
    }
    // Acquire: pairs with the release store of the stamp in write().
    W::fence_acquire();
    let value = load_pod(cell);
    // Acquire: pairs with the release fence in write().
    W::fence_acquire();
    if stamp.load() == expected { Ok(value) } else { Err(0) }
}

/// Reads a cell with any stamp; `None` if it is empty or changed meanwhile.
#[inline]
pub fn read<T: Pod, W: Word>(cell: &[W]) -> Option<T> {
    let stamp = cell.first()?.load();
    if stamp == 0 { None } else { read_expected(cell, stamp).ok() }
}
