//! A device as a process sees it.

use crate::words::viewed_struct;

/// Devices that one segment can list.
pub const MAX_DEVICES: usize = 128;
/// Words of a [`DeviceEntry`].
pub const DEVICE_WORDS: usize = crate::words::words_of::<DeviceEntry>();

/// Bits of [`DeviceEntry::known`]: a figure whose bit is not set is unknown, not zero.
pub mod known {
    /// `dram_bytes` is known.
    pub const DRAM: u64 = 1 << 0;
    /// `dram_channels` is known.
    pub const DRAM_CHANNELS: u64 = 1 << 1;
    /// `tensix_cores` and `l1_per_core` are known.
    pub const L1: u64 = 1 << 2;
    /// `eth_cores` and `eth_l1_per_core` are known.
    pub const ETH: u64 = 1 << 3;
    /// `pci` is known.
    pub const PCI: u64 = 1 << 4;
    /// `logical_id` is known.
    pub const LOGICAL: u64 = 1 << 5;
}

/// Chip architecture; the discriminant is its code, that of the socket protocol that came before.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Arch {
    /// Not said.
    #[default]
    Unknown = 0,
    /// Grayskull.
    Grayskull = 1,
    /// Wormhole B0.
    Wormhole = 2,
    /// Blackhole.
    Blackhole = 3,
    /// Quasar.
    Quasar = 4,
}

impl Arch {
    /// The architecture with this code; a foreign code is unknown.
    pub fn from_code(code: u64) -> Arch {
        [Arch::Grayskull, Arch::Wormhole, Arch::Blackhole, Arch::Quasar]
            .into_iter()
            .find(|arch| *arch as u64 == code)
            .unwrap_or_default()
    }

    /// The name used in JSON, `None` if unknown.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Arch::Unknown => None,
            Arch::Grayskull => Some("grayskull"),
            Arch::Wormhole => Some("wormhole_b0"),
            Arch::Blackhole => Some("blackhole"),
            Arch::Quasar => Some("quasar"),
        }
    }
}

viewed_struct! {
    /// What a process says of a device. The producer reports capacity: it can't be derived from the
    /// name of the board.
    pub struct DeviceEntry, size 256 {
        /// Stable chip id, the same in every process.
        0 => pub chip_id: u64,
        /// The process's own number for it.
        8 => pub logical_id: u64,
        /// [`Arch`] code.
        16 => pub arch: u64,
        /// Bits of [`known`].
        24 => pub known: u64,
        /// DRAM capacity.
        32 => pub dram_bytes: u64,
        /// DRAM channels as tt-metal counts them: what interleaved buffers are spread over, each of the same size.
        40 => pub dram_channels: u64,
        /// Tensix cores.
        48 => pub tensix_cores: u64,
        /// L1 bytes of each.
        56 => pub l1_per_core: u64,
        /// Ethernet cores.
        64 => pub eth_cores: u64,
        /// L1 bytes of each.
        72 => pub eth_l1_per_core: u64,
        /// PCI address: domain << 16 | bus << 8 | device << 3 | function.
        80 => pub pci: u64,
        /// Board name, UTF-8, zero-filled.
        88 => pub board: [u8; 32],
        /// Zero.
        120 => pub reserved: [u64; 17],
    }
}

impl DeviceEntry {
    fn if_known(&self, bits: u64, value: u64) -> Option<u64> {
        (self.known & bits == bits).then_some(value)
    }

    /// DRAM capacity, if known.
    pub fn dram_total(&self) -> Option<u64> {
        self.if_known(known::DRAM, self.dram_bytes)
    }

    /// L1 capacity of all Tensix cores, if known.
    pub fn l1_total(&self) -> Option<u64> {
        self.if_known(known::L1, self.tensix_cores.saturating_mul(self.l1_per_core))
    }

    /// L1 capacity of all ethernet cores, if known.
    pub fn eth_l1_total(&self) -> Option<u64> {
        self.if_known(known::ETH, self.eth_cores.saturating_mul(self.eth_l1_per_core))
    }

    /// PCI address as `0000:81:00.0`, if known.
    pub fn pci_address(&self) -> Option<String> {
        let pci = self.if_known(known::PCI, self.pci)?;
        let (domain, bus, device) = (pci >> 16 & 0xffff_ffff, pci >> 8 & 0xff, pci >> 3 & 0x1f);
        Some(format!("{domain:04x}:{bus:02x}:{device:02x}.{:x}", pci & 7))
    }

    /// The process's own number for the device, if it has one.
    pub fn logical(&self) -> Option<u64> {
        self.if_known(known::LOGICAL, self.logical_id)
    }

    /// Board name, `None` if not said.
    pub fn board_name(&self) -> Option<String> {
        Some(crate::text::decode(&self.board)).filter(|name| !name.is_empty())
    }
}
