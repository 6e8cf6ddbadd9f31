//! Errors of reading. Every error says which file, what is wrong and what to do.

use std::io;
use std::path::{Path, PathBuf};

use shm_layout::{Implausible, LayoutError};
use thiserror::Error;
use tt_shm_os::{MapError, Namespace};

use crate::backed::Loss;
use crate::codes;

/// Why a file is not mapped, regardless of its content.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// It could not be opened.
    #[error("cannot open {}: {cause}{}", path.display(), hint(cause))]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the system call. It is part of the message and therefore not a `source` as well.
        cause: io::Error,
    },
    /// It is a symbolic link, FIFO, directory or device.
    #[error("{} is {kind}, not a regular file; it does not belong to the monitor: remove it", path.display())]
    NotRegular {
        /// The file.
        path: PathBuf,
        /// The kind of file.
        kind: &'static str,
    },
    /// It has a second hard link, so it may also be presented under another name.
    #[error("{} has {links} hard links instead of one; remove the others", path.display())]
    Links {
        /// The file.
        path: PathBuf,
        /// The number of hard links.
        links: u64,
    },
    /// Users other than its owner may write to it.
    #[error("{} can be written by others than its owner (mode {mode:03o}); remove it or chmod go-w", path.display())]
    Writable {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Its length is not possible for a segment or table.
    #[error("{} has {len} bytes, expected {min} to {max}; it is incomplete or foreign: remove it", path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// Its length.
        len: u64,
        /// The shortest possible length.
        min: u64,
        /// The longest length that is mapped.
        max: u64,
    },
    /// It could not be mapped, or it was truncated meanwhile.
    #[error("{}: {cause}", path.display())]
    Map {
        /// The file.
        path: PathBuf,
        /// The error of the mapping.
        cause: MapError,
    },
    /// Something that it publishes is a hole in the file: reading it would allocate memory that its owner did
    /// not.
    #[error(
        "{}: published {what} are not backed by memory; the monitor never leaves such a file: remove it",
        path.display()
    )]
    NotBacked {
        /// The file.
        path: PathBuf,
        /// What is published.
        what: &'static str,
    },
}

impl FileError {
    /// Checks a file that had `len` bytes when it was opened.
    pub(crate) fn cut_short(path: &Path, len: u64) -> FileError {
        let cause = MapError::TooShort { wanted: len as usize, actual: 0 };
        FileError::Map { path: path.to_owned(), cause }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            FileError::Open { path, .. }
            | FileError::NotRegular { path, .. }
            | FileError::Links { path, .. }
            | FileError::Writable { path, .. }
            | FileError::Size { path, .. }
            | FileError::Map { path, .. }
            | FileError::NotBacked { path, .. } => path,
        }
    }

    /// The stable number of this error: see [`codes`].
    pub fn code(&self) -> u32 {
        match self {
            FileError::Open { cause, .. } => match cause.kind() {
                io::ErrorKind::NotFound => codes::MISSING,
                io::ErrorKind::PermissionDenied => codes::NOT_PERMITTED,
                _ => codes::SYSTEM,
            },
            FileError::NotRegular { .. }
            | FileError::Links { .. }
            | FileError::Writable { .. }
            | FileError::Size { .. }
            | FileError::NotBacked { .. } => codes::REFUSED,
            FileError::Map { cause: MapError::TooShort { .. }, .. } => codes::BROKEN,
            FileError::Map { .. } => codes::SYSTEM,
        }
    }

    /// The error number of the system call that failed, if one did.
    pub fn errno(&self) -> Option<i32> {
        match self {
            FileError::Open { cause, .. } | FileError::Map { cause: MapError::System { cause, .. }, .. } => {
                cause.raw_os_error()
            }
            _ => None,
        }
    }
}

/// The number of a refused header: without the mark of a segment or table, it is neither.
fn layout_code(cause: &LayoutError) -> u32 {
    if matches!(cause, LayoutError::Magic { .. }) { codes::REFUSED } else { codes::LAYOUT }
}

fn hint(cause: &io::Error) -> &'static str {
    if cause.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) {
        return "; let this process open more files (ulimit -n)";
    }
    match cause.kind() {
        io::ErrorKind::PermissionDenied => "; run as its owner or as root",
        io::ErrorKind::NotFound => "; its process may have ended: list the segments again",
        _ => "",
    }
}

/// Why a segment is not read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file was refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// Its header is not that of a segment that this version can read.
    #[error("{}: {cause}", path.display())]
    Layout {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: LayoutError,
    },
    /// Its name and its header contradict each other.
    #[error(
        "{} is the name of process {name_pid}, segment {name_identity:016x}, but its header says process \
         {pid}, segment {identity:016x}; it was renamed or forged: remove it", path.display()
    )]
    Identity {
        /// The file.
        path: PathBuf,
        /// The process id in the name.
        name_pid: u32,
        /// The identity in the name.
        name_identity: u64,
        /// The process id in the header.
        pid: u64,
        /// The identity in the header.
        identity: u64,
    },
    /// A header field has a value that the layout does not know.
    #[error("{}: header says {what} = {found}, which this layout does not have; update this tool", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The name of the field.
        what: &'static str,
        /// The value found.
        found: u64,
    },
}

impl OpenError {
    /// Whether the file does not exist: usual for a process that ended between listing and opening.
    pub fn is_not_found(&self) -> bool {
        self.open_kind() == Some(io::ErrorKind::NotFound)
    }

    /// Whether the caller may not read it: usual for another user's segment.
    pub fn is_permission_denied(&self) -> bool {
        self.open_kind() == Some(io::ErrorKind::PermissionDenied)
    }

    /// Whether the refused file may belong to a process that is alive. A link, a FIFO or a folder is not a
    /// segment; a file that cannot be opened may be one.
    pub fn may_live(&self, path: &Path) -> bool {
        match self {
            OpenError::File(FileError::NotRegular { .. }) => false,
            OpenError::File(FileError::Open { .. }) => true,
            _ => crate::open::is_held(path),
        }
    }

    /// The stable number of this error: see [`codes`].
    pub fn code(&self) -> u32 {
        match self {
            OpenError::File(error) => error.code(),
            OpenError::Layout { cause, .. } => layout_code(cause),
            OpenError::Identity { .. } => codes::REFUSED,
            OpenError::Field { .. } => codes::LAYOUT,
        }
    }

    /// The error number of the system call that failed, if one did.
    pub fn errno(&self) -> Option<i32> {
        match self {
            OpenError::File(error) => error.errno(),
            _ => None,
        }
    }

    fn open_kind(&self) -> Option<io::ErrorKind> {
        match self {
            OpenError::File(FileError::Open { cause, .. }) => Some(cause.kind()),
            _ => None,
        }
    }
}

/// Why the counters of a segment could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The process was faster than the reader in every attempt.
    #[error(
        "{file}: the process was too busy to be read in {attempts} attempts ({cause}); try again, or give \
         it a larger ring (TT_SHM_RING_SLOTS)"
    )]
    Busy {
        /// The segment's file name.
        file: String,
        /// The number of attempts made.
        attempts: usize,
        /// The cause of the last failure.
        cause: String,
    },
    /// The segment holds figures that no honest process can have.
    #[error("{file}: impossible counters on device {device}; the segment is broken, do not use its figures")]
    ImplausibleCounters {
        /// The segment's file name.
        file: String,
        /// The index of the device.
        device: usize,
    },
    /// The segment holds an event that is impossible in its state.
    #[error("{file}: {cause}; the segment is broken, do not use its figures")]
    ImplausibleEvent {
        /// The segment's file name.
        file: String,
        /// The event.
        cause: Implausible,
    },
    /// The segment holds an event of a device that it does not list.
    #[error(
        "{file}: an event of a device beyond the {listed} listed; the segment is broken, do not use its figures"
    )]
    UnlistedDevice {
        /// The segment's file name.
        file: String,
        /// The number of devices listed.
        listed: usize,
    },
    /// The segment can no longer be read.
    #[error("{file}: {cause}; the segment is broken, do not use its figures")]
    Lost {
        /// The segment's file name.
        file: String,
        /// What happened to it.
        cause: Loss,
    },
}

impl ReadError {
    /// The stable number of this error: see [`codes`].
    pub fn code(&self) -> u32 {
        match self {
            ReadError::Busy { .. } => codes::BUSY,
            ReadError::ImplausibleCounters { .. }
            | ReadError::ImplausibleEvent { .. }
            | ReadError::UnlistedDevice { .. }
            | ReadError::Lost { .. } => codes::BROKEN,
        }
    }

    /// The error number of the system call that failed: none does.
    pub fn errno(&self) -> Option<i32> {
        None
    }
}

/// Why a table is not read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// No aggregator has published one.
    #[error(
        "no aggregator has published a table in namespace {namespace} for uid {uid} (nor root's); start one \
         with `tt-smi aggregate`, or read the segments"
    )]
    NotFound {
        /// The namespace.
        namespace: Namespace,
        /// The user whose table was looked for besides root's.
        uid: u32,
    },
    /// The file was refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// It belongs to another user.
    #[error("{} belongs to uid {owner}, not to uid {expected} as its name says; remove it", path.display())]
    Owner {
        /// The file.
        path: PathBuf,
        /// The owner.
        owner: u32,
        /// The expected owner.
        expected: u32,
    },
    /// Its header is not that of a table that this version can read.
    #[error("{}: {cause}", path.display())]
    Layout {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: LayoutError,
    },
}

impl TableError {
    /// The refused file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            TableError::NotFound { .. } => None,
            TableError::File(error) => Some(error.path()),
            TableError::Owner { path, .. } | TableError::Layout { path, .. } => Some(path),
        }
    }

    /// Whether there is no such table, as opposed to a refused one.
    pub fn is_not_found(&self) -> bool {
        match self {
            TableError::NotFound { .. } => true,
            TableError::File(FileError::Open { cause, .. }) => cause.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// The stable number of this error: see [`codes`].
    pub fn code(&self) -> u32 {
        match self {
            TableError::NotFound { .. } => codes::MISSING,
            TableError::File(error) => error.code(),
            TableError::Owner { .. } => codes::REFUSED,
            TableError::Layout { cause, .. } => layout_code(cause),
        }
    }

    /// The error number of the system call that failed, if one did.
    pub fn errno(&self) -> Option<i32> {
        match self {
            TableError::File(error) => error.errno(),
            _ => None,
        }
    }
}
