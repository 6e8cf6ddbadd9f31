//! The report as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::child::End;
use super::report::{Leak, Peaks, Ran, Report};
use crate::escape::Foreign;
use crate::model::{Clock, Interval, Peak};
use crate::output::identity_json::DeviceIdJson;
use crate::output::json::Envelope;

#[derive(Serialize)]
pub(super) struct RunJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    command: Vec<String>,
    duration_ms: u64,
    exit_code: Option<u8>,
    signal: Option<u8>,
    devices: Vec<DeviceJson>,
    processes: Vec<ProcessJson<'a>>,
    /// Pids that are not counted: they lack the run's number and ended before their parents could be looked up.
    unknown_pids: &'a [u32],
    failed_allocations: u64,
}

#[derive(Serialize)]
struct DeviceJson {
    #[serde(flatten)]
    id: DeviceIdJson,
    dram_total_bytes: Option<u64>,
    l1_total_bytes: Option<u64>,
    /// All processes of the run together.
    peaks: BTreeMap<&'static str, PeakJson>,
}

#[derive(Serialize)]
struct PeakJson {
    low_bytes: u64,
    high_bytes: Option<u64>,
    exact: bool,
    time: Option<String>,
}

#[derive(Serialize)]
struct ProcessJson<'a> {
    pid: u32,
    name: &'a Foreign,
    running: bool,
    /// Null if it could not be read.
    never_freed_exact: Option<bool>,
    never_freed: Vec<LeakJson<'a>>,
}

#[derive(Serialize)]
struct LeakJson<'a> {
    device: Option<usize>,
    class: &'static str,
    name: Option<&'a Foreign>,
    call_site: Option<&'a Foreign>,
    bytes: u64,
    count: u64,
}

impl<'a> RunJson<'a> {
    pub(super) fn new(report: &'a Report, command: &[std::ffi::OsString], namespace: &str) -> RunJson<'a> {
        let (exit_code, signal) = match report.end {
            End::Exited(code) => (Some(code), None),
            End::Killed(signal) => (None, Some(signal)),
        };
        let clock = Clock::now();
        RunJson {
            envelope: Envelope::new(clock, &crate::model::host(), namespace),
            command: command.iter().map(|part| part.to_string_lossy().into_owned()).collect(),
            duration_ms: u64::try_from(report.lasted.as_millis()).unwrap_or(u64::MAX),
            exit_code,
            signal,
            devices: report.devices.iter().map(|peaks| device_json(peaks, clock)).collect(),
            processes: report.processes.iter().map(process_json).collect(),
            unknown_pids: &report.unknown,
            failed_allocations: report.failed,
        }
    }
}

fn device_json(peaks: &Peaks, clock: Clock) -> DeviceJson {
    let peak = |(what, peak): &(&'static str, Peak)| {
        let Interval { low, high } = peak.range;
        let time = peak.time.and_then(|time| clock.rfc3339(time));
        (*what, PeakJson { low_bytes: low, high_bytes: high, exact: peak.is_exact(), time })
    };
    DeviceJson {
        id: DeviceIdJson::new(peaks.index, &peaks.id),
        dram_total_bytes: peaks.dram_total,
        l1_total_bytes: peaks.l1_total,
        peaks: peaks.figures.iter().map(peak).collect(),
    }
}

fn process_json(ran: &Ran) -> ProcessJson<'_> {
    ProcessJson {
        pid: ran.pid,
        name: &ran.name,
        running: ran.alive,
        never_freed_exact: ran.leaks_exact,
        never_freed: ran.leaks.iter().map(leak_json).collect(),
    }
}

fn leak_json(leak: &Leak) -> LeakJson<'_> {
    LeakJson {
        device: leak.device,
        class: leak.class.name(),
        name: leak.name.as_ref(),
        call_site: leak.site.as_ref(),
        bytes: leak.bytes,
        count: leak.count,
    }
}
