//! Tables of the documentation, from kept results.

use crate::goals::{Goal, goals};
use crate::outcome::{Case, Outcome};
use crate::svg::duration;
use std::fmt::Write;
use std::path::Path;

/// Benchmarks in the order of the documentation.
pub const BENCHES: [&str; 8] = ["limit", "emit", "peers", "dispatch", "read", "aggregate", "start", "screen"];
/// The section that says what is reached.
pub const GOALS: &str = "goals";

/// Every section's name and its table, for which there are results; beside them those of a run on another machine, if
/// there was one.
pub fn sections(results: &Path, beside: Option<&Path>) -> Vec<(&'static str, String)> {
    let tables = BENCHES.into_iter().filter_map(|bench| {
        let outcome = Outcome::read(results, bench).ok()?;
        let other = beside.and_then(|beside| Outcome::read(beside, bench).ok());
        Some((bench, table(&outcome, other.as_ref())))
    });
    std::iter::once((GOALS, goal_table(results, beside))).chain(tables).collect()
}

/// Puts each table between its markers, `<!-- begin: name -->` and `<!-- end: name -->`.
pub fn update(document: &str, sections: &[(&str, String)]) -> String {
    let mut document = document.to_owned();
    for (name, table) in sections {
        let (begin, end) = (format!("<!-- begin: {name} -->\n"), format!("<!-- end: {name} -->"));
        let Some(start) = document.find(&begin).map(|at| at + begin.len()) else { continue };
        let Some(length) = document[start..].find(&end) else { continue };
        document.replace_range(start..start + length, &format!("\n{table}\n"));
    }
    document
}

fn goal_table(results: &Path, beside: Option<&Path>) -> String {
    let runs: Vec<Vec<Goal>> = [Some(results), beside].into_iter().flatten().map(goals).collect();
    let heads = [Some(results), beside].into_iter().flatten().map(|folder| format!(" {} | |", maker(folder)));
    let mut text = format!("| goal | at most / least |{}\n", heads.collect::<String>());
    writeln!(text, "|---|---|{}", "---|---|".repeat(runs.len())).expect("a string takes everything");
    for (place, goal) in runs[0].iter().enumerate() {
        let bound = if goal.at_most { "<=" } else { ">=" };
        let found = runs.iter().map(|run| found_text(&run[place])).collect::<String>();
        let line = format!("| {} | {bound} {} {} |{found}", goal.text, goal.bound, goal.unit);
        writeln!(text, "{line}").expect("a string takes everything");
    }
    text
}

fn found_text(goal: &Goal) -> String {
    let found = goal.found.map_or("-".to_owned(), |found| format!("{found:.1} {}", goal.unit));
    let reached = match goal.reached() {
        Some(true) => "reached",
        Some(false) => "**not reached**",
        None => "not measured",
    };
    format!(" {found} | {reached} |")
}

/// Who made the processor of a run.
fn maker(results: &Path) -> &'static str {
    let machine =
        BENCHES.into_iter().find_map(|bench| Outcome::read(results, bench).ok()).map(|run| run.machine);
    match machine.as_deref() {
        Some(machine) if machine.contains("AMD") => "AMD",
        Some(machine) if machine.contains("Intel") => "Intel",
        _ => "measured",
    }
}

fn table(outcome: &Outcome, beside: Option<&Outcome>) -> String {
    let said = |outcome: &Outcome| {
        let quick = if outcome.quick { " A quick run." } else { "" };
        format!("{}, load {:.1} before it began.{quick}", outcome.machine, outcome.load)
    };
    let mut text = said(outcome);
    if let Some(beside) = beside {
        write!(text, " At the right: {}", said(beside)).expect("a string takes everything");
    }
    let tail = outcome.results.iter().any(|case| case.percentiles.is_some());
    let heads = [
        "| what | per event or call | multiple |",
        if tail { " p50 | p99 | p99.9 | p99.99 | max |" } else { "" },
        if beside.is_some() { " there | multiple |" } else { "" },
    ];
    let rules = [
        "|---|---:|---:|",
        if tail { "---:|---:|---:|---:|---:|" } else { "" },
        if beside.is_some() { "---:|---:|" } else { "" },
    ];
    write!(text, "\n\n{}\n{}\n", heads.concat(), rules.concat()).expect("a string takes everything");
    for case in &outcome.results {
        text += &row(case, tail);
        if let Some(beside) = beside {
            let same = beside.results.iter().find(|other| other.is_same(case));
            text += &same
                .map_or(" | |".to_owned(), |same| format!(" {} | {} |", precise(same.ns), multiple(same)));
        }
        text += "\n";
    }
    text
}

fn row(case: &Case, tail: bool) -> String {
    let parameters = case.parameters.keys().filter_map(|key| Some(format!("{key} {}", case.text(key)?)));
    let what: Vec<String> = std::iter::once(case.name.clone()).chain(parameters).collect();
    let mut row = format!("| {} | {} | {} |", what.join(", "), precise(case.ns), multiple(case));
    if tail {
        row += &match case.percentiles {
            Some(p) => {
                [p.p50, p.p99, p.p99_9, p.p99_99, p.max].map(|ns| format!(" {} |", duration(ns))).concat()
            }
            None => " | | | | |".to_owned(),
        };
    }
    row
}

fn multiple(case: &Case) -> String {
    match (case.ratio, &case.ratio_of) {
        (Some(ratio), Some(of)) if of.ends_with("loop alone") => format!("{:.1} %", ratio * 100.0),
        (Some(ratio), Some(of)) => format!("{ratio:.2} x {of}"),
        _ => String::new(),
    }
}

/// One digit more than a plot needs where it matters.
fn precise(ns: f64) -> String {
    if ns.abs() < 1000.0 { format!("{ns:.1} ns") } else { duration(ns) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_markers_changes() {
        let document = "a\n<!-- begin: x -->\nold\n<!-- end: x -->\nb\n";
        let updated = update(document, &[("x", "new".to_owned()), ("y", "none".to_owned())]);
        assert_eq!(updated, "a\n<!-- begin: x -->\n\nnew\n<!-- end: x -->\nb\n");
        assert_eq!(update(&updated, &[("x", "new".to_owned())]), updated);
    }
}
