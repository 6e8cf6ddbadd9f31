//! Devices as a host names them.

use shm_layout::{Arch, DeviceEntry, known, text};

/// What the host knows of a device. Only the chip id is needed; what is unknown stays `None`.
#[derive(Clone, Debug, Default)]
pub struct DeviceInfo {
    /// Stable id of the chip, the same in every process.
    pub chip_id: u64,
    /// The host's own number for it.
    pub logical_id: Option<u32>,
    /// Architecture.
    pub arch: Arch,
    /// Board name, such as `n300`; at most 32 bytes.
    pub board: Option<String>,
    /// PCI address.
    pub pci: Option<PciAddress>,
    /// DRAM capacity in bytes.
    pub dram_bytes: Option<u64>,
    /// DRAM channels.
    pub dram_channels: Option<u32>,
    /// Tensix cores and the L1 bytes of each.
    pub l1: Option<CoreMemory>,
    /// Ethernet cores and the L1 bytes of each.
    pub eth: Option<CoreMemory>,
}

/// A number of cores with some L1 each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreMemory {
    /// Cores.
    pub cores: u32,
    /// Bytes of L1 in each.
    pub bytes_per_core: u64,
}

/// A PCI address, `domain:bus:device.function`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciAddress {
    /// Domain.
    pub domain: u32,
    /// Bus.
    pub bus: u8,
    /// Device, below 32.
    pub device: u8,
    /// Function, below 8.
    pub function: u8,
}

impl DeviceInfo {
    pub(crate) fn entry(&self) -> DeviceEntry {
        let mut entry: DeviceEntry = bytemuck::zeroed();
        let mut known = 0;
        let mut know = |bit: u64, value: Option<u64>| {
            known |= if value.is_some() { bit } else { 0 };
            value.unwrap_or(0)
        };
        entry.chip_id = self.chip_id;
        entry.arch = self.arch as u64;
        entry.logical_id = know(known::LOGICAL, self.logical_id.map(u64::from));
        entry.dram_bytes = know(known::DRAM, self.dram_bytes);
        entry.dram_channels = know(known::DRAM_CHANNELS, self.dram_channels.map(u64::from));
        entry.tensix_cores = know(known::L1, self.l1.map(|l1| u64::from(l1.cores)));
        entry.l1_per_core = know(known::L1, self.l1.map(|l1| l1.bytes_per_core));
        entry.eth_cores = know(known::ETH, self.eth.map(|eth| u64::from(eth.cores)));
        entry.eth_l1_per_core = know(known::ETH, self.eth.map(|eth| eth.bytes_per_core));
        entry.pci = know(known::PCI, self.pci.map(PciAddress::packed));
        entry.board = text::encode(self.board.as_deref().unwrap_or(""));
        entry.known = known;
        entry
    }
}

impl PciAddress {
    fn packed(self) -> u64 {
        u64::from(self.domain) << 16
            | u64::from(self.bus) << 8
            | u64::from(self.device & 0x1f) << 3
            | u64::from(self.function & 7)
    }
}

/// A registered device; cheap to copy, valid for the tracker that registered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device(pub(crate) u8);

/// Several devices that act as one: a call on a mesh is recorded on each of its devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh(Vec<Device>);

impl Mesh {
    /// A mesh of these devices.
    pub fn new(devices: impl Into<Vec<Device>>) -> Mesh {
        Mesh(devices.into())
    }
}

/// What a call is recorded on: a device, or each device of a mesh.
pub trait Target {
    /// The devices.
    fn devices(&self) -> &[Device];
}

impl Target for Device {
    #[inline]
    fn devices(&self) -> &[Device] {
        std::slice::from_ref(self)
    }
}

impl Target for Mesh {
    fn devices(&self) -> &[Device] {
        &self.0
    }
}

impl<T: Target + ?Sized> Target for &T {
    #[inline]
    fn devices(&self) -> &[Device] {
        (**self).devices()
    }
}
