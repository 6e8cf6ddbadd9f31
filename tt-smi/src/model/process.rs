//! A process, and what it has on each device.

use tt_shm_os::PidMap;
use tt_shm_reader::{
    Anomaly, DeviceEntry, ProcessStats, Source, TableSnapshot, UsageStats, process_flags, process_state,
    text, usage_flags,
};

use super::{Clock, Column, Held, ranges};
use crate::escape::Foreign;
use crate::procinfo::{ProcInfo, RunState};
use crate::units::{UNKNOWN, bytes_or_unknown};

/// Whether a process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessState {
    /// Running or stopped.
    Alive,
    /// Ended; the row shows for a while what it held.
    Ended,
}

impl ProcessState {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            ProcessState::Alive => "alive",
            ProcessState::Ended => "ended",
        }
    }
}

/// A process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Identity of its segment.
    pub identity: u64,
    /// As this machine's users see it; `None` if it cannot be seen from here.
    pub pid: Option<u64>,
    /// Whether the pid is only what its segment claims: the system knows no process of that pid, owner and start.
    /// `None` until [`super::Model::look_up`], and of one that has no pid here or has ended.
    pub claimed: Option<bool>,
    /// When it was started, in clock ticks since boot, as its segment claims; 0 if that is unknown.
    pub start_ticks: u64,
    /// As the process itself sees it: another in a container.
    pub namespace_pid: u64,
    /// Owner of its segment.
    pub uid: u32,
    /// The owner's name, if this machine knows it.
    pub user: Option<Foreign>,
    /// What it calls itself.
    pub name: Foreign,
    /// Whether it lives.
    pub state: ProcessState,
    /// What the system knows of it; `None` until [`super::Model::look_up`], and if it is not to be seen.
    pub info: Option<ProcInfo>,
    /// Who writes its segment: `ring`, `tap` or `bridge`.
    pub source: &'static str,
    /// Pid of the process that it is written on behalf of, as the writer sees it; `None` if it writes for itself.
    pub on_behalf_of: Option<u64>,
    /// How often its sums were compared with those of the device's allocator, and how often they differed.
    pub self_checks: [u64; 2],
    /// How long ago its segment was made.
    pub age_ns: u64,
    /// Per device.
    pub usages: Vec<Usage>,
    /// Whether the table has no room for some of them.
    pub listed_in_part: bool,
    /// Events of the last second.
    pub events_per_second: Option<f64>,
    /// Events missed because the ring went round.
    pub missed: u64,
    /// Live allocations without a row.
    pub unlisted: u64,
    /// Misuses that were counted, without those that never happened.
    pub anomalies: Vec<(Anomaly, u64)>,
    /// It had no room for all rows or names: totals exact, lists not complete.
    pub degraded: bool,
    /// Its events cannot be true: left out of all totals.
    pub broken: bool,
    /// Its name in /dev/shm is gone while it lives.
    pub unlinked: bool,
}

/// A process on a device.
#[derive(Clone, Debug)]
pub struct Usage {
    /// Index of the device.
    pub device: usize,
    /// The process's own number for it.
    pub logical: Option<u64>,
    /// What it holds there. Without capacities: those are the device's.
    pub held: Held,
    /// Whether it says that it has the device open.
    pub open: bool,
    /// What it says of the device, if that is not what is taken for true.
    pub claim: Option<Claim>,
}

/// What a process says of a device, against others or against what is taken for true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// DRAM that can be allocated.
    pub dram_total: Option<u64>,
    /// L1 of Tensix cores that can be allocated.
    pub l1_total: Option<u64>,
    /// PCI address.
    pub pci: Option<String>,
    /// Board.
    pub board: Option<Foreign>,
}

impl From<&DeviceEntry> for Claim {
    fn from(entry: &DeviceEntry) -> Claim {
        Claim {
            dram_total: entry.dram_total(),
            l1_total: entry.l1_total(),
            pci: entry.pci_address(),
            board: entry.board_name().map(Foreign::from),
        }
    }
}

impl Claim {
    /// `DRAM 4.0 GiB, L1 -, PCI 0000:81:00.0, board n300`.
    pub fn text(&self) -> String {
        let pci = self.pci.as_deref().unwrap_or(UNKNOWN);
        let board = self.board.as_ref().map_or_else(|| UNKNOWN.to_owned(), Foreign::to_string);
        let (dram, l1) = (bytes_or_unknown(self.dram_total), bytes_or_unknown(self.l1_total));
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
        let mut usages: Vec<Usage> = own.filter_map(|(_, usage)| Usage::new(usage, devices)).collect();
        usages.sort_by_key(|usage| usage.device);
        let listed_in_part = stats.devices > usages.len() as u64;
        Process {
            identity: stats.identity,
            pid: pid_here(stats, pids),
            claimed: None,
            start_ticks: stats.start_time,
            namespace_pid: stats.pid,
            uid,
            user: crate::users::name_of(uid),
            name: text::decode(&stats.name).into(),
            state: match stats.state {
                process_state::ENDED => ProcessState::Ended,
                _ => ProcessState::Alive,
            },
            info: None,
            source: Source::from_code(stats.source).unwrap_or_default().name(),
            on_behalf_of: Some(stats.on_behalf_of).filter(|pid| *pid != 0),
            self_checks: [stats.self_checks, stats.self_checks_different],
            age_ns: clock.age_ns(stats.started),
            usages,
            listed_in_part,
            // Who has ended does nothing any more.
            events_per_second: match stats.state {
                process_state::ENDED => Some(0.0),
                _ => rates_known.then_some(stats.events_per_1000s as f64 / 1000.0),
            },
            missed: stats.missed,
            unlisted: stats.unlisted,
            // How often there was no room for a row is no misuse; `unlisted` tells how many lack one now.
            anomalies: anomalies
                .into_iter()
                .filter(|(anomaly, count)| *count > 0 && *anomaly != Anomaly::Unlisted)
                .collect(),
            degraded: has(process_flags::DEGRADED),
            broken: has(process_flags::BROKEN),
            unlinked: has(process_flags::UNLINKED),
        }
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

    /// For people: as [`Process::state_name`], or `claimed`.
    pub fn state_text(&self) -> &'static str {
        if self.is_claimed() { "claimed" } else { self.state_name() }
    }

    /// What the system knows of it, if its claim holds.
    fn confirmed<'a>(&self, info: Option<&'a ProcInfo>) -> Option<&'a ProcInfo> {
        info.filter(|info| info.is_process_of(self.start_ticks, self.uid))
    }

    /// Asks the system about it.
    pub(super) fn look_up(&mut self, system: &mut crate::procinfo::Cache) {
        let Some(pid) = self.pid.and_then(|pid| u32::try_from(pid).ok()) else { return };
        self.info = self.confirmed(system.get(pid)).cloned();
        self.claimed = Some(self.info.is_none());
    }

    /// Whether it lives, and can run: `alive`, `stopped`, `zombie` or `ended`.
    pub fn state_name(&self) -> &'static str {
        match (self.state, self.info.as_ref().map(|info| info.state)) {
            (ProcessState::Alive, Some(RunState::Stopped)) => "stopped",
            (ProcessState::Alive, Some(RunState::Zombie)) => "zombie",
            (state, _) => state.name(),
        }
    }

    /// Its command line.
    pub fn command(&self) -> Option<&Foreign> {
        self.info.as_ref()?.command.as_ref()
    }

    /// Whether what it has on every one of its devices is known.
    pub fn has_totals(&self) -> bool {
        !self.usages.is_empty() && !self.listed_in_part
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
            (self.broken, "broken"),
            (self.degraded, "degraded"),
            (self.unlinked, "unlinked"),
            (self.listed_in_part, "some devices not listed"),
        ];
        let mut flags: Vec<String> =
            words.into_iter().filter(|(set, _)| *set).map(|(_, word)| word.to_owned()).collect();
        if self.missed > 0 {
            flags.push(format!("missed {}", self.missed));
        }
        let disputed: Vec<usize> = self.claims().map(|(device, _)| device).collect();
        if !disputed.is_empty() {
            flags.push(format!("conflicting claim of device {}", ranges(disputed)));
        }
        flags.extend(self.anomalies.iter().map(|(anomaly, count)| format!("{} {count}", anomaly.name())));
        if self.unlisted > 0 {
            flags.push(format!("unlisted {}", self.unlisted));
        }
        flags
    }
}

impl Usage {
    /// Resolves a row; `None` if its device is not known or its figures are impossible.
    fn new(stats: &UsageStats, devices: &[(usize, usize)]) -> Option<Usage> {
        let (_, device) = *devices.iter().find(|(row, _)| *row as u64 == stats.device)?;
        let counters = &stats.counters;
        if !counters.is_plausible() {
            return None;
        }
        Some(Usage {
            device,
            logical: Some(stats.logical_id).filter(|id| *id != u64::MAX),
            held: Held::by_one(counters),
            open: counters.open != 0,
            claim: (stats.flags & usage_flags::CONFLICT != 0).then(|| Claim::from(&stats.entry)),
        })
    }
}

/// A pid of another namespace tells which process that is only while it lives.
fn pid_here(stats: &ProcessStats, pids: &PidMap) -> Option<u64> {
    let known = pids.is_own(stats.pid_namespace) || stats.state == process_state::ALIVE;
    let pid = u32::try_from(stats.pid).ok().filter(|_| known)?;
    pids.pid_here(stats.pid_namespace, pid).map(u64::from)
}
