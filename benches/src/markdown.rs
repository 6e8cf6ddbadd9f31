//! Tables of the documentation, from kept results.

use crate::goals::goals;
use crate::outcome::{Case, Outcome};
use crate::svg::duration;
use std::fmt::Write;
use std::path::Path;

/// Benchmarks in the order of the documentation.
pub const BENCHES: [&str; 8] = ["limit", "emit", "peers", "dispatch", "read", "aggregate", "start", "screen"];
/// The section that says what is reached.
pub const GOALS: &str = "goals";

/// Every section's name and its table, for which there are results.
pub fn sections(results: &Path) -> Vec<(&'static str, String)> {
    let tables = BENCHES.into_iter().filter_map(|bench| {
        let outcome = Outcome::read(results, bench).ok()?;
        Some((bench, table(&outcome)))
    });
    std::iter::once((GOALS, goal_table(results))).chain(tables).collect()
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

fn goal_table(results: &Path) -> String {
    let mut text = "| goal | at most / least | measured | |\n|---|---|---|---|\n".to_owned();
    for goal in goals(results) {
        let bound = if goal.at_most { "<=" } else { ">=" };
        let found = goal.found.map_or("-".to_owned(), |found| format!("{found:.1} {}", goal.unit));
        let reached = match goal.reached() {
            Some(true) => "reached",
            Some(false) => "**not reached**",
            None => "not measured",
        };
        let line = format!("| {} | {bound} {} {} | {found} | {reached} |", goal.text, goal.bound, goal.unit);
        writeln!(text, "{line}").expect("a string takes everything");
    }
    text
}

fn table(outcome: &Outcome) -> String {
    let mut text = format!("{}, load {:.1} before it began.", outcome.machine, outcome.load);
    if outcome.quick {
        text += " A quick run.";
    }
    let tail = outcome.results.iter().any(|case| case.percentiles.is_some());
    text += "\n\n| what | per event or call | multiple |";
    text += if tail { " p50 | p99 | p99.9 | p99.99 | max |\n" } else { "\n" };
    text += "|---|---:|---:|";
    text += if tail { "---:|---:|---:|---:|---:|\n" } else { "\n" };
    for case in &outcome.results {
        text += &row(case, tail);
    }
    text
}

fn row(case: &Case, tail: bool) -> String {
    let parameters = case.parameters.keys().filter_map(|key| Some(format!("{key} {}", case.text(key)?)));
    let what: Vec<String> = std::iter::once(case.name.clone()).chain(parameters).collect();
    let multiple = match (case.ratio, &case.ratio_of) {
        (Some(ratio), Some(of)) if of.ends_with("loop alone") => format!("{:.1} %", ratio * 100.0),
        (Some(ratio), Some(of)) => format!("{ratio:.2} x {of}"),
        _ => String::new(),
    };
    let mut row = format!("| {} | {} | {multiple} |", what.join(", "), precise(case.ns));
    if tail {
        row += &match case.percentiles {
            Some(p) => {
                [p.p50, p.p99, p.p99_9, p.p99_99, p.max].map(|ns| format!(" {} |", duration(ns))).concat()
            }
            None => " | | | | |".to_owned(),
        };
    }
    row + "\n"
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
