//! Ends that mean more than success and failure.

use std::fmt;

use tt_shm_writer::OpenError;

/// Wrong usage that only a command can notice: exit code 2, as for what the arguments alone tell.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Whether an error is one of usage. A setting in the environment that is out of range is one, too.
pub(crate) fn is_usage(error: &anyhow::Error) -> bool {
    let is_setting = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref(), Some(OpenError::Setting { .. } | OpenError::Namespace(_)))
    };
    error.is::<Usage>() || error.chain().any(is_setting)
}

/// The exit code of a command that has said all there is to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit(pub(crate) u8);

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {}", self.0)
    }
}

impl std::error::Error for Exit {}
