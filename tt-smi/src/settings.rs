//! What the global options resolve to.

use std::io::IsTerminal;

use tt_shm_os::{NameError, Namespace};

use crate::cli::{Cli, ColorChoice};
use crate::output::paint::Paint;

/// Settings that every command has.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace to look at.
    pub namespace: Namespace,
    /// Whether the user chose it: `demo` makes a private one otherwise.
    pub namespace_given: bool,
    /// Whether stdout is a terminal.
    pub stdout_is_terminal: bool,
    /// Whether to colour what goes there.
    pub paint: Paint,
}

impl Settings {
    /// Resolves what was typed, with the environment.
    pub fn resolve(cli: &Cli) -> Result<Settings, NameError> {
        let given = cli.namespace()?;
        let stdout_is_terminal = std::io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colored = match cli.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => stdout_is_terminal && !no_color,
        };
        Ok(Settings {
            namespace_given: given.is_some(),
            namespace: given.unwrap_or_default(),
            stdout_is_terminal,
            paint: Paint { colored },
        })
    }
}
