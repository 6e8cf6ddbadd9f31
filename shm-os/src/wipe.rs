//! A page that is zero in a forked child.

use std::io;
use std::sync::atomic::AtomicU32;

use memmap2::{MmapMut, MmapRaw};
use rustix::mm::Advice;

/// The number of words of the smallest page that Linux has.
const PAGE_WORDS: usize = 4096 / size_of::<AtomicU32>();

/// One private page with MADV_WIPEONFORK: shared by all threads, all zero in a forked child.
///
/// For what must not survive a fork: a lock that another thread may hold at that moment, and the mark that
/// this process has a segment. Reading a word costs a load; asking for the process id would cost a system
/// call per event, and pthread_atfork misses a raw clone.
#[derive(Debug)]
pub struct WipePage(MmapRaw);

impl WipePage {
    /// Maps a fresh page of zeros. Fails with EINVAL on kernels older than 4.14.
    pub fn new() -> io::Result<Self> {
        let page = MmapRaw::from(MmapMut::map_anon(rustix::param::page_size())?);
        // SAFETY: the range is exactly the private mapping just made, to which no reference exists.
        unsafe { rustix::mm::madvise(page.as_mut_ptr().cast(), page.len(), Advice::LinuxWipeOnFork) }?;
        Ok(Self(page))
    }

    /// The page as words of the size that futexes take. Their number is known at compile time, so that
    /// accessing one needs no check.
    #[must_use]
    #[inline]
    pub fn words(&self) -> &[AtomicU32; PAGE_WORDS] {
        let first = self.0.as_ptr().cast::<[AtomicU32; PAGE_WORDS]>();
        // SAFETY: a mapping starts at a page, so it is aligned, and no page is smaller than 4096 bytes;
        // it stays mapped while `self` is borrowed; any bit pattern is an AtomicU32. The wipe happens in
        // a child before any of its code runs, so no thread there sees it half done.
        unsafe { &*first }
    }
}

const fn is_send_and_sync<T: Send + Sync>() {}
const _: () = is_send_and_sync::<WipePage>();
