//! An amount of memory: what is used of how much, and the most that was.

use serde::Serialize;

use super::as_json::words;
use super::{Clock, Interval, Moment, said};
use crate::units;

/// A largest value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Peak {
    /// The largest value that is certain, and the most that it can have been.
    #[serde(flatten)]
    #[cfg_attr(test, schemars(with = "super::interval::Bounds"))]
    pub range: Interval,
    /// When the certain peak was reached first, by the process that knows it; `None` if nobody knows, or there was
    /// none. Never when somebody looked.
    pub time: Option<Moment>,
    /// Allocations then; `None` if there was none, or where none are counted.
    pub count: Option<u64>,
}

impl Peak {
    /// The peak that a process counted itself, which is always exact.
    pub fn counted(bytes: u64, time: u64, count: Option<u64>, clock: Clock) -> Peak {
        let time = Some(time).filter(|time| *time != 0 && bytes != 0).map(|time| clock.moment(time));
        Peak { range: Interval::exact(bytes), time, count: count.filter(|_| time.is_some()) }
    }

    /// The peak that an aggregator found.
    pub fn found(peak: &tt_shm_reader::Peak, clock: Clock) -> Peak {
        let time = Some(peak.time).filter(|time| *time != 0 && peak.low != 0);
        let range = Interval { low: peak.low, high: said(peak.high.max(peak.low)) };
        Peak { range, time: time.map(|time| clock.moment(time)), count: time.map(|_| peak.count) }
    }

    /// The peak of something whose peak nobody counts: all that is known is what is used now.
    pub fn uncounted(used: u64) -> Peak {
        Peak { range: Interval::at_least(used), time: None, count: None }
    }

    /// Without the number of buffers, for what does not consist of buffers.
    pub fn without_count(self) -> Peak {
        Peak { count: None, ..self }
    }

    /// Whether it is exact.
    pub fn is_exact(&self) -> bool {
        self.range.is_exact()
    }
}

/// What bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// What is occupied.
    Occupied,
    /// What was requested, where nobody reported more.
    Requested,
    /// Some of both.
    Mixed,
}

words!(Basis { Occupied => "occupied", Requested => "requested", Mixed => "mixed" });

/// An amount of memory: a kind of memory, a class, or a part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes occupied.
    pub used: u64,
    /// Bytes that were requested.
    pub requested: u64,
    /// Of the bytes occupied, those of which only the requested size is known.
    pub requested_basis: u64,
    /// Number of allocations, where they are counted.
    pub count: Option<u64>,
    /// Bytes that can be allocated, if a process reported it.
    pub total: Option<u64>,
    /// Bytes that the device has and its allocator never hands out, if both are known.
    pub reserved: Option<u64>,
    /// The most that was used.
    pub peak: Peak,
    /// Whether a process that could not be read may use more.
    pub incomplete: bool,
}

impl Memory {
    /// Bytes that are requested and occupied alike, with their peak.
    pub fn of(used: u64, peak: Peak) -> Memory {
        Memory { used, requested: used, peak, ..Memory::default() }
    }

    /// What is known of the bytes used now.
    pub fn used_range(&self) -> Interval {
        if self.incomplete { Interval::at_least(self.used) } else { Interval::exact(self.used) }
    }

    /// What is occupied beyond what was requested.
    pub fn padding(&self) -> u64 {
        self.used.saturating_sub(self.requested)
    }

    /// What is used of how much: `4.1 / 12.0 GiB`, or `≥4.1 / 12.0 GiB` if it may be more.
    pub fn used_share(&self) -> String {
        format!("{}{}", self.used_range().mark().trim(), units::share(self.used, self.total))
    }

    /// What the bytes are.
    pub fn basis(&self) -> Basis {
        match self.requested_basis {
            0 => Basis::Occupied,
            all if all >= self.used => Basis::Requested,
            _ => Basis::Mixed,
        }
    }
}
