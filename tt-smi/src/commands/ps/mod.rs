//! `tt-smi ps`: the processes, their identity and their memory.

mod json;
mod order;

use std::io::{self, Write};

use tt_shm_reader::Class;

use crate::cli::PsArgs;
use crate::escape::fit;
use crate::model::{Model, Process};
use crate::output::columns::{Align, Columns};
use crate::output::json::write as write_json;
use crate::output::paint::Paint;
use crate::output::table::{WHO, who, why_nothing, write_problems};
use crate::output::units::{self, UNKNOWN, age, bytes_or_unknown};
use crate::procinfo::Cache;
use crate::settings::Settings;
use json::PsJson;
use order::{Line, flat, sort, tree};

/// Runs the command.
pub(crate) fn run(args: &PsArgs, settings: &Settings) -> anyhow::Result<()> {
    let model = super::model_now(settings)?;
    let mut processes: Vec<&Process> =
        model.processes.iter().filter(|process| args.query.matches(*process)).collect();
    sort(&mut processes, args.sort);
    let mut out = super::stdout();
    if args.json {
        write_json(&mut out, &PsJson::new(&processes, &model, settings.namespace.as_str()))?;
    } else {
        let lines = if args.tree { tree(&processes, &mut Cache::default()) } else { flat(&processes) };
        write(&mut out, &lines, &model, settings.paint)?;
    }
    out.flush()?;
    super::ensure_readable(&model)
}

fn write(out: &mut dyn Write, lines: &[Line<'_>], model: &Model, paint: Paint) -> io::Result<()> {
    use Align::{Left, Right};
    if lines.is_empty() {
        match (model.processes.is_empty(), model.hidden) {
            (true, 0) => writeln!(out, "No process reports in this namespace (see `tt-smi doctor`).")?,
            (true, _) => writeln!(out, "No process: {}.", why_nothing(model))?,
            (false, _) => writeln!(out, "No matching processes.")?,
        }
        return write_problems(out, model, paint);
    }
    let in_container = lines.iter().any(|line| container(line.process).is_some());
    let mut heads = WHO.to_vec();
    heads.extend([
        ("DRAM", Right),
        ("TRACE", Right),
        ("L1", Right),
        ("CB", Right),
        ("KERNELS", Right),
        ("PEAK", Right),
        ("EV/S", Right),
        ("AGE", Right),
    ]);
    heads.extend(in_container.then_some(("CONTAINER", Left)));
    heads.push(("COMMAND", Left));
    let mut columns = Columns::new(&heads);
    for line in lines {
        let mut cells = cells(line);
        cells.extend(in_container.then(|| container(line.process).unwrap_or_else(|| UNKNOWN.to_owned())));
        cells.push(line.process.command().map_or_else(|| UNKNOWN.to_owned(), |command| fit(command, 60)));
        columns.push(cells);
    }
    columns.write(out, paint)?;
    write_problems(out, model, paint)
}

fn cells(line: &Line<'_>) -> Vec<String> {
    let process = line.process;
    let all = |figure: fn(&crate::model::Usage) -> u64| bytes_or_unknown(process.total(figure));
    let figures = [
        all(|usage| usage.dram.used),
        all(|usage| usage.class(Class::Trace).bytes),
        all(|usage| usage.l1.used),
        all(|usage| usage.cb_resident),
        all(|usage| usage.kernel_loaded().0),
        all(|usage| usage.dram.peak.range.low),
        process.events_per_second.map_or_else(|| UNKNOWN.to_owned(), units::count),
        age(process.age_ns),
    ];
    who(process, &line.indent()).into_iter().chain(figures).collect()
}

/// `docker 0123456789ab`.
fn container(process: &Process) -> Option<String> {
    let container = process.info.as_ref()?.container.as_ref()?;
    let runtime = container.runtime.map_or_else(String::new, |runtime| format!("{runtime} "));
    Some(format!("{runtime}{}", container.short_id()))
}
