//! What a restarted aggregator takes over from the table that it replaces: history, peaks and failures.
//! Everything else it takes from the segments.

use shm_layout::table::{Bucket, DeviceStats, FailureRecord, HISTORY_RESOLUTIONS, Peak};
use tt_shm_os::{Namespace, boot_id, path_of, table_file_name};
use tt_shm_reader::{Table, TableSnapshot};

use crate::model::device::{Device, Peaks};
use crate::model::peaks::PeakTracker;
use crate::model::{Model, Window};

/// What an earlier aggregator of the same user knew of the devices.
#[derive(Debug)]
pub struct Adopted {
    snapshot: TableSnapshot,
    history: Vec<[Vec<Bucket>; HISTORY_RESOLUTIONS.len()]>,
}

impl Adopted {
    /// Reads what is there; `None` if it is nothing, another user's, another version's or another boot's.
    pub(crate) fn read(namespace: &Namespace, uid: u32) -> Option<Adopted> {
        let table = Table::open_path(&path_of(&table_file_name(namespace, uid)), uid).ok()?;
        if boot_id()? != table.header().boot_id {
            return None;
        }
        let snapshot = table.snapshot();
        let resolutions: [usize; HISTORY_RESOLUTIONS.len()] = std::array::from_fn(|resolution| resolution);
        let of = |device: usize| resolutions.map(|resolution| table.history(device, resolution));
        let history = snapshot.devices.iter().map(|(row, _)| of(*row)).collect();
        Some(Adopted { snapshot, history })
    }

    /// Puts the devices into a model that has none yet.
    pub(crate) fn install(self, model: &mut Model) {
        let Adopted { snapshot, history } = self;
        let now = model.now;
        let since = Some(snapshot.window_since).filter(|since| (1..=now).contains(since)).unwrap_or(now);
        let end = snapshot.freshness.heartbeat_ns;
        let gap = (1..=now).contains(&end).then_some((end, now));
        model.window = Window { since, count: snapshot.windows, gap };
        for ((_, stats), history) in snapshot.devices.iter().zip(&history) {
            let mut device =
                Device::new(stats.entry, rustix::process::geteuid().as_raw(), model.window.begin(), now);
            take_peaks(&mut device, stats, now);
            for (resolution, buckets) in history.iter().enumerate() {
                buckets.iter().for_each(|bucket| device.history.adopt(resolution, bucket, now));
            }
            let batch = model.batch();
            device.history_changed = batch;
            // As many rows as that table had.
            let _ = model.devices.insert(batch, device);
        }
        take_failures(model, snapshot.failures);
    }
}

/// Failures that an aggregator can have seen; the segments may still hold them, but no longer who held what.
fn take_failures(model: &mut Model, failures: Vec<FailureRecord>) {
    let now = model.now;
    for failure in failures.into_iter().filter(|failure| failure.is_plausible() && failure.time <= now) {
        let batch = model.batch();
        model.failures.keep(batch, failure);
    }
}

fn take_peaks(device: &mut Device, stats: &DeviceStats, now: u64) {
    let peak = |peak: &Peak| {
        let sensible = peak.low <= peak.high && peak.time <= now;
        if sensible { PeakTracker::resume(peak) } else { PeakTracker::default() }
    };
    device.peaks = Peaks {
        dram: peak(&stats.dram_peak),
        l1: peak(&stats.l1_peak),
        eth: peak(&stats.eth_peak),
        classes: std::array::from_fn(|class| peak(&stats.classes[class].peak)),
        cb_resident: peak(&stats.cb_resident_peak),
        kernel_resident: peak(&stats.kernel_resident_peak),
    };
    (device.dram_makeup, device.l1_makeup) = (stats.dram_composition, stats.l1_composition);
    if stats.failure.time <= now {
        device.failure = stats.failure;
    }
}
