//! A page that a forked child finds empty.

use std::io;
use std::sync::atomic::AtomicU32;

use memmap2::{MmapMut, MmapRaw};
use rustix::mm::Advice;

/// One private page with MADV_WIPEONFORK: shared by all threads, all zero in a forked child.
///
/// What must not survive a fork lives here: a lock that another thread may hold at that moment,
/// and the mark that says "this process has a segment". Looking at a word costs a load; asking for
/// the process id would cost a system call per event, and pthread_atfork misses a raw clone.
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

    /// The page as words of the size that futexes take.
    #[must_use]
    pub fn words(&self) -> &[AtomicU32] {
        let first = self.0.as_ptr().cast::<AtomicU32>();
        // SAFETY: a mapping starts at a page, so it is aligned; the length is that of the page,
        // which stays mapped while `self` is borrowed; any bit pattern is an AtomicU32. The wipe
        // happens in a child before any of its code runs, so no thread there sees it half done.
        unsafe { std::slice::from_raw_parts(first, self.0.len() / size_of::<AtomicU32>()) }
    }
}

const fn is_send_and_sync<T: Send + Sync>() {}
const _: () = is_send_and_sync::<WipePage>();
