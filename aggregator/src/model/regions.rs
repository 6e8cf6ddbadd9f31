//! The regions of unmodified tt-metal, and which device each of them is about.

use std::collections::{BTreeMap, BTreeSet};

use bytemuck::Zeroable;
use shm_layout::table::{MAX_REGION_ROWS, RegionStats};
use shm_layout::{DeviceEntry, UNKNOWN};

use crate::model::Model;
use crate::model::rows::Rows;
use crate::model::slice::{Doubt, Span};

/// The rows of regions and of their processes.
#[derive(Debug)]
pub(crate) struct RegionRows {
    pub(crate) rows: Rows<RegionStats>,
    /// Rows for which there is no room.
    pub(crate) left_out: u64,
    /// Since when each device is used by a process that does not report.
    silent: BTreeMap<usize, u64>,
}

impl Default for RegionRows {
    fn default() -> RegionRows {
        RegionRows { rows: Rows::new(MAX_REGION_ROWS), left_out: 0, silent: BTreeMap::new() }
    }
}

impl RegionRows {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.count() == 0
    }
}

/// What tells a row from others.
fn key(stats: &RegionStats) -> (u64, u64, u64) {
    (stats.chip_id, stats.kind, stats.slot)
}

impl Model {
    /// Takes over what the regions have.
    pub(crate) fn see_regions(&mut self, seen: Vec<RegionStats>, left_out: u64) {
        let known: BTreeMap<_, usize> =
            self.regions.rows.values().map(|(row, stats)| (key(stats), row)).collect();
        let (mut kept, mut refused, mut silent) = (BTreeSet::new(), 0, BTreeSet::new());
        for mut stats in seen {
            let device = self.device_of_region(&stats);
            stats.device = device.map_or(UNKNOWN, |device| device as u64);
            if stats.is_silent() {
                silent.extend(device);
            }
            match known.get(&key(&stats)) {
                Some(row) => {
                    kept.insert(*row);
                    if self.regions.rows.get(*row) != Some(&stats) {
                        let generation = self.mark_changed();
                        if let Some(row) = self.regions.rows.change(generation, *row) {
                            *row = stats;
                        }
                    }
                }
                None => {
                    let generation = self.mark_changed();
                    match self.regions.rows.insert(generation, stats) {
                        Ok(row) => _ = kept.insert(row),
                        Err(_) => refused += 1,
                    }
                }
            }
        }
        let gone = self.regions.rows.values().map(|(row, _)| row).filter(|row| !kept.contains(row));
        for row in gone.collect::<Vec<_>>() {
            let generation = self.mark_changed();
            self.regions.rows.remove(generation, row);
        }
        self.regions.left_out = left_out + refused;
        self.set_in_regions(&silent);
    }

    /// The device that a region is about. A process that may be alive and does not report makes one, if there is none.
    fn device_of_region(&mut self, stats: &RegionStats) -> Option<usize> {
        let entry = DeviceEntry { chip_id: stats.chip_id, ..DeviceEntry::zeroed() };
        let by_driver =
            || self.driver.described_by(&entry).and_then(|found| usize::try_from(found.device).ok());
        if let Some(row) = self.row_of_chip(stats.chip_id).or_else(by_driver) {
            return Some(row);
        }
        if !stats.is_silent() {
            return None;
        }
        let row = self.device_row(&entry, stats.uid as u32)?;
        self.devices.get_mut(row)?.is_unclaimed = true;
        Some(row)
    }

    /// Sets which devices are used by processes that do not report. What one used that is gone is not known.
    fn set_in_regions(&mut self, silent: &BTreeSet<usize>) {
        let now = self.now;
        let before: Vec<(usize, u64)> =
            self.regions.silent.iter().map(|(row, since)| (*row, *since)).collect();
        for (row, from) in before.into_iter().filter(|(row, _)| !silent.contains(row)) {
            self.regions.silent.remove(&row);
            self.doubt_holders(row, from);
            let generation = self.mark_changed();
            let Some(device) = self.devices.change(generation, row) else { continue };
            device.is_in_region = false;
            let life = Span { from, to: now };
            device.doubt(life, &Doubt::ANYTHING_MORE);
            device.peaks.note_others(life);
            if device.is_unclaimed && device.driver.is_none() && device.usages.is_empty() {
                self.forget_device(row);
            }
        }
        for row in silent {
            self.regions.silent.entry(*row).or_insert(now);
            let is_new = self.devices.get(*row).is_some_and(|device| !device.is_in_region);
            let generation = if is_new { self.mark_changed() } else { continue };
            if let Some(device) = self.devices.change(generation, *row) {
                device.is_in_region = true;
            }
        }
    }
}
