//! A device of the driver: what is not a figure.

use std::collections::BTreeMap;

use serde::Serialize;
use tt_shm_driver::Absence;
use tt_shm_reader::{Absent, DriverStats, Told, driver_flags, text};

use super::holder::HolderJson;
use super::measure::MEASURES;
use crate::escape::Foreign;
use crate::model::Clock;
#[cfg(test)]
use crate::schema;

/// What the driver tells of a device, but for what it measures.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DriverDevice {
    /// N of /dev/tenstorrent/N.
    pub number: u64,
    /// Its row in the table.
    #[serde(skip)]
    pub row: usize,
    /// How old all of this is, in milliseconds.
    pub age_ms: u64,
    /// Whether only its number tells that it is the device that processes report on: a process that holds it has a device
    /// with the same number and of the same architecture.
    pub joined_by_logical_id: bool,
    /// Version of the driver; `None` if not known.
    pub driver_version: Option<Foreign>,
    /// Serial number of the board, hexadecimal.
    #[cfg_attr(test, schemars(schema_with = "schema::hex_or_null"))]
    pub serial: Option<String>,
    /// Id of the chip, hexadecimal.
    #[cfg_attr(test, schemars(schema_with = "schema::hex_or_null"))]
    pub asic_id: Option<String>,
    /// Memory node of the processor that it is attached to.
    #[cfg_attr(test, schemars(schema_with = "schema::count_or_null"))]
    pub numa_node: Option<i64>,
    /// Versions of its firmware, by part.
    #[cfg_attr(test, schemars(schema_with = "firmware_schema"))]
    pub firmware: BTreeMap<&'static str, Option<Foreign>>,
    /// Whether the heartbeat moves; `None` until that is known.
    pub heartbeat_moves: Option<bool>,
    /// Memory of one chip of this board by its data sheet, which no process confirmed; `None` if the board is not in
    /// the list.
    pub nominal: Option<NominalJson>,
    /// Processes that have it open; `None` if that is not known.
    pub holder_count: Option<u64>,
    /// Those of them that report to nobody, so that what they use is unknown.
    pub unreported_holder_count: Option<u64>,
    /// Open descriptors of processes that have no pid in the aggregator's PID namespace.
    pub invisible_holders: u64,
    /// The processes that have it open, as far as this user may see, by pid; `None` if nobody was asked.
    pub holders: Option<Vec<HolderJson>>,
    /// Why values are null, by key.
    pub absent: BTreeMap<&'static str, &'static str>,
    /// The first text of the driver that was not understood, or the first read that failed.
    pub note: Option<Foreign>,
    /// What it measures.
    #[serde(skip)]
    pub stats: Box<DriverStats>,
}

/// Memory of one chip of a board by its data sheet.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NominalJson {
    /// DRAM.
    pub dram_bytes: u64,
    /// L1 of all Tensix cores; `None` if their number depends on firmware of unknown version.
    pub l1_bytes: Option<u64>,
    /// L1 of all ethernet cores.
    pub eth_l1_bytes: u64,
    /// Tensix cores.
    tensix_cores: Option<u64>,
    /// L1 of each Tensix core.
    l1_per_core_bytes: u64,
    /// Chips of the board. Some may have no PCIe link of their own.
    chips: u64,
}

/// Parts of the firmware: key, name for people, where the table has it, what it is.
pub(crate) const FIRMWARE: [(&str, &str, Told, &str); 6] = [
    ("bundle", "firmware bundle", Told::Bundle, "All of it, as it is released."),
    ("m3_app", "M3 application", Told::M3App, "The board's management controller."),
    (
        "m3_bootloader",
        "M3 boot loader",
        Told::M3Bootloader,
        "The loader of the board's management controller.",
    ),
    ("arc", "ARC firmware", Told::Arc, "The chip's management processor."),
    ("ethernet", "ethernet firmware", Told::Ethernet, "The ethernet cores."),
    ("tt_flash", "flash tool", Told::TtFlash, "The tool that wrote it."),
];

/// What identifies it: key, and where the table has it.
const IDENTITY: [(&str, Told); 5] = [
    ("pci_address", Told::PciAddress),
    ("board", Told::Board),
    ("serial", Told::Serial),
    ("asic_id", Told::AsicId),
    ("numa_node", Told::NumaNode),
];

#[cfg(test)]
fn firmware_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let version = || schemars::json_schema!({ "type": ["string", "null"] });
    schema::object(FIRMWARE.map(|(key, _, _, about)| (key.to_owned(), schema::named(version(), about))))
}

impl DriverDevice {
    /// Resolves a row.
    pub fn new(row: usize, stats: &DriverStats, clock: Clock) -> DriverDevice {
        let hex = |told: Told, id: u64| stats.absence(told).is_none().then(|| format!("{id:#018x}"));
        let has = |flag: u64| stats.flags & flag != 0;
        let known_text =
            |field: &[u8]| Some(text::decode(field)).filter(|text| !text.is_empty()).map(Foreign::from);
        let keys = MEASURES.iter().flat_map(|measure| measure.keys());
        let keys = keys.chain(FIRMWARE.map(|(key, _, told, _)| (key, told))).chain(IDENTITY);
        DriverDevice {
            number: stats.number,
            row,
            age_ms: clock.age_ns(stats.time) / 1_000_000,
            joined_by_logical_id: has(driver_flags::JOINED_BY_LOGICAL_ID),
            driver_version: known_text(&stats.driver_version),
            serial: hex(Told::Serial, stats.serial),
            asic_id: hex(Told::AsicId, stats.asic_id),
            numa_node: stats.number(Told::NumaNode).ok(),
            firmware: FIRMWARE
                .map(|(key, _, told, _)| (key, stats.version(told).ok().map(Foreign::from)))
                .into(),
            heartbeat_moves: match (has(driver_flags::HEARTBEAT_MOVES), has(driver_flags::HEARTBEAT_STANDS)) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            },
            nominal: NominalJson::of(stats),
            holder_count: has(driver_flags::HOLDERS).then_some(stats.holders),
            unreported_holder_count: has(driver_flags::HOLDERS).then_some(stats.unreported_holders),
            invisible_holders: stats.invisible_holders,
            holders: None,
            absent: keys.filter_map(|(key, told)| Some((key, why(stats.absence(told)?)))).collect(),
            note: known_text(&stats.note),
            stats: Box::new(*stats),
        }
    }
}

impl NominalJson {
    fn of(stats: &DriverStats) -> Option<NominalJson> {
        let cores = (stats.flags & driver_flags::NOMINAL_CORES != 0).then_some(stats.nominal_tensix_cores);
        (stats.flags & driver_flags::NOMINAL != 0).then(|| NominalJson {
            dram_bytes: stats.nominal_dram_bytes,
            l1_bytes: cores.and_then(|cores| cores.checked_mul(stats.nominal_l1_per_core)),
            eth_l1_bytes: stats.nominal_eth_cores.saturating_mul(stats.nominal_eth_l1_per_core),
            tensix_cores: cores,
            l1_per_core_bytes: stats.nominal_l1_per_core,
            chips: stats.nominal_chips,
        })
    }
}

/// Why a value is not known, in a few words.
fn why(absent: Absent) -> &'static str {
    match absent {
        Absent::Missing => Absence::Missing.words(),
        Absent::Resetting => Absence::Resetting.words(),
        Absent::Gone => Absence::Gone.words(),
        Absent::Denied => Absence::Denied.words(),
        Absent::Unknown => Absence::Unknown.words(),
        Absent::NotFitted => Absence::NotFitted.words(),
        Absent::Malformed => "not understood",
        Absent::Failed => "could not be read",
    }
}
