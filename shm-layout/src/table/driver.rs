//! What the kernel driver tells of a device: identity, firmware, link, clocks, sensors, and who holds it.

use super::HISTORY_BUCKETS;
use crate::describe::{codes, constants};
use crate::device::{DeviceEntry, known};
use crate::text;
use crate::words::{viewed_struct, words_of};

constants! {
    pub(crate) LIMITS;
    /// The number of devices of the driver in a table.
    pub const MAX_DRIVER_DEVICES: usize = 128;
    /// The number of values of a device that are numbers.
    pub const DRIVER_NUMBERS: usize = 20;
    /// The number of parts of the firmware that have a version.
    pub const FIRMWARE_PARTS: usize = 6;
    /// The number of quantities that are kept over time.
    pub const TRENDS: usize = 6;
}

/// The length of a bucket of telemetry in nanoseconds: eight minutes, an hour, a day in [`HISTORY_BUCKETS`] buckets. The
/// driver is asked once a second, so each bucket has a value.
pub const TELEMETRY_RESOLUTIONS: [u64; 3] = [2_000_000_000, 15_000_000_000, 360_000_000_000];
/// The number of words of a bucket of telemetry.
pub const TELEMETRY_BUCKET_WORDS: usize = words_of::<TelemetryBucket>();
/// The number of words of a device's history of telemetry.
pub const TELEMETRY_WORDS: usize = TELEMETRY_BUCKET_WORDS * HISTORY_BUCKETS * TELEMETRY_RESOLUTIONS.len();

codes! {
    /// A value that the driver may tell: its place in [`DriverStats::absences`], and of the first of them, which are
    /// numbers, in [`DriverStats::numbers`].
    #[repr(u8)]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Told {
        /// Temperature of the chip, in thousandths of a degree Celsius.
        Temperature = 0,
        /// Its limit.
        TemperatureLimit = 1,
        /// Voltage of the cores, in millivolts.
        Voltage = 2,
        /// Its limit.
        VoltageLimit = 3,
        /// Current, in milliamperes.
        Current = 4,
        /// Its limit.
        CurrentLimit = 5,
        /// Power, in microwatts.
        Power = 6,
        /// Its limit.
        PowerLimit = 7,
        /// Speed of the fan, in rotations per minute.
        Fan = 8,
        /// Its limit.
        FanLimit = 9,
        /// Clock of the Tensix cores, in MHz.
        Aiclk = 10,
        /// Clock of the bus, in MHz.
        Axiclk = 11,
        /// Clock of the management processor, in MHz.
        Arcclk = 12,
        /// A number that the firmware counts up.
        Heartbeat = 13,
        /// How often the chip was switched off because it was too hot.
        ThermalTrips = 14,
        /// Speed of a lane of the PCIe link now, in millions of transfers per second.
        LinkSpeed = 15,
        /// Lanes of the PCIe link now.
        LinkWidth = 16,
        /// Speed of a lane as it could be.
        LinkSpeedMax = 17,
        /// Lanes as there could be.
        LinkWidthMax = 18,
        /// Memory node of the processor that it is attached to.
        NumaNode = 19,
        /// PCI address, in `entry`.
        PciAddress = 20,
        /// Name of the board, in `entry`.
        Board = 21,
        /// Serial number of the board, in `serial`.
        Serial = 22,
        /// Id of the chip, in `asic_id`.
        AsicId = 23,
        /// Version of the firmware as a whole: the first of `firmware`. The other parts follow.
        Bundle = 24,
        /// Version of the board's management controller.
        M3App = 25,
        /// Version of that controller's loader.
        M3Bootloader = 26,
        /// Version of the chip's management processor.
        Arc = 27,
        /// Version of the ethernet cores.
        Ethernet = 28,
        /// Version of the tool that wrote the firmware.
        TtFlash = 29,
    }
}

codes! {
    /// Why a value is not known: its code in [`DriverStats::absences`], where 0 says that it is known.
    #[repr(u8)]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Absent {
        /// There is no such attribute: the driver or the firmware does not publish it, or not yet.
        Missing = 1,
        /// The device is being reset.
        Resetting = 2,
        /// The device was detached.
        Gone = 3,
        /// The aggregator's user may not read it.
        Denied = 4,
        /// The kernel says that it does not know.
        Unknown = 5,
        /// The board does not have the part, such as a fan.
        NotFitted = 6,
        /// The text was not understood.
        Malformed = 7,
        /// The read failed in another way.
        Failed = 8,
    }
}

/// Bits of [`DriverStats::flags`].
pub mod driver_flags {
    crate::describe::constants! {
        pub ALL;
        /// The heartbeat was seen to move.
        pub const HEARTBEAT_MOVES: u64 = 1 << 0;
        /// The heartbeat stands still. With neither bit it is not known.
        pub const HEARTBEAT_STANDS: u64 = 1 << 1;
        /// The board is known by its name: `nominal_` figures are set, but for cores that depend on the firmware.
        pub const NOMINAL: u64 = 1 << 2;
        /// The number of Tensix cores is known, too.
        pub const NOMINAL_CORES: u64 = 1 << 3;
        /// It is known who holds the device.
        pub const HOLDERS: u64 = 1 << 4;
        /// Neither chip nor address tell which device of the processes it is. A process that holds it has a device with
        /// the same number and of the same architecture.
        pub const JOINED_BY_LOGICAL_ID: u64 = 1 << 5;
    }
}

viewed_struct! {
    /// A device as the driver describes it, which is read without opening it.
    pub struct DriverStats, size 1344 {
        /// Generation that wrote this row; 0 if the row is not in use.
        0 => pub generation: u64,
        /// N of `/dev/tenstorrent/N`.
        8 => pub number: u64,
        /// Index of its device row; 2^64 - 1 if there was no room for one.
        16 => pub device: u64,
        /// When it was read.
        24 => pub time: u64,
        /// [Driver flags](driver_flags).
        32 => pub flags: u64,
        /// Id of the chip.
        40 => pub asic_id: u64,
        /// Serial number of the board.
        48 => pub serial: u64,
        /// Another id by which processes may name the chip, made of the serial number; 0 if there is none.
        56 => pub serial_chip_id: u64,
        /// Processes that hold the device.
        64 => pub holders: u64,
        /// Those of them that report to nobody: what they use is unknown.
        72 => pub unreported_holders: u64,
        /// Open descriptors of processes that have no pid in the aggregator's PID namespace.
        80 => pub invisible_holders: u64,
        /// DRAM by the name of the board.
        88 => pub nominal_dram_bytes: u64,
        /// Tensix cores by the name of the board.
        96 => pub nominal_tensix_cores: u64,
        /// L1 of each Tensix core by the name of the board.
        104 => pub nominal_l1_per_core: u64,
        /// Ethernet cores by the name of the board.
        112 => pub nominal_eth_cores: u64,
        /// L1 of each ethernet core by the name of the board.
        120 => pub nominal_eth_l1_per_core: u64,
        /// Chips of the board.
        128 => pub nominal_chips: u64,
        /// What it says of the device that processes say, too: architecture, board, PCI address.
        136 => pub entry: DeviceEntry,
        /// [Numbers](Told), signed.
        648 => pub numbers: [u64; DRIVER_NUMBERS],
        /// [Why](Absent) each [value](Told) is not known; 0 if it is known.
        808 => pub absences: [u8; 32],
        /// Version of the driver, UTF-8, zero-filled; empty if not known.
        840 => pub driver_version: [u8; 32],
        /// Versions of the firmware, UTF-8, zero-filled.
        872 => pub firmware: [[u8; 32]; FIRMWARE_PARTS],
        /// The first text that was not understood, or the first read that failed: where and what. UTF-8, zero-filled.
        1064 => pub note: [u8; 280],
    }
}

/// The upper half of the id that a chip goes by if its own is not known.
const UNNAMED_CHIP: u64 = 0xffff_fffe << 32;

impl Told {
    /// Those of the history, in its order.
    pub const TRENDS: [Told; TRENDS] =
        [Told::Temperature, Told::Power, Told::Current, Told::Voltage, Told::Aiclk, Told::Fan];
}

impl DriverStats {
    /// A number, or why there is none. A code that this version does not know says only that it is unknown.
    pub fn number(&self, told: Told) -> Result<i64, Absent> {
        let value = self.numbers.get(told as usize).ok_or(Absent::Missing)?;
        self.absence(told).map_or(Ok(*value as i64), Err)
    }

    /// Why a value is not known; `None` if it is.
    pub fn absence(&self, told: Told) -> Option<Absent> {
        let code = self.absences[told as usize];
        (code != 0).then(|| Absent::ALL.into_iter().find(|one| *one as u8 == code).unwrap_or(Absent::Unknown))
    }

    /// The version of a part of the firmware.
    pub fn version(&self, told: Told) -> Result<String, Absent> {
        let place = (told as usize).checked_sub(Told::Bundle as usize);
        let field = place.and_then(|place| self.firmware.get(place)).ok_or(Absent::Missing)?;
        self.absence(told).map_or(Ok(text::decode(field)), Err)
    }

    /// The ids by which processes may name the chip.
    pub fn chip_ids(&self) -> impl Iterator<Item = u64> {
        let asic_id = if self.absence(Told::AsicId).is_none() { self.asic_id } else { 0 };
        [asic_id, self.serial_chip_id].into_iter().filter(|id| *id != 0)
    }

    /// The id that the chip goes by as long as no process names it: its own, or else one that is made of its PCI
    /// address, with 0xfffffffe before it. `None` if neither is known.
    pub fn chip_id(&self) -> Option<u64> {
        let by_address = (self.entry.known & known::PCI != 0)
            .then_some(UNNAMED_CHIP | self.entry.pci & u64::from(u32::MAX));
        self.chip_ids().next().or(by_address)
    }

    /// Whether it is the device that a process describes: the chip is one of its own or, unless both are known and
    /// differ, the PCI address is its own.
    pub fn is_described_by(&self, entry: &DeviceEntry) -> bool {
        if self.chip_ids().any(|id| id == entry.chip_id) {
            return true;
        }
        self.entry.known & entry.known & known::PCI != 0 && self.entry.pci == entry.pci
    }
}

viewed_struct! {
    /// The least, the most and the last of a quantity in a bucket, signed, in the unit of [`Told`].
    pub struct Trend, size 24 {
        /// The least.
        0 => pub min: u64,
        /// The most.
        8 => pub max: u64,
        /// The last.
        16 => pub last: u64,
    }
}

viewed_struct! {
    /// A bucket of a device's telemetry: a stamped cell, with a stamp as in [`Bucket`](super::Bucket).
    pub struct TelemetryBucket, size 160 {
        /// Start of the bucket, a multiple of its length, plus the number of updates.
        0 => pub start: u64,
        /// Bit n: `trends[n]` is known.
        8 => pub known: u64,
        /// Temperature, power, current, voltage, clock of the Tensix cores, fan.
        16 => pub trends: [Trend; TRENDS],
    }
}

impl Trend {
    /// One value.
    pub fn of(value: i64) -> Trend {
        Trend { min: value as u64, max: value as u64, last: value as u64 }
    }

    /// Least, most and last.
    pub fn range(&self) -> (i64, i64, i64) {
        (self.min as i64, self.max as i64, self.last as i64)
    }

    /// With what came later.
    fn joined(&self, later: &Trend) -> Trend {
        let ((min, max, _), (later_min, later_max, last)) = (self.range(), later.range());
        Trend { min: min.min(later_min) as u64, max: max.max(later_max) as u64, last: last as u64 }
    }
}

impl TelemetryBucket {
    /// The trend of a quantity of [`Told::TRENDS`], if it is known.
    pub fn trend(&self, told: Told) -> Option<Trend> {
        let place = Told::TRENDS.iter().position(|one| *one == told)?;
        (self.known >> place & 1 != 0).then(|| self.trends[place])
    }

    /// What this bucket and a later one have together, with the start of this one.
    pub fn joined(&self, later: &TelemetryBucket) -> TelemetryBucket {
        let mut both = TelemetryBucket { known: self.known | later.known, ..*self };
        for (place, trend) in both.trends.iter_mut().enumerate() {
            match (self.known >> place & 1, later.known >> place & 1) {
                (0, _) => *trend = later.trends[place],
                (_, 1) => *trend = self.trends[place].joined(&later.trends[place]),
                _ => {}
            }
        }
        both
    }

    /// Whether each trend that is known could have been measured.
    pub fn is_plausible(&self) -> bool {
        self.trends.iter().enumerate().filter(|(place, _)| self.known >> place & 1 != 0).all(|(_, trend)| {
            let (min, max, last) = trend.range();
            min <= last && last <= max
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    #[test]
    fn every_value_has_a_place() {
        assert!(Told::ALL.iter().enumerate().all(|(place, told)| *told as usize == place));
        assert!(Told::ALL.len() <= DriverStats::zeroed().absences.len());
        assert_eq!(Told::NumaNode as usize + 1, DRIVER_NUMBERS);
        assert_eq!(Told::TtFlash as usize - Told::Bundle as usize + 1, FIRMWARE_PARTS);
        assert!(Absent::ALL.iter().all(|absent| *absent as u8 != 0));
    }

    #[test]
    fn a_value_is_there_or_has_a_reason() {
        let mut stats = DriverStats::zeroed();
        stats.numbers[Told::Temperature as usize] = -1500_i64 as u64;
        assert_eq!(stats.number(Told::Temperature), Ok(-1500));
        stats.absences[Told::Temperature as usize] = Absent::Resetting as u8;
        assert_eq!(stats.number(Told::Temperature), Err(Absent::Resetting));
        stats.absences[Told::Temperature as usize] = 200;
        assert_eq!(stats.number(Told::Temperature), Err(Absent::Unknown));
        assert_eq!(
            (stats.number(Told::Serial), stats.version(Told::Fan)),
            (Err(Absent::Missing), Err(Absent::Missing))
        );
    }

    #[test]
    fn a_device_is_known_by_its_chip_or_its_address() {
        let entry = |chip_id, pci, known| DeviceEntry { chip_id, pci, known, ..DeviceEntry::zeroed() };
        let mut stats = DriverStats { asic_id: 7, serial_chip_id: 32, ..DriverStats::zeroed() };
        assert!(stats.is_described_by(&entry(7, 0, 0)) && stats.is_described_by(&entry(32, 0, 0)));
        assert!(!stats.is_described_by(&entry(0, 0, 0)), "0 is no id");
        stats.entry = entry(0, 0x8100, known::PCI);
        assert!(stats.is_described_by(&entry(9, 0x8100, known::PCI)));
        assert!(!stats.is_described_by(&entry(9, 0x8100, 0)), "its address is not known");
        stats.absences[Told::AsicId as usize] = Absent::Missing as u8;
        assert!(!stats.is_described_by(&entry(7, 0, 0)));
    }

    #[test]
    fn buckets_are_joined_by_quantity() {
        let bucket =
            |known: u64, value: i64| TelemetryBucket { start: 10, known, trends: [Trend::of(value); TRENDS] };
        let both = bucket(0b011, -5).joined(&bucket(0b110, 3));
        assert_eq!((both.start, both.known), (10, 0b111));
        let ranges =
            [Told::Temperature, Told::Power, Told::Current].map(|told| both.trend(told).unwrap().range());
        assert_eq!(ranges, [(-5, -5, -5), (-5, 3, 3), (3, 3, 3)]);
        assert_eq!((both.trend(Told::Fan), both.trend(Told::Heartbeat)), (None, None));
        assert!(both.is_plausible());
        let wrong = Trend { min: 2, max: 1, last: 1 };
        assert!(!TelemetryBucket { trends: [wrong; TRENDS], ..both }.is_plausible());
    }
}
