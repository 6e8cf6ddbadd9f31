//! Which number a device has: the same in every command.

use std::collections::BTreeMap;

use tt_shm_reader::{DeviceEntry, Segment, TableSnapshot};

/// A device as users name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceId {
    /// Stable id of the chip.
    pub chip_id: u64,
    /// The processes' own number for it; `None` if they have none or disagree.
    pub logical: Option<u64>,
    /// PCI address.
    pub pci: Option<String>,
}

/// The devices, by logical id, then chip id; those without a logical id last. The place in it is a
/// device's index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// The devices in order.
    pub devices: Vec<DeviceId>,
}

/// What is said of the devices, before it is put in order.
#[derive(Debug, Default)]
pub struct Claims {
    chips: BTreeMap<u64, Claim>,
}

#[derive(Debug, Default)]
struct Claim {
    logical: Vec<u64>,
    pci: Option<String>,
}

impl Claims {
    /// What the table says.
    pub fn add_snapshot(&mut self, snapshot: &TableSnapshot) {
        for (row, device) in &snapshot.devices {
            self.add(&device.entry);
            let usages = snapshot.usages.iter().filter(|(_, usage)| usage.device == *row as u64);
            let logical = usages.map(|(_, usage)| usage.logical_id).filter(|id| *id != u64::MAX);
            self.chips.entry(device.entry.chip_id).or_default().logical.extend(logical);
        }
    }

    /// What was known before.
    pub fn add_directory(&mut self, directory: &Directory) {
        for device in &directory.devices {
            let claim = self.chips.entry(device.chip_id).or_default();
            claim.logical.extend(device.logical);
            claim.pci = claim.pci.take().or_else(|| device.pci.clone());
        }
    }

    /// What a process says.
    pub fn add_segment(&mut self, segment: &Segment) {
        self.add_entries(&segment.devices());
    }

    /// Likewise.
    pub fn add_entries(&mut self, entries: &[DeviceEntry]) {
        entries.iter().for_each(|entry| self.add(entry));
    }

    fn add(&mut self, entry: &DeviceEntry) {
        let claim = self.chips.entry(entry.chip_id).or_default();
        claim.logical.extend(entry.logical());
        claim.pci = claim.pci.take().or_else(|| entry.pci_address());
    }

    /// Puts the devices in order.
    pub fn finish(self) -> Directory {
        let device = |(chip_id, Claim { logical, pci }): (u64, Claim)| {
            let first = logical.first().copied();
            let agreed = first.filter(|first| logical.iter().all(|id| id == first));
            DeviceId { chip_id, logical: agreed, pci }
        };
        let mut devices: Vec<DeviceId> = self.chips.into_iter().map(device).collect();
        devices.sort_by_key(|device| (device.logical.unwrap_or(u64::MAX), device.chip_id));
        Directory { devices }
    }
}

impl Directory {
    /// The index of a chip.
    pub fn index_of(&self, chip_id: u64) -> Option<usize> {
        self.devices.iter().position(|device| device.chip_id == chip_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(said: &[(u64, u64)]) -> Directory {
        let mut claims = Claims::default();
        for (chip, logical) in said {
            claims.chips.entry(*chip).or_default().logical.push(*logical);
        }
        claims.finish()
    }

    #[test]
    fn logical_ids_order_devices_where_processes_agree() {
        let directory = claims(&[(30, 0), (20, 1), (30, 0), (10, 2)]);
        let chips: Vec<u64> = directory.devices.iter().map(|device| device.chip_id).collect();
        assert_eq!(chips, [30, 20, 10]);
        assert_eq!(directory.index_of(10), Some(2));
    }

    #[test]
    fn a_disputed_logical_id_is_unknown() {
        let directory = claims(&[(30, 0), (30, 1), (40, 5)]);
        assert_eq!(directory.devices[0].chip_id, 40);
        assert_eq!(directory.devices[1].logical, None);
    }
}
