//! Limits that kill the process instead of failing.

use rustix::process::{Resource, getrlimit};
use thiserror::Error;

/// Why a file of some size must not be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LimitError {
    /// The process may not create files of this size.
    #[error(
        "a file of {wanted} bytes exceeds this process's limit of {limit} (RLIMIT_FSIZE); \
         raise it (ulimit -f); segments are smaller with fewer ring slots and live rows"
    )]
    FileSize {
        /// The bytes requested.
        wanted: u64,
        /// The soft limit in force.
        limit: u64,
    },
}

/// Checks `len` against RLIMIT_FSIZE, to be called before `ftruncate`.
///
/// Exceeding that limit sends SIGXFSZ, which kills the host by default: too high a price for being monitored.
/// Sparse files count by their length, not by what they occupy.
pub fn check_file_size_limit(len: u64) -> Result<(), LimitError> {
    check(len, getrlimit(Resource::Fsize).current)
}

/// Makes a write beyond RLIMIT_FSIZE fail with EFBIG instead of killing this process by SIGXFSZ. To be called
/// by a program; a library leaves signals alone.
///
/// A handler that does nothing, not SIG_IGN: programs that this one executes do not inherit it.
pub fn fail_at_file_size_limit() -> std::io::Result<()> {
    // SAFETY: the handler does nothing.
    match unsafe { libc::signal(libc::SIGXFSZ, nothing as *const () as libc::sighandler_t) } {
        libc::SIG_ERR => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

extern "C" fn nothing(_signal: i32) {}

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
