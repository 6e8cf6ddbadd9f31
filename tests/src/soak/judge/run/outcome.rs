//! What a soak did.

use crate::soak::judge::verdict::Verdicts;
use std::fmt;

/// What a soak did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub(super) verdicts: Verdicts,
    pub(super) calls: u64,
    pub(super) segments: u64,
    pub(super) kills: u64,
    pub(super) stops: u64,
    pub(super) restarts: u64,
    pub(super) resets: u64,
    /// Events that a reader could not see for more than the merge window after their time.
    pub(super) late: u64,
    /// Of these, events seen to be committed only after their thread had stood still.
    pub(super) delayed: u64,
    pub(super) readings: u64,
    pub(super) lists: u64,
    /// What is wrong beside the claims.
    pub(super) faults: u64,
}

impl Outcome {
    /// Everything that is wrong.
    pub fn wrong(&self) -> u64 {
        self.verdicts.wrong() + self.faults
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { verdicts, calls, segments, kills, stops, restarts, resets, late, delayed, .. } = self;
        let Outcome { readings, lists, faults, .. } = self;
        write!(
            f,
            "{calls} calls of {segments} segments, {kills} kills, {stops} stops, {restarts} restarts, {resets} \
             resets, {late} events late ({delayed} seen delayed between clock and commit), {readings} readings, \
             {lists} live lists, {} claims open, {faults} faults; {verdicts}",
            verdicts.open
        )
    }
}
