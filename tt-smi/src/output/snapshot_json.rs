//! A snapshot for programs.

use std::collections::BTreeMap;

use serde::Serialize;
use tt_shm_reader::Class;

use super::figures_json::FiguresJson;
use super::identity_json::{ClaimJson, DeviceIdentityJson, ErrorJson, IdentityJson, error_json};
use super::json::Envelope;
use super::shortage_json::ShortageJson;
use crate::escape::Foreign;
use crate::model::{Clock, Device, Model, Process, Usage};

/// `tt-smi snapshot --json`.
#[derive(Debug, Serialize)]
pub struct SnapshotJson {
    #[serde(flatten)]
    envelope: Envelope,
    aggregator: AggregatorJson,
    devices: Vec<DeviceJson>,
    processes: Vec<ProcessJson>,
    reclaimed: Vec<ReclaimedJson>,
    errors: Vec<ErrorJson>,
}

#[derive(Debug, Serialize)]
struct AggregatorJson {
    /// `null` if none runs: then tt-smi aggregated by itself.
    pid: Option<u64>,
    age_ms: Option<u64>,
    consistent: bool,
    events: u64,
    missed_events: u64,
    refused_files: u64,
    hidden_files: u64,
    peaks_since: Option<String>,
}

#[derive(Debug, Serialize)]
struct DeviceJson {
    #[serde(flatten)]
    identity: DeviceIdentityJson,
    age_ms: Option<u64>,
    #[serde(flatten)]
    figures: FiguresJson,
    last_failure: Option<FailureJson>,
}

#[derive(Debug, Serialize)]
struct FailureJson {
    time: Option<String>,
    pid: u64,
    class: Option<&'static str>,
    #[serde(flatten)]
    shortage: ShortageJson,
}

#[derive(Debug, Serialize)]
struct ProcessJson {
    #[serde(flatten)]
    identity: IdentityJson,
    name: Foreign,
    age_ms: Option<u64>,
    running_seconds: f64,
    events_per_second: Option<f64>,
    missed_events: u64,
    unlisted: u64,
    listed_in_part: bool,
    degraded: bool,
    broken: bool,
    unlinked: bool,
    anomalies: BTreeMap<&'static str, u64>,
    devices: Vec<UsageJson>,
}

#[derive(Debug, Serialize)]
struct UsageJson {
    index: usize,
    logical_id: Option<u64>,
    open: bool,
    claims_conflict: Option<ClaimJson>,
    #[serde(flatten)]
    figures: FiguresJson,
}

#[derive(Debug, Serialize)]
struct ReclaimedJson {
    pid: u64,
    uid: u64,
    seconds_ago: f64,
    bytes: BTreeMap<&'static str, u64>,
    counts: BTreeMap<&'static str, u64>,
}

impl SnapshotJson {
    /// Of a model.
    pub fn new(model: &Model, namespace: &str) -> SnapshotJson {
        let age_ms = model.age_ms();
        SnapshotJson {
            envelope: Envelope::new(model.clock, &model.host, namespace),
            aggregator: AggregatorJson {
                pid: model.origin.aggregator(),
                age_ms,
                consistent: model.consistent,
                events: model.events,
                missed_events: model.missed,
                refused_files: model.refused,
                hidden_files: model.hidden,
                peaks_since: model.window_since.and_then(|since| model.clock.rfc3339(since)),
            },
            devices: model.devices.iter().map(|device| device_json(device, age_ms, model.clock)).collect(),
            processes: model
                .processes
                .iter()
                .map(|process| process_json(process, age_ms, model.clock))
                .collect(),
            reclaimed: model.reclaimed.iter().map(reclaimed_json).collect(),
            errors: model.problems.iter().map(error_json).collect(),
        }
    }
}

fn device_json(device: &Device, age_ms: Option<u64>, clock: Clock) -> DeviceJson {
    DeviceJson {
        identity: DeviceIdentityJson::new(device),
        age_ms,
        figures: FiguresJson::of_device(device, clock),
        last_failure: device.failure.map(|failure| FailureJson {
            time: clock.rfc3339(failure.time),
            pid: failure.pid,
            class: failure.class.map(Class::name),
            shortage: failure.shortage.into(),
        }),
    }
}

fn process_json(process: &Process, age_ms: Option<u64>, clock: Clock) -> ProcessJson {
    ProcessJson {
        identity: IdentityJson::new(process),
        name: process.name.clone(),
        age_ms,
        running_seconds: process.age_ns as f64 / 1e9,
        events_per_second: process.events_per_second,
        missed_events: process.missed,
        unlisted: process.unlisted,
        listed_in_part: process.listed_in_part,
        degraded: process.degraded,
        broken: process.broken,
        unlinked: process.unlinked,
        anomalies: process.anomalies.iter().map(|(anomaly, count)| (anomaly.name(), *count)).collect(),
        devices: process.usages.iter().map(|usage| usage_json(usage, clock)).collect(),
    }
}

fn usage_json(usage: &Usage, clock: Clock) -> UsageJson {
    UsageJson {
        index: usage.device,
        logical_id: usage.logical,
        open: usage.open,
        claims_conflict: usage.claim.as_ref().map(ClaimJson::from),
        figures: FiguresJson::of_process(&usage.held, clock),
    }
}

fn reclaimed_json(reclaimed: &crate::model::Reclaimed) -> ReclaimedJson {
    let held = || reclaimed.held.iter();
    ReclaimedJson {
        pid: reclaimed.pid,
        uid: reclaimed.uid,
        seconds_ago: reclaimed.age_ns as f64 / 1e9,
        bytes: held().map(|(class, bytes, _)| (class.name(), *bytes)).collect(),
        counts: held().map(|(class, _, count)| (class.name(), *count)).collect(),
    }
}
