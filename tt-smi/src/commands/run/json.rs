//! The report as JSON.

use serde::Serialize;

use super::report::Report;
use crate::model::Clock;
use crate::output::json::Envelope;

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RunJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    /// The command and its arguments.
    command: Vec<String>,
    #[serde(flatten)]
    report: &'a Report,
}

impl<'a> RunJson<'a> {
    pub(super) fn new(report: &'a Report, command: &[std::ffi::OsString], namespace: &str) -> RunJson<'a> {
        RunJson {
            envelope: Envelope::new(Clock::now(), &crate::model::host(), namespace),
            command: command.iter().map(|part| part.to_string_lossy().into_owned()).collect(),
            report,
        }
    }
}
