//! The findings as a table.

use std::io::{self, Write};

use tt_shm_measure::timing::Percentiles;

use crate::bench::findings::{
    EMIT_SHARED, Finding, Findings, LIMIT, LOOP_ALONE, ROW_READ, SOCKET_QUERY, SOCKET_SEND,
};
use crate::bench::loops::WORK;
use crate::output::columns::{Align, Columns};
use crate::output::paint::Paint;

/// Writes the tables, what they say in short, and what to bear in mind.
pub(crate) fn write(out: &mut dyn Write, all: &Findings, paint: Paint) -> io::Result<()> {
    let about = &all.circumstances;
    writeln!(out, "{}, load {:.1}, measured for {:.0} s\n", about.machine, about.load, all.seconds)?;
    costs(all).write(out, paint)?;
    writeln!(out)?;
    shares(all).write(out, paint)?;
    writeln!(out, "\n{}", paint.bold("IN SHORT"))?;
    for line in summary(all) {
        writeln!(out, "  {line}")?;
    }
    writeln!(out)?;
    for line in LEGEND {
        writeln!(out, "{}", paint.dim(line))?;
    }
    for note in about.notes() {
        writeln!(out, "{}", paint.warn(&format!("note: {note}")))?;
    }
    Ok(())
}

const LEGEND: [&str; 9] = [
    "COST: mean of the best of many rounds of 0.3 ms, all cases taking turns; the median of a",
    "first launch and of a query. X LIMIT: how many times the least that any ring of timestamped",
    "events can cost. p50 to max: single calls, with what timing one costs (\"loop alone\").",
    "Exclusive: a handle of one thread; shared: of many, with a lock, which nobody else wants unless",
    "it says 2 threads: then another one does the same at the same time, as fast as it can.",
    "ADDED: how much longer a loop with so much host work per dispatch takes, on one device;",
    "on N devices it is about N times that. Socket: a blocking send under a mutex to a server",
    "that keeps the sums, and a question to it.",
    "All benchmarks: cargo bench -p tt-shm-benches",
];

fn costs(all: &Findings) -> Columns {
    use Align::{Left, Right};
    let mut columns = Columns::new(&[
        ("WHAT", Left),
        ("COST", Right),
        ("X LIMIT", Right),
        ("p50", Right),
        ("p99", Right),
        ("p99.9", Right),
        ("p99.99", Right),
        ("max", Right),
    ]);
    for found in &all.findings {
        columns.push(cost(all, found));
    }
    columns
}

fn cost(all: &Findings, found: &Finding) -> Vec<String> {
    let multiple = if found.case.is_event { times(all.ratio(found.case.key, LIMIT)) } else { String::new() };
    let mut cells = vec![found.case.name.to_owned(), time(found.measured.ns), multiple];
    cells.extend(match found.measured.percentiles {
        Some(Percentiles { p50, p99, p99_9, p99_99, max }) => [p50, p99, p99_9, p99_99, max].map(tail),
        None => Default::default(),
    });
    cells
}

fn shares(all: &Findings) -> Columns {
    let heads = WORK.map(|(_, name)| (name, Align::Right));
    let mut columns = Columns::new(&[&[("ADDED TO A DISPATCH OF", Align::Left)], heads.as_slice()].concat());
    for line in all.added.chunk_by(|one, next| one.launch == next.launch) {
        let share =
            |percent: f64| if percent < 10.0 { format!("{percent:.1}%") } else { format!("{percent:.0}%") };
        let cells = line.iter().map(|added| format!("{} {:>5}", time(added.ns), share(added.percent)));
        columns.push(std::iter::once(line[0].launch.name().to_owned()).chain(cells).collect());
    }
    columns
}

fn summary(all: &Findings) -> [String; 3] {
    let ns = |key| time(all.ns(key));
    let ratio = |key, of| times(all.ratio(key, of));
    [
        format!(
            "An event costs {} here, {} the limit; told through a socket, {} ({} as much).",
            ns(EMIT_SHARED),
            ratio(EMIT_SHARED, LIMIT),
            ns(SOCKET_SEND),
            ratio(SOCKET_SEND, EMIT_SHARED)
        ),
        format!(
            "A look at a device costs {}; asking a server, {} ({} as much).",
            ns(ROW_READ),
            ns(SOCKET_QUERY),
            ratio(SOCKET_QUERY, ROW_READ)
        ),
        format!(
            "With tracking off, a call costs {:.1} ns more than the loop around it ({}).",
            all.disabled_beyond_loop_ns(),
            ns(LOOP_ALONE)
        ),
    ]
}

/// `5.3x`, `605x`.
fn times(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.1}x") } else { format!("{ratio:.0}x") }
}

/// `1.5 ns`, `295 ns`, `2.0 us`, `11 us`.
fn time(ns: f64) -> String {
    let (value, unit) = scaled(ns);
    if value < 99.95 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

/// A single call's: the counter's steps make more digits meaningless.
fn tail(ns: f64) -> String {
    let (value, unit) = scaled(ns);
    if value < 9.95 && unit != "ns" { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

fn scaled(ns: f64) -> (f64, &'static str) {
    match ns {
        ns if ns < 999.5 => (ns, "ns"),
        ns if ns < 999_500.0 => (ns / 1e3, "us"),
        ns => (ns / 1e6, "ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short_and_in_the_right_unit() {
        assert_eq!(
            [1.52, 99.96, 999.4, 2_040.0, 11_000_000.0].map(time),
            ["1.5 ns", "100 ns", "999 ns", "2.0 us", "11.0 ms"]
        );
        assert_eq!([10.02, 999.9, 12_345.0, 4.1e6].map(tail), ["10 ns", "1.0 us", "12 us", "4.1 ms"]);
        assert_eq!([5.34, 604.9].map(times), ["5.3x", "605x"]);
    }
}
