//! Limits that would kill instead of failing.

use rustix::process::{Resource, getrlimit};
use thiserror::Error;

/// Why a file of some size must not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LimitError {
    /// The process may not make files that large.
    #[error(
        "a file of {wanted} bytes exceeds this process's limit of {limit} (RLIMIT_FSIZE); \
         raise it (ulimit -f) or ask for fewer ring slots or live rows"
    )]
    FileSize {
        /// Bytes asked for.
        wanted: u64,
        /// The soft limit in force.
        limit: u64,
    },
}

/// Checks `len` against RLIMIT_FSIZE, to be called before `ftruncate`.
///
/// Exceeding that limit sends SIGXFSZ, which kills the host by default: not a price to pay for
/// being monitored. Sparse files count by their length, not by what they occupy.
pub fn check_file_size_limit(len: u64) -> Result<(), LimitError> {
    check(len, getrlimit(Resource::Fsize).current)
}

fn check(wanted: u64, limit: Option<u64>) -> Result<(), LimitError> {
    match limit {
        Some(limit) if wanted > limit => Err(LimitError::FileSize { wanted, limit }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_is_allowed() {
        assert_eq!(check(u64::MAX, None), Ok(()));
        assert_eq!(check(10, Some(10)), Ok(()));
        let error = check(11, Some(10)).unwrap_err();
        assert_eq!(error, LimitError::FileSize { wanted: 11, limit: 10 });
        assert!(error.to_string().contains("11 bytes exceeds"));
    }

    #[test]
    fn nothing_is_always_allowed() {
        assert_eq!(check_file_size_limit(0), Ok(()));
    }
}
