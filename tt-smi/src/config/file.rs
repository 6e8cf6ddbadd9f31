//! The file: where it is, and what stands in it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use toml::de::{DeTable, DeValue};

use super::{Config, ConfigError, Key, Origin};

/// More is no list of settings.
const MAX_BYTES: u64 = 64 * 1024;

/// Where the file is looked for; `None` if there is no home.
pub fn path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // What the specification says: a relative path is invalid and to be ignored.
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    folder.map(|folder| folder.join("tt-smi").join("config.toml"))
}

/// What a file says; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    match read_start(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(ConfigError::Unreadable { path: path.to_owned(), error }),
    }
}

fn read_start(path: &Path) -> io::Result<String> {
    // NONBLOCK: a pipe in its place must not make everything wait.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_BYTES {
        true => Err(io::Error::other("longer than 64 KiB")),
        false => Ok(text),
    }
}

/// Sets what a file says, and tells which keys those are, with their lines.
pub(super) fn apply(config: &mut Config, path: &Path, text: &str) -> Result<Vec<(Key, Origin)>, ConfigError> {
    let line = |at: usize| text.get(..at).unwrap_or(text).matches('\n').count() + 1;
    let path = || path.to_owned();
    let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        path: path(),
        line: line(error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })?;
    let mut set = Vec::new();
    for (name, value) in table.get_ref() {
        let line = line(name.span().start);
        let key = Key::ALL.into_iter().find(|key| key.name() == name.get_ref());
        let key = key.ok_or_else(|| ConfigError::UnknownKey {
            path: path(),
            line,
            key: name.get_ref().clone().into_owned(),
        })?;
        let origin = Origin::File { path: path(), line };
        let value = plain(value.get_ref());
        if !key.set(config, &value) {
            return Err(ConfigError::BadValue { origin, key, value });
        }
        set.push((key, origin));
    }
    Ok(set)
}

/// A value as it would be written on the command line; of a list or table, what it is: that is never allowed.
fn plain(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.clone().into_owned(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(truth) => truth.to_string(),
        other => format!("<{}>", other.type_str()),
    }
}
