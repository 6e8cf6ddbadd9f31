//! Changes to a mapped file, read from the fuzzer's bytes.
//!
//! A segment has 800 KB, a fuzzer's input a few hundred bytes. So an input is a list of words to overwrite in a
//! file that is honest otherwise, in between with marks where the file is looked at.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a change: block, place, value.
const PATCH_BYTES: usize = 11;
/// Changes that are made of an input at most.
const MAX_PATCHES: usize = 256;
/// The block number that means: look now.
const LOOK: u8 = 15;

/// What an input asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Look at the file.
    Look,
    /// Overwrite a word of a block.
    Store { block: usize, word: usize, value: u64 },
}

/// The steps of an input; the last is always a look.
pub(super) fn steps(data: &[u8]) -> impl Iterator<Item = Step> + '_ {
    let step = |patch: &[u8; PATCH_BYTES]| {
        let [kind, low, high, value @ ..] = *patch;
        match kind & 15 {
            LOOK => Step::Look,
            block => Step::Store {
                block: usize::from(block),
                word: usize::from(u16::from_le_bytes([low, high])),
                value: u64::from_le_bytes(value),
            },
        }
    };
    data.as_chunks().0.iter().take(MAX_PATCHES).map(step).chain([Step::Look])
}

/// Overwrites words and puts back what was there.
#[derive(Default)]
pub(super) struct Patched<'a> {
    before: Vec<(&'a AtomicU64, u64)>,
}

impl<'a> Patched<'a> {
    /// Stores into a block, round its end.
    pub(super) fn store(&mut self, blocks: &[&'a [AtomicU64]], block: usize, word: usize, value: u64) {
        let block = blocks[block % blocks.len()];
        let word = &block[word % block.len()];
        self.before.push((word, word.load(Ordering::Relaxed)));
        word.store(value, Ordering::Relaxed);
    }
}

impl Drop for Patched<'_> {
    fn drop(&mut self) {
        for (word, value) in self.before.iter().rev() {
            word.store(*value, Ordering::Relaxed);
        }
    }
}
