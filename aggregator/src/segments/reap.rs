//! Removing the file of a dead process.

use std::path::Path;

use rustix::fs::{Mode, OFlags};
use tt_shm_os::is_write_locked;

/// Device and inode of a file.
pub(crate) type Inode = (u64, u64);

/// The file at a path, without following a link.
pub(crate) fn inode_at(path: &Path) -> Option<Inode> {
    let stat = rustix::fs::lstat(path).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// Unlinks the file of a dead process if the path still names that very file and nobody holds its lock;
/// returns whether it did. Lacking permission is not an error: the owner will do it.
pub(crate) fn reap(path: &Path, inode: Inode) -> bool {
    use std::os::fd::AsFd;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) else { return false };
    let same = rustix::fs::fstat(&file).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == inode);
    let dead = is_write_locked(file.as_fd()).is_ok_and(|locked| !locked);
    if !same || !dead {
        return false;
    }
    shm_layout::point!(ReapChecked);
    let unlinked = rustix::fs::unlink(path).is_ok();
    shm_layout::point!(ReapUnlinked);
    unlinked
}
