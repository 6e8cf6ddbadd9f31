//! A snapshot for programs: the model, serialized.

use serde::Serialize;

use super::json::Envelope;
use crate::driver::{DriverDevice, SilentHolder};
use crate::model::{
    Device, DeviceFigures, DeviceRegion, Health, LastFailure, Model, Moment, Problem, Process, Reclaimed,
    Usage,
};

/// `tt-smi snapshot --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SnapshotJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    aggregator: AggregatorJson,
    /// By index.
    devices: Vec<DeviceJson<'a>>,
    /// Those that live first, then by pid.
    processes: Vec<ProcessJson<'a>>,
    /// Processes that hold devices, as the driver or tt-metal says, and report nothing, by pid.
    silent_holders: &'a [SilentHolder],
    /// Newest first.
    reclaimed: &'a [Reclaimed],
    /// What is missing.
    errors: &'a [Problem],
}

/// Who counted.
///
/// What the model says of itself, which in JSON has a key of its own.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AggregatorJson {
    /// The aggregator; `None` if none runs, and tt-smi counted by itself.
    pid: Option<u64>,
    /// How old the figures are, in milliseconds: everything that processes had reported by then is in them; `None`
    /// before the first ones.
    age_ms: Option<u64>,
    /// Whether all rows are of one moment.
    consistent: bool,
    /// Events followed since it attached.
    events: u64,
    /// Events that were overwritten before they were seen; totals stay exact.
    missed_events: u64,
    /// Files that are not to be trusted.
    refused_files: u64,
    /// Files that this user may not read.
    hidden_files: u64,
    /// Since when peaks are counted; `None`: since the processes started.
    peaks_since: Option<Moment>,
}

/// A device, all processes together.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DeviceJson<'a> {
    #[serde(flatten)]
    device: &'a Device,
    /// How old the figures are, in milliseconds: everything that processes had reported by then is in them; `None`
    /// before the first ones.
    age_ms: Option<u64>,
    #[serde(flatten)]
    figures: DeviceFigures<'a>,
    /// The last allocation that failed; `None` if none did.
    last_failure: Option<LastFailure>,
    /// What the driver tells of it; `None` if it has no such device, or there is no driver.
    driver: Option<&'a DriverDevice>,
    /// What tt-metal's own region says of it, which is never exact and no part of the figures above; `None` if it has
    /// none.
    tt_metal: Option<&'a DeviceRegion>,
}

/// A process.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ProcessJson<'a> {
    #[serde(flatten)]
    process: &'a Process,
    /// How old the figures are, in milliseconds: everything that processes had reported by then is in them; `None`
    /// before the first ones.
    age_ms: Option<u64>,
    /// Since its segment was made.
    running_seconds: f64,
    /// Events of the last second; `None` if nobody counted for so long.
    events_per_second: Option<f64>,
    #[serde(flatten)]
    health: &'a Health,
    /// What it has on each device; empty once it ended.
    devices: &'a [Usage],
}

impl<'a> SnapshotJson<'a> {
    /// Of a model.
    pub fn new(model: &'a Model, namespace: &str) -> SnapshotJson<'a> {
        let age_ms = model.age_ms();
        let device = |device: &'a Device| DeviceJson {
            device,
            age_ms,
            figures: DeviceFigures(device),
            last_failure: device.failure,
            driver: device.driver.as_ref(),
            tt_metal: device.region.as_ref(),
        };
        let process = |process: &'a Process| ProcessJson {
            process,
            age_ms,
            running_seconds: process.running_seconds(),
            events_per_second: process.events_per_second,
            health: &process.health,
            devices: &process.usages,
        };
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
                peaks_since: model.window_since,
            },
            devices: model.devices.iter().map(device).collect(),
            processes: model.processes.iter().map(process).collect(),
            silent_holders: &model.silent_holders,
            reclaimed: &model.reclaimed,
            errors: &model.problems,
        }
    }
}
