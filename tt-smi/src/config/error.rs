//! Why settings cannot be used.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::{Key, Origin};
use crate::escape::escape;

/// What is wrong with the settings, and where.
#[derive(Debug)]
pub enum ConfigError {
    /// The file is there and cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is no TOML.
    Syntax {
        /// The file.
        path: PathBuf,
        /// Its line.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// There is no such key.
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// Its line.
        line: usize,
        /// What it says.
        key: String,
    },
    /// A key cannot be that.
    BadValue {
        /// Where it was set.
        origin: Origin,
        /// The key.
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
            ConfigError::Syntax { path, line, message } => {
                write!(f, "{}:{line}: {}", escape(&path.to_string_lossy()), escape(message))
            }
            ConfigError::UnknownKey { path, line, key } => {
                let known = Key::ALL.map(Key::name).join(", ");
                let path = path.to_string_lossy();
                write!(f, "{}:{line}: no key {:?}; there are {known}", escape(&path), escape(key))
            }
            ConfigError::BadValue { origin, key, value } => {
                let (name, allowed) = (key.name(), key.allowed());
                write!(f, "{origin}: {name} cannot be {:?}; it may be {allowed}", escape(value))
            }
        }
    }
}

impl std::error::Error for ConfigError {}
