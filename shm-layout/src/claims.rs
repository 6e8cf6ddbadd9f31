//! What processes claim about one chip, and which claims are believed.
//!
//! Identity and capacity are what the kernel driver says, then what root's processes claim and, where they claim
//! nothing, what all others agree on. A process that contradicts this is shown with its own claim and affects nobody else; its claim ends
//! when the process does.

use crate::device::{DeviceEntry, POOLS, known};

/// The rank of a claim; lower values take precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// The kernel driver.
    Driver,
    /// A process of root.
    Root,
    /// A process of the user who asks. A reader that serves everybody gives this to nobody.
    Own,
    /// Any other process.
    Other,
}

impl Standing {
    /// The standing of a user's processes, the same for every reader.
    pub fn of(uid: u32) -> Standing {
        if uid == 0 { Standing::Root } else { Standing::Other }
    }

    /// The standing of a user's processes for one reader, who believes its own before strangers.
    pub fn for_user(uid: u32, user: u32) -> Standing {
        if uid != 0 && uid == user { Standing::Own } else { Standing::of(uid) }
    }
}

/// What each process has of its own: its number for the device, and its allocator.
const OWN: u64 = known::LOGICAL | known::SUB_DEVICE | known::MODE;

/// The bits of [`known`] of all pools.
const POOL_BITS: u64 = (known::POOL << POOLS) - known::POOL;

/// For each memory, the bits of [`known`] about it, and the bit that tells that its pools differ. They are
/// settled together: a pool takes precedence over the size of the chip, so whoever could add a pool to the
/// size that root reports would replace it.
const MEMORIES: [(u64, u64); 2] = [
    (known::DRAM | known::POOL | known::POOL << 1, known::DRAM_POOLS_DIFFER),
    (known::L1 | known::POOL << 2 | known::POOL << 3, known::L1_POOLS_DIFFER),
];

/// These bits, and all bits of each memory that one of them is about.
fn with_whole_memories(bits: u64) -> u64 {
    let spoken_of = MEMORIES.into_iter().filter(|(memory, _)| bits & memory != 0);
    spoken_of.fold(bits, |bits, (memory, _)| bits | memory)
}

/// The merged claims of some processes.
#[derive(Clone, Copy, Debug)]
struct MergedClaims {
    /// The first claim about each figure.
    entry: DeviceEntry,
    /// Bits of [`known`] on which they contradict each other.
    disputed: u64,
    /// Bits of pools in which the allocators of one process differ. That is not a contradiction, since each
    /// has its own. What the chip has is then unknown: the pools may be separate or parts of the same memory.
    divided: u64,
}

impl MergedClaims {
    const NOTHING: MergedClaims = MergedClaims { entry: bytemuck::zeroed(), disputed: 0, divided: 0 };

    /// The claims of one process, which has an entry for each allocator.
    fn of_process<'a>(entries: impl IntoIterator<Item = &'a DeviceEntry>) -> MergedClaims {
        let mut entries: Vec<&DeviceEntry> = entries.into_iter().collect();
        entries.sort_by_key(|entry| entry.allocator);
        let mut all = MergedClaims::NOTHING;
        for of_one in entries.chunk_by(|one, two| one.allocator == two.allocator) {
            let mut said = MergedClaims::NOTHING;
            of_one.iter().for_each(|entry| said.add(entry));
            all.divided |= all.entry.disputed_by(&said.entry) & POOL_BITS;
            said.entry.known &= !all.divided;
            all.disputed |= said.disputed;
            all.add(&said.entry);
        }
        all.entry.known &= !all.divided;
        all
    }

    fn join(&mut self, process: &MergedClaims) {
        self.disputed |= process.disputed;
        self.divided |= process.divided;
        self.add(&process.entry);
    }

    fn add(&mut self, entry: &DeviceEntry) {
        self.disputed |= self.entry.disputed_by(entry);
        self.entry.learn(entry);
        self.entry.learn_alignments(entry);
    }

    fn spoken(&self) -> u64 {
        self.entry.known | self.disputed | self.divided
    }

    /// The bits that nobody contradicted.
    fn agreed(&self) -> u64 {
        self.entry.known & !self.disputed & !self.divided
    }
}

/// The claims about one chip.
#[derive(Clone, Debug)]
pub struct Claims {
    /// By [`Standing`].
    said: [MergedClaims; 4],
}

impl Default for Claims {
    fn default() -> Claims {
        Claims { said: [MergedClaims::NOTHING; 4] }
    }
}

impl Claims {
    /// Adds the claims of one process about the chip, with an entry for each allocator that it has there.
    pub fn add<'a>(&mut self, standing: Standing, entries: impl IntoIterator<Item = &'a DeviceEntry>) {
        self.said[standing as usize].join(&MergedClaims::of_process(entries));
    }

    /// Decides what is taken as true.
    pub fn settle(&self, chip_id: u64) -> Settled {
        let mut said = DeviceEntry { chip_id, ..bytemuck::zeroed() };
        let (mut spoken, mut disputed, mut divided) = (0, 0, 0);
        for one in &self.said {
            let open = !with_whole_memories(spoken);
            said.learn(&DeviceEntry { known: one.agreed() & open, ..one.entry });
            disputed |= one.disputed & open;
            divided |= one.divided & open;
            spoken |= one.spoken();
        }
        let mut entry = DeviceEntry { known: said.known & !OWN, logical_id: 0, ..said };
        for (memory, differ) in MEMORIES {
            let pools = memory & POOL_BITS;
            if (disputed | divided) & pools != 0 {
                entry.known = entry.known & !pools | differ;
            }
        }
        Settled { entry, logical: said.logical(), said, disputed, divided }
    }
}

/// What is taken as true of a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Identity and capacity, without what each process has of its own.
    pub entry: DeviceEntry,
    /// The processes' own number for it; `None` if they have none or disagree.
    pub logical: Option<u64>,
    /// What no believed process contradicted, including a pool beside one that is unknown.
    said: DeviceEntry,
    /// Bits of [`known`] that are unknown because processes of the same standing contradict each other.
    disputed: u64,
    /// Bits of [`known`] that are unknown because the allocators of one process differ.
    divided: u64,
}

impl Settled {
    /// Whether a process contradicts what is taken as true, claims more about a memory than the processes
    /// that are believed about it, or takes part in a dispute that leaves something unknown.
    pub fn is_disputed_by(&self, entry: &DeviceEntry) -> bool {
        let entry = DeviceEntry { known: entry.known & DeviceEntry::FIGURES & !OWN, ..*entry };
        let unheard = entry.known & !self.said.known & !self.divided;
        unheard | self.disputed & entry.known | self.said.disputed_by(&entry) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Class;
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
        claims.iter().for_each(|(uid, entry)| all.add(Standing::of(*uid), [entry]));
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
                assert_eq!(settled.entry.pool(Class::Trace), None);
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

    /// What a memory has: capacity, reserved, and what the chip has.
    fn dram(entry: &DeviceEntry) -> (Option<u64>, Option<u64>, u64) {
        (entry.dram_total(), entry.dram_reserved(), entry.dram_bytes * (entry.known & DRAM))
    }

    #[test]
    fn a_capacity_whose_pools_are_disputed_is_unknown() {
        let chip = entry(DRAM | known::L1, 40, 9);
        let one = with_pools(chip, &[(0, 17), (1, 1), (3, 2)]);
        for other in [&[(0, 18), (1, 1)], &[(0, 17), (1, 2)]] {
            let beside = with_pools(entry(0, 0, 0), &[(3, 2)]);
            let (settled, disputed) = settled(&[(5, one), (6, with_pools(chip, other)), (7, beside)]);
            assert_eq!(dram(&settled.entry), (None, None, 40), "{other:?}");
            assert_eq!([Class::Dram, Class::Trace].map(|class| settled.entry.pool(class)), [None, None]);
            assert_eq!((settled.entry.l1_total(), disputed), (Some(9), vec![true, true, false]), "{other:?}");
        }
        let l1 = |bytes| with_pools(chip, &[(2, 5), (3, bytes)]);
        let (settled, disputed) = settled(&[(0, l1(1)), (0, l1(2)), (6, chip)]);
        assert_eq!((settled.entry.l1_total(), settled.entry.l1_reserved()), (None, None));
        assert_eq!((settled.entry.dram_total(), disputed), (Some(40), vec![true, true, false]));
    }

    #[test]
    fn an_alignment_that_is_not_told_agrees_with_any() {
        let pool = |alignment| {
            let mut entry = with_pools(entry(0, 0, 0), &[(0, 17)]);
            entry.pools[0].alignment = alignment;
            entry
        };
        for order in [[0, 32], [32, 0]] {
            let (settled, disputed) = settled(&order.map(|alignment| (5, pool(alignment))));
            let told = settled.entry.pool(Class::Dram).map(|pool| pool.alignment);
            assert_eq!((settled.entry.dram_total(), told), (Some(17), Some(32)));
            assert_eq!(disputed, [false, false]);
        }
        let (settled, disputed) = settled(&[(5, pool(0)), (5, pool(32)), (6, pool(64))]);
        assert_eq!((settled.entry.dram_total(), disputed), (None, vec![true, true, true]));
    }

    /// An entry of this allocator, which tells a DRAM and a trace pool.
    fn allocator(allocator: u64, dram: u64) -> DeviceEntry {
        DeviceEntry { allocator, ..with_pools(entry(DRAM, 40, 0), &[(0, dram), (1, 1)]) }
    }

    /// Of one process with these entries, and others of other users with one each.
    fn settled_process(own: &[DeviceEntry], others: &[DeviceEntry]) -> (Option<u64>, Vec<bool>) {
        let mut claims = Claims::default();
        claims.add(Standing::Other, own);
        others.iter().for_each(|entry| claims.add(Standing::Other, [entry]));
        let settled = claims.settle(7);
        let disputed = own.iter().chain(others).map(|entry| settled.is_disputed_by(entry));
        (settled.entry.dram_total(), disputed.collect())
    }

    #[test]
    fn allocators_of_one_process_may_have_different_pools() {
        assert_eq!(settled_process(&[allocator(1, 17), allocator(2, 17)], &[]), (Some(18), vec![false; 2]));
        let different = [allocator(2, 9), allocator(1, 17), allocator(3, 17)];
        assert_eq!(settled_process(&different, &[]), (None, vec![false; 3]));
        assert_eq!(settled_process(&different, &[allocator(0, 17); 2]), (None, vec![false; 5]));
        // Of one allocator there is only one truth.
        let broken = [allocator(1, 17), allocator(1, 9)];
        assert_eq!(settled_process(&broken, &[]), (None, vec![true; 2]));
        // What the chip has is not the allocator's.
        let sizes = [allocator(1, 17), DeviceEntry { dram_bytes: 50, ..allocator(2, 17) }];
        assert_eq!(settled_process(&sizes, &[]), (Some(18), vec![true; 2]));
    }

    #[test]
    fn a_process_cannot_say_that_pools_differ() {
        let lie = entry(DRAM | known::DRAM_POOLS_DIFFER, 5, 0);
        let (settled, disputed) = settled(&[(5, lie)]);
        assert_eq!((settled.entry.dram_total(), disputed), (Some(5), vec![false]));
    }

    #[test]
    fn a_user_believes_its_own_processes_before_strangers() {
        let of = |uid: u32| Standing::for_user(uid, 5);
        assert_eq!([of(0), of(5), of(6)], [Standing::Root, Standing::Own, Standing::Other]);
        assert_eq!(Standing::for_user(0, 0), Standing::Root);
        let mut claims = Claims::default();
        claims.add(of(6), &[DeviceEntry { logical_id: 77, ..entry(known::LOGICAL, 0, 0) }]);
        claims.add(of(5), &[DeviceEntry { logical_id: 3, ..entry(known::LOGICAL, 0, 0) }]);
        assert_eq!(claims.settle(7).logical, Some(3));
    }

    #[test]
    fn nobody_says_anything() {
        let (settled, _) = settled(&[]);
        assert_eq!((settled.entry.chip_id, settled.entry.known, settled.disputed), (7, 0, 0));
    }
}
