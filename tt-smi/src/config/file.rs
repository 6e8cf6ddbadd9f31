//! The file: where it is, and what stands in it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use toml::Spanned;

use super::error::Place;
use super::{Config, ConfigError, Key, SettingOrigin};

/// More is no list of settings.
const MAX_BYTES: u64 = 64 * 1024;

/// Where the file is looked for; `None` if there is no home.
pub(crate) fn path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // As specified by XDG: a relative path is invalid and ignored.
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    folder.map(|folder| folder.join("tt-smi").join("config.toml"))
}

/// The text of a file; `None` if it does not exist.
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

/// Applies a file; returns the keys that it sets, with their lines.
pub(super) fn apply(
    config: &mut Config,
    path: &Path,
    text: &str,
) -> Result<Vec<(Key, SettingOrigin)>, ConfigError> {
    let place = |at: usize| Place::of(path, text, at);
    let table: BTreeMap<Spanned<String>, Spanned<toml::Value>> =
        toml::from_str(text).map_err(|error| ConfigError::Syntax {
            place: place(error.span().map_or(0, |span| span.start)),
            message: error.message().to_owned(),
        })?;
    let mut set = Vec::new();
    for (name, value) in &table {
        let named = place(name.span().start);
        let Some(key) = Key::ALL.into_iter().find(|key| key.name() == name.get_ref()) else {
            return Err(ConfigError::UnknownKey { place: named, key: name.get_ref().clone() });
        };
        let given = plain(value.get_ref());
        if !key.set(config, &given) {
            let at = place(value.span().start).to_string();
            return Err(ConfigError::BadValue { at, key, value: given });
        }
        set.push((key, SettingOrigin::File { path: path.to_owned(), line: named.line }));
    }
    Ok(set)
}

/// A value as it would be written on the command line; of a list or table, what it is: that is never allowed.
fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(truth) => truth.to_string(),
        other => format!("<{}>", other.type_str()),
    }
}
