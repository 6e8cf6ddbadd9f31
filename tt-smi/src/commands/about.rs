//! `tt-smi completions` and `tt-smi man`: from the same definition that reads the arguments.

use std::io::Write;

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::escape::escape;

/// Runs `completions`.
pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<()> {
    // Into memory first: it would panic where nobody reads any more.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut offered(), "tt-smi", &mut script);
    let mut out = super::stdout();
    out.write_all(&script)?;
    Ok(out.flush()?)
}

/// The definition without what is hidden: shells would offer that too.
fn offered() -> clap::Command {
    let all = Cli::command();
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    clap::Command::new("tt-smi")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .args(all.get_arguments().cloned())
        .subcommands(commands.collect::<Vec<_>>())
}

/// Runs `man`.
pub(crate) fn man(args: &ManArgs) -> anyhow::Result<()> {
    match &args.dir {
        Some(folder) => clap_mangen::generate_to(Cli::command(), folder)
            .with_context(|| format!("cannot write to {}", escape(&folder.to_string_lossy()))),
        None => {
            let mut out = super::stdout();
            clap_mangen::Man::new(Cli::command()).render(&mut out)?;
            Ok(out.flush()?)
        }
    }
}
