//! Why a region has no figures.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use thiserror::Error;

use crate::layout::{LEN, VERSIONS};

/// What is known of a region, or the reason why nothing is.
pub type Reading<T> = Result<T, Absence>;

/// Why a region has no figures.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Absence {
    /// There is no such file or folder.
    #[error("{} is not there", path.display())]
    Missing {
        /// Where.
        path: PathBuf,
    },
    /// A process creates it right now: it was found empty, short or not initialised. It is looked at again.
    #[error("{} is being created by tt-metal: look again", path.display())]
    Starting {
        /// Where.
        path: PathBuf,
        /// Bytes that it has yet.
        len: u64,
    },
    /// It belongs to another user, and nobody else may read it.
    #[error("{} may be read by user {owner} and by root only: run as one of them", path.display())]
    Denied {
        /// Where.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// It is something else than a region of a known version.
    #[error("{} was not read: {refusal}", path.display())]
    Refused {
        /// Where.
        path: PathBuf,
        /// Why.
        refusal: Refusal,
    },
    /// Any other error of the system.
    #[error("{}: {}", path.display(), io::Error::from_raw_os_error(*errno))]
    Failed {
        /// Where.
        path: PathBuf,
        /// What: an error number.
        errno: i32,
    },
}

/// Why a file is not taken for a region, and what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// A symbolic link, a folder, a FIFO or a device.
    #[error("it is not a regular file, which tt-metal's regions are: remove it")]
    NotRegular,
    /// It is much larger than a region.
    #[error("it has {0} bytes and a region has {LEN}: remove it, or update tt-smi")]
    TooLarge(u64),
    /// Its layout is not known.
    #[error(
        "it has layout version {0} and this program knows {first} to {last}: update tt-smi, or run the job with the tap \
         (tt-smi run)",
        first = VERSIONS.start(),
        last = VERSIONS.end()
    )]
    Version(u32),
}

impl Absence {
    /// The reason of an error at a file of `owner`.
    pub(crate) fn of(error: Errno, path: &Path, owner: u32) -> Absence {
        let path = path.to_owned();
        match error {
            Errno::NOENT | Errno::NOTDIR => Absence::Missing { path },
            Errno::ACCESS | Errno::PERM => Absence::Denied { path, owner },
            // A symbolic link took its place just now; a socket can't be opened.
            Errno::LOOP | Errno::NXIO => Absence::Refused { path, refusal: Refusal::NotRegular },
            errno => Absence::Failed { path, errno: errno.raw_os_error() },
        }
    }

    pub(crate) fn refused(path: &Path, refusal: Refusal) -> Absence {
        Absence::Refused { path: path.to_owned(), refusal }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_name_the_file_and_what_to_do() {
        let path = Path::new("/dev/shm/tt_device_1_memory");
        let denied = Absence::of(Errno::ACCESS, path, 1000).to_string();
        assert_eq!(
            denied,
            "/dev/shm/tt_device_1_memory may be read by user 1000 and by root only: run as one of them"
        );
        let version = Absence::refused(path, Refusal::Version(5)).to_string();
        assert!(version.contains("version 5") && version.contains("2 to 4") && version.contains("update"));
        for refusal in [Refusal::NotRegular, Refusal::TooLarge(1 << 30)] {
            let text = Absence::refused(path, refusal).to_string();
            assert!(
                text.starts_with("/dev/shm/tt_device_1_memory was not read: ") && text.contains("remove it")
            );
        }
        assert_eq!(Absence::of(Errno::NOENT, path, 0), Absence::Missing { path: path.to_owned() });
        assert!(Absence::of(Errno::IO, path, 0).to_string().starts_with("/dev/shm/tt_device_1_memory: "));
    }
}
