//! The errors of each operation.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use tt_shm_os::LimitError;

/// Why an aggregator cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The folder of segments cannot be read.
    #[error("cannot read {}: {_0}; is tmpfs mounted there?", tt_shm_os::SHM_DIR)]
    Folder(io::Error),
}

impl StartError {
    /// The stable number of this error: see [`tt_shm_reader::codes`].
    pub fn code(&self) -> u32 {
        match self {
            StartError::Folder(_) => tt_shm_reader::codes::SYSTEM,
        }
    }

    /// The error number of the system call that failed.
    pub fn errno(&self) -> Option<i32> {
        match self {
            StartError::Folder(cause) => cause.raw_os_error(),
        }
    }
}

/// Why there is nothing to read from.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// There is no table of a running aggregator, and an aggregation in this process could not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl SourceError {
    /// The stable number of this error: see [`tt_shm_reader::codes`].
    pub fn code(&self) -> u32 {
        match self {
            SourceError::Start(error) => error.code(),
        }
    }

    /// The error number of the system call that failed, if one did.
    pub fn errno(&self) -> Option<i32> {
        match self {
            SourceError::Start(error) => error.errno(),
        }
    }
}

/// Why the table cannot be published.
#[derive(Debug, Error)]
pub enum PublishError {
    /// Another aggregator of the same namespace and user is running.
    #[error(
        "an aggregator is already running here{}: it holds {}; stop it first, or use another namespace",
        pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default(), path.display()
    )]
    Running {
        /// The lock file.
        path: PathBuf,
        /// The process id that the other one wrote into it, as seen in its own PID namespace.
        pid: Option<u32>,
    },
    /// A file that this user cannot remove occupies a name that the aggregator needs.
    #[error(
        "{} is {kind} of uid {owner}, which uid {uid} cannot remove ({cause}): have root or uid {owner} remove it, or \
         use another namespace", path.display()
    )]
    Taken {
        /// The path.
        path: PathBuf,
        /// The kind of file.
        kind: &'static str,
        /// The owner of the file.
        owner: u32,
        /// The user that needs the name.
        uid: u32,
        /// The error of the system call.
        cause: io::Error,
    },
    /// A system call failed.
    #[error("cannot {action} {}: {cause}", path.display())]
    System {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system call. It is part of the message and therefore not a `source` as well.
        cause: io::Error,
    },
    /// There is no room for the table.
    #[error("no room for the table {} in /dev/shm: {cause}; free some, or raise its size", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// The error of the system call.
        cause: io::Error,
    },
    /// The table would exceed this process's file size limit.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// Why the daemon ended early.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// The aggregator could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The table could not be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

/// Why a new window was not opened.
#[derive(Debug, Error)]
pub enum ResetError {
    /// There is no table, so there is no aggregator to ask.
    #[error(transparent)]
    Table(#[from] tt_shm_reader::TableError),
    /// The aggregator is not running.
    #[error("the aggregator of {} is not running; start it with `tt-smi aggregate`", path.display())]
    Stale {
        /// Its table.
        path: PathBuf,
    },
    /// Only root and the aggregator's own user may ask.
    #[error("uid {uid} may not reset the peaks of uid {owner}'s aggregator; run as that user or as root")]
    NotPermitted {
        /// The user that asked.
        uid: u32,
        /// The user that runs the aggregator.
        owner: u32,
    },
    /// The request file could not be created.
    #[error("cannot create {}: {cause}; is /dev/shm full, or read-only?", path.display())]
    Request {
        /// The request file.
        path: PathBuf,
        /// The error of the system call.
        cause: io::Error,
    },
    /// The aggregator did not answer in time.
    #[error("the aggregator did not open a new window within {waited_ms} ms; is it stopped?")]
    Timeout {
        /// How long the request waited.
        waited_ms: u128,
    },
}
