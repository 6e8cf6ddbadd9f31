//! A page that is zero in a forked child.

use std::io;
use std::marker::PhantomData;

use memmap2::{MmapMut, MmapRaw};
use rustix::mm::Advice;

/// The smallest page that Linux has.
const PAGE_BYTES: usize = 4096;

/// A type that may be zero at any moment: all of it is atomics, so that it may be shared, and zero is a value of it.
///
/// # Safety
///
/// It consists of atomic integers.
pub(crate) unsafe trait Wipeable: Sync {}

/// One private page with MADV_WIPEONFORK that holds a `T`: shared by all threads, all zero in a forked child.
///
/// For what must not survive a fork: a lock that another thread may hold at that moment, and the mark that
/// this process has a segment. Reading a word costs a load; asking for the process id would cost a system
/// call per event, and pthread_atfork misses a raw clone.
#[derive(Debug)]
pub(crate) struct WipePage<T> {
    page: MmapRaw,
    holds: PhantomData<T>,
}

impl<T: Wipeable> WipePage<T> {
    /// Maps a fresh page of zeros. Fails with EINVAL on kernels older than 4.14.
    pub(crate) fn new() -> io::Result<Self> {
        const { assert!(size_of::<T>() <= PAGE_BYTES && align_of::<T>() <= PAGE_BYTES) };
        let page = MmapRaw::from(MmapMut::map_anon(rustix::param::page_size())?);
        // SAFETY: the range is exactly the private mapping just made, to which no reference exists.
        unsafe { rustix::mm::madvise(page.as_mut_ptr().cast(), page.len(), Advice::LinuxWipeOnFork) }?;
        Ok(Self { page, holds: PhantomData })
    }

    /// What the page holds.
    #[inline]
    pub(crate) fn get(&self) -> &T {
        // SAFETY: a mapping starts at a page, so it is aligned, and no page is smaller than a T; it stays mapped
        // while `self` is borrowed; it was zero at first, which is a T. The wipe happens in a child before any of
        // its code runs, so no thread there sees it half done.
        unsafe { &*self.page.as_ptr().cast::<T>() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    // SAFETY: an atomic.
    unsafe impl Wipeable for AtomicU32 {}

    const _: () = {
        const fn is_send_and_sync<T: Send + Sync>() {}
        is_send_and_sync::<WipePage<AtomicU32>>();
    };
}
