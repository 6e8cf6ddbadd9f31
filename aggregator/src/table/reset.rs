//! Asking an aggregator for a new window of peaks: a file that appears, and a count that grows.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use tt_shm_os::{Namespace, path_of, table_file_name, table_lock_file_name};
use tt_shm_reader::Table;

use crate::error::ResetError;

/// Between two looks whether the request was carried out.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// The name of the file by which a new window is asked for.
pub(crate) fn request_file_name(namespace: &Namespace, uid: u32) -> String {
    let lock = table_lock_file_name(namespace, uid);
    format!("{}.reset", lock.strip_suffix(".lock").unwrap_or(&lock))
}

fn request_path(namespace: &Namespace, uid: u32) -> PathBuf {
    path_of(&request_file_name(namespace, uid))
}

/// Removes a request; says whether there was one by somebody who may ask: root, or the aggregator's user.
pub(crate) fn take_request(namespace: &Namespace, uid: u32) -> bool {
    let path = request_path(namespace, uid);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(&path, flags, Mode::empty()) else { return false };
    let Ok(stat) = rustix::fs::fstat(&file) else { return false };
    let may_ask = stat.st_uid == 0 || stat.st_uid == uid;
    // Only what can be removed counts, or one file would open a window every second. In a folder with the
    // sticky bit, that is ours and, for root, everybody's.
    let same = crate::segments::reap::inode_at(&path) == Some((stat.st_dev, stat.st_ino));
    let taken = same && rustix::fs::unlink(&path).is_ok();
    shm_layout::point!(ResetTaken);
    taken && may_ask
}

/// Asks the aggregator of `owner` to open a new window of peaks, and waits until it has.
pub fn request_reset(namespace: &Namespace, owner: u32, timeout: Duration) -> Result<(), ResetError> {
    let uid = rustix::process::geteuid().as_raw();
    if uid != 0 && uid != owner {
        return Err(ResetError::NotPermitted { uid, owner });
    }
    let table = Table::open_path(&path_of(&table_file_name(namespace, owner)), owner)?;
    if !table.freshness().is_fresh() {
        return Err(ResetError::Stale { path: table.path().to_owned() });
    }
    let before = table.snapshot().windows;
    let path = request_path(namespace, owner);
    create(&path)?;
    let begun = Instant::now();
    while table.snapshot().windows == before {
        if begun.elapsed() > timeout {
            // A request that nobody takes must not surprise a later aggregator.
            let _ = rustix::fs::unlink(&path);
            return Err(ResetError::Timeout { waited_ms: begun.elapsed().as_millis() });
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

fn create(path: &std::path::Path) -> Result<(), ResetError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::from_raw_mode(0o600)) {
        // Somebody has asked already; the same window will do for both.
        Ok(_) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(ResetError::Request { path: path.to_owned(), cause: errno.into() }),
    }
}
