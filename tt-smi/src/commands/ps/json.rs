//! Processes as JSON: the figures of `snapshot`, summed over devices.

use std::collections::BTreeMap;

use serde::Serialize;
use tt_shm_reader::Class;

use crate::escape::Foreign;
use crate::model::{Model, Process};
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
    dram_used_bytes: Option<u64>,
    l1_used_bytes: Option<u64>,
    eth_l1_used_bytes: Option<u64>,
    cb_resident_bytes: Option<u64>,
    kernel_resident_bytes: Option<u64>,
    dram_device_peaks_bytes: Option<u64>,
    l1_device_peaks_bytes: Option<u64>,
    dispatches: Option<u64>,
    cached_dispatches: Option<u64>,
    failed_allocs: Option<u64>,
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
        let class = |class: Class| (class.name(), process.total(|usage| usage.class(class).bytes));
        ProcessJson {
            identity: IdentityJson::new(process),
            name: process.name.clone(),
            running_seconds: process.age_ns as f64 / 1e9,
            events_per_second: process.events_per_second,
            devices: process.usages.iter().map(|usage| usage.device).collect(),
            dram_used_bytes: process.total(|usage| usage.dram.used),
            l1_used_bytes: process.total(|usage| usage.l1.used),
            eth_l1_used_bytes: process.total(|usage| usage.eth_l1.used),
            cb_resident_bytes: process.total(|usage| usage.cb_resident),
            kernel_resident_bytes: process.total(|usage| usage.kernel_resident),
            dram_device_peaks_bytes: process.total(|usage| usage.dram.peak.range.low),
            l1_device_peaks_bytes: process.total(|usage| usage.l1.peak.range.low),
            dispatches: process.total(|usage| usage.dispatches),
            cached_dispatches: process.total(|usage| usage.cached_dispatches),
            failed_allocs: process.total(|usage| usage.failed_allocs),
            classes_bytes: Class::ALL.map(class).into(),
            flags: process.flags(),
            claims_conflict: process.claims().map(|(device, claim)| (device, claim.into())).collect(),
        }
    }
}
