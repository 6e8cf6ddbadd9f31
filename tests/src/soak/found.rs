//! What the monitor says, under the names that a replay uses.

use super::replay::Expected;
use shm_layout::{Class, Counters};

/// A difference between what is expected and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Of which process; 0 for a device's total.
    pub pid: u32,
    /// Where it was read.
    pub place: String,
    /// Device and figure.
    pub what: String,
    /// What it may be before the calls in flight.
    pub before: String,
    /// What it may be after them.
    pub after: String,
    /// What it is.
    pub found: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Difference { pid, place, what, before, after, found } = self;
        write!(f, "pid {pid}, {place}, {what}: expected {before}")?;
        if before != after {
            write!(f, " (before) or {after} (after)")?;
        }
        write!(f, ", found {found}")
    }
}

/// The value of a figure in counters.
pub fn value(counters: &Counters, figure: &Expected) -> u64 {
    if let Some(class) = figure.class {
        let counters = &counters.classes[class as usize];
        return match figure.what {
            "live_bytes" => counters.live_bytes,
            "live_count" => counters.live_count,
            "requested_bytes" => counters.requested_bytes,
            "alloc_bytes" => counters.alloc_bytes,
            "alloc_count" => counters.alloc_count,
            "peak_bytes" => counters.peak_bytes,
            other => unreachable!("{other} is no figure of a class"),
        };
    }
    match figure.what {
        "dram_used" => counters.dram_used(),
        "l1_used" => counters.l1_used(),
        "eth_used" => counters.eth_used(),
        "dram_peak" => counters.dram_peak_bytes,
        "l1_peak" => counters.l1_peak_bytes,
        "eth_peak" => counters.eth_peak_bytes,
        "dispatches" => counters.dispatches,
        "cached_dispatches" => counters.cached_dispatches,
        other => unreachable!("{other} is no figure of a device"),
    }
}

/// Whether a device's counters are what is expected.
pub fn fits(counters: &Counters, expected: &[Expected]) -> bool {
    expected.iter().all(|figure| (figure.low..=figure.high).contains(&value(counters, figure)))
}

/// How a figure is called in a report.
pub fn label(device: usize, what: &str, class: Option<Class>) -> String {
    match class {
        Some(class) => format!("device {device} {} {what}", class.name()),
        None => format!("device {device} {what}"),
    }
}

/// One value or a range.
pub fn range(figure: &Expected) -> String {
    if figure.low == figure.high {
        figure.low.to_string()
    } else {
        format!("{}..={}", figure.low, figure.high)
    }
}
