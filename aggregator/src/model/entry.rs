//! What several processes say of one chip.

use shm_layout::{DeviceEntry, known};

/// Adds to `mine` what only `other` knows; says whether they contradict each other, and then keeps what was
/// said first.
pub(crate) fn reconcile(mine: &mut DeviceEntry, other: &DeviceEntry) -> bool {
    // Each process has a number of its own for the device.
    !mine.learn(&DeviceEntry { known: other.known & !known::LOGICAL, ..*other })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(known: u64, dram_bytes: u64, l1_per_core: u64) -> DeviceEntry {
        DeviceEntry { known, dram_bytes, l1_per_core, ..bytemuck::Zeroable::zeroed() }
    }

    #[test]
    fn what_only_one_knows_is_learned() {
        let mut mine = entry(known::DRAM, 5, 0);
        assert!(!reconcile(&mut mine, &entry(known::L1 | known::LOGICAL, 9, 7)));
        assert_eq!((mine.known, mine.dram_bytes, mine.l1_per_core), (known::DRAM | known::L1, 5, 7));
    }

    #[test]
    fn a_contradiction_keeps_what_was_said_first() {
        let mut mine = entry(known::DRAM, 5, 0);
        assert!(reconcile(&mut mine, &entry(known::DRAM, 6, 0)));
        assert_eq!(mine.dram_bytes, 5);
        let mut mine = DeviceEntry { arch: 2, ..entry(known::ARCH, 0, 0) };
        assert!(reconcile(&mut mine, &DeviceEntry { arch: 3, ..entry(known::ARCH, 0, 0) }));
    }
}
