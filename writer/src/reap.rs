//! Removes what dead processes of the same user left behind.

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Mode, OFlags};
use shm_layout::{MAJOR, SEGMENT_MAGIC, SegmentHeader};
use std::path::Path;
use tt_shm_os::{Namespace, SHM_DIR};

/// Removes the segments of a namespace whose process is dead, if they are this user's and no aggregator
/// removes them.
pub(crate) fn reap_own(namespace: &Namespace) {
    if crate::followed::is_followed(namespace) {
        // The aggregator removes them itself, once it has seen what they held.
        return;
    }
    let Ok(directory) = std::fs::read_dir(SHM_DIR) else { return };
    for file in directory.flatten() {
        let name = file.file_name();
        let segment = name.to_str().and_then(tt_shm_os::parse_segment_name);
        if segment.is_some_and(|segment| segment.namespace == *namespace) {
            // What cannot be removed now is left to the next tracker or to the aggregator.
            let _ = reap(&file.path());
        }
    }
}

fn reap(path: &Path) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let opened = rustix::fs::fstat(&file)?;
    let own = opened.st_uid == rustix::process::geteuid().as_raw();
    // A name is visible only once its lock is held, so a segment without a lock has lost its process.
    let alive = tt_shm_os::is_write_locked(file.as_fd()).unwrap_or(true);
    let named = rustix::fs::lstat(path)?;
    if own
        && !alive
        && left_to_run(file.as_fd()).is_none()
        && (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)
    {
        shm_layout::point!(TrackerReapChecked);
        rustix::fs::unlink(path)?;
        shm_layout::point!(TrackerReapUnlinked);
    }
    Ok(())
}

/// The header of a segment that its run is to remove; see [`SegmentHeader::is_left_to_run`].
fn left_to_run(file: BorrowedFd<'_>) -> Option<SegmentHeader> {
    header_of(file).filter(|header| header.is_left_to_run(tt_shm_os::monotonic_ns()))
}

/// The header of a segment of this version.
pub(crate) fn header_of(file: BorrowedFd<'_>) -> Option<SegmentHeader> {
    let mut header: SegmentHeader = bytemuck::zeroed();
    rustix::io::pread(file, bytemuck::bytes_of_mut(&mut header), 0).ok()?;
    (header.magic == SEGMENT_MAGIC && header.major == MAJOR).then_some(header)
}
