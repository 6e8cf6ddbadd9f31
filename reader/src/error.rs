//! Why something could not be read. Every error says which file, what is wrong and what to do.

use std::io;
use std::path::{Path, PathBuf};

use shm_layout::{Implausible, LayoutError};
use thiserror::Error;
use tt_shm_os::{MapError, Namespace};

/// Why a file is not mapped, whatever it claims to hold.
#[derive(Debug, Error)]
pub enum FileError {
    /// The system refused to open it.
    #[error("cannot open {}: {cause}{}", path.display(), hint(cause))]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said. Part of the message, hence not a `source` as well.
        cause: io::Error,
    },
    /// It is a symbolic link, a FIFO, a directory, a device.
    #[error("{} is {kind}, not a regular file; nothing of the monitor's: remove it", path.display())]
    NotRegular {
        /// The file.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// It has a second name, so somebody else may be showing it under that one.
    #[error("{} has {links} hard links instead of one; remove the others", path.display())]
    Links {
        /// The file.
        path: PathBuf,
        /// Names it has.
        links: u64,
    },
    /// More than its owner may write to it.
    #[error("{} can be written by others than its owner (mode {mode:03o}); remove it or chmod go-w", path.display())]
    Writable {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// No segment or table is that short or that long.
    #[error("{} has {len} bytes, expected {min} to {max}; it is incomplete or foreign: remove it", path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// Its length.
        len: u64,
        /// Shortest that makes sense.
        min: u64,
        /// Longest that is mapped.
        max: u64,
    },
    /// The system refused to map it, or it was cut short meanwhile.
    #[error("{}: {cause}", path.display())]
    Map {
        /// The file.
        path: PathBuf,
        /// What the map said.
        cause: MapError,
    },
    /// Something that it publishes is a hole of the file: reading it would allocate memory that its owner did not.
    #[error(
        "{}: published {what} are not backed by memory; no process of the monitor's leaves that: remove it",
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
    /// Of a file that had `len` bytes when it was opened.
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
pub enum OpenError {
    /// Something about the file.
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
    /// Its name and its header tell of different processes: one of them lies.
    #[error(
        "{} is the name of process {name_pid}, segment {name_identity:016x}, but its header says process \
         {pid}, segment {identity:016x}; it was renamed or forged: remove it", path.display()
    )]
    Identity {
        /// The file.
        path: PathBuf,
        /// Process id in the name.
        name_pid: u32,
        /// Identity in the name.
        name_identity: u64,
        /// Process id in the header.
        pid: u64,
        /// Identity in the header.
        identity: u64,
    },
    /// A field of its header has a value that the layout does not know.
    #[error("{}: header says {what} = {found}, which this layout does not have; update this tool", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// Name of the field.
        what: &'static str,
        /// Value found.
        found: u64,
    },
}

impl OpenError {
    /// Whether the file is not there: usual for a process that ended between listing and opening.
    pub fn is_not_found(&self) -> bool {
        self.open_kind() == Some(io::ErrorKind::NotFound)
    }

    /// Whether the caller may not read it: usual for another user's segment.
    pub fn is_permission_denied(&self) -> bool {
        self.open_kind() == Some(io::ErrorKind::PermissionDenied)
    }

    /// Whether the file that was refused may be that of a process that lives. A link, a FIFO or a folder is nobody's
    /// segment; of what cannot be opened, nobody knows.
    pub fn may_live(&self, path: &Path) -> bool {
        match self {
            OpenError::File(FileError::NotRegular { .. }) => false,
            OpenError::File(FileError::Open { .. }) => true,
            _ => crate::open::is_held(path),
        }
    }

    fn open_kind(&self) -> Option<io::ErrorKind> {
        match self {
            OpenError::File(FileError::Open { cause, .. }) => Some(cause.kind()),
            _ => None,
        }
    }
}

/// Why the counters of a segment could not be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The process was faster than its observer in every attempt.
    #[error(
        "{file}: the process was too busy to be read in {attempts} attempts ({cause}); try again, or give \
         it a larger ring (TT_SHM_RING_SLOTS)"
    )]
    Busy {
        /// The segment's file name.
        file: String,
        /// Attempts made.
        attempts: usize,
        /// What happened in the last one.
        cause: String,
    },
    /// It holds figures that no honest process can have.
    #[error("{file}: impossible counters on device {device}; the segment is broken, do not use its figures")]
    ImplausibleCounters {
        /// The segment's file name.
        file: String,
        /// Index of the device.
        device: usize,
    },
    /// It holds an event that cannot follow the state before it.
    #[error("{file}: {cause}; the segment is broken, do not use its figures")]
    ImplausibleEvent {
        /// The segment's file name.
        file: String,
        /// The event.
        cause: Implausible,
    },
    /// It holds an event of a device that it does not list.
    #[error(
        "{file}: an event of a device beyond the {listed} listed; the segment is broken, do not use its figures"
    )]
    UnlistedDevice {
        /// The segment's file name.
        file: String,
        /// Devices listed.
        listed: usize,
    },
}

/// Why a table is not read.
#[derive(Debug, Error)]
pub enum TableError {
    /// No aggregator published one.
    #[error(
        "no aggregator has published a table in namespace {namespace} for uid {uid} (nor root's); start one \
         with `tt-smi aggregate`, or read the segments"
    )]
    NotFound {
        /// The namespace looked in.
        namespace: Namespace,
        /// Whose table was looked for beside root's.
        uid: u32,
    },
    /// Something about the file.
    #[error(transparent)]
    File(#[from] FileError),
    /// Somebody else made it.
    #[error("{} belongs to uid {owner}, not to uid {expected} as its place says; remove it", path.display())]
    Owner {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Whose it must be.
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
    /// The file that is refused, if there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            TableError::NotFound { .. } => None,
            TableError::File(error) => Some(error.path()),
            TableError::Owner { path, .. } | TableError::Layout { path, .. } => Some(path),
        }
    }

    /// Whether there is no such table, as opposed to one that is refused.
    pub fn is_not_found(&self) -> bool {
        match self {
            TableError::NotFound { .. } => true,
            TableError::File(FileError::Open { cause, .. }) => cause.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }
}
