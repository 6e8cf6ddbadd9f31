//! Shared mappings, accessible only as `&[AtomicU64]`; [`ReadMap`] says why.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw, RemapOptions};
use rustix::mm::Advice;
use thiserror::Error;

use crate::guard::Guarded;

/// Why a file could not be mapped.
#[derive(Debug, Error)]
pub enum MapError {
    /// The file ends before the range; touching the rest would raise SIGBUS.
    #[error("cannot map {wanted} bytes: the file has only {actual}; it is truncated or incomplete")]
    TooShort {
        /// The bytes requested.
        wanted: usize,
        /// The bytes in the file.
        actual: u64,
    },
    /// A system call failed.
    #[error("cannot map {wanted} bytes: {cause}; if memory is short, check `ulimit -v`")]
    System {
        /// The bytes requested.
        wanted: usize,
        /// The error of the system call. It is part of the message and therefore not a `source` as well.
        cause: io::Error,
    },
}

impl From<MapError> for io::Error {
    fn from(error: MapError) -> Self {
        let kind = match &error {
            MapError::TooShort { .. } => io::ErrorKind::UnexpectedEof,
            MapError::System { cause, .. } => cause.kind(),
        };
        io::Error::new(kind, error)
    }
}

/// A read-only shared mapping: an observer's view of a file that another process writes.
///
/// **Why atomic words.** Another process may change any byte at any moment. A `&[u8]` or `&T`
/// promises the compiler that this doesn't happen, so merely holding one is undefined behaviour.
/// `&AtomicU64` promises nothing, is valid for every bit pattern, and reads in place: no copy.
///
/// **Why only relaxed loads.** Rust permits atomic accesses to read-only memory only as relaxed
/// loads of up to a word ([`std::sync::atomic`], "Atomic accesses to read-only memory"); anything
/// else may be compiled to something that writes. Order loads with `fence(Acquire)`. A store faults.
///
/// **Read only what is published.** Segments are sparse, and touching a hole, even through a
/// read-only mapping, allocates a page of /dev/shm. An observer that walked a whole segment would
/// make its owner pay for the maximal size.
///
/// **Truncation.** If the file is truncated later, touching the lost part raises SIGBUS. A program that
/// called [`guard_truncation`](crate::guard_truncation) reads zeros instead, and [`is_lost`](Self::is_lost)
/// returns true.
#[derive(Debug)]
pub struct ReadMap {
    /// Declared before `map`: the entry in the list must be dropped before the mapping.
    guarded: Guarded,
    map: MmapRaw,
}

impl ReadMap {
    /// Maps the first `len` bytes of `fd`, which may be closed afterwards.
    pub fn open(fd: impl AsFd, len: usize) -> Result<Self, MapError> {
        let fd = fd.as_fd();
        check_length(fd, len)?;
        let map = map_sparse(len, |options| options.map_raw_read_only(fd.as_raw_fd()))?;
        Ok(Self { guarded: Guarded::new(map.as_ptr(), map.len()), map })
    }

    /// Whether the file was truncated and the mapping replaced by zeros.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.guarded.is_lost()
    }

    /// The mapping as whole words (a trailing part of a word is left out).
    ///
    /// Make only relaxed loads, and only of published ranges: see [`ReadMap`].
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        words_of(&self.map)
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether nothing is mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A writable shared mapping: the owner's view of its own file.
///
/// It keeps the file's open description, and so its lock, until it is dropped.
#[derive(Debug)]
pub struct WriteMap(MmapRaw);

impl WriteMap {
    /// Maps the first `len` bytes of `file`, which may be closed afterwards.
    ///
    /// Nothing is allocated yet: [`populate`](Self::populate) a range before its first store.
    pub fn new(file: &File, len: usize) -> Result<Self, MapError> {
        check_length(file.as_fd(), len)?;
        map_sparse(len, |options| options.map_raw(file)).map(Self)
    }

    /// The mapping as whole words (a trailing part of a word is left out).
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        words_of(&self.0)
    }

    /// The mapping's words with a lifetime that the caller is responsible for, so that an owner can keep
    /// slices of its own mapping beside it instead of carving them again for each event.
    ///
    /// # Safety
    ///
    /// The slice must not be used after this map is dropped.
    #[must_use]
    pub unsafe fn words_unbound<'a>(&self) -> &'a [AtomicU64] {
        let words = self.words();
        // SAFETY: pointer and length are those of a valid slice; the caller bounds its use.
        unsafe { std::slice::from_raw_parts(words.as_ptr(), words.len()) }
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps the mapping out of forked children.
    ///
    /// A child that inherited it would keep the lock after its parent's death, and could write what only its
    /// parent may. In the child the addresses are free, and may come to hold something else. So the child has
    /// to detect the fork first (see [`ForkMutex`](crate::ForkMutex)), must not touch the words, and must
    /// [`forget`](std::mem::forget) the map: dropping it would unmap whatever is there.
    pub fn dont_fork(&self) -> io::Result<()> {
        advise(self.0.as_mut_ptr(), self.len(), 0, self.len(), Advice::LinuxDontFork)
    }

    /// Allocates and maps the pages of a range, so that later stores neither fault nor fail.
    ///
    /// The range is rounded outward to whole pages. Content is kept. Returns an error instead of a SIGBUS at
    /// the first store: EFAULT or ENOMEM if /dev/shm (or the memory cgroup) is full, EINVAL if the kernel is
    /// older than 5.14, [`io::ErrorKind::InvalidInput`] without an errno if the range is not within the map.
    pub fn populate(&self, offset: usize, len: usize) -> io::Result<()> {
        advise(self.0.as_mut_ptr(), self.len(), offset, len, Advice::LinuxPopulateWrite)
    }
}

/// Maps `len` bytes of a sparse file and populates none of them, whatever the host has configured.
///
/// In a process that called `mlockall(MCL_FUTURE)` every new mapping is locked, which populates all of it:
/// holes of the file become memory, 133 MiB for a segment that needs 1.5 MiB. So one page is mapped and
/// unlocked, and then grown: the added pages inherit its flags. The mapping is excluded from core dumps: it
/// is large, and says nothing about the crash.
fn map_sparse(
    len: usize,
    map: impl FnOnce(&MmapOptions) -> io::Result<MmapRaw>,
) -> Result<MmapRaw, MapError> {
    let failed = |cause| MapError::System { wanted: len, cause };
    let first = len.min(rustix::param::page_size());
    let mut mapped = map(MmapOptions::new().len(first)).map_err(failed)?;
    mapped.unlock().map_err(failed)?;
    if len > first {
        // SAFETY: nothing has a reference to the mapping yet, and the file was found to be that long.
        unsafe { mapped.remap(len, RemapOptions::new().may_move(true)) }.map_err(failed)?;
    }
    // On failure dumps are larger.
    let _ = advise(mapped.as_mut_ptr(), len, 0, len, Advice::LinuxDontDump);
    Ok(mapped)
}

/// `madvise` on the pages that hold `offset..offset + len` of a mapping of `total` bytes.
pub(crate) fn advise(
    first: *mut u8,
    total: usize,
    offset: usize,
    len: usize,
    advice: Advice,
) -> io::Result<()> {
    let Some(end) = offset.checked_add(len).filter(|&end| end <= total) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("cannot advise on {len} bytes at {offset}: the map has {total} bytes"),
        ));
    };
    if len == 0 {
        return Ok(());
    }
    let start = offset - offset % rustix::param::page_size();
    // SAFETY: the range lies within the caller's own mapping, and none of the advices given changes its content; the
    // kernel rounds the length up to the page that the mapping owns anyway.
    unsafe { rustix::mm::madvise(first.wrapping_add(start).cast(), end - start, advice) }.map_err(Into::into)
}

/// Returns an error for a mapping longer than its file: touching the excess would raise SIGBUS.
fn check_length(fd: BorrowedFd<'_>, wanted: usize) -> Result<(), MapError> {
    let stat = rustix::fs::fstat(fd).map_err(|errno| MapError::System { wanted, cause: errno.into() })?;
    let actual = u64::try_from(stat.st_size).unwrap_or(0);
    if actual < wanted as u64 {
        return Err(MapError::TooShort { wanted, actual });
    }
    Ok(())
}

fn words_of(map: &MmapRaw) -> &[AtomicU64] {
    let first = map.as_ptr().cast::<AtomicU64>();
    // SAFETY: a mapping starts at a page, so it is aligned; whole words of it lie within; it stays
    // mapped while `map` is borrowed; and an AtomicU64 is valid for every bit pattern that others
    // may store at any time.
    unsafe { std::slice::from_raw_parts(first, map.len() / size_of::<AtomicU64>()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::scratch;

    const fn is_send_and_sync<T: Send + Sync>() {}
    const _: () = is_send_and_sync::<ReadMap>();
    const _: () = is_send_and_sync::<WriteMap>();

    #[test]
    fn stores_are_seen_by_readers() {
        let file = scratch::file(4096);
        let writer = WriteMap::new(&file, 4096).unwrap();
        let reader = ReadMap::open(scratch::reopen(&file, false), 4096).unwrap();
        assert_eq!((reader.len(), reader.words().len()), (4096, 512));
        writer.words()[511].store(u64::MAX, Relaxed);
        assert_eq!(reader.words()[511].load(Relaxed), u64::MAX);
    }

    #[test]
    fn words_are_whole() {
        let file = scratch::file(4096);
        for (len, words) in [(0, 0), (7, 0), (8, 1), (4095, 511)] {
            let map = ReadMap::open(&file, len).unwrap();
            assert_eq!((map.len(), map.words().len()), (len, words));
            assert_eq!(map.is_empty(), len == 0);
        }
    }

    #[test]
    fn a_short_file_is_refused() {
        let file = scratch::file(100);
        let error = ReadMap::open(&file, 101).unwrap_err();
        assert!(matches!(error, MapError::TooShort { wanted: 101, actual: 100 }));
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::UnexpectedEof);
        assert!(WriteMap::new(&file, usize::MAX).is_err());
    }

    #[test]
    fn populate_allocates_whole_pages_and_no_more() {
        let page = rustix::param::page_size();
        let file = scratch::file(64 * page as u64);
        let map = WriteMap::new(&file, 64 * page).unwrap();
        map.dont_fork().unwrap();
        assert_eq!(file.metadata().unwrap().blocks(), 0, "sparse");

        map.words()[page / 8].store(7, Relaxed);
        // From the last byte of page 0 to the first of page 2.
        map.populate(page - 1, page + 2).unwrap();
        map.populate(0, 0).unwrap();
        assert_eq!(file.metadata().unwrap().blocks() * 512, 3 * page as u64);
        assert_eq!(map.words()[page / 8].load(Relaxed), 7, "content is kept");
    }

    #[test]
    fn populate_fails_where_a_store_would_raise_sigbus() {
        let page = rustix::param::page_size();
        let file = scratch::file(2 * page as u64);
        let map = WriteMap::new(&file, 2 * page).unwrap();
        file.set_len(page as u64).unwrap();
        let error = map.populate(0, 2 * page).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
    }

    #[test]
    fn populate_stays_within_the_map() {
        let file = scratch::file(4096);
        let map = WriteMap::new(&file, 4096).unwrap();
        for (offset, len) in [(0, 4097), (4096, 1), (usize::MAX, 2), (1, usize::MAX)] {
            let error = map.populate(offset, len).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }
}
