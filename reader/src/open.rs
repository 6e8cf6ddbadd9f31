//! Opening a file that another user made: what must hold before any of it is mapped.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use tt_shm_os::{ReadMap, ShmFolder};

use crate::backed::{Backing, first_hole};
use crate::error::FileError;

/// The longest file that is mapped. The largest segment that the layout allows has a little over 2 GiB.
pub const MAX_FILE_LEN: u64 = 4 << 30;

/// A file that passed every check that does not need its content.
pub(crate) struct Opened {
    pub(crate) backing: Backing,
    pub(crate) map: ReadMap,
    pub(crate) len: u64,
    pub(crate) uid: u32,
    pub(crate) inode: (u64, u64),
}

/// Opens and maps a file of at least `min` bytes that are backed by memory. Only facts about the open
/// descriptor are trusted: a path may name another file a moment later.
pub(crate) fn open(path: &Path, min: u64) -> Result<Opened, FileError> {
    // NOFOLLOW: a link could lead anywhere. NONBLOCK: opening a FIFO would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let refused = |errno: Errno| FileError::Open { path: path.to_owned(), cause: errno.into() };
    // Checked before it is opened: opening a device may have an effect. The checks that count are repeated on
    // the descriptor.
    require_regular(path, &rustix::fs::lstat(path).map_err(refused)?)?;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::LOOP => FileError::NotRegular { path: path.to_owned(), kind: "a symbolic link" },
        errno => refused(errno),
    })?;
    map(path, fd, min)
}

fn map(path: &Path, fd: OwnedFd, min: u64) -> Result<Opened, FileError> {
    let refused = |errno: Errno| FileError::Open { path: path.to_owned(), cause: errno.into() };
    let stat = rustix::fs::fstat(&fd).map_err(refused)?;
    let len = check(path, &stat, min)?;
    if first_hole(fd.as_fd(), 0) < min {
        return Err(FileError::NotBacked { path: path.to_owned(), what: "header words" });
    }
    let map =
        ReadMap::open(&fd, len as usize).map_err(|cause| FileError::Map { path: path.to_owned(), cause })?;
    Ok(Opened { backing: Backing::new(fd, len), map, len, uid: stat.st_uid, inode: inode(&stat) })
}

/// Opens and maps the file that a procfs link leads to. The file is checked before it is opened, through a
/// descriptor that holds it: what is mapped may be a device.
pub(crate) fn open_linked(path: &Path, min: u64) -> Result<Opened, FileError> {
    let refused = |errno: Errno| FileError::Open { path: path.to_owned(), cause: errno.into() };
    let held = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(refused)?;
    map(path, open_held(path, &held)?, min)
}

/// Opens and maps a file in the /dev/shm of another process, checked like that of [`open_linked`].
pub(crate) fn open_in(folder: &ShmFolder, name: &str, min: u64) -> Result<Opened, FileError> {
    let path = folder.path_of(name);
    let held = folder.hold(name).map_err(|cause| FileError::Open { path: path.clone(), cause })?;
    map(&path, open_held(&path, &held)?, min)
}

/// Maps the file of a descriptor that the caller was given, and returns what that file is called here.
pub(crate) fn open_fd(given: OwnedFd, min: u64) -> Result<(PathBuf, Opened), FileError> {
    let path = path_of_fd(&given);
    let refused = |errno: Errno| FileError::Open { path: path.clone(), cause: errno.into() };
    let stat = rustix::fs::fstat(&given).map_err(refused)?;
    require_regular(&path, &stat)?;
    // Opened anew, if that is possible: who shares the description that a lock belongs to does not see that
    // lock, and looking for holes moves the offset of all who share it.
    let own = open_held(&path, &given).ok();
    let own = own.filter(|fd| rustix::fs::fstat(fd).is_ok_and(|own| inode(&own) == inode(&stat)));
    let opened = map(&path, own.unwrap_or(given), min)?;
    Ok((path, opened))
}

/// The path of an open file, as the system knows it. For messages, and to compare names: another file may be
/// there by now.
fn path_of_fd(fd: &OwnedFd) -> PathBuf {
    let number = std::os::fd::AsRawFd::as_raw_fd(fd);
    let Ok(path) = std::fs::read_link(format!("/proc/self/fd/{number}")) else {
        return PathBuf::from(format!("descriptor {number}"));
    };
    let is_unlinked = rustix::fs::fstat(fd).is_ok_and(|stat| stat.st_nlink == 0);
    match path.to_str().and_then(|path| path.strip_suffix(" (deleted)")) {
        Some(before) if is_unlinked => PathBuf::from(before),
        _ => path,
    }
}

/// Opens the file that a descriptor holds, if it is a regular one.
fn open_held(path: &Path, held: &OwnedFd) -> Result<OwnedFd, FileError> {
    let refused = |errno: Errno| FileError::Open { path: path.to_owned(), cause: errno.into() };
    require_regular(path, &rustix::fs::fstat(held).map_err(refused)?)?;
    let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(held));
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(link, flags, Mode::empty()).map_err(refused)
}

/// Whether a process holds the lock of a regular file in the /dev/shm of another process, or may.
pub fn is_held_in(folder: &ShmFolder, name: &str) -> bool {
    let Ok(held) = folder.hold(name) else { return false };
    match open_held(&folder.path_of(name), &held) {
        Ok(file) => tt_shm_os::is_write_locked(file.as_fd()).unwrap_or(true),
        Err(error) => !matches!(error, FileError::NotRegular { .. }),
    }
}

/// Whether a process holds the lock of a regular file, or may.
pub fn is_held(path: &Path) -> bool {
    let is_regular = path.symlink_metadata().is_ok_and(|stat| stat.is_file());
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let is_locked = || match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => tt_shm_os::is_write_locked(file.as_fd()).unwrap_or(true),
        Err(errno) => errno != Errno::NOENT,
    };
    is_regular && is_locked()
}

/// Identifies a file: equal for two descriptors or paths of one file.
pub(crate) fn inode(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

fn require_regular(path: &Path, stat: &Stat) -> Result<(), FileError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        kind => Err(FileError::NotRegular { path: path.to_owned(), kind: describe(kind) }),
    }
}

fn check(path: &Path, stat: &Stat, min: u64) -> Result<u64, FileError> {
    require_regular(path, stat)?;
    let path = || path.to_owned();
    // Having no link is fine: it was unlinked after it was opened, and its owner may well be alive.
    #[allow(clippy::useless_conversion, reason = "u32 on aarch64, u64 on x86_64")]
    let links = u64::from(stat.st_nlink);
    if links > 1 {
        return Err(FileError::Links { path: path(), links });
    }
    let mode = stat.st_mode & 0o7777;
    if mode & 0o022 != 0 {
        return Err(FileError::Writable { path: path(), mode });
    }
    let len = u64::try_from(stat.st_size).unwrap_or(0);
    if !(min..=MAX_FILE_LEN).contains(&len) {
        return Err(FileError::Size { path: path(), len, min, max: MAX_FILE_LEN });
    }
    Ok(len)
}

fn describe(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink => "a symbolic link",
        FileType::Socket => "a socket",
        _ => "something else",
    }
}
