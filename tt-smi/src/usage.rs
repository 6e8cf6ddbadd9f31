//! Wrong usage that only a command can notice: exit code 2, as for what the arguments alone tell.

use std::fmt;

/// What was asked for cannot be done, whatever the state of the machine.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
