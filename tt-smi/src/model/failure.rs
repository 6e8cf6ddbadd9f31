//! An allocation that failed: what was asked, who held what then, what came before.

use tt_shm_os::PidMap;
use tt_shm_reader::{
    Class, EventKind, FailureHolder, FailureRecord, ProcessStats, TableSnapshot, failure_flags,
    process_state, text,
};

use super::shortage::Shortage;
use crate::directory::Directory;
use crate::escape::Foreign;
use crate::units::UNKNOWN;

/// An allocation that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// When, CLOCK_MONOTONIC.
    pub time: u64,
    /// Index of the device; `None` if no process has it now.
    pub device: Option<usize>,
    /// The chip.
    pub chip_id: u64,
    /// Who asked.
    pub who: Who,
    /// Its owner.
    pub uid: u32,
    /// Of what, unless foreign to this version.
    pub class: Option<Class>,
    /// What was asked for, needed and free.
    pub shortage: Shortage,
    /// Who held what then; `None` if nobody knows.
    pub holders: Option<Holders>,
    /// What came before on the device, oldest first.
    pub events: Vec<Before>,
    /// Whether these are the last events of all processes.
    pub events_complete: bool,
    /// Segment and position: what tells it from every other one.
    pub key: (u64, u64),
}

/// A process, also of the past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// As this machine's users see it; `None` if it cannot be told from here.
    pub pid: Option<u64>,
    /// As it sees itself.
    pub namespace_pid: u64,
    /// What it calls itself.
    pub name: Foreign,
}

/// What was on a device.
#[derive(Clone, Debug, Default)]
pub struct Holders {
    /// Whether these are all, and exact. If not, somebody may be missing.
    pub exact: bool,
    /// Bytes by class code, all together.
    pub classes: [u64; Class::COUNT],
    /// The largest.
    pub list: Vec<HeldBy>,
    /// Bytes of all others by class code.
    pub others: [u64; Class::COUNT],
    /// How many others there were.
    pub other_count: u64,
}

/// A process's share; circular buffers and kernels as resident on Tensix cores.
#[derive(Clone, Debug)]
pub struct HeldBy {
    /// Whose.
    pub who: Who,
    /// Bytes by class code.
    pub classes: [u64; Class::COUNT],
}

/// An event before a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before {
    /// When, CLOCK_MONOTONIC.
    pub time: u64,
    /// Pid of its process, as it sees itself.
    pub pid: u64,
    /// What happened, unless foreign to this version.
    pub kind: Option<EventKind>,
    /// Of what, where that says something.
    pub class: Option<Class>,
    /// Buffer, circular buffer, kernel or program id; nothing that failed has one.
    pub id: Option<u64>,
    /// Bytes, of events that have some.
    pub size: Option<u64>,
}

impl Failure {
    /// Those of a snapshot, newest first, without what no aggregator can have written.
    pub fn all(snapshot: &TableSnapshot, directory: &Directory) -> Vec<Failure> {
        let people = People { snapshot, pids: PidMap::now() };
        let plausible = snapshot.failures.iter().filter(|record| record.is_plausible());
        plausible.map(|record| Failure::new(record, &people, directory)).collect()
    }

    fn new(record: &FailureRecord, people: &People<'_>, directory: &Directory) -> Failure {
        let exact = record.has(failure_flags::HOLDERS_EXACT);
        let FailureRecord { identity, pid, pid_namespace, .. } = *record;
        Failure {
            time: record.time,
            device: directory.index_of(record.chip_id),
            chip_id: record.chip_id,
            who: people.who(identity, pid_namespace, pid, &record.name),
            uid: record.uid as u32,
            class: u8::try_from(record.class).ok().and_then(Class::from_code),
            shortage: record.into(),
            holders: (exact || record.holder_count > 0).then(|| people.holders(record, exact)),
            events: record.past().unwrap_or_default().iter().map(Before::from).collect(),
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

impl From<&tt_shm_reader::PastEvent> for Before {
    fn from(event: &tt_shm_reader::PastEvent) -> Before {
        use EventKind::*;
        let kind = u8::try_from(event.kind).ok().and_then(EventKind::from_code);
        let has_bytes = matches!(
            kind,
            Some(Alloc | Free | CbAlloc | CbFree | KernelLoad | KernelUnload | KernelDispatch | AllocFailed)
        );
        let has_class = has_bytes && kind != Some(KernelDispatch);
        let class = u8::try_from(event.class).ok().and_then(Class::from_code);
        Before {
            time: event.time,
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
