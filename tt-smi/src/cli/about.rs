//! Arguments of the commands about the tool itself: `completions`, `man`, `config`.

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
    /// Shell to write completions for
    #[arg(value_enum)]
    pub shell: Shell,
    /// Name under which the program is installed, if not tt-smi
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
    /// Write one page per command into DIR, which must exist
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

/// `config`
#[derive(Debug, Args)]
#[command(after_help = "\
Keys: theme, color, ascii, graph, view, interval, readonly. Precedence: command-line
option, environment (TT_SMI_THEME and so on), config file, built-in default.

Examples:
  tt-smi config init && $EDITOR \"$(tt-smi config path)\"
  TT_SMI_THEME=light tt-smi config print")]
pub struct ConfigArgs {
    /// What to do with the config file
    #[command(subcommand)]
    pub action: ConfigAction,
}

/// The actions of `config`.
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Write a file with every key commented out (mode 0600)
    Init {
        /// Replace an existing file
        #[arg(long)]
        force: bool,
    },
    /// Print the settings in effect and where each comes from
    Print,
    /// Print the path of the file, whether or not it exists
    Path,
}
