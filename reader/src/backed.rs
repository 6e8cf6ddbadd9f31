//! Which parts of a file have memory behind them.
//!
//! The monitor's files are sparse. Touching a hole through a mapping, even a read-only one, allocates a page
//! of /dev/shm that stays when the reader is gone; so a few kilobytes of sparse files could make a reader
//! fill it. Therefore no word is read before the kernel has said (`SEEK_HOLE`) that it is backed. Writers
//! populate what they publish before they publish it, so an honest file never fails, and the kernel has to be
//! asked only when more was published than before.
//!
//! The owner of a file can punch holes into it later. That is detected too, by the blocks that the file
//! occupies, but not at once: until then, reading allocates at most the memory that the owner had allocated
//! before.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rustix::fs::SeekFrom;
use rustix::io::Errno;
use shm_layout::Block;
use thiserror::Error;

/// Why a mapped file can no longer be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Loss {
    /// It was truncated: everything reads as zero.
    #[error("its file was truncated while it was mapped")]
    CutShort,
    /// Something that its writer published is a hole in the file.
    #[error("published {0} are not backed by memory")]
    NotBacked(&'static str),
}

/// The first byte at or after `offset` that is not backed by memory. On a file system without holes that is
/// the end of the file.
pub(crate) fn first_hole(fd: BorrowedFd<'_>, offset: u64) -> u64 {
    match rustix::fs::seek(fd, SeekFrom::Hole(offset)) {
        Ok(hole) => hole,
        // Beyond the end: the file was truncated.
        Err(Errno::NXIO) => offset,
        Err(_) => u64::MAX,
    }
}

/// A mapped file, and what is known of the memory behind it.
#[derive(Debug)]
pub(crate) struct Backing {
    fd: OwnedFd,
    len: u64,
    /// The number of blocks that the file occupied at the last look. For an honest file it never decreases.
    blocks: AtomicU64,
    loss: OnceLock<Loss>,
}

impl Backing {
    pub(crate) fn new(fd: OwnedFd, len: u64) -> Backing {
        let blocks = rustix::fs::fstat(&fd).map_or(0, |stat| stat.st_blocks as u64);
        Backing { fd, len, blocks: AtomicU64::new(blocks), loss: OnceLock::new() }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    #[inline]
    pub(crate) fn loss(&self) -> Option<Loss> {
        self.loss.get().copied()
    }

    fn note(&self, loss: Loss) {
        // The first reason is kept.
        let _ = self.loss.set(loss);
    }

    /// Notes a loss if the file is shorter than it was, or if it occupies less and one of `extents` is no
    /// longer backed. Makes one system call unless it does.
    pub(crate) fn look_again(&self, extents: &[&Extent]) {
        let Ok(stat) = rustix::fs::fstat(&self.fd) else { return };
        if (stat.st_size as u64) < self.len {
            return self.note(Loss::CutShort);
        }
        let blocks = stat.st_blocks as u64;
        if blocks < self.blocks.swap(blocks, Ordering::Relaxed) {
            // The kernel may also have reclaimed pages that nobody wrote, so find out where the holes are.
            extents.iter().for_each(|extent| extent.look_again(self));
        }
    }
}

/// A block of equal entries that are published in order.
#[derive(Debug)]
pub(crate) struct Extent {
    what: &'static str,
    block: Block,
    entry_bytes: u64,
    /// The number of entries, from the first one on, that are backed.
    backed: AtomicUsize,
}

impl Extent {
    pub(crate) fn new(what: &'static str, block: Block, entry_words: usize) -> Extent {
        Extent { what, block, entry_bytes: 8 * entry_words as u64, backed: AtomicUsize::new(0) }
    }

    /// The number of entries that may be touched, given that `published` are published. Asks the kernel only
    /// if these are more than before, and notes a loss if they are not backed.
    #[inline]
    pub(crate) fn backed(&self, published: u64, backing: &Backing) -> usize {
        let backed = self.reach(published, backing);
        if (backed as u64) < published.min(self.block.capacity) {
            backing.note(Loss::NotBacked(self.what));
        }
        backed
    }

    /// The number of entries that may be touched, up to `wanted`. It is not a loss if fewer are backed.
    #[inline]
    pub(crate) fn reach(&self, wanted: u64, backing: &Backing) -> usize {
        let backed = self.backed.load(Ordering::Relaxed);
        if wanted.min(self.block.capacity) <= backed as u64 { backed } else { self.extend(backing) }
    }

    /// Whether all entries are backed.
    #[inline]
    pub(crate) fn is_backed(&self) -> bool {
        self.backed.load(Ordering::Relaxed) as u64 == self.block.capacity
    }

    /// A block limited to the entries that may be touched, given that `published` are published.
    #[inline]
    pub(crate) fn cut<'a, T>(&self, entries: &'a [T], published: u64, backing: &Backing) -> &'a [T] {
        &entries[..self.backed(published, backing).min(entries.len())]
    }

    #[cold]
    fn extend(&self, backing: &Backing) -> usize {
        let backed = self.ask(self.backed.load(Ordering::Relaxed), backing);
        // Several threads may have asked at different times.
        self.backed.fetch_max(backed, Ordering::Relaxed).max(backed)
    }

    /// Checks all entries that were backed before; notes a loss if they no longer are.
    pub(crate) fn look_again(&self, backing: &Backing) {
        let (known, backed) = (self.backed.load(Ordering::Relaxed), self.ask(0, backing));
        if backed < known {
            self.backed.fetch_min(backed, Ordering::Relaxed);
            backing.note(Loss::NotBacked(self.what));
        }
    }

    /// The number of entries before the first hole; the first `known` are not checked.
    fn ask(&self, known: usize, backing: &Backing) -> usize {
        let from = self.block.offset + known as u64 * self.entry_bytes;
        let hole = first_hole(backing.fd(), from);
        let entries = hole.saturating_sub(self.block.offset) / self.entry_bytes;
        entries.min(self.block.capacity) as usize
    }
}
