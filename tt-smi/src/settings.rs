//! What the global options resolve to.

use std::io::IsTerminal;

use rustix::termios::tcgetwinsize;
use tt_shm_os::Namespace;

use crate::cli::{Cli, ColorChoice};
use crate::config::{Config, ConfigError, Resolved};
use crate::output::paint::Paint;

/// Settings that every command has.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace to read.
    pub namespace: Namespace,
    /// Whether the user chose it: `demo` makes a private one otherwise.
    pub namespace_given: bool,
    /// Whether stdout is a terminal.
    pub stdout_is_terminal: bool,
    /// Its width, if stdout is a terminal that reports one.
    pub columns: Option<usize>,
    /// Whether to colour stdout.
    pub paint: Paint,
    /// The user's configuration.
    pub config: Config,
    /// The argument of `--color`, which wins over the configuration.
    pub color_flag: Option<ColorChoice>,
}

impl Settings {
    /// Resolves what was typed, with the environment.
    pub fn resolve(cli: &Cli) -> anyhow::Result<Settings> {
        let given = cli.namespace()?;
        let resolved = if cli.wants_config() { resolve_config()? } else { Resolved::default() };
        let config = resolved.with_color(cli.color).config;
        let stdout_is_terminal = std::io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colored = match config.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => stdout_is_terminal && !no_color,
        };
        Ok(Settings {
            namespace_given: given.is_some(),
            namespace: given.unwrap_or_default(),
            stdout_is_terminal,
            columns: terminal_columns().filter(|_| stdout_is_terminal),
            paint: Paint { colored },
            config,
            color_flag: cli.color,
        })
    }
}

fn terminal_columns() -> Option<usize> {
    let size = tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// A mistake in the config file stops no command: it is reported, and the defaults apply.
fn resolve_config() -> Result<Resolved, ConfigError> {
    let (resolved, broken) = Resolved::load_without_broken(|name| std::env::var_os(name))?;
    if let Some(broken) = broken {
        eprintln!(
            "tt-smi: settings are ignored, {broken} (`tt-smi config init --force` writes the file anew)"
        );
    }
    Ok(resolved)
}
