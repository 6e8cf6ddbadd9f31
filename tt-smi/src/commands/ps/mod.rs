//! `tt-smi ps`: the processes, their identity and their memory.

mod json;
mod order;
mod width;

use std::io::{self, Write};

use crate::cli::PsArgs;
use crate::escape::fit;
use crate::model::{FIGURES, Held, Model, Process};
use crate::output::columns::Align;
use crate::output::json::write as write_json;
use crate::output::table::{why_nothing, write_problems};
use crate::output::units::{self, UNKNOWN, age, bytes_or_unknown};
use crate::procinfo::Cache;
use crate::settings::Settings;
use json::PsJson;
use order::{Line, flat, sort, tree};
use width::{Column, fit_into, table};

/// Columns of an owner and of a name on a terminal; in a pipe they are whole.
const USER: usize = 12;
const NAME: usize = 24;

/// Runs the command.
pub(crate) fn run(args: &PsArgs, settings: &Settings) -> anyhow::Result<()> {
    let now = super::Now::read(settings, &args.only.on.device)?;
    let matches = |process: &&Process| args.only.query.matches(*process);
    let mut processes: Vec<&Process> = now.model.processes.iter().filter(matches).collect();
    sort(&mut processes, args.sort);
    let mut out = super::stdout();
    if args.json {
        write_json(&mut out, &PsJson::new(&processes, &now.model, settings.namespace.as_str()))?;
    } else {
        let lines = if args.tree { tree(&processes, &mut Cache::default()) } else { flat(&processes) };
        write(&mut out, &lines, &now.model, settings)?;
    }
    out.flush()?;
    now.ensure_readable()
}

fn write(out: &mut dyn Write, lines: &[Line<'_>], model: &Model, settings: &Settings) -> io::Result<()> {
    let paint = settings.paint;
    if lines.is_empty() {
        match (model.processes.is_empty(), model.hidden) {
            (true, 0) => writeln!(out, "No process reports in this namespace (see `tt-smi doctor`).")?,
            (true, _) => writeln!(out, "No process: {}.", why_nothing(model))?,
            (false, _) => writeln!(out, "No matching processes.")?,
        }
        return write_problems(out, model, paint);
    }
    let mut columns = columns(lines, settings.columns.is_some());
    if let Some(width) = settings.columns {
        columns = fit_into(columns, width);
    }
    table(&columns).write(out, paint)?;
    write_problems(out, model, paint)
}

/// All of them; on a terminal, with names no longer than people need.
fn columns(lines: &[Line<'_>], is_terminal: bool) -> Vec<Column> {
    use Align::{Left, Right};
    let short = |text: String, width: usize| if is_terminal { fit(&text, width) } else { text };
    let column = |head, align, rank, cell: &dyn Fn(&Line<'_>) -> String| Column {
        head,
        align,
        rank,
        may_be_cut: matches!(head, "NAME" | "COMMAND"),
        cells: lines.iter().map(cell).collect(),
    };
    // What is left out first where there is no room for all.
    let rank = |head| match head {
        "DRAM" => None,
        "L1" => Some(10),
        _ => Some(1),
    };
    let held = FIGURES.iter().filter_map(|figure| {
        let used = |held: &Held| figure.of(held).map_or(0, |memory| memory.used);
        let head = figure.heading?;
        Some(column(head, Right, rank(head), &|line| bytes_or_unknown(line.process.total(used))))
    });
    let peak = |line: &Line<'_>| bytes_or_unknown(line.process.total(|held| held.dram.peak.range.low));
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
    let name = |line: &Line<'_>| format!("{}{}", line.indent(), short(line.process.name.to_string(), NAME));
    let rate = |line: &Line<'_>| or_unknown(line.process.events_per_second.map(units::count));
    let command = |line: &Line<'_>| or_unknown(line.process.command().map(ToString::to_string));
    let mut all = vec![
        column("PID", Right, None, &|line| line.process.pid_text()),
        column("USER", Left, Some(8), &|line| short(line.process.owner(), USER)),
        column("NAME", Left, None, &name),
        column("STATE", Left, Some(6), &|line| line.process.state_text().to_owned()),
        column("DEV", Left, Some(9), &|line| line.process.device_set()),
    ];
    all.extend(held);
    all.extend([
        column("PEAK", Right, Some(7), &peak),
        column("EV/S", Right, Some(5), &rate),
        column("AGE", Right, Some(4), &|line| age(line.process.age_ns)),
    ]);
    if lines.iter().any(|line| container(line.process).is_some()) {
        all.push(column("CONTAINER", Left, Some(0), &|line| or_unknown(container(line.process))));
    }
    all.push(column("COMMAND", Left, Some(11), &command));
    all
}

/// `docker 0123456789ab`.
fn container(process: &Process) -> Option<String> {
    let container = process.info.as_ref()?.container.as_ref()?;
    let runtime = container.runtime.map_or_else(String::new, |runtime| format!("{runtime} "));
    Some(format!("{runtime}{}", container.short_id()))
}
