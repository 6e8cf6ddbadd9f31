//! Allocation failures as JSON.

use serde::Serialize;

use super::Report;
use crate::model::Failure;
use crate::output::json::Envelope;

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct OomJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    /// The aggregator; `None` if none runs: then only what the processes, and an aggregator that was killed, left is
    /// known.
    aggregator_pid: Option<u64>,
    /// How many are known, of all devices; --device and --last show fewer.
    failures_known: usize,
    /// The latest first.
    failures: &'a [Failure],
    /// What could not be read or is in doubt; with file, owner, reason and what to do. Many alike are one.
    errors: &'a [String],
}

impl<'a> OomJson<'a> {
    pub(super) fn new(report: &'a Report, namespace: &str) -> OomJson<'a> {
        OomJson {
            envelope: Envelope::new(report.clock, &crate::model::host(), namespace),
            aggregator_pid: report.origin.aggregator(),
            failures_known: report.known,
            failures: &report.failures,
            errors: &report.errors,
        }
    }
}
