//! What is known of a board by its name.

use crate::version::Version;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
const KIB: u64 = 1 << 10;

/// PCI vendor of all devices.
pub(crate) const VENDOR: u16 = 0x1e52;

/// The architecture of a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Drivers since 2.2 refuse it.
    Grayskull,
    /// Wormhole.
    Wormhole,
    /// Blackhole.
    Blackhole,
}

impl Architecture {
    /// By the device number of PCI.
    #[must_use]
    pub fn of_device(device: u16) -> Option<Architecture> {
        match device {
            0xfaca => Some(Architecture::Grayskull),
            0x401e => Some(Architecture::Wormhole),
            0xb140 => Some(Architecture::Blackhole),
            _ => None,
        }
    }

    /// As tt-metal calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Architecture::Grayskull => "grayskull",
            Architecture::Wormhole => "wormhole_b0",
            Architecture::Blackhole => "blackhole",
        }
    }
}

/// The memory of one chip of a board, by its data sheet. What a chip really has may be less: rows of cores are
/// harvested, and the driver does not tell. To be used only where no process reports a capacity, and marked nominal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nominal {
    /// DRAM.
    pub dram_bytes: u64,
    /// Tensix cores; `None` if that depends on firmware of unknown version.
    pub tensix_cores: Option<u64>,
    /// L1 of each Tensix core.
    pub l1_per_core: u64,
    /// Ethernet cores.
    pub ethernet_cores: u64,
    /// L1 of each ethernet core; 0 if there is none.
    pub ethernet_l1_per_core: u64,
    /// Chips of the board. Those without a PCIe link of their own, such as the second of an n300, are no devices of
    /// the driver.
    pub chips: u32,
}

impl Nominal {
    /// Of a board, as `tt_card_type` names it; `None` if it is not in the list. The firmware is that of
    /// `tt_fw_bundle_ver`: it decides how many cores of a p150 are enabled.
    #[must_use]
    pub fn of_board(card: &str, firmware: Option<&Version>) -> Option<Nominal> {
        let wormhole = |tensix_cores, chips| Nominal {
            dram_bytes: 12 * GIB,
            tensix_cores: Some(tensix_cores),
            l1_per_core: 1464 * KIB,
            ethernet_cores: 16,
            ethernet_l1_per_core: 256 * KIB,
            chips,
        };
        let blackhole = |tensix_cores, chips| Nominal {
            dram_bytes: 8 * 4080 * MIB,
            tensix_cores,
            l1_per_core: 1536 * KIB,
            ethernet_cores: 12,
            ethernet_l1_per_core: 512 * KIB,
            chips,
        };
        Some(match card {
            "n150" => wormhole(72, 1),
            "n300" => wormhole(64, 2),
            "galaxy-wormhole" => wormhole(80, 32),
            "p100a" => Nominal {
                dram_bytes: 7 * 4080 * MIB,
                ethernet_cores: 0,
                ethernet_l1_per_core: 0,
                ..blackhole(Some(120), 1)
            },
            "p150a" | "p150b" | "p150c" => blackhole(p150_cores(firmware), 1),
            "p300a" | "p300b" | "p300c" => blackhole(Some(120), 2),
            "galaxy-blackhole" => blackhole(Some(130), 32),
            "e150" => Nominal {
                dram_bytes: 8 * GIB,
                tensix_cores: Some(120),
                l1_per_core: MIB,
                ethernet_cores: 0,
                ethernet_l1_per_core: 0,
                chips: 1,
            },
            _ => return None,
        })
    }

    /// L1 of all Tensix cores.
    #[must_use]
    pub fn l1_bytes(&self) -> Option<u64> {
        self.tensix_cores.map(|cores| cores * self.l1_per_core)
    }

    /// L1 of all ethernet cores.
    #[must_use]
    pub fn ethernet_l1_bytes(&self) -> u64 {
        self.ethernet_cores * self.ethernet_l1_per_core
    }
}

/// Firmware since 19.5 enables the same number of cores on every p150.
fn p150_cores(firmware: Option<&Version>) -> Option<u64> {
    firmware.map(|version| if version.is_at_least(19, 5) { 120 } else { 140 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mebibytes(card: &str, firmware: &str) -> (u64, Option<f64>) {
        let nominal = Nominal::of_board(card, Version::parse(firmware).as_ref()).unwrap();
        (nominal.dram_bytes / MIB, nominal.l1_bytes().map(|bytes| bytes as f64 / MIB as f64))
    }

    #[test]
    fn boards_have_the_memory_of_their_data_sheets() {
        assert_eq!(mebibytes("n150", ""), (12 * 1024, Some(102.9375)));
        assert_eq!(mebibytes("n300", ""), (12 * 1024, Some(91.5)));
        assert_eq!(mebibytes("galaxy-wormhole", ""), (12 * 1024, Some(114.375)));
        assert_eq!(mebibytes("p100a", ""), (28560, Some(180.0)));
        assert_eq!(mebibytes("p150a", "19.5.0.0"), (32640, Some(180.0)));
        assert_eq!(mebibytes("p150b", "19.4.2.0"), (32640, Some(210.0)));
        assert_eq!(mebibytes("p150c", ""), (32640, None));
        assert_eq!(mebibytes("p300c", ""), (32640, Some(180.0)));
        assert_eq!(mebibytes("galaxy-blackhole", ""), (32640, Some(195.0)));
        assert_eq!(mebibytes("e150", ""), (8 * 1024, Some(120.0)));
        assert_eq!(Nominal::of_board("p100", None), None, "not in the list");
    }
}
