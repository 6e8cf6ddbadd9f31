//! `tt-smi ps`: the processes, their identity and their memory.

mod width;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use serde::Serialize;
use tt_shm_reader::Class;

use crate::cli::{ProcessSort, PsArgs};
use crate::driver::SilentHolder;
use crate::escape::fit;
use crate::model::{Claim, FIGURES, Held, Model, Problem, Process, process_columns, ranges};
use crate::output::columns::{Align, Columns};
use crate::output::json::{Envelope, write as write_json};
use crate::output::paint::Paint;
use crate::output::table::{why_nothing, write_problems};
use crate::procinfo::Cache;
#[cfg(test)]
use crate::schema;
use crate::settings::Settings;
use crate::units::{self, UNKNOWN, age, bytes_or_unknown};
use width::{Column, fit_into, table};

/// Columns of an owner and of a name on a terminal; in a pipe they are whole.
const USER: usize = 12;
const NAME: usize = 24;

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
        write_silent(out, model, paint)?;
        return write_problems(out, model, paint);
    }
    let mut columns = columns(lines, settings.columns.is_some());
    if let Some(width) = settings.columns {
        columns = fit_into(columns, width);
    }
    table(&columns).write(out, paint)?;
    write_silent(out, model, paint)?;
    write_problems(out, model, paint)
}

/// The processes that hold devices and report nothing.
fn write_silent(out: &mut dyn Write, model: &Model, paint: Paint) -> io::Result<()> {
    let silent = &model.silent_holders;
    if silent.is_empty() {
        return Ok(());
    }
    writeln!(out, "Holding a device without a report; start them with `tt-smi run` to see their memory:")?;
    let heads = ["PID", "USER", "DEV", "TT-METAL SAYS", "HOST MEM", "CPU", "AGE", "PLACE", "COMMAND"];
    let mut columns = Columns::new(&heads.map(|head| match head {
        "USER" | "DEV" | "TT-METAL SAYS" | "PLACE" | "COMMAND" => (head, Align::Left),
        _ => (head, Align::Right),
    }));
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
    let now = model.clock.realtime_ns / 1_000_000_000;
    for SilentHolder { devices, holder, tt_metal } in silent {
        let age_ns = |started: u64| now.saturating_sub(started).saturating_mul(1_000_000_000);
        columns.push(vec![
            holder.pid_text(),
            holder.owner(),
            ranges(devices.iter().copied()),
            or_unknown(tt_metal.map(|bytes| format!("~{}", bytes.words()))),
            bytes_or_unknown(holder.host_resident_bytes),
            or_unknown(holder.cpu_seconds.map(|seconds| format!("{seconds:.1} s"))),
            or_unknown(holder.started_unix_seconds.map(|started| age(age_ns(started)))),
            or_unknown(holder.place()),
            or_unknown(holder.command.as_ref().map(|command| fit(command.raw(), 80))),
        ]);
    }
    columns.write(out, paint)?;
    if silent.iter().any(|holder| holder.tt_metal.is_some()) {
        writeln!(
            out,
            "~ requested bytes of one thread, as tt-metal counts them: neither a least nor a most."
        )?;
    }
    Ok(())
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
    // What is dropped first if there is no room for all.
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
    let command = |line: &Line<'_>| or_unknown(line.process.command.as_ref().map(ToString::to_string));
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
    let container = process.container.as_ref()?;
    let runtime = container.runtime.map_or_else(String::new, |runtime| format!("{runtime} "));
    Some(format!("{runtime}{}", container.short_id()))
}

/// Most ancestors to look at; a longer chain is not a real family.
const MAX_GENERATIONS: usize = 64;

/// A process and its depth in the tree.
#[derive(Debug)]
struct Line<'a> {
    process: &'a Process,
    depth: usize,
}

impl Line<'_> {
    /// Indentation of a child's name.
    fn indent(&self) -> String {
        match self.depth {
            0 => String::new(),
            depth => format!("{}└ ", "  ".repeat(depth - 1)),
        }
    }
}

/// Sorts; ties go by pid, running processes first. Unknown values come last.
fn sort(processes: &mut [&Process], by: ProcessSort) {
    match by {
        ProcessSort::Pid => {}
        ProcessSort::Name => processes.sort_by(|a, b| a.name.cmp(&b.name)),
        ProcessSort::User => processes.sort_by_key(|process| process.owner()),
        ProcessSort::Dram => most_first(processes, |process| process.total(|held| held.dram.used)),
        ProcessSort::L1 => most_first(processes, |process| process.total(|held| held.l1.used)),
        ProcessSort::Peak => most_first(processes, |process| process.total(|held| held.dram.peak.range.low)),
        ProcessSort::Rate => {
            most_first(processes, |process| process.events_per_second.map(|rate| (rate * 1000.0) as u64));
        }
        ProcessSort::Age => most_first(processes, |process| Some(process.age_ns)),
    }
}

fn most_first(processes: &mut [&Process], figure: impl Fn(&Process) -> Option<u64>) {
    processes.sort_by_key(|process| Reverse(figure(process)));
}

/// The flat list.
fn flat<'a>(processes: &[&'a Process]) -> Vec<Line<'a>> {
    processes.iter().map(|process| Line { process, depth: 0 }).collect()
}

/// Each process below its nearest listed ancestor, siblings in their given order.
fn tree<'a>(processes: &[&'a Process], system: &mut Cache) -> Vec<Line<'a>> {
    let parent = |pid: u32| system.get(pid).and_then(|info| info.parent);
    lines(processes, &parents(processes, parent))
}

/// Index of each one's nearest listed ancestor.
fn parents(processes: &[&Process], mut parent: impl FnMut(u32) -> Option<u32>) -> Vec<Option<usize>> {
    // A pid that is only claimed makes nobody a parent.
    let known = processes.iter().enumerate().filter(|(_, process)| !process.is_claimed());
    let places: HashMap<u64, usize> =
        known.filter_map(|(place, process)| Some((process.pid?, place))).collect();
    let mut nearest = |process: &Process| {
        let mut ancestor = process.parent_pid?;
        for _ in 0..MAX_GENERATIONS {
            if let Some(place) = places.get(&u64::from(ancestor)) {
                return Some(*place);
            }
            ancestor = parent(ancestor)?;
        }
        None
    };
    processes.iter().map(|process| nearest(process)).collect()
}

fn lines<'a>(processes: &[&'a Process], parents: &[Option<usize>]) -> Vec<Line<'a>> {
    let mut lines = Vec::with_capacity(processes.len());
    let children = |of: Option<usize>| (0..processes.len()).rev().filter(move |place| parents[*place] == of);
    let mut open: Vec<(usize, usize)> = children(None).map(|place| (place, 0)).collect();
    while let Some((place, depth)) = open.pop() {
        lines.push(Line { process: processes[place], depth });
        open.extend(children(Some(place)).map(|place| (place, depth + 1)));
    }
    // A pid reused meanwhile can make a cycle; its members are listed nevertheless.
    let shown = |process: &&&Process| !lines.iter().any(|line| std::ptr::eq(line.process, **process));
    let missing: Vec<Line<'a>> =
        processes.iter().filter(shown).map(|process| Line { process, depth: 0 }).collect();
    lines.extend(missing);
    lines
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PsJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    /// In the order asked for.
    processes: Vec<ProcessJson<'a>>,
    /// Processes that hold devices, as the driver or tt-metal says, and report nothing, by pid.
    silent_holders: &'a [SilentHolder],
    /// What is missing.
    errors: &'a [Problem],
}

/// A process, all its devices together.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ProcessJson<'a> {
    #[serde(flatten)]
    process: &'a Process,
    /// Since its segment was made.
    running_seconds: f64,
    /// Events of the last second; `None` if nobody counted for so long.
    events_per_second: Option<f64>,
    /// Indices of its devices, ascending.
    devices: Vec<usize>,
    /// Sums over all devices; `None` for a process that has ended.
    #[serde(flatten)]
    #[cfg_attr(test, schemars(schema_with = "sums_schema"))]
    sums: BTreeMap<&'static str, Option<u64>>,
    /// Live bytes by memory class; each `None` once it ended.
    #[cfg_attr(test, schemars(schema_with = "schema::classes_bytes_or_null"))]
    classes_bytes: BTreeMap<&'static str, Option<u64>>,
    /// What is wrong with it, in a word or two each: broken, degraded, unlinked, missed N, or a misuse and how often.
    flags: Vec<String>,
    /// By index of the device: what the process says of it that is not taken for true.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Claim>"))]
    claims_conflict: BTreeMap<usize, &'a Claim>,
}

/// The columns whose sums are shown, and what these are called.
fn sums() -> impl Iterator<Item = (&'static str, &'static crate::model::Column)> {
    let columns = process_columns().filter(|column| column.class.is_none());
    columns.filter_map(|column| Some((column.sum.as_deref()?, column)))
}

#[cfg(test)]
fn sums_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schema::object(sums().map(|(name, column)| {
        let help = format!("{} Summed over all devices; null if that is not known.", column.help);
        let schema = schemars::json_schema!({ "type": ["integer", "null"], "minimum": 0 });
        (name.to_owned(), schema::named(schema, help))
    }))
}

impl<'a> PsJson<'a> {
    fn new(processes: &[&'a Process], model: &'a Model, namespace: &str) -> PsJson<'a> {
        PsJson {
            envelope: Envelope::new(model.clock, &model.host, namespace),
            processes: processes.iter().map(|process| ProcessJson::new(process)).collect(),
            silent_holders: &model.silent_holders,
            errors: &model.problems,
        }
    }
}

impl<'a> ProcessJson<'a> {
    fn new(process: &'a Process) -> ProcessJson<'a> {
        let class = |class: Class| (class.name(), process.total(|held| held.class(class).used));
        ProcessJson {
            process,
            running_seconds: process.running_seconds(),
            events_per_second: process.events_per_second,
            devices: process.usages.iter().map(|usage| usage.device).collect(),
            sums: sums().map(|(name, column)| (name, process.sum(column))).collect(),
            classes_bytes: Class::ALL.map(class).into(),
            flags: process.flags(),
            claims_conflict: process.claims().collect(),
        }
    }
}
