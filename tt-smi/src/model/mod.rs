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
mod region;
mod shortage;

pub use as_json::Word;
pub(crate) use as_json::{by_word, event, event_name, hex, millis, word, word_or_null, words, words_of};
pub use class_info::{CLASSES, ClassInfo, class_info};
pub use clock::{Clock, Moment, rfc3339};
pub use column::{COLUMNS, Cell, Column, Unit, process_columns};
pub(crate) use device::NOMINAL;
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
pub(crate) use region::TT_METAL;
pub use region::{DeviceRegion, RegionBytes, RegionProcess, RegionState};
pub(crate) use shortage::said;
pub use shortage::{Cause, Place, Shortage};

use std::collections::{BTreeMap, BTreeSet};

use tt_shm_reader::TableSnapshot;

use crate::directory::{Claims, Directory};
use crate::driver::{DriverDevice, HolderCache, HolderJson, SilentHolder};
use crate::escape::Foreign;

/// The source of what the driver tells.
pub(crate) const DRIVER: &str = "driver";

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
    /// What could not be seen of who holds devices, how often, and what to do.
    pub driver_gaps: Vec<String>,
    /// The processes that hold devices, as the driver or tt-metal says, and do not report, by pid; see
    /// [`Model::look_up`].
    pub silent_holders: Vec<SilentHolder>,
}

impl Model {
    /// Whether the driver tells anything of any device.
    pub fn has_telemetry(&self) -> bool {
        self.devices.iter().any(|device| device.driver.is_some())
    }

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
        for (row, stats) in &snapshot.driver {
            let joined = devices.iter_mut().find(|device| device.row as u64 == stats.device);
            if let Some(device) = joined {
                device.add_driver(DriverDevice::new(*row, stats, *clock));
            }
        }
        for device in &mut devices {
            let row = device.row as u64;
            let rows = snapshot.regions.iter().map(|(_, stats)| stats).filter(|stats| stats.device == row);
            device.region = DeviceRegion::of(rows);
        }
        devices.iter_mut().for_each(|device| device.sources = sources(device, &processes));
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
            driver_gaps: driver_gaps(snapshot),
            silent_holders: Vec::new(),
        }
    }

    /// Asks the system about the processes that live. Not part of [`Model::new`]: who does not show it need not
    /// ask.
    pub fn look_up(&mut self, system: &mut crate::procinfo::Cache) {
        let alive = self.processes.iter_mut().filter(|process| process.is_alive());
        alive.for_each(|process| process.look_up(system));
        self.look_up_holders(system.holders());
    }

    /// Asks the system who holds the devices.
    fn look_up_holders(&mut self, cache: &mut HolderCache) {
        let of_driver =
            |device: &Device| device.driver.as_ref().and_then(|driver| u32::try_from(driver.number).ok());
        let numbers: Vec<u32> = self.devices.iter().filter_map(of_driver).collect();
        let is_region = |device: &Device| device.region.as_ref().is_some_and(DeviceRegion::is_used);
        if numbers.is_empty() && !self.devices.iter().any(is_region) {
            return;
        }
        let version = self.driver_version().map(|version| version.raw().to_owned());
        let found = cache.get(version.as_deref(), &numbers);
        let alive = self.processes.iter().filter(|process| process.is_alive());
        // What a process sees itself as may be another process's pid here: it is what old drivers list.
        let (here, own): (BTreeSet<Option<u64>>, BTreeSet<u64>) =
            alive.map(|process| (process.pid, process.namespace_pid)).unzip();
        let drivers = self.devices.iter_mut().filter_map(|device| device.driver.as_mut());
        for (driver, holders) in drivers.zip(&found.devices) {
            let reports = |one: &tt_shm_driver::Holder| {
                let pid = u64::from(one.pid);
                if one.is_believed() { here.contains(&Some(pid)) } else { own.contains(&pid) }
            };
            let holder = |one: &tt_shm_driver::Holder| HolderJson::new(one, reports(one));
            driver.holders = Some(holders.processes.iter().map(holder).collect());
        }
        self.driver_gaps.extend(found.gaps());
        self.silent_holders = self.find_silent_holders();
        let silent = &self.silent_holders;
        self.problems.extend(silent.iter().map(Problem::from));
    }

    /// The processes that hold devices, as the driver or tt-metal says, and do not report, by pid.
    fn find_silent_holders(&self) -> Vec<SilentHolder> {
        let mut silent: BTreeMap<u32, SilentHolder> = BTreeMap::new();
        for device in &self.devices {
            let holders = device.driver.as_ref().and_then(|driver| driver.holders.as_ref());
            for holder in holders.into_iter().flatten().filter(|holder| !holder.reports) {
                let new = || SilentHolder { devices: Vec::new(), holder: holder.clone(), tt_metal: None };
                silent.entry(holder.pid).or_insert_with(new).devices.push(device.index);
            }
            let processes = device.region.iter().flat_map(|region| &region.processes);
            for process in processes.filter(|process| process.is_silent()) {
                let Ok(pid) = u32::try_from(process.pid.unwrap_or(process.namespace_pid)) else { continue };
                let new = || SilentHolder {
                    devices: Vec::new(),
                    holder: HolderJson::of_region(pid, process.pid.is_some()),
                    tt_metal: None,
                };
                let holder = silent.entry(pid).or_insert_with(new);
                holder.tt_metal.get_or_insert_default().add(&process.bytes);
                if !holder.devices.contains(&device.index) {
                    holder.devices.push(device.index);
                }
            }
        }
        silent.into_values().collect()
    }

    /// Version of the driver; `None` if there is none, or it has no device.
    pub fn driver_version(&self) -> Option<&Foreign> {
        self.devices.iter().find_map(|device| device.driver.as_ref()?.driver_version.as_ref())
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
fn sources(device: &Device, processes: &[Process]) -> Vec<&'static str> {
    let on_it = |process: &&Process| process.usages.iter().any(|usage| usage.device == device.index);
    let alive = processes.iter().filter(|process| process.is_alive());
    let sources: BTreeSet<&'static str> = alive.filter(on_it).map(|process| process.source).collect();
    let region = device.region.as_ref().is_some_and(DeviceRegion::is_used).then_some(TT_METAL);
    sources.into_iter().chain(region).chain(device.driver.is_some().then_some(DRIVER)).collect()
}

fn driver_gaps(snapshot: &TableSnapshot) -> Vec<String> {
    let left_out = snapshot.driver_left_out;
    (left_out > 0).then(|| format!("devices more than are read: {left_out}")).into_iter().collect()
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
