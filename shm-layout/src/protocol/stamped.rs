//! The stamped cell: words whose first one is a stamp that says which write they hold.
//!
//! The stamp is 0 while the cell is being written, so a reader that sees the same stamp before and
//! after has what belongs to that stamp. A writer killed in between leaves a cell that reads as empty.

use crate::words::{Word, load_pod, words_of};
use bytemuck::Pod;

/// Writes a cell. `value`'s first word must be its stamp, which is not 0.
#[inline]
pub fn write<T: Pod, W: Word>(cell: &[W], value: &T) {
    const { words_of::<T>() };
    let Some((stamp, _)) = cell.split_first() else { return };
    // Release: as in clear().
    stamp.store_release(0);
    // Release: pairs with the second acquire fence in read(). Who sees a word of the new payload sees
    // the 0, or a later stamp, when it looks at the stamp again.
    W::fence_release();
    let (bytes, _) = bytemuck::bytes_of(value).as_chunks();
    if let Some((first, rest)) = bytes.split_first() {
        for (word, bytes) in cell[1..].iter().zip(rest) {
            word.store(u64::from_le_bytes(*bytes));
        }
        // Release: pairs with the first acquire fence in read(). Who sees the stamp sees the payload.
        stamp.store_release(u64::from_le_bytes(*first));
    }
}

/// Empties a cell.
#[inline]
pub fn clear<W: Word>(cell: &[W]) {
    if let Some(stamp) = cell.first() {
        // Release: pairs with the acquire fences in drain() of the live list and in read_slot(). Who
        // finds a row empty sees the event that emptied it, in its slot.
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

/// Reads a cell whatever its stamp; `None` if it is empty or changed meanwhile.
#[inline]
pub fn read<T: Pod, W: Word>(cell: &[W]) -> Option<T> {
    let stamp = cell.first()?.load();
    if stamp == 0 { None } else { read_expected(cell, stamp).ok() }
}
