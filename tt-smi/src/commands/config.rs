//! `tt-smi config`: manages the config file.

use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use anyhow::Context;

use crate::cli::{ConfigAction, ConfigArgs};
use crate::config::{self, Key, Resolved};
use crate::escape::escape;
use crate::exit::Usage;
use crate::private_file;
use crate::settings::Settings;

pub(crate) fn run(args: &ConfigArgs, settings: &Settings) -> anyhow::Result<()> {
    match args.action {
        ConfigAction::Init { force } => init(force),
        ConfigAction::Print => print(settings),
        ConfigAction::Path => {
            let mut out = super::stdout();
            writeln!(out, "{}", escape(&path()?.to_string_lossy()))?;
            Ok(out.flush()?)
        }
    }
}

fn path() -> anyhow::Result<PathBuf> {
    config::path(|name| std::env::var_os(name))
        .context("cannot tell where the config file is: neither XDG_CONFIG_HOME nor HOME is an absolute path")
}

fn init(force: bool) -> anyhow::Result<()> {
    let path = path()?;
    let shown = escape(&path.to_string_lossy());
    if let Some(folder) = path.parent() {
        // Private to the user, as the XDG specification asks.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .with_context(|| format!("cannot create {}", escape(&folder.to_string_lossy())))?;
    }
    let content = config::template();
    let written = if force { private_file::replace } else { private_file::create }(&path, content.as_bytes());
    match written {
        Err(error) if !force && error.kind() == std::io::ErrorKind::AlreadyExists => {
            let text = format!("{shown} already exists; use --force to replace it");
            return Err(Usage(text).into());
        }
        written => written.with_context(|| format!("cannot write {shown}"))?,
    }
    eprintln!("tt-smi: wrote {shown}");
    Ok(())
}

/// Prints the settings in effect as TOML, with their origin as comments.
fn print(settings: &Settings) -> anyhow::Result<()> {
    let resolved = Resolved::load(|name| std::env::var_os(name)).map_err(|error| Usage(error.to_string()))?;
    let resolved = resolved.with_color(settings.color_flag);
    let mut out = super::stdout();
    let path = path().ok().map(|path| escape(&path.to_string_lossy()));
    match (&resolved.file, path) {
        (Some(_), Some(path)) => writeln!(out, "# {path}")?,
        (None, Some(path)) => writeln!(out, "# no file at {path}")?,
        (_, None) => writeln!(out, "# no config file: neither XDG_CONFIG_HOME nor HOME is an absolute path")?,
    }
    for key in Key::ALL {
        writeln!(out, "{:<24} # {}", key.line(&resolved.config), resolved.origin(key))?;
    }
    Ok(out.flush()?)
}
