//! `tt-smi completions`: generated from the definition that parses the arguments.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::{Cli, CompletionsArgs};

pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    // Into memory first: the generator would panic on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut offered(), &args.name, &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = if args.shell == Shell::Bash { mend_bash(&script, &args.name) } else { script.into_owned() };
    let mut out = super::stdout();
    out.write_all(script.as_bytes())?;
    Ok(out.flush()?)
}

/// Works around clap_complete 4.6 (clap issue 6421): in some places it takes a hyphen in the program's name for the
/// separator of a subcommand, so that nothing after a subcommand would be completed.
fn mend_bash(script: &str, name: &str) -> String {
    script.replace(&name.replace('-', "__subcmd__"), &name.replace('-', "__"))
}

/// The definition without hidden commands, which shells would offer too, and without the unsupported `--reset`.
fn offered() -> clap::Command {
    let all = Cli::command();
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    clap::Command::new("tt-smi")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .args(all.get_arguments().filter(|argument| argument.get_id() != "reset").cloned())
        .subcommands(commands.collect::<Vec<_>>())
}
