//! Which plots there are, and what is in them.

use crate::outcome::{Case, Outcome};
use crate::svg::{Bars, Lines, Series};
use std::io;
use std::path::Path;
use tt_shm_measure::timing::Percentiles;

/// Draws everything for which there are results; says what was drawn.
pub fn draw_all(results: &Path, folder: &Path) -> io::Result<Vec<String>> {
    std::fs::create_dir_all(folder)?;
    let mut drawn = Vec::new();
    for (file, bench, draw) in FIGURES {
        let Ok(outcome) = Outcome::read(results, bench) else { continue };
        std::fs::write(folder.join(file), draw(&outcome))?;
        drawn.push((*file).to_owned());
    }
    Ok(drawn)
}

type Draw = fn(&Outcome) -> String;

const FIGURES: &[(&str, &str, Draw)] = &[
    ("emit-live.svg", "emit", emit_live),
    ("emit-tail.svg", "emit", emit_tail),
    ("peers.svg", "peers", peers),
    ("peers-tail.svg", "peers", peers_tail),
    ("dispatch.svg", "dispatch", dispatch),
    ("read.svg", "read", read),
    ("fold-rings.svg", "aggregate", fold_rings),
    ("aggregate-processes.svg", "aggregate", |outcome| growth(outcome, "processes", "processes")),
    ("aggregate-devices.svg", "aggregate", |outcome| growth(outcome, "devices", "devices of a process")),
    ("aggregate-live.svg", "aggregate", |outcome| growth(outcome, "live", "live allocations")),
];

/// Points of the cases that match, by a parameter.
fn series(outcome: &Outcome, label: &str, name: &str, fixed: &[(&str, &str)], x: &str) -> Series {
    let cases = outcome.results.iter().filter(|case| case.is(name, fixed));
    let points = cases.filter_map(|case| Some((case.number(x)?, case.ns))).collect();
    Series { name: label.to_owned(), points }
}

fn lines(title: &str, x_label: &str, series: Vec<Series>) -> String {
    let mut xs: Vec<f64> = series.iter().flat_map(|series| &series.points).map(|point| point.0).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let x_ticks = xs.into_iter().map(|x| (x, format!("{x}"))).collect();
    Lines { title: title.to_owned(), x_label: x_label.to_owned(), x_ticks, series }.draw()
}

fn emit_live(outcome: &Outcome) -> String {
    let one = |label, handle, order| series(outcome, label, handle, &[("order", order)], "live");
    let mut all = vec![
        one("shared, random", "shared", "random"),
        one("exclusive, random", "exclusive", "random"),
        one("shared, LIFO", "shared", "lifo"),
        one("exclusive, LIFO", "exclusive", "lifo"),
    ];
    if let Some(limit) = outcome.find("limit", &[]) {
        let points = [1e3, 1e6].map(|live| (live, limit.ns)).to_vec();
        all.push(Series { name: "limit".to_owned(), points });
    }
    lines("Emit: mean per event", "live allocations", all)
}

/// A line from the median to the slowest of 10 000.
fn tail(label: &str, case: Option<&Case>) -> Option<Series> {
    let Percentiles { p50, p99, p99_9, p99_99, .. } = case?.percentiles?;
    let points = vec![(2.0, p50), (100.0, p99), (1e3, p99_9), (1e4, p99_99)];
    Some(Series { name: label.to_owned(), points })
}

fn tails(title: &str, series: Vec<Option<Series>>) -> String {
    let ticks = [(2.0, "p50"), (100.0, "p99"), (1e3, "p99.9"), (1e4, "p99.99")];
    Lines {
        title: title.to_owned(),
        x_label: "share of events that are faster".to_owned(),
        x_ticks: ticks.map(|(x, name)| (x, name.to_owned())).to_vec(),
        series: series.into_iter().flatten().collect(),
    }
    .draw()
}

fn emit_tail(outcome: &Outcome) -> String {
    let shared = |live| outcome.find("shared", &[("live", live), ("order", "random")]);
    let all = vec![
        tail("limit", outcome.find("limit", &[])),
        tail("1 000 live", shared("1000")),
        tail("10 000 live", shared("10000")),
        tail("100 000 live", shared("100000")),
        tail("1 000 000 live", shared("1000000")),
    ];
    tails("Emit: single events, shared handle, random order", all)
}

fn bars(title: &str, outcome: &Outcome) -> String {
    let label = |case: &Case| {
        let parameters = case.parameters.keys().filter_map(|key| Some(format!("{key} {}", case.text(key)?)));
        std::iter::once(case.name.clone()).chain(parameters).collect::<Vec<_>>().join(", ")
    };
    let bars = outcome.results.iter().map(|case| (label(case), case.ns)).collect();
    Bars { title: title.to_owned(), bars }.draw()
}

fn peers(outcome: &Outcome) -> String {
    bars("One event told to each, 1 000 live: mean", outcome)
}

fn peers_tail(outcome: &Outcome) -> String {
    let of = |label, name| tail(label, outcome.find(name, &[]));
    let all = vec![
        of("ours, shared", "shared"),
        of("tt-metal region", "tt-metal region"),
        of("LTTng-UST", "LTTng-UST tracepoint"),
        of("iceoryx2", "iceoryx2 publish + timestamp"),
        of("rtrb", "rtrb + timestamp"),
        of("socket send", "socket send"),
    ];
    tails("One event told to each: single events", all)
}

fn dispatch(outcome: &Outcome) -> String {
    let added = |label, kind: &str, tracking| {
        let fixed = [("tracking", tracking), ("work us", "5")];
        series(outcome, label, &format!("{kind}: added"), &fixed, "devices")
    };
    let all = vec![
        added("on, cached", "cached dispatch", "on"),
        added("on, first launch", "first launch", "on"),
        added("socket, cached", "cached dispatch", "socket"),
        added("socket, first launch", "first launch", "socket"),
    ];
    lines("Added to a dispatch with 5 us of host work", "devices", all)
}

fn read(outcome: &Outcome) -> String {
    bars("One look", outcome)
}

fn fold_rings(outcome: &Outcome) -> String {
    let of = |label, turn| series(outcome, label, "fold, per event", &[("turn", turn)], "rings");
    let all = vec![of("64 events in a row", "64"), of("2 events in a row", "2")];
    lines("Aggregator: fold, per event", "rings", all)
}

fn growth(outcome: &Outcome, grows: &str, label: &str) -> String {
    let of = |label, name| series(outcome, label, name, &[("grows", grows)], "to");
    let all = vec![
        of("fold, per event", "series: fold, per event"),
        of("idle poll", "series: idle poll"),
        of("start", "series: start"),
    ];
    lines(&format!("Aggregator: cost as there are more {label}"), label, all)
}
