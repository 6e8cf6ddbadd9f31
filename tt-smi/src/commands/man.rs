//! `tt-smi man`: pages generated from the definition that parses the arguments.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::cli::{Cli, ManArgs};
use crate::escape::escape;

pub(crate) fn run(args: &ManArgs) -> anyhow::Result<()> {
    let mut tool = Cli::command().disable_help_subcommand(true);
    tool.build();
    match &args.dir {
        Some(folder) => write_all(&tool, folder)
            .with_context(|| format!("cannot write to {}", escape(&folder.to_string_lossy()))),
        None => {
            let mut out = super::stdout();
            out.write_all(&page(&tool, Commands::Here)?)?;
            Ok(out.flush()?)
        }
    }
}

/// Writes a page for a command and for each of its subcommands.
fn write_all(command: &Command, folder: &Path) -> io::Result<()> {
    shown(command).try_for_each(|inner| write_all(inner, folder))?;
    let name = Man::new(command.clone()).get_filename();
    std::fs::write(folder.join(name), page(command, Commands::OnTheirPages)?)
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|inner| !inner.is_hide_set())
}

/// Where subcommands are described.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Commands {
    /// On this page; there is no other.
    Here,
    /// On a page of their own each.
    OnTheirPages,
}

fn page(command: &Command, commands: Commands) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone()).source(concat!("tt-smi ", env!("CARGO_PKG_VERSION")));
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    // No hyphenation, ragged right margin.
    out.extend_from_slice(b".nh\n.ad l\n");
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    match commands {
        _ if shown(command).next().is_none() => {}
        Commands::OnTheirPages => man.render_subcommands_section(&mut out)?,
        Commands::Here => write_commands(command, &mut out)?,
    }
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    write_text(&text, &mut out)?;
    man.render_version_section(&mut out)?;
    Ok(out)
}

fn write_commands(command: &Command, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, ".SH COMMANDS\nFor the options of a command, see {}.", roff("tt-smi COMMAND --help"))?;
    for inner in shown(command) {
        let about = inner.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(out, ".TP\n\\fB{}\\fR\n{}", roff(inner.get_name()), roff(&about))?;
    }
    Ok(())
}

/// Text after the options. Examples keep their line breaks; the rest is filled.
fn write_text(text: &str, out: &mut dyn Write) -> io::Result<()> {
    let (examples, notes): (Vec<&str>, Vec<&str>) =
        text.split("\n\n").filter(|part| !part.is_empty()).partition(|part| part.starts_with(EXAMPLES));
    for part in notes.iter().enumerate() {
        writeln!(out, "{}", if part.0 == 0 { ".SH NOTES" } else { ".PP" })?;
        part.1.lines().try_for_each(|line| writeln!(out, "{}", roff(line)))?;
    }
    for part in examples {
        writeln!(out, ".SH EXAMPLES\n.nf")?;
        let lines = part.lines().skip(1).map(|line| line.strip_prefix("  ").unwrap_or(line));
        lines.into_iter().try_for_each(|line| writeln!(out, "{}", roff(line)))?;
        writeln!(out, ".fi")?;
    }
    Ok(())
}

/// First line of a list of examples.
const EXAMPLES: &str = "Examples:\n";

/// Escapes a line for roff: backslashes, minus signs, quotes, and a leading request character.
fn roff(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
    let line = line.replace('~', "\\(ti").replace('^', "\\(ha");
    if line.starts_with('.') { format!("\\&{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines_and_the_rest_is_filled() {
        let text = "Examples:\n  tt-smi a -- 'b'    one\n  .c                 two\n\nFields: x,\ny.\n\nMore.";
        let mut out = Vec::new();
        write_text(text, &mut out).unwrap();
        let expected = "\
.SH NOTES\nFields: x,\ny.\n.PP\nMore.
.SH EXAMPLES\n.nf\ntt\\-smi a \\-\\- \\(aqb\\(aq    one\n\\&.c                 two\n.fi\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn the_only_page_names_no_other() {
        let mut tool = Cli::command().disable_help_subcommand(true);
        tool.build();
        let text = |commands| String::from_utf8(page(&tool, commands).unwrap()).unwrap();
        let (alone, first) = (text(Commands::Here), text(Commands::OnTheirPages));
        assert!(!alone.contains("(1)") && alone.contains("\\fBsnapshot\\fR\n"), "{alone}");
        assert!(first.contains("tt\\-smi\\-snapshot(1)"), "{first}");
        assert!(!alone.contains("demo\\-worker"));
    }
}
