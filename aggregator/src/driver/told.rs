//! A device of the driver as a row of the table.

use bytemuck::Zeroable;
use shm_layout::table::{Absent, DriverStats, FIRMWARE_PARTS, Told, driver_flags};
use shm_layout::{Arch, DeviceEntry, UNKNOWN, known, text};
use tt_shm_driver::{Absence, Architecture, Clock, Component, Device, Quantity, Reading, Version};

/// The row of a device, which is not joined with anything yet, and of whose holders nothing is said.
#[must_use]
pub fn driver_stats(device: &Device, driver: Option<&Version>, time: u64) -> DriverStats {
    let mut row = Row {
        stats: DriverStats {
            number: device.number.into(),
            device: UNKNOWN,
            time,
            driver_version: driver.map_or([0; 32], |version| text::encode(version.as_str())),
            ..DriverStats::zeroed()
        },
        note: None,
    };
    row.identity(device);
    row.firmware(device);
    row.numbers(device);
    row.nominal(device);
    row.stats.note = text::encode(&row.note.unwrap_or_default());
    row.stats
}

struct Row {
    stats: DriverStats,
    note: Option<String>,
}

impl Row {
    /// A value, or a note of why there is none.
    fn take<'a, T>(&mut self, told: Told, reading: &'a Reading<T>) -> Option<&'a T> {
        let absence = match reading {
            Ok(value) => return Some(value),
            Err(absence) => absence,
        };
        self.stats.absences[told as usize] = absent(absence) as u8;
        if matches!(absence, Absence::Malformed(_) | Absence::Failed { .. }) && self.note.is_none() {
            self.note = Some(absence.to_string());
        }
        None
    }

    fn identity(&mut self, device: &Device) {
        let identity = &device.identity;
        let mut entry = DeviceEntry::zeroed();
        if let Some(architecture) = device.architecture() {
            entry.arch = arch(architecture) as u64;
            entry.known |= known::ARCH;
        }
        if let Some(address) = self.take(Told::PciAddress, &identity.pci) {
            entry.pci = address.packed();
            entry.known |= known::PCI;
        }
        if let Some(card) = self.take(Told::Board, &identity.card) {
            entry.board = text::encode(card);
            entry.known |= known::BOARD;
        }
        self.stats.entry = entry;
        self.stats.serial = self.take(Told::Serial, &identity.serial).copied().unwrap_or_default();
        self.stats.asic_id = self.take(Told::AsicId, &identity.asic_id).copied().unwrap_or_default();
        self.stats.serial_chip_id = device.serial_chip_id().unwrap_or_default();
    }

    fn firmware(&mut self, device: &Device) {
        const PARTS: [(Component, Told); FIRMWARE_PARTS] = [
            (Component::Bundle, Told::Bundle),
            (Component::M3App, Told::M3App),
            (Component::M3Bootloader, Told::M3Bootloader),
            (Component::Arc, Told::Arc),
            (Component::Ethernet, Told::Ethernet),
            (Component::TtFlash, Told::TtFlash),
        ];
        for (place, (component, told)) in PARTS.into_iter().enumerate() {
            if let Some(version) = self.take(told, device.firmware(component)) {
                self.stats.firmware[place] = text::encode(version.as_str());
            }
        }
    }

    fn number<T: Copy + Into<i64>>(&mut self, told: Told, reading: &Reading<T>) {
        if let Some(value) = self.take(told, reading) {
            self.stats.numbers[told as usize] = (*value).into() as u64;
        }
    }

    fn numbers(&mut self, device: &Device) {
        const SENSORS: [(Quantity, Told, Told); 5] = [
            (Quantity::Temperature, Told::Temperature, Told::TemperatureLimit),
            (Quantity::Voltage, Told::Voltage, Told::VoltageLimit),
            (Quantity::Current, Told::Current, Told::CurrentLimit),
            (Quantity::Power, Told::Power, Told::PowerLimit),
            (Quantity::Fan, Told::Fan, Told::FanLimit),
        ];
        for (quantity, input, limit) in SENSORS {
            self.number(input, &device.sensor(quantity).input);
            self.number(limit, &device.sensor(quantity).max);
        }
        for (clock, told) in
            [(Clock::Ai, Told::Aiclk), (Clock::Axi, Told::Axiclk), (Clock::Arc, Told::Arcclk)]
        {
            self.number(told, device.clock(clock));
        }
        let (link, health) = (&device.link, &device.health);
        self.number(Told::LinkSpeed, &link.current.speed);
        self.number(Told::LinkWidth, &link.current.width);
        self.number(Told::LinkSpeedMax, &link.max.speed);
        self.number(Told::LinkWidthMax, &link.max.width);
        self.number(Told::NumaNode, &device.identity.numa_node);
        self.number(Told::Heartbeat, &health.heartbeat);
        self.number(Told::ThermalTrips, &health.thermal_trips);
        self.stats.flags |= match health.heartbeat_moves {
            Some(true) => driver_flags::HEARTBEAT_MOVES,
            Some(false) => driver_flags::HEARTBEAT_STANDS,
            None => 0,
        };
    }

    fn nominal(&mut self, device: &Device) {
        let Some(nominal) = device.nominal() else { return };
        let stats = &mut self.stats;
        stats.flags |= driver_flags::NOMINAL;
        stats.flags |= if nominal.tensix_cores.is_some() { driver_flags::NOMINAL_CORES } else { 0 };
        stats.nominal_dram_bytes = nominal.dram_bytes;
        stats.nominal_tensix_cores = nominal.tensix_cores.unwrap_or_default();
        stats.nominal_l1_per_core = nominal.l1_per_core;
        stats.nominal_eth_cores = nominal.ethernet_cores;
        stats.nominal_eth_l1_per_core = nominal.ethernet_l1_per_core;
        stats.nominal_chips = nominal.chips.into();
    }
}

fn absent(absence: &Absence) -> Absent {
    match absence {
        Absence::Missing => Absent::Missing,
        Absence::Resetting => Absent::Resetting,
        Absence::Gone => Absent::Gone,
        Absence::Denied => Absent::Denied,
        Absence::Unknown => Absent::Unknown,
        Absence::NotFitted => Absent::NotFitted,
        Absence::Malformed(_) => Absent::Malformed,
        Absence::Failed { .. } => Absent::Failed,
    }
}

fn arch(architecture: Architecture) -> Arch {
    match architecture {
        Architecture::Grayskull => Arch::Grayskull,
        Architecture::Wormhole => Arch::Wormhole,
        Architecture::Blackhole => Arch::Blackhole,
    }
}
