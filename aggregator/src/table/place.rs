//! Names in /dev/shm that the aggregator needs, and what somebody else may have put there.

use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType};
use rustix::io::Errno;
use tt_shm_os::{path_of, random_u64};

use crate::error::PublishError;

/// A file that occupies a name needed for a regular file of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Squatter {
    pub(crate) kind: &'static str,
    pub(crate) owner: u32,
}

/// The file at a path, unless there is none or it is a regular file of `uid`.
pub(crate) fn squatter(path: &Path, uid: u32) -> Option<Squatter> {
    let stat = rustix::fs::lstat(path).ok()?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let ours = kind == FileType::RegularFile && stat.st_uid == uid;
    (!ours).then_some(Squatter { kind: describe(kind), owner: stat.st_uid })
}

/// Ensures that a path is free or a regular file of `uid`. What is in the way is removed where the sticky bit
/// of /dev/shm permits it: root may remove anything, others what they own.
///
/// A directory that is not empty is renamed, not emptied: its owner may need the content, and walking through
/// a stranger's directories as root is an unnecessary risk.
pub(crate) fn clear(path: &Path, uid: u32) -> Result<(), PublishError> {
    let Some(found) = squatter(path, uid) else { return Ok(()) };
    match remove(path, found) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => {
            let Squatter { kind, owner } = found;
            Err(PublishError::Taken { path: path.to_owned(), kind, owner, uid, cause: errno.into() })
        }
    }
}

fn remove(path: &Path, found: Squatter) -> Result<(), Errno> {
    if found.kind != describe(FileType::Directory) {
        return rustix::fs::unlink(path);
    }
    match rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::BUSY) => rustix::fs::rename(path, aside(path)?),
        done => done,
    }
}

/// A name to move a directory to, out of the way.
fn aside(path: &Path) -> Result<std::path::PathBuf, Errno> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let random = random_u64().map_err(|_| Errno::IO)?;
    Ok(path_of(&format!("{name}-{random:016x}.aside")))
}

fn describe(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink => "a symbolic link",
        FileType::Socket => "a socket",
        _ => "something",
    }
}
