//! Exit codes beyond success and failure.

use std::fmt;

use tt_shm_writer::OpenError;

/// A usage error that only a command can detect: exit code 2, as for errors in the arguments themselves.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Whether an error is a usage error. So is an environment variable that is out of range.
pub(crate) fn is_usage(error: &anyhow::Error) -> bool {
    let is_setting = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref(), Some(OpenError::Setting { .. } | OpenError::Namespace(_)))
    };
    error.is::<Usage>() || error.chain().any(is_setting)
}

/// The exit code of a command that has already reported its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit(pub(crate) u8);

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {}", self.0)
    }
}

impl std::error::Error for Exit {}
