//! The devices of the demonstration: chips of n300 boards, the same for all workers.

use tt_shm_writer::{Arch, CoreMemory, DeviceInfo, PciAddress, Pool, Pools};

/// DRAM of a chip.
pub(crate) const DRAM_BYTES: u64 = 12 << 30;
/// Banks of it. They are what tt-metal calls channels, though two of them share a controller.
pub(crate) const DRAM_BANKS: u64 = 12;
/// Tensix cores of a chip.
pub(crate) const TENSIX_CORES: u32 = 64;
/// L1 of a core.
pub(crate) const L1_PER_CORE: u64 = 1464 << 10;
/// Ethernet cores of a chip.
pub(crate) const ETH_CORES: u32 = 16;
/// L1 of an ethernet core.
pub(crate) const ETH_L1_PER_CORE: u64 = 256 << 10;

/// What is cut out of each bank of DRAM for traces.
const TRACE_PER_BANK: u64 = 64 << 20;
/// What is cut out of the L1 of each core for small buffers.
const L1_SMALL_PER_CORE: u64 = 64 << 10;

fn dram_pool(bank_bytes: u64) -> Pool {
    Pool { banks: DRAM_BANKS as u32, bank_bytes, alignment: 32 }
}

fn l1_pool(bank_bytes: u64) -> Pool {
    Pool { banks: TENSIX_CORES, bank_bytes, alignment: 16 }
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
        pools: Pools {
            dram: Some(dram_pool(DRAM_BYTES / DRAM_BANKS - TRACE_PER_BANK)),
            trace: Some(dram_pool(TRACE_PER_BANK)),
            l1: Some(l1_pool(L1_PER_CORE - L1_SMALL_PER_CORE)),
            l1_small: Some(l1_pool(L1_SMALL_PER_CORE)),
        },
        ..DeviceInfo::default()
    }
}
