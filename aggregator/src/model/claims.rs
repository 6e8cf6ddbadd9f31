//! What living processes say of one chip, and whom to believe.
//!
//! Identity and capacity are what root's processes say, and of what they do not speak, what all others agree on. A
//! process that contradicts that is shown with what it says, and changes nothing for anybody else; when a process ends,
//! what it said goes with it.

use shm_layout::{DeviceEntry, known};

/// What one process says of a chip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim<'a> {
    pub(crate) uid: u32,
    pub(crate) entry: &'a DeviceEntry,
}

impl Claim<'_> {
    /// Whether it says otherwise than is taken for true, or takes part in a dispute that leaves it unknown.
    pub(crate) fn is_disputed(&self, settled: &Settled) -> bool {
        let entry = DeviceEntry { known: self.entry.known & !OWN, ..*self.entry };
        settled.entry.disputed_by(&entry) | settled.disputed & entry.known != 0
    }
}

/// Each process has a number of its own for the device, and an allocator.
const OWN: u64 = known::LOGICAL | known::SUB_DEVICE | known::MODE;

/// What is taken for true of a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) entry: DeviceEntry,
    /// Bits of [`known`] of what is unknown because processes that count the same contradict each other.
    pub(crate) disputed: u64,
}

/// Settles what is taken for true of a chip.
pub(crate) fn settle(chip_id: u64, claims: &[Claim<'_>]) -> Settled {
    let of = |trusted: bool| {
        claims.iter().filter(move |claim| (claim.uid == 0) == trusted).map(|claim| claim.entry)
    };
    let said = |trusted: bool| of(trusted).fold(0, |bits, entry| bits | entry.known) & !OWN;
    let (mut entry, others) = (DeviceEntry::agreed(of(true)), DeviceEntry::agreed(of(false)));
    let spoken = said(true);
    entry.known &= !OWN;
    let disputed = spoken & !entry.known | said(false) & !spoken & !others.known;
    entry.learn(&DeviceEntry { known: others.known & !spoken & !OWN, ..others });
    Settled { entry: DeviceEntry { chip_id, logical_id: 0, allocator: 0, ..entry }, disputed }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAM: u64 = known::DRAM;

    fn entry(known: u64, dram_bytes: u64, l1_per_core: u64) -> DeviceEntry {
        DeviceEntry { chip_id: 7, known, dram_bytes, l1_per_core, ..bytemuck::Zeroable::zeroed() }
    }

    fn settled(claims: &[(u32, DeviceEntry)]) -> (Settled, Vec<bool>) {
        let claims: Vec<Claim<'_>> = claims.iter().map(|(uid, entry)| Claim { uid: *uid, entry }).collect();
        let settled = settle(7, &claims);
        (settled, claims.iter().map(|claim| claim.is_disputed(&settled)).collect())
    }

    #[test]
    fn what_only_one_knows_is_believed() {
        let (settled, disputed) =
            settled(&[(5, entry(DRAM, 5, 0)), (6, entry(known::L1 | known::LOGICAL, 9, 7))]);
        let Settled { entry, disputed: none } = settled;
        assert_eq!((entry.known, entry.dram_bytes, entry.l1_per_core), (DRAM | known::L1, 5, 7));
        assert_eq!((none, disputed), (0, vec![false, false]));
    }

    #[test]
    fn equals_who_contradict_each_other_leave_it_unknown() {
        let (settled, disputed) = settled(&[(5, entry(DRAM, 5, 0)), (6, entry(DRAM, 6, 0))]);
        assert_eq!((settled.entry.known, settled.disputed), (0, DRAM));
        assert_eq!(disputed, [true, true]);
    }

    #[test]
    fn root_is_believed_against_all_others() {
        let (settled, disputed) =
            settled(&[(5, entry(DRAM, 5, 0)), (6, entry(DRAM, 5, 0)), (0, entry(DRAM, 8, 0))]);
        assert_eq!((settled.entry.known, settled.entry.dram_bytes), (DRAM, 8));
        assert_eq!(disputed, [true, true, false]);
        assert_eq!(settled.disputed, 0);
    }

    #[test]
    fn nobody_says_anything() {
        let (settled, _) = settled(&[]);
        assert_eq!((settled.entry.chip_id, settled.entry.known, settled.disputed), (7, 0, 0));
    }
}
