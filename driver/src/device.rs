//! A device as the driver describes it.

use crate::absence::{Absence, Reading};
use crate::board::{Architecture, Nominal, VENDOR};
use crate::format::PciAddress;
use crate::version::Version;

/// A device: what sysfs has of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// N of `/dev/tenstorrent/N`. Changes when devices come and go.
    pub number: u32,
    /// Which device it is.
    pub identity: Identity,
    /// Versions of its firmware, in the order of [`Component::ALL`].
    pub firmware: [Reading<Version>; Component::ALL.len()],
    /// Its PCIe link.
    pub link: Link,
    /// Frequencies in MHz, in the order of [`Clock::ALL`].
    pub clocks: [Reading<u32>; Clock::ALL.len()],
    /// Whether its firmware runs.
    pub health: Health,
    /// What its sensors measure, in the order of [`Quantity::ALL`].
    pub sensors: [Sensor; Quantity::ALL.len()],
}

/// Which device it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Address of its PCI function.
    pub pci: Reading<PciAddress>,
    /// Vendor number of PCI.
    pub vendor: Reading<u16>,
    /// Device number of PCI.
    pub device: Reading<u16>,
    /// Name of the board: `n150`, `p300c`.
    pub card: Reading<String>,
    /// Serial number of the board.
    pub serial: Reading<u64>,
    /// Id of the chip.
    pub asic_id: Reading<u64>,
    /// Memory node of the processor that it is attached to.
    pub numa_node: Reading<u32>,
}

/// A part of the firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// All of it, as it is released.
    Bundle,
    /// The board's management controller.
    M3App,
    /// The loader of that.
    M3Bootloader,
    /// The chip's management processor.
    Arc,
    /// The ethernet cores.
    Ethernet,
    /// The tool that wrote it.
    TtFlash,
}

impl Component {
    /// All of them.
    pub const ALL: [Component; 6] = [
        Component::Bundle,
        Component::M3App,
        Component::M3Bootloader,
        Component::Arc,
        Component::Ethernet,
        Component::TtFlash,
    ];

    /// A word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Component::Bundle => "bundle",
            Component::M3App => "m3_app",
            Component::M3Bootloader => "m3_bootloader",
            Component::Arc => "arc",
            Component::Ethernet => "ethernet",
            Component::TtFlash => "tt_flash",
        }
    }

    /// What it is, for descriptions.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Component::Bundle => "All of it, as it is released.",
            Component::M3App => "The board's management controller.",
            Component::M3Bootloader => "The loader of the board's management controller.",
            Component::Arc => "The chip's management processor.",
            Component::Ethernet => "The ethernet cores.",
            Component::TtFlash => "The tool that wrote it.",
        }
    }

    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Component::Bundle => "tt_fw_bundle_ver",
            Component::M3App => "tt_m3app_fw_ver",
            Component::M3Bootloader => "tt_m3bl_fw_ver",
            Component::Arc => "tt_arc_fw_ver",
            Component::Ethernet => "tt_eth_fw_ver",
            Component::TtFlash => "tt_ttflash_ver",
        }
    }
}

/// A clock of a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Tensix cores.
    Ai,
    /// The bus.
    Axi,
    /// The management processor.
    Arc,
}

impl Clock {
    /// All of them.
    pub const ALL: [Clock; 3] = [Clock::Ai, Clock::Axi, Clock::Arc];

    /// A word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Clock::Ai => "aiclk",
            Clock::Axi => "axiclk",
            Clock::Arc => "arcclk",
        }
    }

    /// What it drives, for descriptions.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Clock::Ai => "Tensix cores.",
            Clock::Axi => "The bus.",
            Clock::Arc => "The management processor.",
        }
    }

    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Clock::Ai => "tt_aiclk",
            Clock::Axi => "tt_axiclk",
            Clock::Arc => "tt_arcclk",
        }
    }
}

/// What a sensor measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Of the chip, in thousandths of a degree Celsius.
    Temperature,
    /// Of the cores, in millivolts.
    Voltage,
    /// In milliamperes.
    Current,
    /// In microwatts.
    Power,
    /// Speed of the fan, in rotations per minute.
    Fan,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Quantity; 5] =
        [Quantity::Temperature, Quantity::Voltage, Quantity::Current, Quantity::Power, Quantity::Fan];

    /// A word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Temperature => "temperature",
            Quantity::Voltage => "voltage",
            Quantity::Current => "current",
            Quantity::Power => "power",
            Quantity::Fan => "fan",
        }
    }

    /// The beginning of its files' names.
    pub(crate) fn stem(self) -> &'static str {
        match self {
            Quantity::Temperature => "temp1",
            Quantity::Voltage => "in0",
            Quantity::Current => "curr1",
            Quantity::Power => "power1",
            Quantity::Fan => "fan1",
        }
    }
}

/// A measured value, and its limit. Units are those of its [`Quantity`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sensor {
    /// Measured by the last poll.
    pub input: Reading<i64>,
    /// The limit.
    pub max: Reading<i64>,
}

/// A PCIe link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// As it is now. A link that is not used may be slower.
    pub current: LinkState,
    /// As it could be.
    pub max: LinkState,
}

/// A state of a PCIe link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// Millions of transfers per second and lane.
    pub speed: Reading<u32>,
    /// Lanes.
    pub width: Reading<u32>,
}

/// Whether the firmware runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// A number that the firmware counts up.
    pub heartbeat: Reading<u32>,
    /// Whether it changed between two polls; `None` until that is known.
    pub heartbeat_moves: Option<bool>,
    /// How often the chip was switched off because it was too hot.
    pub thermal_trips: Reading<u32>,
}

impl Device {
    /// A device of which nothing has been read.
    pub(crate) fn unread(number: u32) -> Device {
        fn missing<T>() -> Reading<T> {
            Err(Absence::Missing)
        }
        let link = || LinkState { speed: missing(), width: missing() };
        Device {
            number,
            identity: Identity {
                pci: missing(),
                vendor: missing(),
                device: missing(),
                card: missing(),
                serial: missing(),
                asic_id: missing(),
                numa_node: missing(),
            },
            firmware: Component::ALL.map(|_| missing()),
            link: Link { current: link(), max: link() },
            clocks: Clock::ALL.map(|_| missing()),
            health: Health { heartbeat: missing(), heartbeat_moves: None, thermal_trips: missing() },
            sensors: Quantity::ALL.map(|_| Sensor { input: missing(), max: missing() }),
        }
    }

    /// Version of a part of the firmware.
    pub fn firmware(&self, component: Component) -> &Reading<Version> {
        &self.firmware[component as usize]
    }

    /// Frequency of a clock, in MHz.
    pub fn clock(&self, clock: Clock) -> &Reading<u32> {
        &self.clocks[clock as usize]
    }

    /// A sensor.
    #[must_use]
    pub fn sensor(&self, quantity: Quantity) -> &Sensor {
        &self.sensors[quantity as usize]
    }

    /// Its architecture; `None` if its numbers of PCI are not known ones.
    #[must_use]
    pub fn architecture(&self) -> Option<Architecture> {
        let is_ours = self.identity.vendor == Ok(VENDOR);
        self.identity.device.as_ref().ok().filter(|_| is_ours).and_then(|id| Architecture::of_device(*id))
    }

    /// What its board has by its data sheet; `None` if the board is not known.
    #[must_use]
    pub fn nominal(&self) -> Option<Nominal> {
        let firmware = self.firmware(Component::Bundle).as_ref().ok();
        Nominal::of_board(self.identity.card.as_ref().ok()?, firmware)
    }

    /// Ids by which processes may report this chip: the id of the chip, and for boards with one Blackhole chip also
    /// the serial number and the chip's place on the board, which is 0. The place of a chip on a board with several
    /// is not known to the driver.
    #[must_use]
    pub fn chip_ids(&self) -> Vec<u64> {
        let asic_id = self.identity.asic_id.as_ref().ok().copied();
        asic_id.into_iter().chain(self.serial_chip_id()).filter(|id| *id != 0).collect()
    }

    /// Of [`Device::chip_ids`], the one that is made of the serial number.
    #[must_use]
    pub fn serial_chip_id(&self) -> Option<u64> {
        let is_single = self.architecture() == Some(Architecture::Blackhole)
            && self.nominal().is_some_and(|nominal| nominal.chips == 1);
        let serial = self.identity.serial.as_ref().ok().filter(|_| is_single);
        serial.and_then(|serial| serial.checked_mul(32))
    }
}
