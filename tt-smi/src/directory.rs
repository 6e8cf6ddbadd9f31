//! Device indices, the same in every command.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use shm_layout::claims::{self, Standing};
use tt_shm_reader::{DeviceEntry, DriverStats, Segment, TableSnapshot, process_state};

use crate::model::hex;
#[cfg(test)]
use crate::schema;

/// A device as users name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeviceId {
    /// The processes' own number for it; `None` if they have none or disagree.
    #[serde(rename = "logical_id")]
    pub logical: Option<u64>,
    /// Stable id of the chip, hexadecimal.
    #[serde(serialize_with = "hex")]
    #[cfg_attr(test, schemars(schema_with = "schema::hex"))]
    pub chip_id: u64,
    /// PCI address; `None` if not known.
    #[serde(rename = "pci_address")]
    #[cfg_attr(test, schemars(schema_with = "schema::pci_address"))]
    pub pci: Option<String>,
    /// The most trusted live process that uses it; `None` if none does.
    #[serde(skip)]
    pub standing: Option<Standing>,
    /// Its number at the driver; `None` if the driver does not have it.
    #[serde(skip)]
    pub driver: Option<u64>,
    /// PCI addresses it can be selected by, and who claims them. While processes disagree there are several, and `pci`
    /// is unknown.
    #[serde(skip)]
    pub addresses: Vec<(Standing, String)>,
}

/// The devices: those of the driver by number; then root's, then the user's own, then those of others, then those that no
/// live process uses; each group by logical id, then chip id. The position is the device's index.
///
/// So no other user can move a device that the driver has or root uses, neither by claiming other ids for it nor by
/// inventing devices.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    /// The devices in order.
    pub devices: Vec<DeviceId>,
    pub(crate) claims: Claims,
}

/// What live processes claim about the devices, before sorting.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    user: u32,
    chips: BTreeMap<u64, Chip>,
    /// The driver's devices, each with the chip id that it goes by.
    driver: Vec<(u64, DriverStats)>,
}

#[derive(Clone, Debug, Default)]
struct Chip {
    said: claims::Claims,
    standing: Option<Standing>,
    /// PCI addresses, and who claims them.
    addresses: BTreeSet<(Standing, String)>,
    /// The PCI address settled by an aggregator, which may know more processes than its table has rows for.
    settled: Option<String>,
    /// Its number at the driver.
    driver: Option<u64>,
}

impl Claims {
    /// No claims yet, for the user of this process.
    pub(crate) fn new() -> Claims {
        Claims::of_user(rustix::process::geteuid().as_raw())
    }

    fn of_user(user: u32) -> Claims {
        Claims { user, chips: BTreeMap::new(), driver: Vec::new() }
    }

    /// Adds the claims in a table.
    pub(crate) fn add_snapshot(&mut self, snapshot: &TableSnapshot) {
        let alive = snapshot.processes.iter().filter(|(_, process)| process.state == process_state::ALIVE);
        let owners: BTreeMap<u64, u32> =
            alive.map(|(row, process)| (*row as u64, process.uid as u32)).collect();
        let mut said: BTreeMap<(u64, u64), Vec<&DeviceEntry>> = BTreeMap::new();
        for (_, usage) in &snapshot.usages {
            said.entry((usage.device, usage.process)).or_default().push(&usage.entry);
        }
        for (row, device) in &snapshot.devices {
            let row = *row as u64;
            if let Some((_, stats)) = snapshot.driver.iter().find(|(_, stats)| stats.device == row) {
                self.add_driver(device.entry.chip_id, stats);
            }
            let chip = self.chips.entry(device.entry.chip_id).or_default();
            chip.settled = device.entry.pci_address();
            for ((_, process), entries) in said.range((row, 0)..=(row, u64::MAX)) {
                if let Some(uid) = owners.get(process) {
                    chip.add(Standing::for_user(*uid, self.user), entries);
                }
            }
        }
    }

    /// Adds what the driver tells of a chip.
    fn add_driver(&mut self, chip_id: u64, stats: &DriverStats) {
        let chip = self.chips.entry(chip_id).or_default();
        chip.said.add(Standing::Driver, [&stats.entry]);
        chip.addresses.extend(stats.entry.pci_address().map(|address| (Standing::Driver, address)));
        chip.driver = Some(stats.number);
        self.driver.push((chip_id, *stats));
    }

    /// Adds the driver's devices, for who has no table. Each goes by the id of the first process that describes it, if
    /// the driver knows that id, too, or else none.
    pub(crate) fn add_drivers(&mut self, rows: &[DriverStats], entries: &[DeviceEntry]) {
        for stats in rows {
            let is_its = |entry: &&DeviceEntry| stats.chip_ids().any(|id| id == entry.chip_id);
            let described = entries.iter().find(is_its).or_else(|| {
                entries.iter().find(|entry| stats.chip_ids().next().is_none() && stats.is_described_by(entry))
            });
            let chip_id = described.map(|entry| entry.chip_id).or_else(|| stats.chip_id());
            if let Some(chip_id) = chip_id {
                self.add_driver(chip_id, stats);
            }
        }
    }

    /// The id that a chip goes by, which is not that of a process if the driver tells that it is the same one.
    fn canonical(&self, entry: &DeviceEntry) -> u64 {
        let is_it = |(_, stats): &&(u64, DriverStats)| stats.is_described_by(entry);
        self.driver.iter().find(is_it).map_or(entry.chip_id, |(chip_id, _)| *chip_id)
    }

    /// Adds the claims of a process.
    pub(crate) fn add_segment(&mut self, segment: &Segment) {
        self.add_entries(segment.uid(), &segment.devices());
    }

    /// Adds the claims of a process of this user.
    pub(crate) fn add_entries(&mut self, uid: u32, entries: &[DeviceEntry]) {
        let standing = Standing::for_user(uid, self.user);
        let mut by_chip: BTreeMap<u64, Vec<&DeviceEntry>> = BTreeMap::new();
        entries.iter().for_each(|entry| by_chip.entry(self.canonical(entry)).or_default().push(entry));
        for (chip_id, entries) in by_chip {
            self.chips.entry(chip_id).or_default().add(standing, &entries);
        }
    }

    /// Sorts the devices.
    pub(crate) fn finish(self) -> Directory {
        let mut devices: Vec<DeviceId> = self.chips.iter().map(|(chip_id, chip)| chip.id(*chip_id)).collect();
        devices.sort_by_key(|device| {
            let logical = device.logical.unwrap_or(u64::MAX);
            let driver = device.driver.unwrap_or(u64::MAX);
            (driver, device.standing.is_none(), device.standing, logical, device.chip_id)
        });
        Directory { devices, claims: self }
    }
}

impl Chip {
    /// The claims of one process.
    fn add(&mut self, standing: Standing, entries: &[&DeviceEntry]) {
        self.said.add(standing, entries.iter().copied());
        self.standing = Some(self.standing.map_or(standing, |best| best.min(standing)));
        self.addresses.extend(entries.iter().filter_map(|entry| Some((standing, entry.pci_address()?))));
    }

    fn id(&self, chip_id: u64) -> DeviceId {
        let claims::Settled { entry, logical, .. } = self.said.settle(chip_id);
        let pci = self.settled.clone().or_else(|| entry.pci_address());
        let (standing, driver) = (self.standing, self.driver);
        DeviceId { chip_id, logical, pci, standing, driver, addresses: self.selected_by() }
    }

    /// The settled address, else those of the most trusted user.
    fn selected_by(&self) -> Vec<(Standing, String)> {
        if let Some(pci) = &self.settled {
            let claim = self.addresses.iter().find(|(_, claimed)| claimed == pci);
            return vec![claim.cloned().unwrap_or_else(|| (Standing::Other, pci.clone()))];
        }
        let best = self.addresses.first().map(|(standing, _)| *standing);
        self.addresses.iter().filter(|(standing, _)| Some(*standing) == best).cloned().collect()
    }
}

impl Directory {
    /// The index of a chip.
    pub fn index_of(&self, chip_id: u64) -> Option<usize> {
        self.devices.iter().position(|device| device.chip_id == chip_id)
    }

    /// The settled entry of a chip.
    pub fn settled(&self, chip_id: u64) -> Option<DeviceEntry> {
        Some(self.claims.chips.get(&chip_id)?.said.settle(chip_id).entry)
    }

    /// Adds the claim of one more process.
    pub fn add_segment(&mut self, segment: &Segment) {
        let mut claims = std::mem::take(&mut self.claims);
        claims.add_segment(segment);
        *self = claims.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_reader::known;

    const ROOT: u32 = 0;
    const USER: u32 = 5;
    const STRANGER: u32 = 6;

    fn chip(chip_id: u64, logical_id: u64) -> DeviceEntry {
        DeviceEntry { chip_id, logical_id, known: known::LOGICAL, ..bytemuck::Zeroable::zeroed() }
    }

    fn at(bus: u64, entry: DeviceEntry) -> DeviceEntry {
        DeviceEntry { pci: bus << 8, known: entry.known | known::PCI, ..entry }
    }

    /// As that user sees it.
    fn directory(user: u32, said: &[(u32, DeviceEntry)]) -> Directory {
        let mut claims = Claims::of_user(user);
        said.iter().for_each(|(uid, entry)| claims.add_entries(*uid, &[*entry]));
        claims.finish()
    }

    fn chips(directory: &Directory) -> Vec<u64> {
        directory.devices.iter().map(|device| device.chip_id).collect()
    }

    fn claims(said: &[(u64, u64)]) -> Directory {
        let said: Vec<_> = said.iter().map(|(id, logical)| (USER, chip(*id, *logical))).collect();
        directory(USER, &said)
    }

    #[test]
    fn logical_ids_order_devices_where_processes_agree() {
        let directory = claims(&[(30, 0), (20, 1), (30, 0), (10, 2)]);
        assert_eq!(chips(&directory), [30, 20, 10]);
        assert_eq!(directory.index_of(10), Some(2));
    }

    #[test]
    fn a_disputed_logical_id_is_unknown() {
        let directory = claims(&[(30, 0), (30, 1), (40, 5)]);
        assert_eq!(directory.devices[0].chip_id, 40);
        assert_eq!(directory.devices[1].logical, None);
    }

    #[test]
    fn a_stranger_moves_nothing_that_root_or_the_user_has() {
        let honest = [(ROOT, chip(30, 1)), (USER, chip(20, 1)), (USER, chip(10, 2))];
        let lies = [(STRANGER, chip(1, 0)), (STRANGER, chip(30, 77)), (STRANGER, chip(20, 77))];
        let said = [&lies[..], &honest[..]].concat();
        let seen = directory(USER, &said);
        assert_eq!(chips(&seen), [30, 20, 10, 1]);
        let logical: Vec<_> = seen.devices.iter().map(|device| device.logical).collect();
        assert_eq!(logical, [Some(1), Some(1), Some(2), Some(0)]);
        // To root, the user is one of many.
        let seen = directory(ROOT, &said);
        assert_eq!((seen.devices[0].chip_id, seen.devices[0].logical), (30, Some(1)));
        assert_eq!(seen.devices[3].logical, None, "equals who contradict each other");
    }

    #[test]
    fn an_address_is_that_of_whoever_counts_most() {
        let seen = directory(USER, &[(STRANGER, at(9, chip(30, 0))), (ROOT, at(3, chip(30, 0)))]);
        assert_eq!(seen.devices[0].pci.as_deref(), Some("0000:03:00.0"));
        assert_eq!(seen.devices[0].addresses, [(Standing::Root, "0000:03:00.0".to_owned())]);
        let seen = directory(ROOT, &[(STRANGER, at(9, chip(30, 0))), (USER, at(3, chip(30, 0)))]);
        assert_eq!((&seen.devices[0].pci, seen.devices[0].addresses.len()), (&None, 2));
    }
}
