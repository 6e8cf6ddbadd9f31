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
    /// The namespace to look at.
    pub namespace: Namespace,
    /// Whether the user chose it: `demo` makes a private one otherwise.
    pub namespace_given: bool,
    /// Whether stdout is a terminal.
    pub stdout_is_terminal: bool,
    /// Its columns, if it is one that says how many it has.
    pub columns: Option<usize>,
    /// Whether to colour what goes there.
    pub paint: Paint,
    /// What the user set for good.
    pub config: Config,
    /// What `--color` said: it wins over the settings.
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

/// No command stops working because somebody's file has a mistake: it is told, and the defaults count.
fn resolve_config() -> Result<Resolved, ConfigError> {
    let (resolved, broken) = Resolved::load_without_broken(|name| std::env::var_os(name))?;
    if let Some(broken) = broken {
        eprintln!(
            "tt-smi: settings are ignored, {broken} (`tt-smi config init --force` writes the file anew)"
        );
    }
    Ok(resolved)
}
