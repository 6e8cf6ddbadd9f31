//! How a region's file is opened and read.
//!
//! It is never mapped: a file that is truncated under a mapping raises SIGBUS, and a process that starts finds it empty
//! first. It is never written, locked or removed either: it belongs to tt-metal.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::absence::{Absence, Reading, Refusal};
use crate::layout::{self, Image, LEN, u32_at, u64_at};

/// A file beyond this is no region. tt-metal's have 8576 bytes; a larger one of a known version reads the same.
const MAX_LEN: u64 = 64 * 1024;
/// Readings until two in succession are equal. One takes about a microsecond, a record of tt-metal half of one.
const MAX_READINGS: usize = 8;

/// A file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileId {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) inode: u64,
}

impl FileId {
    fn of(stat: &Stat) -> FileId {
        let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
        FileId { major, minor, inode: stat.st_ino }
    }
}

/// What the file system tells of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) id: FileId,
    pub(crate) owner: u32,
    pub(crate) mode: u32,
    pub(crate) len: u64,
}

impl Facts {
    fn of(stat: &Stat) -> Facts {
        let (owner, mode) = (stat.st_uid, stat.st_mode);
        Facts { id: FileId::of(stat), owner, mode, len: u64::try_from(stat.st_size).unwrap_or_default() }
    }

    fn is_regular(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::RegularFile
    }
}

/// An open region.
#[derive(Debug)]
pub(crate) struct RegionFile {
    id: FileId,
    file: File,
}

/// Bytes of a region that are those of one moment, or not.
pub(crate) struct Copied {
    pub(crate) image: Box<Image>,
    pub(crate) is_steady: bool,
}

/// What stands at a path, which may be a symbolic link.
pub(crate) fn look(path: &Path) -> Reading<Facts> {
    let stat = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
    stat.map(|stat| Facts::of(&stat)).map_err(|error| Absence::of(error, path, 0))
}

impl RegionFile {
    /// Opens it. A file that is no region is not opened at all, as far as that can be known before: opening a device
    /// may do something.
    pub(crate) fn open(path: &Path, facts: &Facts) -> Reading<RegionFile> {
        if !facts.is_regular() {
            return Err(Absence::refused(path, Refusal::NotRegular));
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let failed = |error: Errno| Absence::of(error, path, facts.owner);
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
        let opened = Facts::of(&rustix::fs::fstat(&file).map_err(failed)?);
        match opened.is_regular() {
            true => Ok(RegionFile { id: opened.id, file: file.into() }),
            false => Err(Absence::refused(path, Refusal::NotRegular)),
        }
    }

    /// Whether it is the file that the path leads to now.
    pub(crate) fn is(&self, facts: &Facts) -> bool {
        self.id == facts.id
    }

    pub(crate) fn id(&self) -> FileId {
        self.id
    }

    /// Reads it until two readings in succession are equal, a few times at most.
    pub(crate) fn read(&self, path: &Path, facts: &Facts) -> Reading<Copied> {
        if facts.len > MAX_LEN {
            return Err(Absence::refused(path, Refusal::TooLarge(facts.len)));
        }
        let mut image = self.copy(path)?;
        check(path, &image)?;
        for _ in 1..MAX_READINGS {
            let again = self.copy(path)?;
            check(path, &again)?;
            if again == image {
                return Ok(Copied { image, is_steady: true });
            }
            image = again;
        }
        Ok(Copied { image, is_steady: false })
    }

    fn copy(&self, path: &Path) -> Reading<Box<Image>> {
        let mut image = Box::new([0; LEN]);
        let mut filled = 0;
        while filled < LEN {
            match self.file.read_at(&mut image[filled..], filled as u64) {
                Ok(0) => return Err(Absence::Starting { path: path.to_owned(), len: filled as u64 }),
                Ok(count) => filled += count,
                Err(error) => {
                    return Err(Absence::of(Errno::from_io_error(&error).unwrap_or(Errno::IO), path, 0));
                }
            }
        }
        Ok(image)
    }
}

/// Whether the bytes are those of a complete region of a known version.
///
/// tt-metal creates the file, then sets its length, then fills it in: version and time are zero before. From version 4
/// on it also says when it is complete.
fn check(path: &Path, image: &Image) -> Reading<()> {
    let version = u32_at(image, layout::VERSION);
    let is_complete = match version {
        0 => false,
        version if !layout::VERSIONS.contains(&version) => {
            return Err(Absence::refused(path, Refusal::Version(version)));
        }
        version if version >= layout::WITH_STATES => u32_at(image, layout::STATE) == layout::READY,
        _ => u64_at(image, layout::UPDATED) != 0,
    };
    match is_complete {
        true => Ok(()),
        false => Err(Absence::Starting { path: path.to_owned(), len: LEN as u64 }),
    }
}
