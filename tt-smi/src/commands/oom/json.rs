//! Allocation failures as JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use tt_shm_reader::{Class, EventKind};

use super::Report;
use crate::escape::Foreign;
use crate::model::{Before, Cause, Clock, Failure, Holders, Who};
use crate::output::json::Envelope;
use crate::output::shortage_json::ShortageJson;

type Bytes = BTreeMap<&'static str, u64>;

#[derive(Serialize)]
pub(super) struct OomJson {
    #[serde(flatten)]
    envelope: Envelope,
    /// Null if no aggregator runs: then only what the rings of the processes still hold is known.
    aggregator_pid: Option<u64>,
    /// Number of known failures on all devices.
    failures_known: usize,
    failures: Vec<FailureJson>,
    errors: Vec<String>,
}

#[derive(Serialize)]
struct FailureJson {
    time: Option<String>,
    device: Option<usize>,
    chip_id: String,
    #[serde(flatten)]
    who: WhoJson,
    uid: u32,
    class: Option<&'static str>,
    #[serde(flatten)]
    shortage: ShortageJson,
    /// `exhausted`, `fragmented`, or null.
    cause: Option<&'static str>,
    /// Null if unknown.
    held: Option<HeldJson>,
    events: Vec<EventJson>,
    events_complete: bool,
}

#[derive(Serialize)]
struct WhoJson {
    pid: Option<u64>,
    namespace_pid: u64,
    name: Foreign,
}

#[derive(Serialize)]
struct HeldJson {
    exact: bool,
    classes_bytes: Bytes,
    holders: Vec<HolderJson>,
    others: u64,
    others_classes_bytes: Bytes,
}

#[derive(Serialize)]
struct HolderJson {
    #[serde(flatten)]
    who: WhoJson,
    classes_bytes: Bytes,
}

#[derive(Serialize)]
struct EventJson {
    time: Option<String>,
    pid: u64,
    event: &'static str,
    class: Option<&'static str>,
    /// Null for a failed allocation.
    id: Option<u64>,
    size_bytes: Option<u64>,
}

impl OomJson {
    pub(super) fn new(report: &Report, namespace: &str) -> OomJson {
        let failure = |failure: &Failure| failure_json(failure, report.clock);
        OomJson {
            envelope: Envelope::new(report.clock, &crate::model::host(), namespace),
            aggregator_pid: report.origin.aggregator(),
            failures_known: report.known,
            failures: report.failures.iter().map(failure).collect(),
            errors: report.errors.clone(),
        }
    }
}

fn failure_json(failure: &Failure, clock: Clock) -> FailureJson {
    FailureJson {
        time: clock.rfc3339(failure.time),
        device: failure.device,
        chip_id: format!("{:#018x}", failure.chip_id),
        who: (&failure.who).into(),
        uid: failure.uid,
        class: failure.class.map(Class::name),
        shortage: failure.shortage.into(),
        cause: failure.shortage.cause().map(Cause::name),
        held: failure.holders.as_ref().map(held_json),
        events: failure.events.iter().map(|event| event_json(event, clock)).collect(),
        events_complete: failure.events_complete,
    }
}

fn held_json(holders: &Holders) -> HeldJson {
    let holder = |held: &crate::model::HeldBy| HolderJson {
        who: (&held.who).into(),
        classes_bytes: by_name(&held.classes),
    };
    HeldJson {
        exact: holders.exact,
        classes_bytes: by_name(&holders.classes),
        holders: holders.list.iter().map(holder).collect(),
        others: holders.other_count,
        others_classes_bytes: by_name(&holders.others),
    }
}

fn event_json(event: &Before, clock: Clock) -> EventJson {
    EventJson {
        time: clock.rfc3339(event.time),
        pid: event.pid,
        event: event.kind.map_or("UNKNOWN", EventKind::label),
        class: event.class.map(Class::name),
        id: event.id,
        size_bytes: event.size,
    }
}

impl From<&Who> for WhoJson {
    fn from(who: &Who) -> WhoJson {
        WhoJson { pid: who.pid, namespace_pid: who.namespace_pid, name: who.name.clone() }
    }
}

fn by_name(classes: &[u64; Class::COUNT]) -> Bytes {
    Class::ALL.map(|class| (class.name(), classes[class as usize])).into()
}
