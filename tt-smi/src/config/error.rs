//! Why settings cannot be used.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::Key;
use crate::escape::escape;

/// A place in the file; lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub path: PathBuf,
    pub line: usize,
    /// The character in that line.
    pub column: usize,
}

impl Place {
    /// The place of a byte of the file's text.
    pub(super) fn of(path: &Path, text: &str, at: usize) -> Place {
        let before = text.get(..at).unwrap_or(text);
        let (line, start) = match before.rfind('\n') {
            Some(end) => (before.matches('\n').count() + 1, end + 1),
            None => (1, 0),
        };
        Place { path: path.to_owned(), line, column: before[start..].chars().count() + 1 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", escape(&self.path.to_string_lossy()), self.line, self.column)
    }
}

/// What is wrong with the settings, and where.
#[derive(Debug)]
pub(crate) enum ConfigError {
    /// The file is there and cannot be read.
    Unreadable { path: PathBuf, error: io::Error },
    /// It is no TOML.
    Syntax {
        place: Place,
        /// What is wrong there.
        message: String,
    },
    /// There is no such key.
    UnknownKey { place: Place, key: String },
    /// A key cannot be that.
    BadValue {
        /// A place in the file, or a variable of the environment.
        at: String,
        key: Key,
        /// What it was set to.
        value: String,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Unreadable { path, error } => {
                write!(f, "cannot read {}: {error}", escape(&path.to_string_lossy()))
            }
            ConfigError::Syntax { place, message } => write!(f, "{place}: {}", escape(message)),
            ConfigError::UnknownKey { place, key } => {
                let known = Key::ALL.map(Key::name).join(", ");
                write!(f, "{place}: no key {:?}; there are {known}", escape(key))
            }
            ConfigError::BadValue { at, key, value } => {
                let (name, allowed) = (key.name(), key.allowed());
                write!(f, "{at}: {name} cannot be {:?}; it may be {allowed}", escape(value))
            }
        }
    }
}

impl std::error::Error for ConfigError {}
