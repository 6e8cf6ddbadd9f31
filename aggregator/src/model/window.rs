//! The window of time that peaks refer to.

/// The window that peaks refer to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// When it began.
    pub(crate) since: u64,
    /// The number of windows opened by a reset.
    pub(crate) count: u64,
    /// The time in which no aggregator was running, between an earlier one and this one.
    pub(crate) gap: Option<(u64, u64)>,
    /// Whether the window reaches back to the start of the processes that were found. Only the first window does.
    pub(crate) reaches_back: bool,
}

impl Window {
    /// Events before this time do not count; 0 if all do.
    pub(crate) fn begin(&self) -> u64 {
        if self.reaches_back { 0 } else { self.since }
    }

    /// Extends the window to the start of a process that was found when the aggregator started.
    pub(crate) fn reach_back(&mut self, started: u64) {
        if self.count == 0 && self.gap.is_none() {
            (self.reaches_back, self.since) = (true, self.since.min(started));
        }
    }

    /// Whether a time is known and in the window.
    pub(crate) fn has(&self, time: u64) -> bool {
        time != 0 && time >= self.begin()
    }
}
