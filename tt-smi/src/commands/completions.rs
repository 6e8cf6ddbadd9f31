//! `tt-smi completions`: from the same definition that reads the arguments.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::{Cli, CompletionsArgs};

/// Runs it.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    // Into memory first: it would panic where nobody reads any more.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut offered(), &args.name, &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = if args.shell == Shell::Bash { mend_bash(&script, &args.name) } else { script.into_owned() };
    let mut out = super::stdout();
    out.write_all(script.as_bytes())?;
    Ok(out.flush()?)
}

/// clap_complete 4.6 (clap issue 6421) takes a hyphen in the name of the tool for the border of a command in some places and not in others,
/// so that nothing behind a command would be completed.
fn mend_bash(script: &str, name: &str) -> String {
    script.replace(&name.replace('-', "__subcmd__"), &name.replace('-', "__"))
}

/// The definition without what is hidden, which shells would offer too, and without what is refused.
fn offered() -> clap::Command {
    let all = Cli::command();
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    clap::Command::new("tt-smi")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .args(all.get_arguments().filter(|argument| argument.get_id() != "reset").cloned())
        .subcommands(commands.collect::<Vec<_>>())
}
