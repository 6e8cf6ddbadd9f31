//! What counts, and where it comes from.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use super::{Config, ConfigError, Key, file};
use crate::cli::ColorChoice;
use crate::escape::escape;

/// Where a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingOrigin {
    /// It is not set.
    Default,
    File {
        path: PathBuf,
        line: usize,
    },
    /// A variable of the environment.
    Environment(String),
    /// The command line.
    Flag(&'static str),
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingOrigin::Default => f.write_str("default"),
            SettingOrigin::File { path, line } => write!(f, "{}:{line}", escape(&path.to_string_lossy())),
            SettingOrigin::Environment(name) => f.write_str(name),
            SettingOrigin::Flag(flag) => f.write_str(flag),
        }
    }
}

/// Settings, and where each comes from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resolved {
    pub config: Config,
    /// The file that was read, if there is one.
    pub file: Option<PathBuf>,
    set: Vec<(Key, SettingOrigin)>,
}

impl Resolved {
    /// From the file, then from the environment.
    pub(crate) fn load(variable: impl Fn(&str) -> Option<OsString>) -> Result<Resolved, ConfigError> {
        let resolved = Resolved::from_file(&variable)?;
        resolved.with_environment(&variable)
    }

    /// Likewise, without a file that cannot be used; says what is wrong with it.
    pub(crate) fn load_without_broken(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<(Resolved, Option<ConfigError>), ConfigError> {
        let (resolved, broken) = match Resolved::from_file(&variable) {
            Ok(resolved) => (resolved, None),
            Err(error) => (Resolved::default(), Some(error)),
        };
        Ok((resolved.with_environment(&variable)?, broken))
    }

    fn from_file(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Resolved, ConfigError> {
        let mut resolved = Resolved::default();
        if let Some(path) = file::path(variable)
            && let Some(text) = file::read(&path)?
        {
            resolved.set = file::apply(&mut resolved.config, &path, &text)?;
            resolved.file = Some(path);
        }
        Ok(resolved)
    }

    fn with_environment(self, variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Resolved, ConfigError> {
        let mut resolved = self;
        for key in Key::ALL {
            let name = key.env();
            // An empty one sets nothing.
            let Some(value) = variable(&name).filter(|value| !value.is_empty()) else { continue };
            let value = value.to_string_lossy().into_owned();
            if !key.set(&mut resolved.config, &value) {
                return Err(ConfigError::BadValue { at: name, key, value });
            }
            resolved.set.push((key, SettingOrigin::Environment(name)));
        }
        Ok(resolved)
    }

    /// A flag wins over everything else.
    pub(crate) fn with_color(mut self, flag: Option<ColorChoice>) -> Resolved {
        if let Some(color) = flag {
            self.config.color = color;
            self.set.push((Key::Color, SettingOrigin::Flag("--color")));
        }
        self
    }

    /// Where a setting comes from.
    pub(crate) fn origin(&self, key: Key) -> &SettingOrigin {
        self.set
            .iter()
            .rev()
            .find(|(set, _)| *set == key)
            .map_or(&SettingOrigin::Default, |(_, origin)| origin)
    }
}
