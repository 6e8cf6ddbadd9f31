//! What the kernel driver tells of devices: those that processes report on, and those that they do not.

mod device;
mod holder;

pub(crate) use device::DriverDevice;

use std::collections::BTreeMap;
use std::time::Instant;

use tt_shm_driver::{Holders, Monitor, Roots};

use crate::model::Device;
use crate::query::{Field, Record, Value};
use crate::select::DeviceSelector;

/// Names a folder that has other `sys` and `proc` than this machine's. For tests.
const ROOT_ENV: &str = "TT_SMI_DRIVER_ROOT";

/// What the driver tells, once.
pub(crate) struct Driver {
    /// Its version; `None` if it is not loaded.
    pub(crate) version: Option<String>,
    /// By number.
    pub(crate) devices: Vec<DriverDevice>,
    /// What is missing, how often, and what to do.
    pub(crate) gaps: Vec<String>,
}

/// The driver's devices, beside those that processes report on.
pub(crate) struct Joined {
    /// By index of the device that processes report on.
    pub(crate) reported: BTreeMap<usize, DriverDevice>,
    /// Those that no process reports on, by number.
    pub(crate) unreported: Vec<DriverDevice>,
}

impl Driver {
    /// Reads it, from this machine or from the one that the environment names.
    pub(crate) fn read() -> Driver {
        Driver::of(std::env::var_os(ROOT_ENV).map_or_else(Roots::default, Roots::below))
    }

    fn of(roots: Roots) -> Driver {
        let mut monitor = Monitor::new(roots);
        monitor.poll(Instant::now());
        let version = monitor.version().as_ref().ok();
        let numbers: Vec<u32> = monitor.devices().iter().map(|device| device.number).collect();
        // Without a device there is nothing to hold, and no reason to search all processes.
        let holders = match numbers.is_empty() {
            true => Holders::default(),
            false => Holders::read(monitor.roots(), version, &numbers),
        };
        let devices = monitor.devices().iter().zip(&holders.devices);
        let mut gaps = holders.gaps();
        if monitor.left_out() > 0 {
            gaps.push(format!("devices more than are read: {}", monitor.left_out()));
        }
        Driver {
            version: version.map(ToString::to_string),
            devices: devices.map(|(device, holders)| DriverDevice::new(device, holders)).collect(),
            gaps,
        }
    }

    /// Finds each device among those that processes report on: by its chip's id, else by its PCI address.
    pub(crate) fn join(&self, devices: &[Device]) -> Joined {
        let mut joined = Joined { reported: BTreeMap::new(), unreported: Vec::new() };
        for device in &self.devices {
            let by_chip = devices.iter().find(|reported| device.chip_ids.contains(&reported.id.chip_id));
            let by_address = || {
                let address = device.pci_address.as_ref()?;
                devices.iter().find(|reported| reported.id.pci.as_ref() == Some(address))
            };
            match by_chip.or_else(by_address) {
                Some(reported) if !joined.reported.contains_key(&reported.index) => {
                    joined.reported.insert(reported.index, device.clone());
                }
                _ => joined.unreported.push(device.clone()),
            }
        }
        joined
    }
}

impl DriverDevice {
    /// Whether a selector means it. An index means only devices that processes report on.
    pub(crate) fn is_meant_by(&self, selector: &DeviceSelector) -> bool {
        match selector {
            DeviceSelector::Pci(address) => self.pci_address.as_ref() == Some(address),
            _ => self.chip_ids.iter().any(|chip_id| selector.is_chip(*chip_id)),
        }
    }
}

/// What is used on it is not known, so only its name can be asked for.
impl Record for DriverDevice {
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Name => Value::text(self.board.as_deref()),
            _ => Value::Unknown,
        }
    }
}
