//! Arguments of what is about the tool itself.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use clap_complete::Shell;

use super::values::command_name;

/// `completions`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi completions bash > ~/.local/share/bash-completion/completions/tt-smi
  tt-smi completions zsh > \"${fpath[1]}/_tt-smi\"
  tt-smi completions fish > ~/.config/fish/completions/tt-smi.fish")]
pub struct CompletionsArgs {
    /// Which shell they are for
    #[arg(value_enum)]
    pub shell: Shell,
    /// What the command is called there, if not tt-smi
    #[arg(long, default_value = "tt-smi", hide_default_value = true, value_parser = command_name)]
    pub name: String,
}

/// `man`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi man | man -l -
  tt-smi man --dir /usr/local/share/man/man1")]
pub struct ManArgs {
    /// Write a page for each command into DIR, which must exist
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

/// `config`
#[derive(Debug, Args)]
#[command(after_help = "\
Keys: theme, color, ascii, graph, view, interval, readonly. A flag wins over TT_SMI_THEME and so on
in the environment, that over the file, and that over the default.

Examples:
  tt-smi config init && $EDITOR \"$(tt-smi config path)\"
  TT_SMI_THEME=light tt-smi config print")]
pub struct ConfigArgs {
    /// What to do
    #[command(subcommand)]
    pub action: ConfigAction,
}

/// What to do with the settings.
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Write a file with every key, commented out (mode 0600)
    Init {
        /// Replace one that is there
        #[arg(long)]
        force: bool,
    },
    /// Show the settings in effect, and where each comes from
    Print,
    /// Show where the file is, or would be
    Path,
}
