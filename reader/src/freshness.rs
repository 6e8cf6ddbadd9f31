//! Whether the aggregator behind a table is still running.

use shm_layout::table::{control, is_heartbeat_fresh};
use tt_shm_os::{boot_id, monotonic_ns};

use crate::table::Table;

/// A heartbeat further in the future than this is from another clock.
const SLACK_NS: u64 = 1_000_000_000;

/// How old a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// The last heartbeat of the aggregator, CLOCK_MONOTONIC.
    pub heartbeat_ns: u64,
    /// How long ago that was; `u64::MAX` if unknown, because the heartbeat is from another boot or lies in
    /// the future.
    pub age_ns: u64,
    /// Whether the aggregator has closed the table.
    pub closed: bool,
    /// The longest that the aggregator sleeps at present.
    pub interval_ns: u64,
}

impl Freshness {
    /// Whether the aggregator counts as running: the heartbeat is at most three intervals and a second old,
    /// and the table is not closed.
    pub fn is_fresh(&self) -> bool {
        !self.closed && self.age_ns != u64::MAX && is_heartbeat_fresh(self.age_ns, self.interval_ns)
    }
}

impl Table {
    /// Whether the aggregator is running, and since when not. A stopped or killed aggregator leaves its table
    /// as it was; only this tells.
    pub fn freshness(&self) -> Freshness {
        let heartbeat_ns = self.control(control::HEARTBEAT);
        // Read after the heartbeat, so an honest heartbeat is not newer than this.
        let now = monotonic_ns();
        let same_boot = boot_id().unwrap_or_default() == self.header().boot_id;
        let comparable = same_boot && heartbeat_ns <= now.saturating_add(SLACK_NS);
        Freshness {
            heartbeat_ns,
            age_ns: if comparable { now.saturating_sub(heartbeat_ns) } else { u64::MAX },
            closed: self.control(control::CLOSED) != 0,
            interval_ns: self.control(control::INTERVAL),
        }
    }
}
