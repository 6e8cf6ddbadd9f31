//! A device as a process describes it.

use crate::class::Class;
use crate::describe::constants;
use crate::segment::SegmentWords;
use crate::words::{Word, load_pod, viewed_struct};

constants! {
    pub(crate) LIMITS;
    /// The number of devices that one segment can list.
    pub const MAX_DEVICES: usize = 128;
}

/// The number of words of a [`DeviceEntry`].
pub const DEVICE_WORDS: usize = crate::words::words_of::<DeviceEntry>();

/// Bits of [`DeviceEntry::known`]: a figure whose bit is not set is unknown, not zero.
pub mod known {
    crate::describe::constants! {
        pub ALL;
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
        /// `board` is known.
        pub const BOARD: u64 = 1 << 6;
        /// `arch` is known.
        pub const ARCH: u64 = 1 << 7;
        /// `sub_device` is known.
        pub const SUB_DEVICE: u64 = 1 << 8;
        /// `mode` is known.
        pub const MODE: u64 = 1 << 9;
        /// In a device's row: DRAM or trace pools differ, so that the DRAM capacity is unknown regardless of
        /// `dram_bytes`.
        pub const DRAM_POOLS_DIFFER: u64 = 1 << 10;
        /// In a device's row: L1 or L1_SMALL pools differ, so that the L1 capacity is unknown.
        pub const L1_POOLS_DIFFER: u64 = 1 << 11;
        /// The DRAM pool is known; 0x2000, 0x4000 and 0x8000 are the bits of the trace, L1 and L1_SMALL pools.
        pub const POOL: u64 = 1 << 12;
        /// `l1_base` is known.
        pub const L1_BASE: u64 = 1 << 16;
        /// `grid_columns` and `grid_rows` are known.
        pub const GRID: u64 = 1 << 17;
    }
}

/// Bits of [`DeviceEntry::mode`].
pub mod mode {
    /// The allocator works in hybrid mode: not every buffer occupies every bank.
    pub const HYBRID: u64 = 1 << 0;
}

viewed_struct! {
    /// A pool of the allocator. A buffer occupies its aligned bytes per bank in every bank.
    pub struct Pool, size 24 {
        /// Number of banks.
        0 => pub banks: u64,
        /// Bytes in each bank that the allocator can provide.
        8 => pub bank_bytes: u64,
        /// Alignment of its allocations in bytes; 0 if not known.
        16 => pub alignment: u64,
    }
}

impl Pool {
    /// The bytes of all banks.
    pub fn total(&self) -> u64 {
        self.banks.saturating_mul(self.bank_bytes)
    }

    /// Whether two pools are the same; an alignment that only one of them has is not a difference.
    fn agrees(&self, other: &Pool) -> bool {
        let alignment = if self.alignment == 0 { other.alignment } else { self.alignment };
        let told = |pool: &Pool| if pool.alignment == 0 { Pool { alignment, ..*pool } } else { *pool };
        told(self) == told(other)
    }
}

/// The number of pools of an allocator: DRAM, trace, L1, L1_SMALL.
pub const POOLS: usize = 4;

/// Chip architecture; the discriminant is its code, that of the earlier socket protocol.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Arch {
    /// Not known.
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
    /// The architecture with this code; an unknown code is [`Arch::Unknown`].
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
    /// What a process claims about one allocator on one chip. Chip and allocator identify it. The producer
    /// reports the capacity: it cannot be derived from the name of the board.
    ///
    /// A process may learn more about a device later. It then writes fields whose bit of `known` is not set,
    /// and the word `known` last: a reader that loads `known` first sees every field whose bit it got, and
    /// those never change again. [`crate::SegmentWords::device`] reads an entry this way.
    pub struct DeviceEntry, size 512 {
        /// Stable chip id, the same in every process.
        0 => pub chip_id: u64,
        /// The process's own number for it.
        8 => pub logical_id: u64,
        /// [Architecture](Arch) code.
        16 => pub arch: u64,
        /// Bits of the figures that are [known].
        24 => pub known: u64,
        /// DRAM of the chip in bytes.
        32 => pub dram_bytes: u64,
        /// DRAM channels as tt-metal counts them: interleaved buffers are spread over them, and all have the
        /// same size.
        40 => pub dram_channels: u64,
        /// Tensix cores.
        48 => pub tensix_cores: u64,
        /// L1 bytes of each Tensix core.
        56 => pub l1_per_core: u64,
        /// Ethernet cores.
        64 => pub eth_cores: u64,
        /// L1 bytes of each ethernet core.
        72 => pub eth_l1_per_core: u64,
        /// PCI address: domain << 16 | bus << 8 | device << 3 | function.
        80 => pub pci: u64,
        /// Board name, UTF-8, zero-filled.
        88 => pub board: [u8; 32],
        /// Distinguishes the allocators of a chip; 0 if it has only one.
        120 => pub allocator: u64,
        /// Sub-device that the allocator belongs to.
        128 => pub sub_device: u64,
        /// [Mode](mode) bits.
        136 => pub mode: u64,
        /// Pools: DRAM, trace, L1, L1_SMALL.
        144 => pub pools: [Pool; POOLS],
        /// Lowest address in the L1 of a core that the L1 pool provides.
        240 => pub l1_base: u64,
        /// Columns of the grid of cores, each of which is one bank of the L1 pool. Core ranges count from 0.
        248 => pub grid_columns: u64,
        /// Rows of that grid.
        256 => pub grid_rows: u64,
        /// Zero.
        264 => pub reserved: [u64; 31],
    }
}

/// What a chip has, and how much of it its allocator can provide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Capacity {
    physical: Option<u64>,
    allocatable: Option<u64>,
    /// Whether allocators report different pools.
    differs: bool,
}

impl Capacity {
    fn total(&self) -> Option<u64> {
        self.allocatable.or(self.physical).filter(|_| !self.differs)
    }

    fn reserved(&self) -> Option<u64> {
        self.physical?.checked_sub(self.allocatable?).filter(|_| !self.differs)
    }
}

impl DeviceEntry {
    fn if_known(&self, bits: u64, value: u64) -> Option<u64> {
        (self.known & bits == bits).then_some(value)
    }

    /// The pool that a class is taken from, if known.
    pub fn pool(&self, class: Class) -> Option<Pool> {
        let pool = class.pool()?;
        (self.known & known::POOL << pool != 0).then(|| self.pools[pool])
    }

    /// The bytes of a pool and of a smaller one beside it, if the first is known.
    fn pools_of(&self, class: Class, beside: Class) -> Option<u64> {
        let beside = self.pool(beside).map_or(0, |pool| pool.total());
        Some(self.pool(class)?.total().saturating_add(beside))
    }

    fn dram(&self) -> Capacity {
        Capacity {
            physical: self.if_known(known::DRAM, self.dram_bytes),
            allocatable: self.pools_of(Class::Dram, Class::Trace),
            differs: self.known & known::DRAM_POOLS_DIFFER != 0,
        }
    }

    fn l1(&self) -> Capacity {
        Capacity {
            physical: self.if_known(known::L1, self.tensix_cores.saturating_mul(self.l1_per_core)),
            allocatable: self.pools_of(Class::L1, Class::L1Small),
            differs: self.known & known::L1_POOLS_DIFFER != 0,
        }
    }

    /// The DRAM capacity: that of the pools, or else what the process reports for the chip; unknown where
    /// pools differ.
    pub fn dram_total(&self) -> Option<u64> {
        self.dram().total()
    }

    /// DRAM that the allocator does not provide, if both are known.
    pub fn dram_reserved(&self) -> Option<u64> {
        self.dram().reserved()
    }

    /// The L1 capacity: that of the pools, or else that of all Tensix cores; unknown where pools differ.
    pub fn l1_total(&self) -> Option<u64> {
        self.l1().total()
    }

    /// L1 of Tensix cores that the allocator does not provide, if both are known.
    pub fn l1_reserved(&self) -> Option<u64> {
        self.l1().reserved()
    }

    /// The L1 capacity of all ethernet cores, if known.
    pub fn eth_l1_total(&self) -> Option<u64> {
        self.if_known(known::ETH, self.eth_cores.saturating_mul(self.eth_l1_per_core))
    }

    /// The PCI address as `0000:81:00.0`, if known.
    pub fn pci_address(&self) -> Option<String> {
        let pci = self.if_known(known::PCI, self.pci)?;
        let (domain, bus, device) = (pci >> 16 & 0xffff_ffff, pci >> 8 & 0xff, pci >> 3 & 0x1f);
        Some(format!("{domain:04x}:{bus:02x}:{device:02x}.{:x}", pci & 7))
    }

    /// The process's own number for the device, if it has one.
    pub fn logical(&self) -> Option<u64> {
        self.if_known(known::LOGICAL, self.logical_id)
    }

    /// The architecture.
    pub fn architecture(&self) -> Arch {
        self.if_known(known::ARCH, self.arch).map_or(Arch::Unknown, Arch::from_code)
    }

    /// Whether the allocator works in hybrid mode, if known.
    pub fn is_hybrid(&self) -> Option<bool> {
        self.if_known(known::MODE, self.mode).map(|mode| mode & mode::HYBRID != 0)
    }

    /// The range of addresses in each core that the L1 pool provides, if known.
    pub fn l1_range(&self) -> Option<core::ops::Range<u64>> {
        let base = self.if_known(known::L1_BASE, self.l1_base)?;
        Some(base..base.checked_add(self.pool(Class::L1)?.bank_bytes)?)
    }

    /// Columns and rows of the grid of cores, if known.
    pub fn grid(&self) -> Option<(u64, u64)> {
        self.if_known(known::GRID, self.grid_columns).map(|columns| (columns, self.grid_rows))
    }

    /// The board name, if known.
    pub fn board_name(&self) -> Option<String> {
        self.if_known(known::BOARD, 0)?;
        Some(crate::text::decode(&self.board)).filter(|name| !name.is_empty())
    }

    /// Takes over what `later` knows and this entry does not. Returns whether they agree on what both know,
    /// none of which changes, not even an alignment that was not known.
    pub fn learn(&mut self, later: &DeviceEntry) -> bool {
        let (agree, news) = (self.disputed_by(later) == 0, later.known & !self.known);
        for (bit, fields) in FIELDS.iter().filter(|(bit, _)| news & bit != 0) {
            let (mine, theirs): (&mut [u64; DEVICE_WORDS], &[u64; DEVICE_WORDS]) =
                (bytemuck::must_cast_mut(self), bytemuck::must_cast_ref(later));
            mine[fields.clone()].copy_from_slice(&theirs[fields.clone()]);
            self.known |= bit;
        }
        agree
    }

    /// Takes over alignments that another entry has and this one does not, of pools that both know.
    pub(crate) fn learn_alignments(&mut self, other: &DeviceEntry) {
        let both = self.known & other.known;
        for pool in (0..POOLS).filter(|pool| both & known::POOL << pool != 0) {
            if self.pools[pool].alignment == 0 {
                self.pools[pool].alignment = other.pools[pool].alignment;
            }
        }
    }

    /// All bits of [`known`] that stand for a figure.
    pub(crate) const FIGURES: u64 = {
        let (mut bits, mut next) = (0, 0);
        while next < FIELDS.len() {
            bits |= FIELDS[next].0;
            next += 1;
        }
        bits
    };

    /// The bits of [`known`] on which this and another entry differ.
    pub fn disputed_by(&self, other: &DeviceEntry) -> u64 {
        let (mine, theirs): (&[u64; DEVICE_WORDS], &[u64; DEVICE_WORDS]) =
            (bytemuck::must_cast_ref(self), bytemuck::must_cast_ref(other));
        let differ = |(bit, fields): &&(u64, core::ops::Range<usize>)| {
            self.known & other.known & bit != 0 && mine[fields.clone()] != theirs[fields.clone()]
        };
        let differing = FIELDS.iter().filter(differ).fold(0, |bits, (bit, _)| bits | bit);
        let same = |pool: &usize| self.pools[*pool].agrees(&other.pools[*pool]);
        differing & !(0..POOLS).filter(same).fold(0, |bits, pool| bits | known::POOL << pool)
    }
}

/// The words of an entry that each bit of [`known`] stands for.
const FIELDS: [(u64, core::ops::Range<usize>); 16] = [
    (known::LOGICAL, 1..2),
    (known::ARCH, 2..3),
    (known::DRAM, 4..5),
    (known::DRAM_CHANNELS, 5..6),
    (known::L1, 6..8),
    (known::ETH, 8..10),
    (known::PCI, 10..11),
    (known::BOARD, 11..15),
    (known::SUB_DEVICE, 16..17),
    (known::MODE, 17..18),
    (known::POOL, 18..21),
    (known::POOL << 1, 21..24),
    (known::POOL << 2, 24..27),
    (known::POOL << 3, 27..30),
    (known::L1_BASE, 30..31),
    (known::GRID, 31..33),
];

impl<W: Word> SegmentWords<'_, W> {
    /// The entry of a listed device.
    pub fn device(&self, index: usize) -> Option<DeviceEntry> {
        let words = self.devices.get(index)?;
        let known = words[KNOWN].load();
        // Acquire: pairs with the release store of the word in write_device(). Fields whose bit is set are as
        // they were when the bit was set, and stay so.
        W::fence_acquire();
        Some(DeviceEntry { known, ..load_pod(words) })
    }

    /// Writes the entry of a device, or what is known of it by now.
    pub fn write_device(&self, index: usize, entry: &DeviceEntry) {
        let Some(words) = self.devices.get(index) else { return };
        let before = words[KNOWN].load();
        let values: &[u64; DEVICE_WORDS] = bytemuck::must_cast_ref(entry);
        let set =
            |word: usize| FIELDS.iter().any(|(bit, fields)| before & bit != 0 && fields.contains(&word));
        for word in (0..DEVICE_WORDS).filter(|word| *word != KNOWN && !set(*word)) {
            if words[word].load() != values[word] {
                words[word].store(values[word]);
            }
        }
        // Release: pairs with the acquire fence in device().
        words[KNOWN].store_release(entry.known);
    }
}

/// The index of the word of [`DeviceEntry::known`].
const KNOWN: usize = core::mem::offset_of!(DeviceEntry, known) / 8;
