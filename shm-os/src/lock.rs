//! Open-file-description locks: how the kernel tells that a writer is alive.
//!
//! An OFD lock belongs to an open file description, not to a process id, and a mapping keeps its description
//! open. So a writer locks, maps through the same descriptor and closes it; from then on the lock lasts
//! exactly as long as the mapping: it survives a host that closes all its descriptors, and SIGSTOP, but not
//! the end of the process. A classic POSIX lock would vanish with the first `close` of any descriptor of that
//! file.
//!
//! rustix has no OFD locks, hence libc here.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Takes the write lock on the whole file without waiting.
///
/// If it is held elsewhere, the error's kind is [`io::ErrorKind::WouldBlock`]. The descriptor must be open
/// for writing (otherwise EBADF).
pub fn lock_exclusive(fd: BorrowedFd<'_>) -> io::Result<()> {
    fcntl_lock(fd, libc::F_OFD_SETLK, libc::F_WRLCK).map(drop)
}

/// Takes the write lock on the whole file without waiting; returns `false` if it is held elsewhere.
pub fn try_lock_exclusive(fd: BorrowedFd<'_>) -> io::Result<bool> {
    match lock_exclusive(fd) {
        Ok(()) => Ok(true),
        // fcntl(2) allows either errno for "held by another".
        Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Returns whether anybody else holds the write lock; a read-only descriptor is enough.
///
/// Locks taken through this very open file description do not count: use a descriptor of your own.
pub fn is_write_locked(fd: BorrowedFd<'_>) -> io::Result<bool> {
    // Asks whether a read lock could be taken, which only a write lock prevents.
    let answer = fcntl_lock(fd, libc::F_OFD_GETLK, libc::F_RDLCK)?;
    Ok(answer != libc::F_UNLCK)
}

/// One fcntl on the whole file; returns the lock type that the kernel left in the structure.
fn fcntl_lock(fd: BorrowedFd<'_>, command: i32, lock_type: i32) -> io::Result<i32> {
    let mut lock = libc::flock {
        l_type: lock_type as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0, // up to the end, however far the file grows
        l_pid: 0, // must be 0 for OFD commands, else EINVAL
    };
    // SAFETY: the descriptor is open while borrowed, and `lock` is a valid flock for the call.
    let result = unsafe { libc::fcntl(fd.as_raw_fd(), command, &raw mut lock) };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(i32::from(lock.l_type))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::{WriteMap, scratch};

    #[test]
    fn one_of_two_descriptors_gets_it() {
        let first = scratch::file(64);
        let second = scratch::reopen(&first, true);
        let observer = scratch::reopen(&first, false);
        assert!(!is_write_locked(observer.as_fd()).unwrap());

        assert!(try_lock_exclusive(first.as_fd()).unwrap());
        assert!(!try_lock_exclusive(second.as_fd()).unwrap());
        assert_eq!(lock_exclusive(second.as_fd()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(is_write_locked(observer.as_fd()).unwrap());
        assert!(!is_write_locked(first.as_fd()).unwrap(), "own lock");

        drop(first);
        assert!(!is_write_locked(observer.as_fd()).unwrap());
        lock_exclusive(second.as_fd()).unwrap();
    }

    #[test]
    fn locking_needs_a_writable_descriptor() {
        let file = scratch::file(64);
        let read_only = scratch::reopen(&file, false);
        let error = try_lock_exclusive(read_only.as_fd()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    }

    #[test]
    fn a_mapping_keeps_the_lock_after_close() {
        let file = scratch::file(4096);
        let observer = scratch::reopen(&file, false);
        lock_exclusive(file.as_fd()).unwrap();
        let map = WriteMap::new(&file, 4096).unwrap();

        drop(file);
        assert!(is_write_locked(observer.as_fd()).unwrap());
        // Closing other descriptors of the file must not matter, unlike with POSIX locks.
        drop(scratch::reopen(&observer, true));
        assert!(is_write_locked(observer.as_fd()).unwrap());

        drop(map);
        assert!(!is_write_locked(observer.as_fd()).unwrap());
    }
}
