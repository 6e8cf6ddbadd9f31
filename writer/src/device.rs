//! Devices as a host describes them.

use shm_layout::{Arch, DeviceEntry, known, mode, text};

/// What the host knows about a device, that is, one allocator on one chip. Only the chip id is required; what
/// is unknown stays `None`, and may be added later by registering the device again.
#[derive(Clone, Debug, Default)]
pub struct DeviceInfo {
    /// The stable id of the chip, the same in every process.
    pub chip_id: u64,
    /// Distinguishes several allocators on one chip, such as those of sub-meshes; 0 for the only one.
    pub allocator: u64,
    /// The sub-device that the allocator belongs to.
    pub sub_device: Option<u32>,
    /// Whether the allocator works in hybrid mode, in which not every buffer occupies every bank.
    pub hybrid: Option<bool>,
    /// What the allocator can provide.
    pub pools: Pools,
    /// The host's own number for it.
    pub logical_id: Option<u32>,
    /// The architecture.
    pub arch: Arch,
    /// The board name, such as `n300`; at most 32 bytes.
    pub board: Option<String>,
    /// The PCI address.
    pub pci: Option<PciAddress>,
    /// The DRAM of the chip, in bytes.
    pub dram_bytes: Option<u64>,
    /// The number of DRAM channels.
    pub dram_channels: Option<u32>,
    /// The number of Tensix cores and the L1 bytes of each.
    pub l1: Option<CoreMemory>,
    /// The number of ethernet cores and the L1 bytes of each.
    pub eth: Option<CoreMemory>,
    /// The lowest address in the L1 of a core that the L1 pool provides.
    pub l1_base: Option<u64>,
    /// The grid of cores, each of which is one bank of the L1 pool.
    pub grid: Option<CoreGrid>,
}

/// The pools of an allocator, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pools {
    /// DRAM buffers.
    pub dram: Option<Pool>,
    /// Trace buffers.
    pub trace: Option<Pool>,
    /// L1 buffers.
    pub l1: Option<Pool>,
    /// Small L1 buffers.
    pub l1_small: Option<Pool>,
}

/// A pool: every buffer in it occupies its bytes per bank in each of its banks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The number of banks.
    pub banks: u32,
    /// The bytes of each bank that can be allocated.
    pub bank_bytes: u64,
    /// The alignment of allocations; 0 if unknown.
    pub alignment: u64,
}

/// A number of cores with some L1 each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreMemory {
    /// The number of cores.
    pub cores: u32,
    /// The L1 bytes of each.
    pub bytes_per_core: u64,
}

/// Cores in columns and rows, as core ranges count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreGrid {
    /// The number of columns.
    pub columns: u32,
    /// The number of rows.
    pub rows: u32,
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
        entry.allocator = self.allocator;
        entry.arch = know(known::ARCH, Some(self.arch as u64).filter(|_| self.arch != Arch::Unknown));
        entry.sub_device = know(known::SUB_DEVICE, self.sub_device.map(u64::from));
        entry.mode = know(known::MODE, self.hybrid.map(|hybrid| if hybrid { mode::HYBRID } else { 0 }));
        let Pools { dram, trace, l1, l1_small } = self.pools;
        for (number, pool) in [dram, trace, l1, l1_small].into_iter().enumerate() {
            let bit = known::POOL << number;
            entry.pools[number] = shm_layout::Pool {
                banks: know(bit, pool.map(|pool| u64::from(pool.banks))),
                bank_bytes: know(bit, pool.map(|pool| pool.bank_bytes)),
                alignment: know(bit, pool.map(|pool| pool.alignment)),
            };
        }
        entry.logical_id = know(known::LOGICAL, self.logical_id.map(u64::from));
        entry.dram_bytes = know(known::DRAM, self.dram_bytes);
        entry.dram_channels = know(known::DRAM_CHANNELS, self.dram_channels.map(u64::from));
        entry.tensix_cores = know(known::L1, self.l1.map(|l1| u64::from(l1.cores)));
        entry.l1_per_core = know(known::L1, self.l1.map(|l1| l1.bytes_per_core));
        entry.eth_cores = know(known::ETH, self.eth.map(|eth| u64::from(eth.cores)));
        entry.eth_l1_per_core = know(known::ETH, self.eth.map(|eth| eth.bytes_per_core));
        entry.l1_base = know(known::L1_BASE, self.l1_base);
        entry.grid_columns = know(known::GRID, self.grid.map(|grid| u64::from(grid.columns)));
        entry.grid_rows = know(known::GRID, self.grid.map(|grid| u64::from(grid.rows)));
        entry.pci = know(known::PCI, self.pci.map(PciAddress::packed));
        let board = self.board.as_deref().filter(|board| !board.is_empty());
        know(known::BOARD, board.map(|_| 0));
        entry.board = text::encode(board.unwrap_or(""));
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

impl Device {
    /// The device with this number, as [`Device::raw`] returned it. Calls about a number that the tracker has not given
    /// out return [`RecordError::UnknownDevice`](crate::RecordError::UnknownDevice).
    #[inline]
    pub const fn from_raw(number: u8) -> Device {
        Device(number)
    }

    /// Its number: the index in the list of devices of the segment, as events have it.
    #[inline]
    pub const fn raw(self) -> u8 {
        self.0
    }
}

/// Several devices that act as one: a call on a mesh is recorded on each of its devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh(Vec<Device>);

impl Mesh {
    /// A mesh of these devices, without duplicates.
    pub fn new(devices: impl Into<Vec<Device>>) -> Mesh {
        let mut devices = devices.into();
        let mut seen = [false; 1 + u8::MAX as usize];
        devices.retain(|device| !std::mem::replace(&mut seen[usize::from(device.0)], true));
        Mesh(devices)
    }
}

/// The target of a call: a device, or each device of a mesh, slice or array.
///
/// A device that is named twice counts once. If there is none, the call records nothing, checks nothing, and succeeds
/// ([`Record::kernel_load`](crate::Record::kernel_load) returns [`Loaded::New`](crate::Loaded::New)).
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

impl Target for [Device] {
    #[inline]
    fn devices(&self) -> &[Device] {
        self
    }
}

impl<const N: usize> Target for [Device; N] {
    #[inline]
    fn devices(&self) -> &[Device] {
        self
    }
}

impl<T: Target + ?Sized> Target for &T {
    #[inline]
    fn devices(&self) -> &[Device] {
        (**self).devices()
    }
}
