//! A process, and what it has on each device.

use serde::Serialize;
use tt_shm_os::PidMap;
use tt_shm_reader::{
    Anomaly, DeviceEntry, ProcessStats, Source, TableSnapshot, UsageStats, process_flags, process_state,
    text, usage_flags,
};

use super::as_json::{by_word, words};
use super::{Clock, Column, Held, Word, ranges};
use crate::escape::Foreign;
use crate::procinfo::{Container, Groups, ProcInfo, RunState};
#[cfg(test)]
use crate::schema;
use crate::units::{UNKNOWN, bytes_or_unknown};

/// Whether a process lives, and can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessState {
    /// It runs, or waits for something; or nobody has asked the system.
    Alive,
    /// Alive, and doing nothing.
    Stopped,
    /// Ended, and its parent has not noticed.
    Zombie,
    /// Ended; the row shows for a while what it held.
    Ended,
}

words!(ProcessState {
    Alive => "alive",
    Stopped => "stopped",
    Zombie => "zombie",
    Ended => "ended",
});

/// A process. As JSON: who it is; documents add what they tell of it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Process {
    /// Identity of its segment.
    #[serde(skip)]
    pub identity: u64,
    /// As this machine calls it; `None` if it cannot be seen from here.
    pub pid: Option<u64>,
    /// Whether pid is only what the segment claims: /proc has no process of that pid, owner and start time. Nothing
    /// else is taken from /proc then. `None` if pid is `None` or the process has ended.
    ///
    /// `None` also until [`super::Model::look_up`].
    pub claimed: Option<bool>,
    /// When it was started, in clock ticks since boot, as its segment claims; 0 if that is unknown.
    #[serde(skip)]
    pub start_ticks: u64,
    /// As it calls itself: another in a container.
    pub namespace_pid: u64,
    /// Its parent; `None` if not to be seen, or if it has none here.
    pub parent_pid: Option<u32>,
    /// Owner of its segment.
    pub uid: u32,
    /// The owner's name; `None` if /etc/passwd has none.
    pub user: Option<Foreign>,
    /// Command line, arguments with blanks between, at most 4096 bytes; `None` if not to be seen.
    pub command: Option<Foreign>,
    /// The container that it is in, if it is in one.
    #[serde(flatten, serialize_with = "crate::procinfo::container::flat")]
    #[cfg_attr(test, schemars(schema_with = "crate::procinfo::container::schema"))]
    pub container: Option<Container>,
    /// UID of its pod; `None` if it is in none, or not known.
    pub kubernetes_pod_uid: Option<String>,
    /// Its job of Slurm; `None` if it is in none, or not known.
    pub slurm_job_id: Option<u64>,
    /// Whether it lives; stopped is alive, and does nothing.
    pub state: ProcessState,
    /// Who writes its segment.
    #[cfg_attr(test, schemars(schema_with = "schema::source"))]
    pub source: &'static str,
    /// Pid of the process that its segment is written on behalf of, as the writer sees it; `None` if it writes for
    /// itself.
    pub on_behalf_of: Option<u64>,
    /// How often its sums were compared with those of the device's allocator.
    pub self_checks: u64,
    /// How often such a comparison found a difference.
    pub self_checks_different: u64,
    /// What it calls itself, exactly.
    pub name: Foreign,
    /// How long ago its segment was made.
    #[serde(skip)]
    pub age_ns: u64,
    /// Events of the last second.
    #[serde(skip)]
    pub events_per_second: Option<f64>,
    /// What is wrong with it.
    #[serde(skip)]
    pub health: Health,
    /// Per device.
    #[serde(skip)]
    pub usages: Vec<Usage>,
}

/// What is wrong with a process, or with what is known of it.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Health {
    /// Events that were overwritten before they were seen.
    #[serde(rename = "missed_events")]
    pub missed: u64,
    /// Live allocations that found no room in its list; totals have them.
    pub unlisted: u64,
    /// Whether the table has no room for some of its devices: what it uses in all is not known then.
    pub listed_in_part: bool,
    /// It had no room for all rows or names.
    pub degraded: bool,
    /// It holds memory that it cannot report, such as that of programs from before it began to.
    pub partial: bool,
    /// Its events cannot be true: it is left out of all totals.
    pub broken: bool,
    /// Its file is gone while it lives.
    pub unlinked: bool,
    /// Misuses that were counted, without those that never happened.
    #[serde(serialize_with = "by_word")]
    #[cfg_attr(test, schemars(schema_with = "schema::anomalies"))]
    pub anomalies: Vec<(Anomaly, u64)>,
}

/// A process on a device; its peaks are exact, unless it is told that they are not.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Usage {
    /// The device.
    #[serde(rename = "index")]
    pub device: usize,
    /// The process's own number for it; `None` if it has none.
    #[serde(rename = "logical_id")]
    pub logical: Option<u64>,
    /// Whether the process says that it has the device open.
    pub open: bool,
    /// What the process says of the device, if that is not what is taken for true; `None` if it is.
    #[serde(rename = "claims_conflict")]
    pub claim: Option<Claim>,
    /// What it holds there. Without capacities: those are the device's.
    #[serde(flatten)]
    pub held: Held,
}

/// What a process says of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Claim {
    /// DRAM that can be allocated; `None` if it does not say.
    pub dram_total_bytes: Option<u64>,
    /// L1 of Tensix cores that can be allocated; `None` if it does not say.
    pub l1_total_bytes: Option<u64>,
    /// PCI address; `None` if not known.
    #[cfg_attr(test, schemars(schema_with = "schema::pci_address"))]
    pub pci_address: Option<String>,
    /// Board; `None` if it does not say.
    pub board: Option<Foreign>,
}

impl From<&DeviceEntry> for Claim {
    fn from(entry: &DeviceEntry) -> Claim {
        Claim {
            dram_total_bytes: entry.dram_total(),
            l1_total_bytes: entry.l1_total(),
            pci_address: entry.pci_address(),
            board: entry.board_name().map(Foreign::from),
        }
    }
}

impl Claim {
    /// `DRAM 4.0 GiB, L1 -, PCI 0000:81:00.0, board n300`.
    pub fn text(&self) -> String {
        let pci = self.pci_address.as_deref().unwrap_or(UNKNOWN);
        let board = self.board.as_ref().map_or_else(|| UNKNOWN.to_owned(), Foreign::to_string);
        let (dram, l1) = (bytes_or_unknown(self.dram_total_bytes), bytes_or_unknown(self.l1_total_bytes));
        format!("DRAM {dram}, L1 {l1}, PCI {pci}, board {board}")
    }
}

impl Process {
    /// Resolves a row; `devices` are pairs of table row and index.
    pub fn new(
        row: usize,
        stats: &ProcessStats,
        snapshot: &TableSnapshot,
        devices: &[(usize, usize)],
        clock: Clock,
        rates_known: bool,
        pids: &PidMap,
    ) -> Process {
        let uid = stats.uid as u32;
        let has = |flag: u64| stats.flags & flag != 0;
        let anomalies = Anomaly::ALL.map(|anomaly| (anomaly, stats.anomalies[anomaly as usize]));
        let own = snapshot.usages.iter().filter(|(_, usage)| usage.process == row as u64);
        let mut usages: Vec<Usage> = own.filter_map(|(_, usage)| Usage::new(usage, devices, clock)).collect();
        usages.sort_by_key(|usage| usage.device);
        if has(process_flags::PARTIAL) || stats.self_checks_different > 0 {
            usages.iter_mut().for_each(|usage| usage.held.doubt());
        }
        let source = Source::from_code(stats.source).unwrap_or_default();
        if !source.sees_system_kernels() {
            usages.iter_mut().for_each(|usage| usage.held.doubt_system_kernels());
        }
        let health = Health {
            missed: stats.missed,
            unlisted: stats.unlisted,
            listed_in_part: stats.devices > usages.len() as u64,
            degraded: has(process_flags::DEGRADED),
            partial: has(process_flags::PARTIAL),
            broken: has(process_flags::BROKEN),
            unlinked: has(process_flags::UNLINKED),
            // How often there was no room for a row is no misuse; `unlisted` tells how many lack one now.
            anomalies: anomalies
                .into_iter()
                .filter(|(anomaly, count)| *count > 0 && *anomaly != Anomaly::Unlisted)
                .collect(),
        };
        Process {
            identity: stats.identity,
            pid: pid_here(stats, pids),
            claimed: None,
            start_ticks: stats.start_time,
            namespace_pid: stats.pid,
            parent_pid: None,
            uid,
            user: crate::users::name_of(uid),
            command: None,
            container: None,
            kubernetes_pod_uid: None,
            slurm_job_id: None,
            state: match stats.state {
                process_state::ENDED => ProcessState::Ended,
                _ => ProcessState::Alive,
            },
            source: source.name(),
            on_behalf_of: Some(stats.on_behalf_of).filter(|pid| *pid != 0),
            self_checks: stats.self_checks,
            self_checks_different: stats.self_checks_different,
            name: text::decode(&stats.name).into(),
            age_ns: clock.age_ns(stats.started),
            // A process that has ended does nothing any more.
            events_per_second: match stats.state {
                process_state::ENDED => Some(0.0),
                _ => rates_known.then_some(stats.events_per_1000s as f64 / 1000.0),
            },
            health,
            usages,
        }
    }

    /// Whether it has not ended, as far as its segment tells.
    pub fn is_alive(&self) -> bool {
        self.state != ProcessState::Ended
    }

    /// How long ago its segment was made.
    pub fn running_seconds(&self) -> f64 {
        self.age_ns as f64 / 1e9
    }

    /// Its pid; where the process itself sees another, that too: `4711 (1)`. One that is only claimed: `4711?`.
    pub fn pid_text(&self) -> String {
        match self.pid {
            Some(pid) if pid == self.namespace_pid => self.pid_short(),
            _ => format!("{} ({})", self.pid_short(), self.namespace_pid),
        }
    }

    /// Its pid as this machine's users see it.
    pub fn pid_short(&self) -> String {
        let mark = if self.is_claimed() { "?" } else { "" };
        self.pid.map_or_else(|| UNKNOWN.to_owned(), |pid| format!("{pid}{mark}"))
    }

    /// Whether its pid was asked for and is only claimed.
    pub fn is_claimed(&self) -> bool {
        self.claimed == Some(true)
    }

    /// For people: its state, or `claimed`.
    pub fn state_text(&self) -> &'static str {
        if self.is_claimed() { "claimed" } else { self.state.word() }
    }

    /// Asks the system about it.
    pub(super) fn look_up(&mut self, system: &mut crate::procinfo::Cache) {
        let Some(pid) = self.pid.and_then(|pid| u32::try_from(pid).ok()) else { return };
        match system.get(pid).filter(|info| info.is_process_of(self.start_ticks, self.uid)) {
            Some(info) => self.confirm(info),
            None => self.claimed = Some(true),
        }
    }

    /// Takes what the system knows of it: its claim holds.
    pub fn confirm(&mut self, info: &ProcInfo) {
        self.claimed = Some(false);
        (self.parent_pid, self.command) = (info.parent, info.command.clone());
        let Groups { container, pod_uid, slurm_job } = info.groups.clone();
        (self.container, self.kubernetes_pod_uid, self.slurm_job_id) = (container, pod_uid, slurm_job);
        self.state = match info.state {
            RunState::Running => self.state,
            RunState::Stopped => ProcessState::Stopped,
            RunState::Zombie => ProcessState::Zombie,
        };
    }

    /// Whether what it has on every one of its devices is known.
    pub fn has_totals(&self) -> bool {
        !self.usages.is_empty() && !self.health.listed_in_part
    }

    /// A figure over all devices; `None` where none is known, as of a process that has ended, or not all of them.
    pub fn total(&self, figure: impl Fn(&Held) -> u64) -> Option<u64> {
        self.has_totals()
            .then(|| self.usages.iter().map(|usage| figure(&usage.held)).fold(0, u64::saturating_add))
    }

    /// The sum of a column over all devices, likewise; `None` also if one of the values is only a bound.
    pub fn sum(&self, column: &Column) -> Option<u64> {
        let known = self.has_totals().then_some(0);
        self.usages.iter().fold(known, |sum, usage| Some(sum?.saturating_add(column.of_sum(&usage.held)?)))
    }

    /// Owner by name, else by number, for people.
    pub fn owner(&self) -> String {
        self.user.as_ref().map_or_else(|| self.uid.to_string(), Foreign::to_string)
    }

    /// Its devices: `0-3`, `0,2`.
    pub fn device_set(&self) -> String {
        ranges(self.usages.iter().map(|usage| usage.device))
    }

    /// What it says of devices that is not taken for true: index and claim.
    pub fn claims(&self) -> impl Iterator<Item = (usize, &Claim)> {
        self.usages.iter().filter_map(|usage| Some((usage.device, usage.claim.as_ref()?)))
    }

    /// What is wrong with it, in a word each.
    pub fn flags(&self) -> Vec<String> {
        let words = [
            (self.health.broken, "broken"),
            (self.health.degraded, "degraded"),
            (self.health.unlinked, "unlinked"),
            (self.health.partial, "may hold more than it reports"),
            (self.self_checks_different > 0, "differs from its allocator"),
            (self.health.listed_in_part, "some devices not listed"),
        ];
        let mut flags: Vec<String> =
            words.into_iter().filter(|(set, _)| *set).map(|(_, word)| word.to_owned()).collect();
        if self.health.missed > 0 {
            flags.push(format!("missed {}", self.health.missed));
        }
        let disputed: Vec<usize> = self.claims().map(|(device, _)| device).collect();
        if !disputed.is_empty() {
            flags.push(format!("conflicting claim of device {}", ranges(disputed)));
        }
        flags.extend(
            self.health.anomalies.iter().map(|(anomaly, count)| format!("{} {count}", anomaly.name())),
        );
        if self.health.unlisted > 0 {
            flags.push(format!("unlisted {}", self.health.unlisted));
        }
        flags
    }
}

impl Usage {
    /// Resolves a row; `None` if its device is not known or its figures are impossible.
    fn new(stats: &UsageStats, devices: &[(usize, usize)], clock: Clock) -> Option<Usage> {
        let (_, device) = *devices.iter().find(|(row, _)| *row as u64 == stats.device)?;
        let counters = &stats.counters;
        if !counters.is_plausible() {
            return None;
        }
        Some(Usage {
            device,
            logical: Some(stats.logical_id).filter(|id| *id != u64::MAX),
            open: counters.open != 0,
            claim: (stats.flags & usage_flags::CONFLICT != 0).then(|| Claim::from(&stats.entry)),
            held: Held::by_one(counters, clock),
        })
    }
}

/// A pid of another namespace tells which process that is only while it lives.
fn pid_here(stats: &ProcessStats, pids: &PidMap) -> Option<u64> {
    let known = pids.is_own(stats.pid_namespace) || stats.state == process_state::ALIVE;
    let pid = u32::try_from(stats.pid).ok().filter(|_| known)?;
    pids.pid_here(stats.pid_namespace, pid).map(u64::from)
}
