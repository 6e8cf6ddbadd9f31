//! What a soak did.

use std::fmt;

/// The figures of the last line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Calls that writers made.
    pub operations: u64,
    /// Processes killed.
    pub kills: u64,
    /// Processes stopped, and continued.
    pub stops: u64,
    /// Processes started again after their end.
    pub restarts: u64,
    /// Segments, tables, notices and snapshots compared with the truth.
    pub comparisons: u64,
    /// Of these, segments whose writer was in the middle of a call.
    pub in_flight: u64,
    /// Comparisons that failed.
    pub wrong: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { operations, kills, stops, restarts, comparisons, in_flight, wrong } = self;
        write!(
            f,
            "{operations} operations, {kills} kills, {stops} stops, {restarts} restarts, {comparisons} \
             comparisons ({in_flight} with calls in flight), {wrong} wrong"
        )
    }
}
