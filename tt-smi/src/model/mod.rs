//! What is shown: devices and processes, resolved from a table's rows. Unknown is `None`, never 0.

mod as_json;
mod class_info;
mod clock;
mod column;
mod device;
mod failure;
mod figure;
mod figures_json;
mod held;
mod interval;
mod memory;
mod problem;
mod process;
mod ranges;
mod reading;
mod shortage;

pub use as_json::Word;
pub(crate) use as_json::{by_word, event, event_name, hex, millis, word, word_or_null, words, words_of};
pub use class_info::{CLASSES, ClassInfo, class_info};
pub use clock::{Clock, Moment, rfc3339};
pub use column::{COLUMNS, Cell, Column, Unit, process_columns};
#[cfg(test)]
pub(crate) use device::PRODUCER;
pub use device::{Device, Holder, LastFailure, Makeup};
pub use failure::{Before, Failure, HeldBy, Holders, Who};
pub use figure::{FIGURES, Figure, Rank};
pub use figures_json::DeviceFigures;
pub use held::Held;
#[cfg(test)]
pub(crate) use interval::Bounds;
pub use interval::Interval;
pub use memory::{Basis, Memory, Peak};
pub use problem::{Problem, ProblemKind, Reclaimed};
pub use process::{Claim, Health, Process, ProcessState, Usage};
pub use ranges::ranges;
pub use reading::{Origin, Reading, figures_age_ns};
pub(crate) use shortage::said;
pub use shortage::{Cause, Place, Shortage};

use std::collections::BTreeSet;

use tt_shm_reader::TableSnapshot;

use crate::directory::{Claims, Directory};

/// Everything there is to show at one moment.
#[derive(Clone, Debug)]
pub struct Model {
    /// When that was.
    pub clock: Clock,
    /// How old the figures are, whoever counted; `None` if nothing was folded yet.
    pub age_ns: Option<u64>,
    /// Name of this machine.
    pub host: String,
    /// Who counted.
    pub origin: Origin,
    /// In the order of their index.
    pub devices: Vec<Device>,
    /// Living ones first, then by pid.
    pub processes: Vec<Process>,
    /// What could not be read.
    pub problems: Vec<Problem>,
    /// What dead processes had held, newest first.
    pub reclaimed: Vec<Reclaimed>,
    /// The last allocations that failed, newest first.
    pub failures: Vec<Failure>,
    /// Events folded since the aggregator attached.
    pub events: u64,
    /// Events missed because a ring went round.
    pub missed: u64,
    /// Files refused at this moment.
    pub refused: u64,
    /// Segments of other users that cannot be read.
    pub hidden: u64,
    /// Start of the window that peaks refer to; `None` if it reaches back to the start of the processes.
    pub window_since: Option<Moment>,
    /// Whether all rows are of one moment.
    pub consistent: bool,
}

impl Model {
    /// Resolves a reading.
    pub fn new(reading: &Reading) -> Model {
        let Reading { snapshot, origin, clock, rates_known, hidden, refused_table } = reading;
        let directory = directory(snapshot);
        let mut devices: Vec<Device> = snapshot
            .devices
            .iter()
            .filter_map(|(row, stats)| {
                let index = directory.index_of(stats.entry.chip_id)?;
                Some(Device::new(index, *row, &directory.devices[index], stats, *clock, *rates_known))
            })
            .collect();
        devices.sort_by_key(|device| device.index);
        let rows: Vec<(usize, usize)> = devices.iter().map(|device| (device.row, device.index)).collect();
        let pids = tt_shm_os::PidMap::now();
        let mut processes: Vec<Process> = snapshot
            .processes
            .iter()
            .map(|(row, stats)| Process::new(*row, stats, snapshot, &rows, *clock, *rates_known, &pids))
            .collect();
        for (disputed, _) in processes.iter().flat_map(Process::claims) {
            devices.iter_mut().filter(|device| device.index == disputed).for_each(|one| one.conflict = true);
        }
        devices.iter_mut().for_each(|device| device.sources = sources(device.index, &processes));
        processes.sort_by_key(|process| (process.state, process.pid, process.namespace_pid));
        let problems = refused_table.iter().map(|error| Problem::from(&**error));
        let problems = problems.chain(Problem::all(snapshot, *clock)).chain(hidden.iter().map(Problem::from));
        Model {
            clock: *clock,
            age_ns: figures_age_ns(snapshot, *clock),
            host: host(),
            origin: origin.clone(),
            devices,
            processes,
            problems: problems.collect(),
            reclaimed: snapshot.notices.iter().filter_map(|notice| Reclaimed::new(notice, *clock)).collect(),
            failures: Failure::all(snapshot, &directory, *clock),
            events: snapshot.events,
            missed: snapshot.missed,
            refused: snapshot.refused,
            hidden: hidden.len() as u64,
            window_since: (snapshot.windows > 0).then(|| clock.moment(snapshot.window_since)),
            consistent: snapshot.consistent,
        }
    }

    /// Asks the system about the processes that live. Not part of [`Model::new`]: who does not show it need not
    /// ask.
    pub fn look_up(&mut self, system: &mut crate::procinfo::Cache) {
        let alive = self.processes.iter_mut().filter(|process| process.is_alive());
        alive.for_each(|process| process.look_up(system));
    }

    /// Only these devices, and the processes that have something on them.
    pub fn keep(&mut self, wanted: impl Fn(&Device) -> bool) {
        self.devices.retain(wanted);
        let devices = &self.devices;
        self.processes.retain_mut(|process| {
            process.usages.retain(|usage| devices.iter().any(|device| device.index == usage.device));
            !process.usages.is_empty()
        });
    }

    /// Processes that live.
    pub fn alive(&self) -> usize {
        self.processes.iter().filter(|process| process.is_alive()).count()
    }

    /// How old the figures are, in milliseconds.
    pub fn age_ms(&self) -> Option<u64> {
        self.age_ns.map(|age| age / 1_000_000)
    }

    /// Events per second on all devices, if known of all.
    pub fn events_per_second(&self) -> Option<f64> {
        // Not `sum`: of nothing, that is minus zero.
        self.processes.iter().try_fold(0.0, |sum, process| Some(sum + process.events_per_second?))
    }
}

/// Where the figures of a device come from.
fn sources(device: usize, processes: &[Process]) -> Vec<&'static str> {
    let on_it = |process: &&Process| process.usages.iter().any(|usage| usage.device == device);
    let alive = processes.iter().filter(|process| process.is_alive());
    let sources: BTreeSet<&'static str> = alive.filter(on_it).map(|process| process.source).collect();
    sources.into_iter().collect()
}

/// The indices of a snapshot's devices.
pub fn directory(snapshot: &TableSnapshot) -> Directory {
    let mut claims = Claims::new();
    claims.add_snapshot(snapshot);
    claims.finish()
}

/// Name of this machine.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
