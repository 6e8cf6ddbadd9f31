//! The latch: two copies and a sequence number that tells which one is valid.
//!
//! The writer changes the invalid copy and then advances the sequence. A writer that is killed or stopped at
//! any point leaves one complete copy, and a reader has to retry only if the writer turned the latch once and
//! began the next change while it was reading.

use crate::words::Word;

/// The sequence number has a line of 128 bytes to itself.
const SEQUENCE_WORDS: usize = 16;

/// The number of words of a latch whose copies have `copy_words` words each.
pub const fn latch_words(copy_words: usize) -> usize {
    SEQUENCE_WORDS + 2 * copy_words
}

/// The copy that is valid at a sequence number.
#[inline]
fn copy<W>(latch: &[W], sequence: u64) -> &[W] {
    let copies = latch.get(SEQUENCE_WORDS..).unwrap_or_default();
    let (even, odd) = copies.split_at(copies.len() / 2);
    if sequence.is_multiple_of(2) { even } else { odd }
}

/// The writer's side. Its sequence number is private: the writer never trusts the shared one.
#[derive(Clone, Copy, Debug, Default)]
pub struct LatchWriter {
    sequence: u64,
}

impl LatchWriter {
    /// A writer that continues where the latch stands, for one that takes over existing memory.
    pub fn resume<W: Word>(latch: &[W]) -> LatchWriter {
        LatchWriter { sequence: latch.first().map_or(0, Word::load) }
    }

    /// Lets `write` change the invalid copy, and then makes it the valid one. That copy holds the state of
    /// two turns ago.
    #[inline]
    pub fn turn<W: Word>(&mut self, latch: &[W], write: impl FnOnce(&[W])) {
        let Some(sequence) = latch.first() else { return };
        self.sequence = self.sequence.wrapping_add(1);
        // Release: pairs with the second acquire fence in read(). A reader that sees a word written below
        // also sees the previous turn of the sequence when it checks again.
        W::fence_release();
        write(copy(latch, self.sequence));
        // Release: pairs with the first acquire fence in read().
        sequence.store_release(self.sequence);
    }
}

/// Reads the valid copy in place, in at most `attempts` attempts. `read` may run several times and may see
/// words that are not consistent; its result is returned only if they were.
#[inline]
pub fn read<W: Word, R>(latch: &[W], attempts: usize, mut read: impl FnMut(&[W]) -> R) -> Option<R> {
    let sequence = latch.first()?;
    for _ in 0..attempts {
        let before = sequence.load();
        // Acquire: pairs with the release store in turn().
        W::fence_acquire();
        let result = read(copy(latch, before));
        // Acquire: pairs with the release fence in turn().
        W::fence_acquire();
        if sequence.load() == before {
            return Some(result);
        }
        core::hint::spin_loop();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn one_that_takes_over_goes_on_where_the_latch_stands() {
        let latch: [AtomicU64; latch_words(1)] = std::array::from_fn(|_| AtomicU64::new(0));
        let valid = || read(&latch, 1, |copy| Word::load(&copy[0]));
        LatchWriter::default().turn(&latch, |copy| Word::store(&copy[0], 1));
        for value in 2..5 {
            let mut writer = LatchWriter::resume(&latch);
            writer.turn(&latch, |copy| {
                Word::store(&copy[0], value);
                assert_eq!(valid(), Some(value - 1), "until it is turned");
            });
            assert_eq!(valid(), Some(value));
        }
    }
}
