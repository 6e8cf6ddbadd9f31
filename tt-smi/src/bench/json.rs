//! The findings as JSON: a flat object, so that a script needs one key for one figure.

use serde::{Serialize, Serializer};
use tt_shm_measure::launches::Launch;
use tt_shm_measure::timing::Percentiles;

use crate::bench::findings::{
    Added, EMIT_SHARED, Finding, Findings, LIMIT, ROW_READ, SOCKET_QUERY, SOCKET_SEND,
};
use crate::model::Clock;
use crate::output::json::SCHEMA;

/// The findings in the order of the table.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FindingsJson<'a> {
    /// Version of this format; raised when a key changes its meaning or goes away. A later tt-smi may have more keys;
    /// this file has those of its own.
    #[cfg_attr(test, schemars(schema_with = "crate::schema::version"))]
    schema: u32,
    /// When, RFC 3339, UTC, to the microsecond.
    #[cfg_attr(test, schemars(schema_with = "crate::schema::timestamp"))]
    timestamp: String,
    /// Name of the machine.
    host: String,
    /// Processor, cores, memory, kernel.
    machine: &'a str,
    /// Cores that it may use.
    cores: usize,
    /// Of the last minute, before it began; `None` if not known.
    #[cfg_attr(test, schemars(with = "Option<f64>"))]
    load_average: f64,
    /// How long it measured.
    seconds: f64,
    /// What may have disturbed, a sentence each.
    notes: Vec<String>,
    #[serde(flatten)]
    figures: Figures<'a>,
}

impl<'a> FindingsJson<'a> {
    pub(crate) fn new(findings: &'a Findings) -> FindingsJson<'a> {
        let about = &findings.circumstances;
        FindingsJson {
            schema: SCHEMA,
            timestamp: Clock::now().timestamp(),
            host: crate::model::host(),
            machine: &about.machine,
            cores: about.cores,
            load_average: about.load,
            seconds: rounded(findings.seconds),
            notes: about.notes(),
            figures: Figures(findings),
        }
    }
}

#[derive(Debug)]
struct Figures<'a>(&'a Findings);

impl Serialize for Figures<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(entries(self.0))
    }
}

#[cfg(test)]
impl schemars::JsonSchema for Figures<'_> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Figures".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "patternProperties": {
                "^[a-z0-9_]+_ns$": {
                    "type": "number",
                    "description": "Nanoseconds: of a case, of a percentile of single calls (_p50_, _p99_, _p99_9_, \
                        _p99_99_, _max_), or added to a loop with so much work."
                },
                "^[a-z0-9_]+_multiple_of_[a-z0-9_]+$": {
                    "type": "number",
                    "minimum": 0,
                    "description": "One case in multiples of another."
                },
                "^[a-z0-9_]+_percent_of_[0-9]+us$": {
                    "type": "number",
                    "description": "Percent that a loop with so much work becomes slower."
                }
            }
        })
    }
}

fn entries(all: &Findings) -> Vec<(String, f64)> {
    let mut entries = Vec::new();
    for found in &all.findings {
        entries.extend(figures(found));
        if found.case.is_event && found.case.key != LIMIT {
            entries.push(multiple(all, found.case.key, LIMIT));
        }
    }
    entries.push(("disabled_beyond_loop_ns".to_owned(), rounded(all.disabled_beyond_loop_ns())));
    entries.push(multiple(all, SOCKET_SEND, EMIT_SHARED));
    entries.push(multiple(all, SOCKET_QUERY, ROW_READ));
    entries.extend(all.added.iter().flat_map(added));
    entries
}

/// The figure and its percentiles: `<case>_ns`, `<case>_p50_ns`, ...
fn figures(found: &Finding) -> Vec<(String, f64)> {
    let key = found.case.key;
    let mut entries = vec![(format!("{key}_ns"), rounded(found.measured.ns))];
    if let Some(Percentiles { p50, p99, p99_9, p99_99, max }) = found.measured.percentiles {
        let all = [("p50", p50), ("p99", p99), ("p99_9", p99_9), ("p99_99", p99_99), ("max", max)];
        entries.extend(all.map(|(name, ns)| (format!("{key}_{name}_ns"), rounded(ns))));
    }
    entries
}

fn multiple(all: &Findings, key: &str, of: &str) -> (String, f64) {
    (format!("{key}_multiple_of_{of}"), rounded(all.ratio(key, of)))
}

fn added(added: &Added) -> [(String, f64); 2] {
    let launch = match added.launch {
        Launch::Cached => "dispatch_cached",
        Launch::First => "dispatch_first",
    };
    let work = added.work_us;
    [
        (format!("{launch}_added_to_{work}us_ns"), rounded(added.ns)),
        (format!("{launch}_percent_of_{work}us"), rounded(added.percent)),
    ]
}

/// To the thousandth: more digits would be noise.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
