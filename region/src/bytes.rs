//! Bytes by kind of memory.

use crate::layout::{Image, u64_at};

/// A kind of memory that regions count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Buffers in DRAM.
    Dram,
    /// Buffers in L1.
    L1,
    /// Buffers in the part of L1 for small ones.
    L1Small,
    /// Buffers in the trace region, which is cut out of DRAM.
    Trace,
    /// Circular buffers.
    Cb,
}

impl Kind {
    /// All, in the order of the region.
    pub const ALL: [Kind; 5] = [Kind::Dram, Kind::L1, Kind::L1Small, Kind::Trace, Kind::Cb];

    /// In the words of JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Dram => "dram",
            Kind::L1 => "l1",
            Kind::L1Small => "l1_small",
            Kind::Trace => "trace",
            Kind::Cb => "cb",
        }
    }
}

/// Bytes by kind of memory: requested ones, not those that the allocator occupies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Buffers in DRAM.
    pub dram: u64,
    /// Buffers in L1.
    pub l1: u64,
    /// Buffers in the part of L1 for small ones.
    pub l1_small: u64,
    /// Buffers in the trace region.
    pub trace: u64,
    /// Circular buffers.
    pub cb: u64,
}

impl Bytes {
    /// More than any chip has: a counter that was decreased below zero.
    pub const ABSURD: u64 = 1 << 50;

    pub(crate) fn at(image: &Image, offset: usize) -> Bytes {
        let [dram, l1, l1_small, trace, cb] = std::array::from_fn(|index| u64_at(image, offset + 8 * index));
        Bytes { dram, l1, l1_small, trace, cb }
    }

    /// Of one kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Dram => self.dram,
            Kind::L1 => self.l1,
            Kind::L1Small => self.l1_small,
            Kind::Trace => self.trace,
            Kind::Cb => self.cb,
        }
    }

    /// Whether no counter is above [`Bytes::ABSURD`].
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        Kind::ALL.iter().all(|kind| self.of(*kind) <= Bytes::ABSURD)
    }

    /// Whether there is anything.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Bytes::default()
    }

    /// Both, or the most that can be said where a counter is absurd.
    #[must_use]
    pub fn saturating_add(self, other: Bytes) -> Bytes {
        let add = |kind| self.of(kind).saturating_add(other.of(kind));
        let [dram, l1, l1_small, trace, cb] = Kind::ALL.map(add);
        Bytes { dram, l1, l1_small, trace, cb }
    }
}
