//! What a restarted aggregator takes over from the table it replaces: history, peaks and failures. Everything
//! else comes from the segments.

use shm_layout::table::{
    Bucket, DeviceStats, DriverStats, FailureRecord, HISTORY_RESOLUTIONS, Peak, ProcessStats,
    TELEMETRY_RESOLUTIONS, device_flags, failure_flags, process_state,
};
use shm_layout::{Class, UNKNOWN};
use tt_shm_os::{Namespace, boot_id, path_of, table_file_name};
use tt_shm_reader::{Table, TableSnapshot};

use crate::model::Model;
use crate::model::device::{Device, Makeup};
use crate::model::driver::TelemetryOfAll;
use crate::model::figures::FIGURES;
use crate::model::timeline::Timeline;
use crate::model::window::Window;
use crate::segments::unseen::has_file;

/// The figures of an earlier aggregator of the same user.
#[derive(Debug)]
pub struct Adopted {
    snapshot: TableSnapshot,
    history: Vec<[Vec<Bucket>; HISTORY_RESOLUTIONS.len()]>,
    driver: Vec<(DriverStats, TelemetryOfAll)>,
}

impl Adopted {
    /// Reads the table; `None` if there is none, or it is of another user, version or boot.
    pub(crate) fn read(namespace: &Namespace, uid: u32) -> Option<Adopted> {
        let table = Table::open_path(&path_of(&table_file_name(namespace, uid)), uid).ok()?;
        if boot_id()? != table.header().boot_id {
            return None;
        }
        let snapshot = table.snapshot();
        let resolutions: [usize; HISTORY_RESOLUTIONS.len()] = std::array::from_fn(|resolution| resolution);
        let of = |device: usize| resolutions.map(|resolution| table.history(device, resolution));
        let history = snapshot.devices.iter().map(|(row, _)| of(*row)).collect();
        let resolutions: [usize; TELEMETRY_RESOLUTIONS.len()] = std::array::from_fn(|resolution| resolution);
        let of = |row: usize| resolutions.map(|resolution| table.telemetry(row, resolution));
        let driver = snapshot.driver.iter().map(|(row, stats)| (*stats, of(*row))).collect();
        Some(Adopted { snapshot, history, driver })
    }

    /// The processes that were alive and have no file now.
    pub(crate) fn missing(&self, namespace: &Namespace) -> Vec<ProcessStats> {
        let rows = self.snapshot.processes.iter().map(|(_, stats)| *stats);
        let alive = rows.filter(|stats| stats.state == process_state::ALIVE);
        alive.filter(|stats| !has_file(namespace, stats)).collect()
    }

    /// Installs the devices in a model that has none yet.
    pub(crate) fn install(self, model: &mut Model) {
        let Adopted { snapshot, history, driver } = self;
        model.driver.adopted = driver;
        let now = model.now;
        let since = Some(snapshot.window_since).filter(|since| (1..=now).contains(since)).unwrap_or(now);
        // What processes reported after that is in none of its rows.
        let end = snapshot.as_of;
        let gap = (1..=now).contains(&end).then_some((end, now));
        model.window = Window { since, count: snapshot.windows, gap, reaches_back: false };
        let alive = snapshot.processes.iter().filter(|(_, process)| process.state == process_state::ALIVE);
        model.followed_before = alive.map(|(_, process)| (process.identity, *process)).collect();
        let uid = rustix::process::geteuid().as_raw();
        for ((_, stats), history) in snapshot.devices.iter().zip(&history) {
            let mut device = Device::new(stats.entry.chip_id, uid, Timeline::new(since, now));
            take_peaks(&mut device, stats, end, now);
            device.system_kernels_unseen = stats.flags & device_flags::SYSTEM_KERNELS_UNSEEN != 0;
            for (resolution, buckets) in history.iter().enumerate() {
                buckets.iter().for_each(|bucket| device.history.adopt(resolution, bucket, now));
            }
            let generation = model.mark_changed();
            device.history_changed = generation;
            // Cannot fail: that table had as many rows.
            let _ = model.devices.insert(generation, device);
        }
        take_failures(model, snapshot.failures, end);
    }
}

/// Takes over the plausible failures. The segments may still have their events, but not who held what. The
/// earlier aggregator vouched for what happened up to `end`.
fn take_failures(model: &mut Model, failures: Vec<FailureRecord>, end: u64) {
    let now = model.now;
    for mut failure in failures.into_iter().filter(|failure| failure.is_plausible() && failure.time <= now) {
        if failure.time > end {
            failure.flags &= !failure_flags::HOLDERS_EXACT;
        }
        let generation = model.mark_changed();
        model.failures.keep(generation, failure);
    }
}

fn take_peaks(device: &mut Device, stats: &DeviceStats, end: u64, now: u64) {
    let mut peaks = [UNREADABLE; FIGURES];
    let classes = stats.classes.iter().map(|class| class.peak);
    let DeviceStats { dram_peak, l1_peak, eth_peak, cb_resident_peak, kernel_resident_peak, .. } = *stats;
    let others = [dram_peak, l1_peak, eth_peak, cb_resident_peak, kernel_resident_peak];
    for (peak, found) in peaks.iter_mut().zip(classes.chain(others)) {
        if found.low <= found.high && found.time <= now {
            *peak = found;
        }
    }
    device.peaks.adopt(peaks, end);
    let makeup = |composition, peak: Peak, flag| {
        let complete = stats.flags & flag != 0;
        Makeup { composition, bytes: peak.low, complete }
    };
    device.dram_makeup = makeup(stats.dram_composition, dram_peak, device_flags::DRAM_COMPOSITION_EXACT);
    device.l1_makeup = makeup(stats.l1_composition, l1_peak, device_flags::L1_COMPOSITION_EXACT);
    if stats.failure.time <= now {
        device.failure = stats.failure;
    }
}

/// Replaces an implausible peak.
const UNREADABLE: Peak = Peak { low: 0, high: UNKNOWN, time: 0, count: 0 };
const _: () = assert!(FIGURES == Class::COUNT + 5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::clock::Clock;
    use bytemuck::Zeroable;

    #[test]
    fn holders_are_certain_only_as_far_as_the_earlier_one_vouched_for() {
        let mut model = Model::new(Clock::new(), 0, 100);
        let failed_at = |time: u64| FailureRecord {
            time,
            identity: 1,
            position: time,
            flags: failure_flags::HOLDERS_EXACT,
            ..FailureRecord::zeroed()
        };
        take_failures(&mut model, vec![failed_at(60), failed_at(61), failed_at(101)], 60);
        let exact = |record: &FailureRecord| (record.time, record.has(failure_flags::HOLDERS_EXACT));
        let kept: Vec<(u64, bool)> = model.failures.newest_first().iter().map(exact).collect();
        assert_eq!(kept, [(61, false), (60, true)]);
    }
}
