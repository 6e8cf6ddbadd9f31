//! The devices of the demonstration: chips of n300 boards, the same for all workers.

use std::ops::Range;

use tt_shm_writer::{Arch, CoreGrid, CoreMemory, DeviceInfo, PciAddress, Pool, Pools};

/// DRAM of a chip.
pub(crate) const DRAM_BYTES: u64 = 12 << 30;
/// Banks of it. They are what tt-metal calls channels, though two of them share a controller.
pub(crate) const DRAM_BANKS: u64 = 12;
/// Columns and rows of Tensix cores of a chip.
pub(crate) const GRID: (u32, u32) = (8, 8);
/// Tensix cores of a chip.
pub(crate) const TENSIX_CORES: u32 = GRID.0 * GRID.1;
/// L1 of a core.
pub(crate) const L1_PER_CORE: u64 = 1464 << 10;
/// Ethernet cores of a chip.
pub(crate) const ETH_CORES: u32 = 16;
/// L1 of an ethernet core.
pub(crate) const ETH_L1_PER_CORE: u64 = 256 << 10;

/// Addresses of each bank of DRAM for buffers, and behind them those for traces.
pub(crate) const DRAM: Range<u64> = 0..DRAM_BYTES / DRAM_BANKS - (64 << 20);
pub(crate) const TRACE: Range<u64> = DRAM.end..DRAM_BYTES / DRAM_BANKS;
/// Addresses of the L1 of each core for buffers and programs. Below them are firmware and the kernel-config ring, behind
/// them small buffers.
pub(crate) const L1: Range<u64> = 100 << 10..L1_PER_CORE - (64 << 10);
pub(crate) const L1_SMALL: Range<u64> = L1.end..L1_PER_CORE;
/// The kernel-config ring on each core.
pub(crate) const KERNEL_RING_BYTES: u64 = 70 << 10;

fn pool(banks: u32, addresses: Range<u64>) -> Option<Pool> {
    Some(Pool { banks, bank_bytes: addresses.end - addresses.start, alignment: 32 })
}

/// The first chip's id; the others follow.
const FIRST_CHIP: u64 = 0x0100_0185_1172_b05c;

/// Device `number` of the mesh.
pub(crate) fn device(number: u32) -> DeviceInfo {
    DeviceInfo {
        chip_id: FIRST_CHIP + u64::from(number),
        logical_id: Some(number),
        arch: Arch::Wormhole,
        board: Some("n300".to_owned()),
        pci: Some(PciAddress { domain: 0, bus: 0x81_u8.wrapping_add(number as u8), device: 0, function: 0 }),
        dram_bytes: Some(DRAM_BYTES),
        dram_channels: Some(DRAM_BANKS as u32),
        l1: Some(CoreMemory { cores: TENSIX_CORES, bytes_per_core: L1_PER_CORE }),
        eth: Some(CoreMemory { cores: ETH_CORES, bytes_per_core: ETH_L1_PER_CORE }),
        l1_base: Some(L1.start),
        grid: Some(CoreGrid { columns: GRID.0, rows: GRID.1 }),
        pools: Pools {
            dram: pool(DRAM_BANKS as u32, DRAM),
            trace: pool(DRAM_BANKS as u32, TRACE),
            l1: pool(TENSIX_CORES, L1),
            l1_small: pool(TENSIX_CORES, L1_SMALL),
        },
        ..DeviceInfo::default()
    }
}
