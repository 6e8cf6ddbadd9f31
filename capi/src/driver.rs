//! What the kernel driver tells of devices: identity, firmware, link, clocks, sensors, and who holds them.

use std::ffi::c_char;

use tt_shm_reader::DriverStats;

use crate::code::call;
use crate::objects::{self, tt_shm_snapshot};
use crate::raw::{Handle, Out, OutStruct, OutStructs, versioned};
use crate::rows::row_of;
use crate::types::{TT_SHM_UNKNOWN, fixed, tt_shm_device_info};

/// Values that the driver tells, places in `absences` and of the first of them in `numbers`: temperature of the chip, in thousandths of a degree Celsius.
pub const TT_SHM_TOLD_TEMPERATURE: usize = 0;
/// Its limit.
pub const TT_SHM_TOLD_TEMPERATURE_LIMIT: usize = 1;
/// Voltage of the cores, in millivolts.
pub const TT_SHM_TOLD_VOLTAGE: usize = 2;
/// Its limit.
pub const TT_SHM_TOLD_VOLTAGE_LIMIT: usize = 3;
/// Current, in milliamperes.
pub const TT_SHM_TOLD_CURRENT: usize = 4;
/// Its limit.
pub const TT_SHM_TOLD_CURRENT_LIMIT: usize = 5;
/// Power, in microwatts.
pub const TT_SHM_TOLD_POWER: usize = 6;
/// Its limit.
pub const TT_SHM_TOLD_POWER_LIMIT: usize = 7;
/// Speed of the fan, in rotations per minute.
pub const TT_SHM_TOLD_FAN: usize = 8;
/// Its limit.
pub const TT_SHM_TOLD_FAN_LIMIT: usize = 9;
/// Clock of the Tensix cores, in MHz.
pub const TT_SHM_TOLD_AICLK: usize = 10;
/// Clock of the bus, in MHz.
pub const TT_SHM_TOLD_AXICLK: usize = 11;
/// Clock of the management processor, in MHz.
pub const TT_SHM_TOLD_ARCCLK: usize = 12;
/// A number that the firmware counts up.
pub const TT_SHM_TOLD_HEARTBEAT: usize = 13;
/// How often the chip was switched off because it was too hot.
pub const TT_SHM_TOLD_THERMAL_TRIPS: usize = 14;
/// Speed of a lane of the PCIe link now, in millions of transfers per second.
pub const TT_SHM_TOLD_LINK_SPEED: usize = 15;
/// Lanes of the PCIe link now.
pub const TT_SHM_TOLD_LINK_WIDTH: usize = 16;
/// Speed of a lane as it could be.
pub const TT_SHM_TOLD_LINK_SPEED_MAX: usize = 17;
/// Lanes as there could be.
pub const TT_SHM_TOLD_LINK_WIDTH_MAX: usize = 18;
/// Memory node of the processor that it is attached to. The last of the numbers.
pub const TT_SHM_TOLD_NUMA_NODE: usize = 19;
/// PCI address, in `tt_shm_snapshot_driver_info`.
pub const TT_SHM_TOLD_PCI_ADDRESS: usize = 20;
/// Name of the board, likewise.
pub const TT_SHM_TOLD_BOARD: usize = 21;
/// `serial`.
pub const TT_SHM_TOLD_SERIAL: usize = 22;
/// `asic_id`.
pub const TT_SHM_TOLD_ASIC_ID: usize = 23;
/// Version of the firmware as a whole: the first of `firmware`. The other parts follow.
pub const TT_SHM_TOLD_BUNDLE: usize = 24;
/// Version of the board's management controller.
pub const TT_SHM_TOLD_M3_APP: usize = 25;
/// Version of that controller's loader.
pub const TT_SHM_TOLD_M3_BOOTLOADER: usize = 26;
/// Version of the chip's management processor.
pub const TT_SHM_TOLD_ARC: usize = 27;
/// Version of the ethernet cores.
pub const TT_SHM_TOLD_ETHERNET: usize = 28;
/// Version of the tool that wrote the firmware.
pub const TT_SHM_TOLD_TT_FLASH: usize = 29;
/// Room for values; unused ones are zero.
pub const TT_SHM_TOLD: usize = 32;
/// Parts of the firmware that have a version.
pub const TT_SHM_FIRMWARE_PARTS: usize = 6;

/// Why a value is not known, in `absences`, where 0 says that it is known: there is no such attribute. The driver or the
/// firmware does not publish it, or not yet.
pub const TT_SHM_ABSENT_MISSING: u8 = 1;
/// The device is being reset.
pub const TT_SHM_ABSENT_RESETTING: u8 = 2;
/// The device was detached.
pub const TT_SHM_ABSENT_GONE: u8 = 3;
/// The aggregator's user may not read it.
pub const TT_SHM_ABSENT_DENIED: u8 = 4;
/// The kernel says that it does not know.
pub const TT_SHM_ABSENT_UNKNOWN: u8 = 5;
/// The board does not have the part, such as a fan.
pub const TT_SHM_ABSENT_NOT_FITTED: u8 = 6;
/// The text was not understood.
pub const TT_SHM_ABSENT_MALFORMED: u8 = 7;
/// The read failed in another way.
pub const TT_SHM_ABSENT_FAILED: u8 = 8;

/// Bits of `tt_shm_driver_stats.flags`: the heartbeat was seen to move.
pub const TT_SHM_DRIVER_HEARTBEAT_MOVES: u64 = 1 << 0;
/// The heartbeat stands still. With neither bit it is not known.
pub const TT_SHM_DRIVER_HEARTBEAT_STANDS: u64 = 1 << 1;
/// The board is known by its name: `nominal_` figures are set, but for cores that depend on the firmware.
pub const TT_SHM_DRIVER_NOMINAL: u64 = 1 << 2;
/// The number of Tensix cores is known, too.
pub const TT_SHM_DRIVER_NOMINAL_CORES: u64 = 1 << 3;
/// It is known who holds the device.
pub const TT_SHM_DRIVER_HOLDERS: u64 = 1 << 4;
/// Neither chip nor address tell which device of the processes it is: they are joined by their number.
pub const TT_SHM_DRIVER_JOINED_BY_LOGICAL_ID: u64 = 1 << 5;

/// A device as the driver describes it, which is read without opening it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_driver_stats {
    /// `sizeof(tt_shm_driver_stats)`.
    pub size: u32,
    /// Its row, for telemetry and `tt_shm_snapshot_driver_info`.
    pub row: u32,
    /// `TT_SHM_DRIVER_...` bits.
    pub flags: u64,
    /// N of `/dev/tenstorrent/N`.
    pub number: u64,
    /// Row of its device; `TT_SHM_UNKNOWN` if there was no room for one.
    pub device: u64,
    /// When it was read, CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The id that the chip goes by as long as no process names it; `TT_SHM_UNKNOWN` if there is none.
    pub chip_id: u64,
    /// Id of the chip.
    pub asic_id: u64,
    /// Serial number of the board.
    pub serial: u64,
    /// Another id by which processes may name the chip; 0 if there is none.
    pub serial_chip_id: u64,
    /// Processes that hold the device.
    pub holders: u64,
    /// Those of them that report to nobody: what they use is unknown.
    pub unreported_holders: u64,
    /// Open descriptors of processes that have no pid where the aggregator runs.
    pub invisible_holders: u64,
    /// DRAM by the name of the board.
    pub nominal_dram_bytes: u64,
    /// Tensix cores by the name of the board.
    pub nominal_tensix_cores: u64,
    /// L1 of each Tensix core by the name of the board.
    pub nominal_l1_per_core: u64,
    /// Ethernet cores by the name of the board.
    pub nominal_eth_cores: u64,
    /// L1 of each ethernet core by the name of the board.
    pub nominal_eth_l1_per_core: u64,
    /// Chips of the board.
    pub nominal_chips: u64,
    /// By `TT_SHM_TOLD_...`. A number whose entry in `absences` is not 0 means nothing.
    pub numbers: [i64; TT_SHM_TOLD],
    /// By `TT_SHM_TOLD_...`: why the value is not known, `TT_SHM_ABSENT_...`, or 0 if it is known.
    pub absences: [u8; TT_SHM_TOLD],
    /// Version of the driver; empty if not known. Texts here are not trusted.
    pub driver_version: [c_char; 40],
    /// Versions of the firmware, from `TT_SHM_TOLD_BUNDLE` on.
    pub firmware: [[c_char; 40]; TT_SHM_FIRMWARE_PARTS],
    /// The first text that was not understood, or the first read that failed.
    pub note: [c_char; 288],
}

versioned!(tt_shm_driver_stats);

// The size of the first version, which callers may have been compiled with.
const _: () = assert!(size_of::<tt_shm_driver_stats>() == 1000);

/// What the driver tells of its devices.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_snapshot_driver(
    snapshot: Handle<tt_shm_snapshot>,
    devices: OutStructs<tt_shm_driver_stats>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        let snapshot = objects::get(snapshot)?;
        devices.fill(capacity, snapshot.driver.iter().map(|(row, stats)| driver_stats(*row, stats)))?;
        total.set_if_wanted(snapshot.driver.len())
    })
}

/// What the driver says of the device in one of its rows that processes say, too: architecture, board, PCI address.
/// `TT_SHM_ERR_NOT_FOUND` if there is no such row.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_snapshot_driver_info(
    snapshot: Handle<tt_shm_snapshot>,
    row: u32,
    info: OutStruct<tt_shm_device_info>,
) -> i32 {
    call(|| {
        let snapshot = objects::get(snapshot)?;
        let stats = row_of(&snapshot.driver, row.into(), "device of the driver")?;
        info.set(&tt_shm_device_info::from(&stats.entry))
    })
}

fn driver_stats(row: usize, stats: &DriverStats) -> tt_shm_driver_stats {
    let mut numbers = [0; TT_SHM_TOLD];
    for (place, number) in numbers.iter_mut().zip(stats.numbers) {
        *place = number.cast_signed();
    }
    tt_shm_driver_stats {
        size: size_of::<tt_shm_driver_stats>() as u32,
        row: row as u32,
        flags: stats.flags,
        number: stats.number,
        device: stats.device,
        time_ns: stats.time,
        chip_id: stats.chip_id().unwrap_or(TT_SHM_UNKNOWN),
        asic_id: stats.asic_id,
        serial: stats.serial,
        serial_chip_id: stats.serial_chip_id,
        holders: stats.holders,
        unreported_holders: stats.unreported_holders,
        invisible_holders: stats.invisible_holders,
        nominal_dram_bytes: stats.nominal_dram_bytes,
        nominal_tensix_cores: stats.nominal_tensix_cores,
        nominal_l1_per_core: stats.nominal_l1_per_core,
        nominal_eth_cores: stats.nominal_eth_cores,
        nominal_eth_l1_per_core: stats.nominal_eth_l1_per_core,
        nominal_chips: stats.nominal_chips,
        numbers,
        absences: stats.absences,
        driver_version: fixed(&stats.driver_version),
        firmware: stats.firmware.each_ref().map(|version| fixed(version)),
        note: fixed(&stats.note),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_reader::{Absent, Told, driver_flags};

    #[test]
    fn numbers_are_those_of_the_layout() {
        let told = [
            (TT_SHM_TOLD_TEMPERATURE, Told::Temperature),
            (TT_SHM_TOLD_TEMPERATURE_LIMIT, Told::TemperatureLimit),
            (TT_SHM_TOLD_VOLTAGE, Told::Voltage),
            (TT_SHM_TOLD_VOLTAGE_LIMIT, Told::VoltageLimit),
            (TT_SHM_TOLD_CURRENT, Told::Current),
            (TT_SHM_TOLD_CURRENT_LIMIT, Told::CurrentLimit),
            (TT_SHM_TOLD_POWER, Told::Power),
            (TT_SHM_TOLD_POWER_LIMIT, Told::PowerLimit),
            (TT_SHM_TOLD_FAN, Told::Fan),
            (TT_SHM_TOLD_FAN_LIMIT, Told::FanLimit),
            (TT_SHM_TOLD_AICLK, Told::Aiclk),
            (TT_SHM_TOLD_AXICLK, Told::Axiclk),
            (TT_SHM_TOLD_ARCCLK, Told::Arcclk),
            (TT_SHM_TOLD_HEARTBEAT, Told::Heartbeat),
            (TT_SHM_TOLD_THERMAL_TRIPS, Told::ThermalTrips),
            (TT_SHM_TOLD_LINK_SPEED, Told::LinkSpeed),
            (TT_SHM_TOLD_LINK_WIDTH, Told::LinkWidth),
            (TT_SHM_TOLD_LINK_SPEED_MAX, Told::LinkSpeedMax),
            (TT_SHM_TOLD_LINK_WIDTH_MAX, Told::LinkWidthMax),
            (TT_SHM_TOLD_NUMA_NODE, Told::NumaNode),
            (TT_SHM_TOLD_PCI_ADDRESS, Told::PciAddress),
            (TT_SHM_TOLD_BOARD, Told::Board),
            (TT_SHM_TOLD_SERIAL, Told::Serial),
            (TT_SHM_TOLD_ASIC_ID, Told::AsicId),
            (TT_SHM_TOLD_BUNDLE, Told::Bundle),
            (TT_SHM_TOLD_M3_APP, Told::M3App),
            (TT_SHM_TOLD_M3_BOOTLOADER, Told::M3Bootloader),
            (TT_SHM_TOLD_ARC, Told::Arc),
            (TT_SHM_TOLD_ETHERNET, Told::Ethernet),
            (TT_SHM_TOLD_TT_FLASH, Told::TtFlash),
        ];
        assert!(told.iter().all(|(ours, theirs)| *ours == *theirs as usize));
        assert_eq!(told.len(), Told::ALL.len(), "a value is missing");
        let absent = [
            (TT_SHM_ABSENT_MISSING, Absent::Missing),
            (TT_SHM_ABSENT_RESETTING, Absent::Resetting),
            (TT_SHM_ABSENT_GONE, Absent::Gone),
            (TT_SHM_ABSENT_DENIED, Absent::Denied),
            (TT_SHM_ABSENT_UNKNOWN, Absent::Unknown),
            (TT_SHM_ABSENT_NOT_FITTED, Absent::NotFitted),
            (TT_SHM_ABSENT_MALFORMED, Absent::Malformed),
            (TT_SHM_ABSENT_FAILED, Absent::Failed),
        ];
        assert!(absent.iter().all(|(ours, theirs)| *ours == *theirs as u8));
        assert_eq!(absent.len(), Absent::ALL.len(), "a reason is missing");
        assert_eq!(
            [
                TT_SHM_DRIVER_HEARTBEAT_MOVES,
                TT_SHM_DRIVER_HEARTBEAT_STANDS,
                TT_SHM_DRIVER_NOMINAL,
                TT_SHM_DRIVER_NOMINAL_CORES,
                TT_SHM_DRIVER_HOLDERS,
                TT_SHM_DRIVER_JOINED_BY_LOGICAL_ID
            ],
            [
                driver_flags::HEARTBEAT_MOVES,
                driver_flags::HEARTBEAT_STANDS,
                driver_flags::NOMINAL,
                driver_flags::NOMINAL_CORES,
                driver_flags::HOLDERS,
                driver_flags::JOINED_BY_LOGICAL_ID
            ]
        );
    }
}
