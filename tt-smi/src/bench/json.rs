//! The findings as JSON: a flat object, so that a script needs one key for one figure.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use tt_shm_measure::launches::Launch;
use tt_shm_measure::timing::Percentiles;

use crate::bench::findings::{
    Added, EMIT_SHARED, Finding, Findings, LIMIT, ROW_READ, SOCKET_QUERY, SOCKET_SEND,
};
use crate::model::Clock;
use crate::output::json::SCHEMA;

/// Writes the findings in the order of the table.
#[derive(Debug)]
pub(crate) struct FindingsJson<'a>(pub &'a Findings);

impl Serialize for FindingsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(entries(self.0))
    }
}

fn entries(all: &Findings) -> Vec<(String, Value)> {
    let about = &all.circumstances;
    let mut entries = vec![
        ("schema".to_owned(), json!(SCHEMA)),
        ("timestamp".to_owned(), json!(Clock::now().timestamp())),
        ("host".to_owned(), json!(crate::model::host())),
        ("machine".to_owned(), json!(about.machine)),
        ("cores".to_owned(), json!(about.cores)),
        ("load_average".to_owned(), json!(about.load)),
        ("seconds".to_owned(), number(all.seconds)),
        ("notes".to_owned(), json!(about.notes())),
    ];
    for found in &all.findings {
        entries.extend(figures(found));
        if found.case.is_event && found.case.key != LIMIT {
            entries.push(multiple(all, found.case.key, LIMIT));
        }
    }
    entries.push(("disabled_beyond_loop_ns".to_owned(), number(all.disabled_beyond_loop_ns())));
    entries.push(multiple(all, SOCKET_SEND, EMIT_SHARED));
    entries.push(multiple(all, SOCKET_QUERY, ROW_READ));
    entries.extend(all.added.iter().flat_map(added));
    entries
}

/// The figure and its percentiles: `<case>_ns`, `<case>_p50_ns`, ...
fn figures(found: &Finding) -> Vec<(String, Value)> {
    let key = found.case.key;
    let mut entries = vec![(format!("{key}_ns"), number(found.measured.ns))];
    if let Some(Percentiles { p50, p99, p99_9, p99_99, max }) = found.measured.percentiles {
        let all = [("p50", p50), ("p99", p99), ("p99_9", p99_9), ("p99_99", p99_99), ("max", max)];
        entries.extend(all.map(|(name, ns)| (format!("{key}_{name}_ns"), number(ns))));
    }
    entries
}

fn multiple(all: &Findings, key: &str, of: &str) -> (String, Value) {
    (format!("{key}_multiple_of_{of}"), number(all.ratio(key, of)))
}

fn added(added: &Added) -> [(String, Value); 2] {
    let launch = match added.launch {
        Launch::Cached => "dispatch_cached",
        Launch::First => "dispatch_first",
    };
    let work = added.work_us;
    [
        (format!("{launch}_added_to_{work}us_ns"), number(added.ns)),
        (format!("{launch}_percent_of_{work}us"), number(added.percent)),
    ]
}

/// To the thousandth: more digits would be noise.
fn number(value: f64) -> Value {
    json!((value * 1e3).round() / 1e3)
}
