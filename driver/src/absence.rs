//! A value, or the reason why there is none.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// Characters of a malformed text that are kept.
const KEPT: usize = 64;

/// A value, or the reason why there is none.
pub type Reading<T> = Result<T, Absence>;

/// Why a value is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absence {
    /// There is no such attribute: the driver or the firmware does not publish it, or not yet.
    Missing,
    /// ENODATA: the device is being reset.
    Resetting,
    /// ENODEV: the device was detached.
    Gone,
    /// This user may not read it.
    Denied,
    /// The kernel says that it does not know.
    Unknown,
    /// The board does not have the part, such as a fan.
    NotFitted,
    /// The text is not of the expected form.
    Malformed(Box<Malformed>),
    /// Any other error of the system.
    Failed {
        /// Where.
        path: PathBuf,
        /// What: an error number.
        errno: i32,
    },
}

/// A text that is not of the expected form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Where.
    pub path: PathBuf,
    /// What stands there: its first characters.
    pub text: String,
    /// What should.
    pub expected: &'static str,
}

impl Absence {
    /// The reason of an error at a file.
    pub(crate) fn of(error: &io::Error, path: &Path) -> Absence {
        match Errno::from_io_error(error) {
            Some(Errno::NOENT | Errno::NOTDIR) => Absence::Missing,
            Some(Errno::NODATA) => Absence::Resetting,
            Some(Errno::NODEV | Errno::NXIO) => Absence::Gone,
            Some(Errno::ACCESS | Errno::PERM) => Absence::Denied,
            errno => {
                let errno = errno.unwrap_or(Errno::IO).raw_os_error();
                Absence::Failed { path: path.to_owned(), errno }
            }
        }
    }

    /// The reason of a text that was not understood.
    pub(crate) fn malformed(path: &Path, text: &[u8], expected: &'static str) -> Absence {
        let text = String::from_utf8_lossy(text).trim_end().chars().take(KEPT).collect();
        Absence::Malformed(Box::new(Malformed { path: path.to_owned(), text, expected }))
    }
}

impl Absence {
    /// The reason in a few words, without where.
    #[must_use]
    pub fn words(&self) -> &'static str {
        match self {
            Absence::Missing => "not published by the driver",
            Absence::Resetting => "not available while the device resets",
            Absence::Gone => "the device was detached",
            Absence::Denied => "permission denied",
            Absence::Unknown => "not known to the kernel",
            Absence::NotFitted => "not fitted",
            Absence::Malformed(_) => "not understood",
            Absence::Failed { .. } => "could not be read",
        }
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absence::Malformed(found) => {
                write!(f, "{}: {:?} is not {}", found.path.display(), found.text, found.expected)
            }
            Absence::Failed { path, errno } => {
                write!(f, "{}: {}", path.display(), io::Error::from_raw_os_error(*errno))
            }
            _ => f.write_str(self.words()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_say_what_and_where() {
        let path = Path::new("/sys/x");
        let of = |errno: Errno| Absence::of(&errno.into(), path);
        assert_eq!(of(Errno::NOENT), Absence::Missing);
        assert_eq!(of(Errno::NODATA), Absence::Resetting);
        assert_eq!(of(Errno::NODEV), Absence::Gone);
        assert_eq!(of(Errno::ACCESS), Absence::Denied);
        assert!(of(Errno::IO).to_string().starts_with("/sys/x: "));
        let long = Absence::malformed(path, &[b'\xff'; 1000], "a number");
        assert!(long.to_string().len() < 300 && long.to_string().ends_with("is not a number"));
    }
}
