//! An allocation that failed: what was asked, who held what then, what came before.

use serde::Serialize;
use tt_shm_os::PidMap;
use tt_shm_reader::{
    Class, EventKind, FailureHolder, FailureRecord, ProcessStats, TableSnapshot, failure_flags,
    process_state, text,
};

use super::as_json::{by_class, event, hex, word_or_null};
use super::{Cause, Clock, Moment, Shortage};
use crate::directory::Directory;
use crate::escape::Foreign;
#[cfg(test)]
use crate::schema;
use crate::units::UNKNOWN;

/// An allocation that failed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Failure {
    /// When it failed, RFC 3339, UTC, to the microsecond; `None` if that was before the machine was suspended, when
    /// nobody knows what the wall clock showed.
    pub time: Moment,
    /// Index; `None` if no process has that device now.
    pub device: Option<usize>,
    /// Stable id of the chip, hexadecimal.
    #[serde(serialize_with = "hex")]
    #[cfg_attr(test, schemars(schema_with = "schema::hex"))]
    pub chip_id: u64,
    /// Who asked.
    #[serde(flatten)]
    pub who: Who,
    /// Owner of its segment.
    pub uid: u32,
    /// What it asked for; `None` if a later version has that class.
    #[serde(serialize_with = "word_or_null")]
    #[cfg_attr(test, schemars(schema_with = "schema::words_or_null::<Class>"))]
    pub class: Option<Class>,
    /// What was asked for, needed and free.
    #[serde(flatten)]
    pub shortage: Shortage,
    /// exhausted: too little was free; fragmented: enough, but not in one piece; `None` if the allocator did not say
    /// enough.
    pub cause: Option<Cause>,
    /// What was held on the device then; `None` if nobody knows.
    #[serde(rename = "held")]
    pub holders: Option<Holders>,
    /// What happened on the device before it, oldest first.
    pub events: Vec<Before>,
    /// Whether no event before it is missing: of all processes, not only of the one that asked.
    pub events_complete: bool,
    /// Segment and position: what tells it from every other one.
    #[serde(skip)]
    pub key: (u64, u64),
}

/// A process, also of the past.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Who {
    /// The process, as this machine calls it; `None` if it cannot be told from here.
    pub pid: Option<u64>,
    /// As it calls itself: another in a container.
    pub namespace_pid: u64,
    /// Its name.
    pub name: Foreign,
}

/// Who held what.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Holders {
    /// Whether it is of that very moment and of all processes.
    pub exact: bool,
    /// What all held together, by memory class; circular buffers and kernels as resident on Tensix cores.
    #[serde(rename = "classes_bytes", serialize_with = "by_class")]
    #[cfg_attr(test, schemars(schema_with = "schema::classes_bytes"))]
    pub classes: [u64; Class::COUNT],
    /// By process, the largest.
    #[serde(rename = "holders")]
    pub list: Vec<HeldBy>,
    /// Processes that had no room in the list.
    #[serde(rename = "others")]
    pub other_count: u64,
    /// What these held, likewise.
    #[serde(rename = "others_classes_bytes", serialize_with = "by_class")]
    #[cfg_attr(test, schemars(schema_with = "schema::classes_bytes"))]
    pub others: [u64; Class::COUNT],
}

/// A process's share.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HeldBy {
    /// Whose.
    #[serde(flatten)]
    pub who: Who,
    /// What it held, likewise.
    #[serde(rename = "classes_bytes", serialize_with = "by_class")]
    #[cfg_attr(test, schemars(schema_with = "schema::classes_bytes"))]
    pub classes: [u64; Class::COUNT],
}

/// An event before a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Before {
    /// When, RFC 3339, UTC, to the microsecond; `None` if that was before the machine was suspended, when nobody knows
    /// what the wall clock showed.
    pub time: Moment,
    /// Its process, as that calls itself.
    pub pid: u64,
    /// What happened; UNKNOWN is of a later version.
    #[serde(rename = "event", serialize_with = "event")]
    #[cfg_attr(test, schemars(schema_with = "schema::event"))]
    pub kind: Option<EventKind>,
    /// Memory class; `None` if it is about none.
    #[serde(serialize_with = "word_or_null")]
    #[cfg_attr(test, schemars(schema_with = "schema::words_or_null::<Class>"))]
    pub class: Option<Class>,
    /// What the process calls it: a buffer, a program; `None` of an allocation that failed.
    pub id: Option<u64>,
    /// Bytes; `None` if it has none.
    #[serde(rename = "size_bytes")]
    pub size: Option<u64>,
}

impl Failure {
    /// Those of a snapshot, newest first, without what no aggregator can have written.
    pub fn all(snapshot: &TableSnapshot, directory: &Directory, clock: Clock) -> Vec<Failure> {
        let people = People { snapshot, clock, pids: PidMap::now() };
        let plausible = snapshot.failures.iter().filter(|record| record.is_plausible());
        plausible.map(|record| Failure::new(record, &people, directory)).collect()
    }

    fn new(record: &FailureRecord, people: &People<'_>, directory: &Directory) -> Failure {
        let exact = record.has(failure_flags::HOLDERS_EXACT);
        let FailureRecord { identity, pid, pid_namespace, .. } = *record;
        let shortage = Shortage::from(record);
        Failure {
            time: people.clock.moment(record.time),
            device: directory.index_of(record.chip_id),
            chip_id: record.chip_id,
            who: people.who(identity, pid_namespace, pid, &record.name),
            uid: record.uid as u32,
            class: u8::try_from(record.class).ok().and_then(Class::from_code),
            shortage,
            cause: shortage.cause(),
            holders: (exact || record.holder_count > 0).then(|| people.holders(record, exact)),
            events: record
                .past()
                .unwrap_or_default()
                .iter()
                .map(|event| Before::new(event, people.clock))
                .collect(),
            events_complete: record.has(failure_flags::EVENTS_COMPLETE),
            key: (record.identity, record.position),
        }
    }

    /// Takes away what is said to be all: a process that could not be read may have held more.
    pub(crate) fn doubt(&mut self) {
        self.events_complete = false;
        if let Some(holders) = &mut self.holders {
            holders.exact = false;
        }
    }
}

impl Who {
    /// Its pid; where the process itself saw another, that too: `4711 (1)`.
    pub fn pid_text(&self) -> String {
        match self.pid {
            Some(pid) if pid == self.namespace_pid => pid.to_string(),
            Some(pid) => format!("{pid} ({})", self.namespace_pid),
            None => format!("{UNKNOWN} ({})", self.namespace_pid),
        }
    }
}

impl Before {
    /// Resolves an event.
    pub fn new(event: &tt_shm_reader::PastEvent, clock: Clock) -> Before {
        use EventKind::*;
        let kind = u8::try_from(event.kind).ok().and_then(EventKind::from_code);
        let has_bytes = matches!(
            kind,
            Some(Alloc | Free | CbAlloc | CbFree | KernelLoad | KernelUnload | KernelDispatch | AllocFailed)
        );
        let has_class = has_bytes && kind != Some(KernelDispatch);
        let class = u8::try_from(event.class).ok().and_then(Class::from_code);
        Before {
            time: clock.moment(event.time),
            pid: event.pid,
            kind,
            class: class.filter(|_| has_class),
            id: Some(event.id).filter(|_| kind != Some(AllocFailed)),
            size: has_bytes.then_some(event.size),
        }
    }
}

/// Names processes, also those of the past.
struct People<'a> {
    snapshot: &'a TableSnapshot,
    clock: Clock,
    pids: PidMap,
}

impl People<'_> {
    fn who(&self, identity: u64, namespace: u64, pid: u64, name: &[u8; 64]) -> Who {
        // A pid of another namespace tells which process that is only while it lives.
        let lives = |p: &ProcessStats| p.identity == identity && p.state == process_state::ALIVE;
        let known = self.pids.is_own(namespace) || self.snapshot.processes.iter().any(|(_, p)| lives(p));
        let here = u32::try_from(pid).ok().filter(|_| known);
        Who {
            pid: here.and_then(|pid| self.pids.pid_here(namespace, pid)).map(u64::from),
            namespace_pid: pid,
            name: text::decode(name).into(),
        }
    }

    fn holders(&self, record: &FailureRecord, exact: bool) -> Holders {
        let held_by = |holder: &FailureHolder| HeldBy {
            who: self.who(holder.identity, holder.pid_namespace, holder.pid, &holder.name),
            classes: holder.classes,
        };
        let used = record.holders.iter().filter(|holder| holder.identity != 0);
        let list: Vec<HeldBy> = used.map(held_by).collect();
        Holders {
            exact,
            classes: record.classes,
            others: record.others,
            other_count: record.holder_count.saturating_sub(list.len() as u64),
            list,
        }
    }
}
