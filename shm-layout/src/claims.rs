//! What living processes say of one chip, and whom to believe.
//!
//! Identity and capacity are what root's processes say, and of what they do not speak, what all others agree on. A
//! process that contradicts that is shown with what it says, and changes nothing for anybody else; when a process ends,
//! what it said goes with it.

use crate::device::{DeviceEntry, known};

/// Whose word counts before whose; the first first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// Root's.
    Root,
    /// That of the user who asks. Who answers everybody gives it to nobody.
    Own,
    /// Anybody else's.
    Other,
}

impl Standing {
    /// The standing of a user's processes for everybody.
    pub fn of(uid: u32) -> Standing {
        if uid == 0 { Standing::Root } else { Standing::Other }
    }

    /// The same for one user, who believes itself before strangers.
    pub fn for_user(uid: u32, user: u32) -> Standing {
        if uid != 0 && uid == user { Standing::Own } else { Standing::of(uid) }
    }
}

/// Each process has a number of its own for the device, and an allocator.
const OWN: u64 = known::LOGICAL | known::SUB_DEVICE | known::MODE;

/// The bits of [`known`] that speak of one memory. They are settled as one: a pool outranks the size of the chip, so
/// whoever could add a pool to the size that root tells would replace it.
const MEMORIES: [u64; 2] =
    [known::DRAM | known::POOL | known::POOL << 1, known::L1 | known::POOL << 2 | known::POOL << 3];

/// These bits, and all of each memory that one of them speaks of.
fn with_whole_memories(bits: u64) -> u64 {
    MEMORIES.into_iter().filter(|memory| bits & memory != 0).fold(bits, |bits, memory| bits | memory)
}

/// What some say together.
#[derive(Clone, Copy, Debug)]
struct Said {
    /// What was said first of each figure.
    entry: DeviceEntry,
    /// Bits of [`known`] of what they contradict each other on.
    disputed: u64,
}

impl Said {
    const NOTHING: Said = Said { entry: bytemuck::zeroed(), disputed: 0 };

    fn add(&mut self, entry: &DeviceEntry) {
        self.disputed |= self.entry.disputed_by(entry);
        self.entry.learn(entry);
    }

    /// What nobody contradicted.
    fn agreed(&self) -> u64 {
        self.entry.known & !self.disputed
    }
}

/// What is said of one chip.
#[derive(Clone, Debug)]
pub struct Claims {
    /// By [`Standing`].
    said: [Said; 3],
}

impl Default for Claims {
    fn default() -> Claims {
        Claims { said: [Said::NOTHING; 3] }
    }
}

impl Claims {
    /// What a process says of the chip.
    pub fn add(&mut self, standing: Standing, entry: &DeviceEntry) {
        self.said[standing as usize].add(entry);
    }

    /// Settles what is taken for true.
    pub fn settle(&self, chip_id: u64) -> Settled {
        let mut said = DeviceEntry { chip_id, ..bytemuck::zeroed() };
        let (mut spoken, mut disputed) = (0, 0);
        for one in &self.said {
            let open = !with_whole_memories(spoken);
            said.learn(&DeviceEntry { known: one.agreed() & open, ..one.entry });
            disputed |= one.disputed & open;
            spoken |= one.entry.known;
        }
        let logical = said.logical();
        let entry = DeviceEntry { known: said.known & !OWN, logical_id: 0, ..said };
        Settled { entry, logical, disputed: disputed & !OWN }
    }
}

/// What is taken for true of a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Identity and capacity; nothing of what each process has of its own.
    pub entry: DeviceEntry,
    /// The processes' own number for it; `None` if they have none or disagree.
    pub logical: Option<u64>,
    /// Bits of [`known`] of what is unknown because processes that count the same contradict each other.
    disputed: u64,
}

impl Settled {
    /// Whether a process says otherwise than is taken for true, more of a memory than those say who are believed about
    /// it, or takes part in a dispute that leaves something unknown.
    pub fn is_disputed_by(&self, entry: &DeviceEntry) -> bool {
        let entry = DeviceEntry { known: entry.known & DeviceEntry::FIGURES & !OWN, ..*entry };
        let unheard = entry.known & !self.entry.known;
        unheard | self.disputed & entry.known | self.entry.disputed_by(&entry) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Pool;

    const DRAM: u64 = known::DRAM;

    fn entry(known: u64, dram_bytes: u64, l1_per_core: u64) -> DeviceEntry {
        DeviceEntry { chip_id: 7, known, dram_bytes, tensix_cores: 1, l1_per_core, ..bytemuck::zeroed() }
    }

    /// An entry that tells these pools: place and bytes.
    fn with_pools(mut entry: DeviceEntry, pools: &[(usize, u64)]) -> DeviceEntry {
        for (place, bank_bytes) in pools {
            entry.known |= known::POOL << place;
            entry.pools[*place] = Pool { banks: 1, bank_bytes: *bank_bytes, alignment: 32 };
        }
        entry
    }

    fn settled(claims: &[(u32, DeviceEntry)]) -> (Settled, Vec<bool>) {
        let mut all = Claims::default();
        claims.iter().for_each(|(uid, entry)| all.add(Standing::of(*uid), entry));
        let settled = all.settle(7);
        (settled, claims.iter().map(|(_, entry)| settled.is_disputed_by(entry)).collect())
    }

    #[test]
    fn what_only_one_knows_is_believed() {
        let (settled, disputed) =
            settled(&[(5, entry(DRAM, 5, 0)), (6, entry(known::L1 | known::LOGICAL, 9, 7))]);
        let Settled { entry, disputed: none, .. } = settled;
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
    fn nobody_adds_pools_to_what_root_says_of_a_memory() {
        let root = entry(DRAM | known::L1, 12 << 30, 1 << 20);
        for pools in [[0, 2], [1, 3]] {
            let stranger = with_pools(entry(0, 0, 0), &pools.map(|place| (place, 17)));
            for claims in [[(0, root), (5, stranger)], [(5, stranger), (0, root)]] {
                let (settled, disputed) = settled(&claims);
                let totals = (settled.entry.dram_total(), settled.entry.l1_total());
                assert_eq!(totals, (Some(12 << 30), Some(1 << 20)), "{pools:?}");
                assert_eq!(settled.entry.pool(crate::Class::Trace), None);
                assert_eq!(disputed, claims.map(|(uid, _)| uid != 0), "{pools:?}");
            }
        }
    }

    #[test]
    fn of_a_memory_that_root_does_not_speak_of_others_are_believed() {
        let stranger = with_pools(entry(0, 0, 0), &[(0, 17), (1, 1), (2, 5)]);
        let (settled, disputed) = settled(&[(0, entry(known::L1, 0, 9)), (5, stranger)]);
        assert_eq!((settled.entry.dram_total(), settled.entry.l1_total()), (Some(18), Some(9)));
        assert_eq!(disputed, [false, true]);
    }

    #[test]
    fn who_says_the_same_as_root_contradicts_nobody() {
        let root = with_pools(entry(DRAM, 20, 0), &[(0, 17), (1, 1)]);
        let (_, disputed) = settled(&[(0, root), (5, with_pools(entry(DRAM, 20, 0), &[(0, 17)])), (6, root)]);
        assert_eq!(disputed, [false, false, false]);
    }

    #[test]
    fn a_user_believes_its_own_processes_before_strangers() {
        let of = |uid: u32| Standing::for_user(uid, 5);
        assert_eq!([of(0), of(5), of(6)], [Standing::Root, Standing::Own, Standing::Other]);
        assert_eq!(Standing::for_user(0, 0), Standing::Root);
        let mut claims = Claims::default();
        claims.add(of(6), &DeviceEntry { logical_id: 77, ..entry(known::LOGICAL, 0, 0) });
        claims.add(of(5), &DeviceEntry { logical_id: 3, ..entry(known::LOGICAL, 0, 0) });
        assert_eq!(claims.settle(7).logical, Some(3));
    }

    #[test]
    fn nobody_says_anything() {
        let (settled, _) = settled(&[]);
        assert_eq!((settled.entry.chip_id, settled.entry.known, settled.disputed), (7, 0, 0));
    }
}
