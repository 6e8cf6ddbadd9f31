//! Why a record cannot be replayed.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use tt_shm_aggregator::{PublishError, StartError};
use tt_shm_os::MapError;
use tt_shm_record::ReadError;

/// Why a record cannot be replayed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The record cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A recorded process cannot be rebuilt.
    #[error("cannot {action} {} for a recorded process: {cause}; is /dev/shm full (`df /dev/shm`)?", path.display())]
    Replica {
        /// What failed.
        action: &'static str,
        /// Its file.
        path: PathBuf,
        /// The error of the system call.
        cause: io::Error,
    },
    /// A recorded process cannot be mapped.
    #[error("cannot rebuild a recorded process: {0}")]
    Map(#[from] MapError),
    /// What a recorded process said of itself is impossible.
    #[error(
        "process {number} of the record has {what}, which no process has: the record is damaged or made up"
    )]
    Impossible {
        /// Its number in the record.
        number: u32,
        /// What it has.
        what: String,
    },
    /// The aggregator cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The table cannot be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// No name could be made up.
    #[error("cannot make up a namespace: {0}")]
    Random(io::Error),
}
