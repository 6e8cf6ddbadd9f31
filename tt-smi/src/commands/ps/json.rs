//! Processes as JSON: the figures of `snapshot`, summed over devices.

use std::collections::BTreeMap;

use serde::Serialize;
use tt_shm_reader::Class;

use crate::escape::Foreign;
use crate::model::{Model, Process, process_columns};
use crate::output::identity_json::{ClaimJson, ErrorJson, IdentityJson, error_json};
use crate::output::json::Envelope;

#[derive(Serialize)]
pub(super) struct PsJson {
    #[serde(flatten)]
    envelope: Envelope,
    processes: Vec<ProcessJson>,
    errors: Vec<ErrorJson>,
}

#[derive(Serialize)]
struct ProcessJson {
    #[serde(flatten)]
    identity: IdentityJson,
    name: Foreign,
    running_seconds: f64,
    events_per_second: Option<f64>,
    devices: Vec<usize>,
    /// Sums over all devices; `null` for a process that has ended.
    #[serde(flatten)]
    sums: BTreeMap<&'static str, Option<u64>>,
    /// Live bytes; `null` for a process that has ended.
    classes_bytes: BTreeMap<&'static str, Option<u64>>,
    flags: Vec<String>,
    /// By device index.
    claims_conflict: BTreeMap<usize, ClaimJson>,
}

impl PsJson {
    pub(super) fn new(processes: &[&Process], model: &Model, namespace: &str) -> PsJson {
        PsJson {
            envelope: Envelope::new(model.clock, &model.host, namespace),
            processes: processes.iter().map(|process| ProcessJson::new(process)).collect(),
            errors: model.problems.iter().map(error_json).collect(),
        }
    }
}

impl ProcessJson {
    fn new(process: &Process) -> ProcessJson {
        let class = |class: Class| (class.name(), process.total(|held| held.class(class).used));
        let sums = process_columns().filter(|column| column.class.is_none());
        ProcessJson {
            identity: IdentityJson::new(process),
            name: process.name.clone(),
            running_seconds: process.age_ns as f64 / 1e9,
            events_per_second: process.events_per_second,
            devices: process.usages.iter().map(|usage| usage.device).collect(),
            sums: sums.filter_map(|c| Some((c.sum.as_deref()?, process.sum(c)))).collect(),
            classes_bytes: Class::ALL.map(class).into(),
            flags: process.flags(),
            claims_conflict: process.claims().map(|(device, claim)| (device, claim.into())).collect(),
        }
    }
}
