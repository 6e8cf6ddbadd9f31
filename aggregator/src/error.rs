//! What can go wrong, per operation.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use tt_shm_os::LimitError;

/// Why an aggregator cannot begin.
#[derive(Debug, Error)]
pub enum StartError {
    /// There is no place where segments could be.
    #[error("cannot read {}: {_0}; is tmpfs mounted there?", tt_shm_os::SHM_DIR)]
    Folder(io::Error),
}

/// Why the table cannot be published.
#[derive(Debug, Error)]
pub enum PublishError {
    /// Another aggregator of the same namespace and user is running.
    #[error(
        "an aggregator already runs here{}: it holds {}; stop it first, or use another namespace",
        pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default(), path.display()
    )]
    Running {
        /// The lock file.
        path: PathBuf,
        /// Process id that the other one wrote there, as it sees itself.
        pid: Option<u32>,
    },
    /// Something is at a name that the aggregator needs, and may not be removed by it.
    #[error(
        "{} is {kind} of uid {owner}, which uid {uid} cannot remove ({cause}): have root or uid {owner} remove it, or \
         use another namespace", path.display()
    )]
    Taken {
        /// The path.
        path: PathBuf,
        /// What is there.
        kind: &'static str,
        /// Whose it is.
        owner: u32,
        /// Who needs the name.
        uid: u32,
        /// What the system said.
        cause: io::Error,
    },
    /// The system refused.
    #[error("cannot {action} {}: {cause}", path.display())]
    System {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said. Part of the message, hence not a `source` as well.
        cause: io::Error,
    },
    /// There is no room for the table.
    #[error("no room for the table {} in /dev/shm: {cause}; free some, or raise its size", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The table is larger than this process may make files.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// Why the daemon ended early.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// It could not begin to follow.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It could not publish.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

/// Why a new window was not opened.
#[derive(Debug, Error)]
pub enum ResetError {
    /// There is no table whose aggregator could be asked.
    #[error(transparent)]
    Table(#[from] tt_shm_reader::TableError),
    /// The aggregator is not running.
    #[error("the aggregator of {} does not run; start it with `tt-smi aggregate`", path.display())]
    Stale {
        /// Its table.
        path: PathBuf,
    },
    /// Only root and the aggregator's own user may ask.
    #[error("uid {uid} may not reset the peaks of uid {owner}'s aggregator; run as that user or as root")]
    NotPermitted {
        /// Who asked.
        uid: u32,
        /// Whose aggregator it is.
        owner: u32,
    },
    /// The request could not be made.
    #[error("cannot create {}: {cause}; is /dev/shm full, or read-only?", path.display())]
    Request {
        /// The request file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The aggregator did not answer in time.
    #[error("the aggregator did not open a new window within {waited_ms} ms; is it stopped?")]
    Timeout {
        /// How long was waited.
        waited_ms: u128,
    },
}
