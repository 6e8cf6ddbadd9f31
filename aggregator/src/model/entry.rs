//! What several processes say of one chip.

use shm_layout::{DeviceEntry, known};

/// A field of an entry.
type Figure = fn(&mut DeviceEntry) -> &mut u64;

/// Adds to `mine` what only `other` knows; says whether they contradict each other, and then keeps what was
/// said first.
pub(crate) fn reconcile(mine: &mut DeviceEntry, other: &DeviceEntry) -> bool {
    let figures: [(u64, Figure); 7] = [
        (known::DRAM, |entry| &mut entry.dram_bytes),
        (known::DRAM_CHANNELS, |entry| &mut entry.dram_channels),
        (known::L1, |entry| &mut entry.tensix_cores),
        (known::L1, |entry| &mut entry.l1_per_core),
        (known::ETH, |entry| &mut entry.eth_cores),
        (known::ETH, |entry| &mut entry.eth_l1_per_core),
        (known::PCI, |entry| &mut entry.pci),
    ];
    let (mut theirs, before) = (*other, mine.known);
    let mut conflict = mine.arch != 0 && theirs.arch != 0 && mine.arch != theirs.arch;
    for (bit, figure) in figures.into_iter().filter(|(bit, _)| other.known & bit != 0) {
        let (mine_is, theirs_is) = (figure(mine), *figure(&mut theirs));
        if before & bit != 0 {
            conflict |= *mine_is != theirs_is;
        } else {
            *mine_is = theirs_is;
        }
    }
    mine.known |= theirs.known & !known::LOGICAL;
    if mine.arch == 0 {
        mine.arch = theirs.arch;
    }
    if mine.board == [0; 32] {
        mine.board = theirs.board;
    }
    conflict
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
        let mut mine = DeviceEntry { arch: 2, ..entry(0, 0, 0) };
        assert!(reconcile(&mut mine, &DeviceEntry { arch: 3, ..entry(0, 0, 0) }));
    }
}
