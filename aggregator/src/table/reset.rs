//! Requests for a new window of peaks: a file that appears, and a count that grows.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags};
use tt_shm_os::{Namespace, path_of, random_u64, table_file_name, table_lock_file_name};
use tt_shm_reader::Table;

use crate::error::ResetError;

/// The time between two checks whether the request was carried out.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// The prefix of the names of requests to the aggregator of `uid`. The rest is random: anybody could occupy a
/// predictable name, and then nobody could make a request.
pub(crate) fn request_prefix(namespace: &Namespace, uid: u32) -> String {
    let lock = table_lock_file_name(namespace, uid);
    format!("{}.reset-", lock.strip_suffix(".lock").unwrap_or(&lock))
}

/// Removes a request; returns whether it was made by somebody who may: root, or the aggregator's user.
pub(crate) fn take_request(file_name: &str, uid: u32) -> bool {
    let path = path_of(file_name);
    let Ok(stat) = rustix::fs::lstat(&path) else { return false };
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let may_ask = regular && (stat.st_uid == 0 || stat.st_uid == uid);
    // Only a file that can be removed counts, or one file would open a window every second. In a folder with
    // the sticky bit, that is our own and, for root, everybody's; a directory stays and requests nothing.
    let taken = rustix::fs::unlink(&path).is_ok();
    shm_layout::point!(ResetTaken);
    taken && may_ask
}

/// Requests a new window of peaks from the aggregator of `owner`, and waits until it is open.
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
    let path = create(namespace, owner)?;
    let begun = Instant::now();
    while table.snapshot().windows == before {
        if begun.elapsed() > timeout {
            // A request that was not taken must not surprise a later aggregator.
            let _ = rustix::fs::unlink(&path);
            return Err(ResetError::Timeout { waited_ms: begun.elapsed().as_millis() });
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

/// Creates a request under an unpredictable name.
fn create(namespace: &Namespace, owner: u32) -> Result<PathBuf, ResetError> {
    let prefix = request_prefix(namespace, owner);
    let refused = |path: &PathBuf, cause| ResetError::Request { path: path.clone(), cause };
    let random = random_u64().map_err(|cause| refused(&path_of(&prefix), cause))?;
    let path = path_of(&format!("{prefix}{random:016x}"));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(&path, flags, Mode::from_raw_mode(0o600)) {
        Ok(_) => Ok(path),
        Err(errno) => Err(refused(&path, errno.into())),
    }
}
