//! The names of the files in /dev/shm.
//!
//! ```text
//! tt-shm.v2.<namespace>.<pid>-<16 hex digits>   a process's segment
//! tt-shm.v2.<namespace>.<uid>.table             an aggregator's table
//! tt-shm.v2.<namespace>.<uid>.lock              what makes it the only one
//! ```
//!
//! A namespace has no dots, so a name can be parsed in one way only. Names are for finding files and for
//! display: the owner of a file is its `st_uid`, and the lock tells whether its writer is alive.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

/// The folder of all files of this project.
pub const SHM_DIR: &str = "/dev/shm";

/// The environment variable that chooses the namespace.
pub const NAMESPACE_ENV: &str = "TT_SHM_NAMESPACE";

/// With the major version of the layout: who reads another does not even see these files.
const PREFIX: &str = "tt-shm.v2.";
const DEFAULT: &str = "default";
const MAX_LEN: usize = 32;

/// Why a string is not a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameError {
    /// It is empty or too long.
    #[error("namespace {name:?} has {len} characters; use 1 to {MAX_LEN} of A-Z a-z 0-9 _ -")]
    Length {
        /// What was given.
        name: String,
        /// The number of characters.
        len: usize,
    },
    /// It has a character that could be mistaken for a part of the file name or of a path.
    #[error("namespace {name:?} contains {character:?}; use only A-Z a-z 0-9 _ -")]
    Character {
        /// What was given.
        name: String,
        /// The first character that is not allowed.
        character: char,
    },
    /// The environment variable is not text.
    #[error("{NAMESPACE_ENV} is {value:?}, which is not UTF-8; use only A-Z a-z 0-9 _ -")]
    NotUnicode {
        /// What the variable holds.
        value: OsString,
    },
}

/// A group of processes that see each other: 1 to 32 characters of `[A-Za-z0-9_-]`.
///
/// ```
/// use tt_shm_os::Namespace;
///
/// assert_eq!(Namespace::default().as_str(), "default");
/// assert!(Namespace::new("ci-42").is_ok());
/// assert!(Namespace::new("../etc").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace(String);

impl Namespace {
    /// Creates a namespace from a valid name.
    pub fn new(name: &str) -> Result<Self, NameError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if let Some(character) = name.chars().find(|&c| !allowed(c)) {
            return Err(NameError::Character { name: name.to_owned(), character });
        }
        // All characters are ASCII by now, so bytes are characters.
        if !(1..=MAX_LEN).contains(&name.len()) {
            return Err(NameError::Length { name: name.to_owned(), len: name.len() });
        }
        Ok(Self(name.to_owned()))
    }

    /// The namespace given by `TT_SHM_NAMESPACE`; `default` if that is unset or empty.
    pub fn from_env() -> Result<Self, NameError> {
        match std::env::var_os(NAMESPACE_ENV) {
            None => Ok(Self::default()),
            Some(value) if value.is_empty() => Ok(Self::default()),
            Some(value) => match value.into_string() {
                Ok(name) => Self::new(&name),
                Err(value) => Err(NameError::NotUnicode { value }),
            },
        }
    }

    /// The name itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self(DEFAULT.to_owned())
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Namespace {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        Self::new(name)
    }
}

/// The parts of a segment's file name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SegmentName {
    /// The namespace it belongs to.
    pub namespace: Namespace,
    /// The writer's process id in its own PID namespace, for display only.
    pub pid: u32,
    /// Distinguishes two segments of one reused pid.
    pub random: u64,
}

/// The file name of a process's segment.
#[must_use]
pub fn segment_file_name(namespace: &Namespace, pid: u32, random: u64) -> String {
    format!("{PREFIX}{namespace}.{pid}-{random:016x}")
}

/// Parses a segment's file name; `None` for any other name, even a nearly right one.
#[must_use]
pub fn parse_segment_name(file_name: &str) -> Option<SegmentName> {
    let (namespace, process) = file_name.strip_prefix(PREFIX)?.split_once('.')?;
    let (pid, random) = process.split_once('-')?;
    let name = SegmentName {
        namespace: Namespace::new(namespace).ok()?,
        pid: pid.parse().ok().filter(|&pid| pid != 0)?,
        // 0 is not an identity: lists in tables end with it.
        random: u64::from_str_radix(random, 16).ok().filter(|&random| random != 0)?,
    };
    // The integer parsers accept signs, leading zeros and capitals, which are never written. One name per
    // segment means that nobody can present one segment under two spellings.
    let canonical = segment_file_name(&name.namespace, name.pid, name.random);
    (canonical == file_name).then_some(name)
}

/// The file name of the table that the aggregator of `uid` publishes.
#[must_use]
pub fn table_file_name(namespace: &Namespace, uid: u32) -> String {
    format!("{PREFIX}{namespace}.{uid}.table")
}

/// The file name of the lock that makes an aggregator of `uid` the only one; never unlinked.
#[must_use]
pub fn table_lock_file_name(namespace: &Namespace, uid: u32) -> String {
    format!("{PREFIX}{namespace}.{uid}.lock")
}

/// The path of a file name under [`SHM_DIR`].
#[must_use]
pub fn path_of(file_name: &str) -> PathBuf {
    Path::new(SHM_DIR).join(file_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_checked() {
        let longest = "x".repeat(MAX_LEN);
        for good in ["a", "default", "CI_42-b", longest.as_str()] {
            assert_eq!(good.parse::<Namespace>().unwrap().to_string(), good);
        }
        let too_long = "x".repeat(MAX_LEN + 1);
        for bad in ["", too_long.as_str()] {
            assert!(matches!(
                Namespace::new(bad),
                Err(NameError::Length { len, .. }) if len == bad.len()
            ));
        }
        for bad in ["a.b", "a/b", "..", "a b", "é", "a\0", "a\n"] {
            assert!(matches!(Namespace::new(bad), Err(NameError::Character { .. })));
        }
    }

    #[test]
    fn segment_names_round_trip() {
        for name in ["default", "a-1-b", "_", "7-0000000000000000"] {
            let namespace = Namespace::new(name).unwrap();
            for pid in [1, 4_194_304, u32::MAX] {
                assert_eq!(parse_segment_name(&segment_file_name(&namespace, pid, 0)), None, "nobody's");
                for random in [1, 2, 0x0123_4567_89ab_cdef, u64::MAX] {
                    let file_name = segment_file_name(&namespace, pid, random);
                    let parsed = parse_segment_name(&file_name).unwrap();
                    assert_eq!(
                        (parsed.namespace, parsed.pid, parsed.random),
                        (namespace.clone(), pid, random)
                    );
                }
            }
        }
    }

    #[test]
    fn names_are_what_the_design_says() {
        let namespace = Namespace::default();
        assert_eq!(segment_file_name(&namespace, 42, 0xabc), "tt-shm.v2.default.42-0000000000000abc");
        assert_eq!(table_file_name(&namespace, 0), "tt-shm.v2.default.0.table");
        assert_eq!(
            path_of(&table_lock_file_name(&namespace, 1000)),
            Path::new("/dev/shm/tt-shm.v2.default.1000.lock")
        );
    }

    #[test]
    fn near_misses_are_not_segments() {
        for name in [
            "",
            "tt-shm.v2.",
            "tt-shm.v2.default",
            "tt-shm.v2.default.42",
            "tt-shm.v2.default.42-",
            "tt-shm.v2.default.42-abc",
            "tt-shm.v2.default.42-0000000000000ABC",
            "tt-shm.v2.default.42-00000000000000abc",
            "tt-shm.v2.default.42-+000000000000abc",
            "tt-shm.v2.default.042-0000000000000abc",
            "tt-shm.v2.default.+42-0000000000000abc",
            "tt-shm.v2.default.0-0000000000000abc",
            "tt-shm.v2.default.4294967296-0000000000000abc",
            "tt-shm.v2.default.42-0000000000000abc ",
            "tt-shm.v2.default.42-0000000000000abc.x",
            "tt-shm.v2..42-0000000000000abc",
            "tt-shm.v2.a.b.42-0000000000000abc",
            "tt-shm.v1.default.42-0000000000000abc",
            "xtt-shm.v2.default.42-0000000000000abc",
            "tt-shm.v2.default.0.table",
            "tt-shm.v2.default.0.lock",
        ] {
            assert_eq!(parse_segment_name(name), None, "{name:?}");
        }
    }
}
