//! The config file: `$XDG_CONFIG_HOME/tt-smi/config.toml`. A flag wins over `TT_SMI_*` in the environment, that
//! over the file, and that over the default.

mod error;
mod file;
mod key;
mod resolve;

pub(crate) use error::ConfigError;
pub(crate) use file::path;
pub(crate) use key::Key;
pub(crate) use resolve::{Resolved, SettingOrigin};

use std::time::Duration;

use crate::cli::ColorChoice;
use crate::screen::{Palette, Signs, View};

/// What the user set, or the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Colours of the screen.
    pub theme: Palette,
    /// Draw with characters that every terminal has.
    pub ascii: bool,
    /// Refresh interval of the screen and of `watch`.
    pub interval: Duration,
    /// The screen sends no signals.
    pub readonly: bool,
    /// When to use colours.
    pub color: ColorChoice,
    /// What graphs are drawn with.
    pub graph: Signs,
    /// The view that the screen begins with.
    pub view: View,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            theme: Palette::default(),
            ascii: false,
            interval: Duration::from_millis(500),
            readonly: false,
            color: ColorChoice::Auto,
            graph: Signs::default(),
            view: View::default(),
        }
    }
}

/// The file that `tt-smi config init` writes: every key with its default, commented out.
pub(crate) fn template() -> String {
    let mut text = "\
# Settings of tt-smi. Flags and TT_SMI_* in the environment win over this file;
# `tt-smi config print` shows what counts, and why.
"
    .to_owned();
    let defaults = Config::default();
    for key in Key::ALL {
        text += &format!("\n# {}\n# {}\n#{}\n", key.about(), key.allowed(), key.line(&defaults));
    }
    text
}

#[cfg(test)]
mod tests;
