//! The driver's devices, and which of the devices that processes report on each of them is.

use std::collections::BTreeSet;

use shm_layout::table::{
    DriverStats, MAX_DRIVER_DEVICES, TELEMETRY_RESOLUTIONS, TelemetryBucket, Told, driver_flags,
};
use shm_layout::{DeviceEntry, UNKNOWN, known};
use tt_shm_driver::DeviceHolders;

use crate::driver::holders::{Reporters, Silent};
use crate::driver::telemetry::Telemetry;
use crate::model::Model;
use crate::model::device::Device;
use crate::model::quota::Usage;
use crate::model::rows::Rows;
use crate::model::slice::{Doubt, Span};

/// A device of the driver.
#[derive(Debug)]
pub(crate) struct DriverDevice {
    pub(crate) stats: DriverStats,
    pub(crate) telemetry: Telemetry,
    /// The generation in which it was seen first.
    pub(crate) since: u64,
    silent: Silent,
}

/// The driver's devices.
#[derive(Debug)]
pub(crate) struct DriverDevices {
    pub(crate) rows: Rows<DriverDevice>,
    /// Devices for which there is no row.
    pub(crate) left_out: u64,
    /// What an earlier aggregator had read.
    pub(crate) adopted: Vec<(DriverStats, TelemetryOfAll)>,
}

/// Telemetry at every resolution.
pub(crate) type TelemetryOfAll = [Vec<TelemetryBucket>; TELEMETRY_RESOLUTIONS.len()];

impl Default for DriverDevices {
    fn default() -> DriverDevices {
        DriverDevices { rows: Rows::new(MAX_DRIVER_DEVICES), left_out: 0, adopted: Vec::new() }
    }
}

impl DriverDevices {
    /// The row of the device that a process describes.
    pub(crate) fn described_by(&self, entry: &DeviceEntry) -> Option<&DriverStats> {
        self.rows.values().map(|(_, device)| &device.stats).find(|stats| stats.is_described_by(entry))
    }

    fn number(&self, number: u32) -> Option<usize> {
        self.rows.values().find(|(_, device)| device.stats.number == u64::from(number)).map(|(row, _)| row)
    }
}

/// Whether two readings are of one device: by its chip, else by its address, else by its number. Numbers change when
/// devices come and go, and a chip's id is not known while it is reset.
fn is_same(one: &DriverStats, other: &DriverStats) -> bool {
    let both_know = |told: Told| one.absence(told).is_none() && other.absence(told).is_none();
    if both_know(Told::AsicId) {
        return one.asic_id == other.asic_id;
    }
    match both_know(Told::PciAddress) {
        true => one.entry.pci == other.entry.pci,
        false => one.number == other.number,
    }
}

impl Model {
    /// Takes over which devices the driver has, and how they are.
    pub(crate) fn see_driver(&mut self, seen: Vec<DriverStats>, left_out: u64) {
        let mut rows = BTreeSet::new();
        let mut refused = 0;
        for stats in seen {
            match self.driver_row(&stats, &rows) {
                Some(row) => {
                    self.update_driver_row(row, stats);
                    rows.insert(row);
                }
                None => refused += 1,
            }
        }
        let gone: Vec<usize> =
            self.driver.rows.values().map(|(row, _)| row).filter(|row| !rows.contains(row)).collect();
        gone.into_iter().for_each(|row| self.remove_driver_row(row));
        self.driver.left_out = left_out + refused;
    }

    /// The row of a device, other than those that are taken; a new one if it has none.
    fn driver_row(&mut self, stats: &DriverStats, taken: &BTreeSet<usize>) -> Option<usize> {
        let known = self
            .driver
            .rows
            .values()
            .find(|(row, device)| !taken.contains(row) && is_same(&device.stats, stats));
        if let Some((row, _)) = known {
            return Some(row);
        }
        let mut telemetry = Telemetry::default();
        if let Some(place) = self.driver.adopted.iter().position(|(earlier, _)| is_same(earlier, stats)) {
            let (_, buckets) = self.driver.adopted.swap_remove(place);
            for (resolution, buckets) in buckets.iter().enumerate() {
                buckets.iter().for_each(|bucket| telemetry.adopt(resolution, bucket, stats.time));
            }
        }
        let generation = self.mark_changed();
        let device = DriverDevice { stats: *stats, telemetry, since: generation, silent: Silent::default() };
        self.driver.rows.insert(generation, device).ok()
    }

    fn update_driver_row(&mut self, row: usize, stats: DriverStats) {
        let joined = self.driver.rows.get(row).map_or(UNKNOWN, |device| device.stats.device);
        let is_joined = usize::try_from(joined)
            .is_ok_and(|device| self.devices.get(device).is_some_and(|d| d.driver == Some(row)));
        let joined =
            if is_joined { joined } else { self.join(row, &stats).map_or(UNKNOWN, |device| device as u64) };
        let generation = self.mark_changed();
        let Some(device) = self.driver.rows.change(generation, row) else { return };
        let before = device.stats;
        device.stats = DriverStats {
            device: joined,
            flags: stats.flags | before.flags & (driver_flags::HOLDERS | driver_flags::JOINED_BY_LOGICAL_ID),
            holders: before.holders,
            unreported_holders: before.unreported_holders,
            invisible_holders: before.invisible_holders,
            ..stats
        };
        device.telemetry.add(&stats);
        if before.entry != stats.entry
            && let Ok(device) = usize::try_from(joined)
        {
            self.unreconciled.insert(device);
        }
    }

    /// Finds the device that processes report on, or makes one.
    fn join(&mut self, row: usize, stats: &DriverStats) -> Option<usize> {
        let is_free = |device: &Device| device.driver.is_none_or(|other| other == row);
        let by_chip = |chip: u64| {
            self.devices.values().find(|(_, device)| device.entry.chip_id == chip && is_free(device))
        };
        // What the processes say: what is settled of it may be of an earlier generation.
        let is_described = |device: &Device| {
            let mut usages = device.usages.iter().filter_map(|usage| self.usages.get(*usage));
            usages.any(|usage| stats.is_described_by(&usage.entry))
        };
        let by_description =
            || self.devices.values().find(|(_, device)| is_free(device) && is_described(device));
        let found = stats.chip_ids().find_map(by_chip).or_else(by_description).map(|(device, _)| device);
        let device = match found {
            Some(device) => device,
            None => {
                let chip_id = stats.chip_id()?;
                let device = self.device_row(&DeviceEntry { chip_id, known: 0, ..stats.entry }, self.uid)?;
                self.devices.get_mut(device)?.is_unclaimed = true;
                device
            }
        };
        let generation = self.mark_changed();
        self.devices.change(generation, device)?.driver = Some(row);
        self.unreconciled.insert(device);
        Some(device)
    }

    fn remove_driver_row(&mut self, row: usize) {
        let generation = self.mark_changed();
        let Some(gone) = self.driver.rows.remove(generation, row) else { return };
        let Ok(device) = usize::try_from(gone.stats.device) else { return };
        let Some(joined) =
            self.devices.change(generation, device).filter(|device| device.driver == Some(row))
        else {
            return;
        };
        joined.driver = None;
        joined.unreported = false;
        if joined.is_unclaimed && joined.usages.is_empty() {
            // Nobody ever reported on it, so there is nothing to be remembered.
            self.forget_device(device);
        } else {
            self.unreconciled.insert(device);
        }
    }

    /// Joins a device that no process reports on with one of a process that holds it: that which has the same number and
    /// architecture there, and of which neither the chip nor the address is one of the driver's. Some boards have ids that
    /// tt-metal and the driver form differently.
    fn join_by_logical_id(&mut self, row: usize, held: &DeviceHolders, reporters: &Reporters) {
        let Some(stats) = self.driver.rows.get(row).map(|device| device.stats) else { return };
        let alone = usize::try_from(stats.device).ok();
        let alone =
            alone.filter(|device| self.devices.get(*device).is_some_and(|device| device.is_unclaimed));
        let Some(alone) = alone else { return };
        let holds = |process: usize| {
            let pids = reporters.pids_of(process);
            held.processes.iter().any(|holder| holder.is_believed() && pids.contains(&holder.pid))
        };
        let is_it = |usage: &Usage| {
            let entry = &usage.entry;
            let differs = stats.entry.disputed_by(entry) & known::ARCH != 0 || entry.known & known::ARCH == 0;
            entry.logical() == Some(stats.number)
                && !differs
                && entry.known & known::PCI == 0
                && holds(usage.process)
        };
        let is_free =
            |device: &Device| device.driver.is_none() && self.driver.described_by(&device.entry).is_none();
        let found = self.devices.values().find(|(_, device)| {
            is_free(device) && device.usages.iter().filter_map(|usage| self.usages.get(*usage)).any(is_it)
        });
        let Some((device, _)) = found else { return };
        self.forget_device(alone);
        let generation = self.mark_changed();
        if let Some(device) = self.devices.change(generation, device) {
            device.driver = Some(row);
        }
        if let Some(driver) = self.driver.rows.change(generation, row) {
            driver.stats.device = device as u64;
            driver.stats.flags |= driver_flags::JOINED_BY_LOGICAL_ID;
        }
        self.unreconciled.insert(device);
    }

    /// Takes over who holds the driver's devices.
    pub(crate) fn see_holders(&mut self, holders: &[DeviceHolders], reporters: &Reporters) {
        let now = self.now;
        for held in holders {
            let Some(row) = self.driver.number(held.number) else { continue };
            let generation = self.mark_changed();
            let Some(device) = self.driver.rows.change(generation, row) else { continue };
            let change = device.silent.update(&mut device.stats, held, reporters, now);
            self.join_by_logical_id(row, held, reporters);
            let Some(device) = self.driver.rows.get(row) else { continue };
            let Ok(joined) = usize::try_from(device.stats.device) else { continue };
            if let Some(since) = change.left_since {
                self.doubt_holders(joined, since);
            }
            let Some(device) = self.devices.change(generation, joined) else { continue };
            device.unreported = change.is_silent;
            if let Some(from) = change.left_since {
                let life = Span { from, to: now };
                device.doubt(life, &Doubt::ANYTHING_MORE);
                device.peaks.note_others(life);
            }
        }
    }
}
