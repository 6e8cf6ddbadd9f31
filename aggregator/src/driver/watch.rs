//! Asks the driver, once a second.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tt_shm_driver::{DeviceHolders, Holders, Listing, Monitor, Roots};
use tt_shm_os::PidMap;

use super::driver_stats;
use super::holders::Reporters;
use crate::model::Model;

/// Time between two searches of all processes' descriptors, which is what a driver without lists of holders needs.
const SEARCH_EVERY: Duration = Duration::from_secs(10);

/// The driver, and when to ask it who holds its devices.
#[derive(Debug)]
pub(crate) struct DriverWatch {
    monitor: Monitor,
    holders: Vec<DeviceHolders>,
    next_search: Option<Instant>,
    /// Whether what was read has not been taken over yet.
    is_news: bool,
}

impl DriverWatch {
    pub(crate) fn new(roots: Roots) -> DriverWatch {
        DriverWatch { monitor: Monitor::new(roots), holders: Vec::new(), next_search: None, is_news: false }
    }

    /// Reads what is due.
    pub(crate) fn look(&mut self) {
        let now = Instant::now();
        if self.monitor.poll(now) {
            self.read_holders(now);
            self.is_news = true;
        }
    }

    /// The processes that hold a device, by pid here.
    pub(crate) fn holders(&self) -> BTreeSet<u32> {
        let holders = self.holders.iter().flat_map(|device| &device.processes);
        holders.filter(|holder| holder.is_believed()).map(|holder| holder.pid).collect()
    }

    /// Takes what is due over into the model.
    pub(crate) fn poll(&mut self, model: &mut Model) {
        self.look();
        if !std::mem::take(&mut self.is_news) {
            return;
        }
        let driver = self.monitor.version().as_ref().ok();
        let time = model.now;
        let seen = self.monitor.devices().iter().map(|device| driver_stats(device, driver, time)).collect();
        model.see_driver(seen, self.monitor.left_out() as u64);
        if !self.holders.is_empty() {
            model.see_holders(&self.holders, &reporters(model));
        }
    }

    fn read_holders(&mut self, now: Instant) {
        let numbers: Vec<u32> = self.monitor.devices().iter().map(|device| device.number).collect();
        let is_known = numbers.iter().eq(self.holders.iter().map(|holders| &holders.number));
        if numbers.is_empty() || is_known && self.next_search.is_some_and(|next| now < next) {
            return;
        }
        let version = self.monitor.version().as_ref().ok();
        self.holders = Holders::without_facts(self.monitor.roots(), version, &numbers).devices;
        let is_search = |holders: &DeviceHolders| matches!(holders.listing, Listing::Descriptors(_));
        self.next_search = self.holders.iter().any(is_search).then(|| now + SEARCH_EVERY);
    }
}

/// The processes that report, or for which somebody else does.
pub(crate) fn reporters(model: &Model) -> Reporters {
    let (mut reporters, pids) = (Reporters::default(), PidMap::now());
    for (row, process) in model.processes.values().filter(|(_, process)| process.stats.ended == 0) {
        let stats = &process.stats;
        let pid = if stats.on_behalf_of == 0 { stats.pid } else { stats.on_behalf_of };
        reporters.add(row, &pids, stats.pid_namespace, pid);
    }
    reporters
}
