//! What was asked for, needed and free when an allocation failed, and why it failed.

use serde::Serialize;
use tt_shm_reader::{Class, Event, FailureRecord, UNKNOWN as NOT_SAID, failure_flags, flags};

use super::as_json::words;
use crate::units::{bytes, bytes_or_unknown};

/// The figures of an allocation that failed, as its process told them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Shortage {
    /// Bytes it asked for, in all banks together (of circular buffers: on all cores).
    pub request_bytes: u64,
    /// Bytes that were free, by the allocator; `None` if it did not say.
    pub free_bytes: Option<u64>,
    /// Largest free block, by the allocator; `None` if it did not say.
    pub largest_free_bytes: Option<u64>,
    /// Bytes needed in each bank (of circular buffers: on each core); `None` if it did not say.
    pub needed_per_bank_bytes: Option<u64>,
    /// Banks (of circular buffers: cores); `None` if it did not say.
    pub banks: Option<u64>,
    /// Whether free bytes and the largest free block are those of one bank (of circular buffers: of one core), not of all.
    pub per_bank: bool,
    /// What is meant by a bank.
    #[serde(skip)]
    pub place: Place,
}

/// What memory is divided into, each part of which has to have room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    #[default]
    Bank,
    /// Circular buffers are at the same address on each core of their program.
    Core,
}

impl Place {
    /// What an allocation of this class is divided over.
    pub fn of(class: Option<Class>) -> Place {
        if class == Some(Class::Cb) { Place::Core } else { Place::Bank }
    }

    /// ` per bank`: what stands behind the figures of one.
    pub fn unit(self) -> &'static str {
        match self {
            Place::Bank => " per bank",
            Place::Core => " per core",
        }
    }

    /// `in each of 12 banks`, or `in each bank` if their number is not known.
    pub fn each(self, count: Option<u64>) -> String {
        let (at, name) = match self {
            Place::Bank => ("in", "bank"),
            Place::Core => ("on", "core"),
        };
        match count {
            Some(1) => format!("{at} 1 {name}"),
            Some(count) => format!("{at} each of {count} {name}s"),
            None => format!("{at} each {name}"),
        }
    }
}

/// Why an allocation failed, as far as the figures tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Less was free than was needed.
    Exhausted,
    /// Enough was free, but not in one piece.
    Fragmented,
}

words!(Cause { Exhausted => "exhausted", Fragmented => "fragmented" });

impl Shortage {
    /// Why it failed: too little was free, or not in one piece. `None` if the figures do not tell.
    pub fn cause(&self) -> Option<Cause> {
        let needed = if self.per_bank { self.needed_per_bank_bytes } else { Some(self.needed_in_all()) };
        match (needed.or(self.least_per_bank()), self.free_bytes, self.largest_free_bytes) {
            (Some(least), Some(free), _) if free < least => Some(Cause::Exhausted),
            // By what is needed, not by the least that it can be: more than that may not have been free.
            (_, Some(_), Some(largest)) if needed.is_some_and(|needed| largest < needed) => {
                Some(Cause::Fragmented)
            }
            _ => None,
        }
    }

    /// What it would have occupied: banks are filled in lock step, so that may be more than was asked for.
    fn needed_in_all(&self) -> u64 {
        let banks = self.needed_per_bank_bytes.zip(self.banks);
        banks.map_or(0, |(needed, banks)| needed.saturating_mul(banks)).max(self.request_bytes)
    }

    /// A bank has to take its share at least, whatever the alignment.
    fn least_per_bank(&self) -> Option<u64> {
        self.banks.filter(|banks| *banks > 0).map(|banks| self.request_bytes.div_ceil(banks))
    }

    /// ` per bank`, or nothing: what stands behind the figures of what is free.
    fn unit(&self) -> &'static str {
        if self.per_bank { self.place.unit() } else { "" }
    }

    /// `64.0 MiB in each of 12 banks`; `None` if that is not known.
    pub fn needed_text(&self) -> Option<String> {
        let needed = bytes(self.needed_per_bank_bytes?);
        Some(format!("{needed} {}", self.place.each(self.banks)))
    }

    /// What was free: `100.0 MiB per bank`, or `-`.
    pub fn free_text(&self) -> String {
        self.with_unit(self.free_bytes)
    }

    /// The largest free block, likewise.
    pub fn largest_text(&self) -> String {
        self.with_unit(self.largest_free_bytes)
    }

    fn with_unit(&self, figure: Option<u64>) -> String {
        format!("{}{}", bytes_or_unknown(figure), if figure.is_some() { self.unit() } else { "" })
    }
}

impl From<&FailureRecord> for Shortage {
    fn from(record: &FailureRecord) -> Shortage {
        Shortage {
            request_bytes: record.request_bytes,
            free_bytes: said(record.free_bytes),
            largest_free_bytes: said(record.largest_free_bytes),
            needed_per_bank_bytes: said(record.needed_per_bank_bytes),
            banks: some_banks(record.banks),
            per_bank: record.has(failure_flags::PER_BANK),
            place: Place::of(class_of(record.class)),
        }
    }
}

impl From<&tt_shm_reader::Failure> for Shortage {
    fn from(failure: &tt_shm_reader::Failure) -> Shortage {
        Shortage {
            request_bytes: failure.request_bytes,
            free_bytes: said(failure.free_bytes),
            largest_free_bytes: said(failure.largest_free_bytes),
            needed_per_bank_bytes: said(failure.needed_per_bank_bytes),
            banks: some_banks(failure.banks),
            per_bank: failure.per_bank != 0,
            place: Place::of(class_of(failure.class)),
        }
    }
}

/// Of an event that tells of a failed allocation.
impl From<&Event> for Shortage {
    fn from(event: &Event) -> Shortage {
        Shortage {
            request_bytes: event.size,
            free_bytes: said(event.address),
            largest_free_bytes: said(event.largest_free_bytes()),
            needed_per_bank_bytes: said(event.id),
            banks: some_banks(u64::from(event.cores)),
            per_bank: event.has(flags::PER_BANK),
            place: Place::of(event.class()),
        }
    }
}

/// What a process says, unless it says that it does not know.
pub(crate) fn said(bytes: u64) -> Option<u64> {
    Some(bytes).filter(|bytes| *bytes != NOT_SAID)
}

fn class_of(code: u64) -> Option<Class> {
    u8::try_from(code).ok().and_then(Class::from_code)
}

fn some_banks(banks: u64) -> Option<u64> {
    Some(banks).filter(|banks| *banks != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// 768 MiB over 12 banks, 64 MiB in each.
    fn over_banks(free: u64, largest: u64) -> Shortage {
        Shortage {
            request_bytes: 768 * MIB,
            free_bytes: Some(free * MIB),
            largest_free_bytes: Some(largest * MIB),
            needed_per_bank_bytes: Some(64 * MIB),
            banks: Some(12),
            per_bank: true,
            ..Shortage::default()
        }
    }

    #[test]
    fn what_a_bank_needs_is_compared_with_what_a_bank_has() {
        assert_eq!(over_banks(100, 30).cause(), Some(Cause::Fragmented));
        assert_eq!(over_banks(60, 30).cause(), Some(Cause::Exhausted));
        assert_eq!(over_banks(100, 70).cause(), None, "it would have fitted");
        let in_all = Shortage { per_bank: false, ..over_banks(1000, 30) };
        assert_eq!(in_all.cause(), Some(Cause::Fragmented));
        assert_eq!(Shortage { free_bytes: Some(767 * MIB), ..in_all }.cause(), Some(Cause::Exhausted));
    }

    #[test]
    fn padding_counts_as_needed() {
        // A request of 12 bytes takes 32 in each of 12 banks.
        let padded = Shortage {
            request_bytes: 12,
            free_bytes: Some(300),
            largest_free_bytes: Some(300),
            needed_per_bank_bytes: Some(32),
            banks: Some(12),
            ..Shortage::default()
        };
        assert_eq!(padded.cause(), Some(Cause::Exhausted));
    }

    #[test]
    fn without_what_a_bank_needs_only_its_least_share_tells() {
        let untold = |free, largest| Shortage { needed_per_bank_bytes: None, ..over_banks(free, largest) };
        assert_eq!(untold(60, 60).cause(), Some(Cause::Exhausted), "12 banks share 768 MiB");
        assert_eq!(untold(70, 30).cause(), None, "padding may need more than 70 MiB");
        let banks_untold = Shortage { banks: None, ..untold(1, 1) };
        assert_eq!(banks_untold.cause(), None, "one bank of how many?");
        assert_eq!(Shortage { free_bytes: None, largest_free_bytes: None, ..over_banks(0, 0) }.cause(), None);
    }

    #[test]
    fn figures_of_a_bank_are_called_that() {
        let shortage = over_banks(100, 30);
        assert_eq!(shortage.free_text(), "100.0 MiB per bank");
        assert_eq!(shortage.needed_text().unwrap(), "64.0 MiB in each of 12 banks");
        let of_program = Shortage { place: Place::Core, ..shortage };
        assert_eq!(of_program.free_text(), "100.0 MiB per core");
        assert_eq!(of_program.largest_text(), "30.0 MiB per core");
        assert_eq!(of_program.needed_text().unwrap(), "64.0 MiB on each of 12 cores");
        let one = Shortage { banks: Some(1), ..of_program };
        assert_eq!(one.needed_text().unwrap(), "64.0 MiB on 1 core");
        let unknown = Shortage { free_bytes: None, per_bank: true, ..Shortage::default() };
        assert_eq!((unknown.free_text().as_str(), unknown.needed_text()), ("-", None));
    }
}
