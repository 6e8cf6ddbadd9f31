//! A device of the driver, with values in the units that people use.

use std::collections::BTreeMap;

use serde::Serialize;
use tt_shm_driver::{Clock, Component, Device, DeviceHolders, LinkState, Quantity, Reading, Version};

use super::holder::HolderJson;
#[cfg(test)]
use crate::schema;

/// What the driver tells of a device.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DriverDevice {
    /// Where this is from.
    #[cfg_attr(test, schemars(schema_with = "driver_schema"))]
    pub(crate) source: &'static str,
    /// N of /dev/tenstorrent/N.
    pub(crate) number: u32,
    /// PCI address; `None` if not known.
    #[cfg_attr(test, schemars(schema_with = "schema::pci_address"))]
    pub(crate) pci_address: Option<String>,
    /// Architecture; `None` if not known.
    #[cfg_attr(test, schemars(schema_with = "schema::arch"))]
    pub(crate) arch: Option<&'static str>,
    /// Board; `None` if not known.
    pub(crate) board: Option<String>,
    /// Serial number of the board, hexadecimal.
    #[cfg_attr(test, schemars(schema_with = "schema::hex_or_null"))]
    serial: Option<String>,
    /// Id of the chip, hexadecimal.
    #[cfg_attr(test, schemars(schema_with = "schema::hex_or_null"))]
    pub(crate) asic_id: Option<String>,
    /// Memory node of the processor that it is attached to.
    numa_node: Option<u32>,
    /// Versions of its firmware, by part.
    #[cfg_attr(test, schemars(schema_with = "firmware_schema"))]
    firmware: BTreeMap<&'static str, Option<String>>,
    /// Its PCIe link as it is now.
    link: LinkJson,
    /// Its PCIe link as it could be.
    link_max: LinkJson,
    /// Clocks in MHz.
    #[cfg_attr(test, schemars(schema_with = "clocks_schema"))]
    clocks_mhz: BTreeMap<&'static str, Option<u32>>,
    /// What its sensors measure.
    #[serde(flatten)]
    pub(crate) sensors: SensorsJson,
    /// A number that the firmware counts up.
    heartbeat: Option<u32>,
    /// How often the chip was switched off because it was too hot.
    thermal_trips: Option<u32>,
    /// Memory of one chip of this board by its data sheet, which no process confirmed; `None` if the board is not in
    /// the list.
    pub(crate) nominal: Option<NominalJson>,
    /// Processes that have it open, by pid.
    pub(crate) holders: Vec<HolderJson>,
    /// Open descriptors of processes that have no pid here.
    pub(crate) invisible_holders: u32,
    /// Why values are null, by key.
    absent: BTreeMap<&'static str, String>,
    /// Ids by which processes may report it.
    #[serde(skip)]
    pub(crate) chip_ids: Vec<u64>,
}

/// A PCIe link.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LinkJson {
    /// Speed of a lane, in billions of transfers per second.
    speed_gts: Option<f64>,
    /// Lanes.
    width: Option<u32>,
}

/// What sensors measure, and the limits.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SensorsJson {
    /// Temperature of the chip.
    #[cfg_attr(test, schemars(schema_with = "number_schema"))]
    pub(crate) temperature_celsius: Option<f64>,
    /// Its limit.
    #[cfg_attr(test, schemars(schema_with = "number_schema"))]
    temperature_limit_celsius: Option<f64>,
    /// Voltage of the cores.
    #[cfg_attr(test, schemars(schema_with = "number_schema"))]
    voltage_volts: Option<f64>,
    /// Its limit.
    #[cfg_attr(test, schemars(schema_with = "number_schema"))]
    voltage_limit_volts: Option<f64>,
    /// Current.
    #[cfg_attr(test, schemars(schema_with = "number_schema"))]
    current_amperes: Option<f64>,
    /// Its limit.
    #[cfg_attr(test, schemars(schema_with = "number_schema"))]
    current_limit_amperes: Option<f64>,
    /// Power.
    #[cfg_attr(test, schemars(schema_with = "number_schema"))]
    pub(crate) power_watts: Option<f64>,
    /// Its limit.
    #[cfg_attr(test, schemars(schema_with = "number_schema"))]
    power_limit_watts: Option<f64>,
    /// Speed of the fan.
    #[cfg_attr(test, schemars(schema_with = "number_schema"))]
    fan_rpm: Option<f64>,
    /// Its limit.
    #[cfg_attr(test, schemars(schema_with = "number_schema"))]
    fan_limit_rpm: Option<f64>,
}

/// Memory of one chip of a board by its data sheet.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct NominalJson {
    /// DRAM.
    pub(crate) dram_bytes: u64,
    /// L1 of all Tensix cores; `None` if their number depends on firmware of unknown version.
    pub(crate) l1_bytes: Option<u64>,
    /// L1 of all ethernet cores.
    pub(crate) eth_l1_bytes: u64,
    /// Tensix cores.
    tensix_cores: Option<u64>,
    /// L1 of each Tensix core.
    l1_per_core_bytes: u64,
    /// Chips of the board. Some may have no PCIe link of their own.
    chips: u32,
}

#[cfg(test)]
fn driver_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "const": "driver" })
}

/// A temperature may be below zero, and a sensor may say anything.
#[cfg(test)]
fn number_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": ["number", "null"] })
}

#[cfg(test)]
fn firmware_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let version = || schemars::json_schema!({ "type": ["string", "null"] });
    let property = |part: Component| (part.name().to_owned(), schema::named(version(), part.about()));
    schema::object(Component::ALL.map(property))
}

#[cfg(test)]
fn clocks_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let frequency = || schemars::json_schema!({ "type": ["integer", "null"], "minimum": 0 });
    let property = |clock: Clock| (clock.name().to_owned(), schema::named(frequency(), clock.about()));
    schema::object(Clock::ALL.map(property))
}

/// Takes values, and notes why there is none.
#[derive(Default)]
struct Taker {
    absent: BTreeMap<&'static str, String>,
}

impl Taker {
    fn take<T: Clone>(&mut self, key: &'static str, reading: &Reading<T>) -> Option<T> {
        match reading {
            Ok(value) => Some(value.clone()),
            Err(absence) => {
                self.absent.insert(key, absence.to_string());
                None
            }
        }
    }

    /// A measured value, which the driver has in thousandths or millionths.
    fn scaled(&mut self, key: &'static str, reading: &Reading<i64>, per_unit: f64) -> Option<f64> {
        self.take(key, reading).map(|value| value as f64 / per_unit)
    }
}

impl DriverDevice {
    pub(super) fn new(device: &Device, holders: &DeviceHolders) -> DriverDevice {
        let (mut taker, identity) = (Taker::default(), &device.identity);
        let hex = |id: u64| format!("{id:#018x}");
        let firmware = |component: Component| {
            let version = taker.take(component.name(), device.firmware(component));
            (component.name(), version.as_ref().map(Version::to_string))
        };
        let firmware = Component::ALL.map(firmware).into();
        let clock = |clock: Clock| (clock.name(), taker.take(clock.name(), device.clock(clock)));
        let clocks_mhz = Clock::ALL.map(clock).into();
        DriverDevice {
            source: "driver",
            number: device.number,
            pci_address: taker.take("pci_address", &identity.pci).map(|address| address.to_string()),
            arch: device.architecture().map(|architecture| architecture.name()),
            board: taker.take("board", &identity.card),
            serial: taker.take("serial", &identity.serial).map(hex),
            asic_id: taker.take("asic_id", &identity.asic_id).map(hex),
            numa_node: taker.take("numa_node", &identity.numa_node),
            firmware,
            link: LinkJson::new(&mut taker, ["link.speed_gts", "link.width"], &device.link.current),
            link_max: LinkJson::new(&mut taker, ["link_max.speed_gts", "link_max.width"], &device.link.max),
            clocks_mhz,
            sensors: SensorsJson::new(&mut taker, device),
            heartbeat: taker.take("heartbeat", &device.health.heartbeat),
            thermal_trips: taker.take("thermal_trips", &device.health.thermal_trips),
            nominal: device.nominal().map(|nominal| NominalJson {
                dram_bytes: nominal.dram_bytes,
                l1_bytes: nominal.l1_bytes(),
                eth_l1_bytes: nominal.ethernet_l1_bytes(),
                tensix_cores: nominal.tensix_cores,
                l1_per_core_bytes: nominal.l1_per_core,
                chips: nominal.chips,
            }),
            holders: holders.processes.iter().map(HolderJson::new).collect(),
            invisible_holders: holders.invisible,
            absent: taker.absent,
            chip_ids: device.chip_ids(),
        }
    }

    /// Frequency of the Tensix cores, in MHz.
    pub(crate) fn aiclk(&self) -> Option<u32> {
        self.clocks_mhz.get(Clock::Ai.name()).copied().flatten()
    }
}

impl LinkJson {
    fn new(taker: &mut Taker, [speed, width]: [&'static str; 2], link: &LinkState) -> LinkJson {
        LinkJson {
            speed_gts: taker.take(speed, &link.speed).map(|speed| f64::from(speed) / 1000.0),
            width: taker.take(width, &link.width),
        }
    }
}

impl SensorsJson {
    fn new(taker: &mut Taker, device: &Device) -> SensorsJson {
        let mut input = |key, quantity, per_unit| taker.scaled(key, &device.sensor(quantity).input, per_unit);
        let temperature_celsius = input("temperature_celsius", Quantity::Temperature, 1e3);
        let voltage_volts = input("voltage_volts", Quantity::Voltage, 1e3);
        let current_amperes = input("current_amperes", Quantity::Current, 1e3);
        let power_watts = input("power_watts", Quantity::Power, 1e6);
        let fan_rpm = input("fan_rpm", Quantity::Fan, 1.0);
        let mut limit = |key, quantity, per_unit| taker.scaled(key, &device.sensor(quantity).max, per_unit);
        SensorsJson {
            temperature_celsius,
            temperature_limit_celsius: limit("temperature_limit_celsius", Quantity::Temperature, 1e3),
            voltage_volts,
            voltage_limit_volts: limit("voltage_limit_volts", Quantity::Voltage, 1e3),
            current_amperes,
            current_limit_amperes: limit("current_limit_amperes", Quantity::Current, 1e3),
            power_watts,
            power_limit_watts: limit("power_limit_watts", Quantity::Power, 1e6),
            fan_rpm,
            fan_limit_rpm: limit("fan_limit_rpm", Quantity::Fan, 1.0),
        }
    }
}
