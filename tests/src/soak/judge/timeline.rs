//! Ticks as CLOCK_MONOTONIC nanoseconds and back: a line through readings that the soak takes all the time, so that
//! neither a slewed clock nor a long run makes it wrong.

use tt_shm_os::{Anchor, ClockKind};

/// The readings, oldest first.
pub struct Timeline {
    kind: ClockKind,
    anchors: Vec<Anchor>,
}

impl Timeline {
    /// Begins to measure.
    pub fn begin() -> Timeline {
        let kind = ClockKind::best();
        Timeline { kind, anchors: vec![Anchor::now(kind)] }
    }

    /// This moment.
    pub fn now(&self) -> u64 {
        self.kind.ticks()
    }

    /// One reading more.
    pub fn read(&mut self) {
        let anchor = Anchor::now(self.kind);
        let last = self.anchors.last().map_or(0, |last| last.monotonic_ns);
        // Closer ones would say more about the reading than about the clock.
        if anchor.monotonic_ns > last + 100_000_000 {
            self.anchors.push(anchor);
        }
    }

    fn piece(&self, is_before: impl Fn(&Anchor) -> bool) -> (Anchor, Anchor) {
        let next = self.anchors.partition_point(is_before).clamp(1, self.anchors.len().max(2) - 1);
        let first = self.anchors[next - 1];
        (first, *self.anchors.get(next).unwrap_or(&first))
    }

    /// The time of a tick.
    pub fn to_ns(&self, ticks: u64) -> u64 {
        let (first, second) = self.piece(|anchor| anchor.ticks <= ticks);
        let along = (second.monotonic_ns - first.monotonic_ns) as f64 / (second.ticks - first.ticks).max(1) as f64;
        let nanos = (ticks as f64 - first.ticks as f64) * along;
        first.monotonic_ns.saturating_add_signed(nanos as i64)
    }

    /// The tick of a time.
    pub fn to_ticks(&self, ns: u64) -> u64 {
        let (first, second) = self.piece(|anchor| anchor.monotonic_ns <= ns);
        let along = (second.ticks - first.ticks) as f64 / (second.monotonic_ns - first.monotonic_ns).max(1) as f64;
        let ticks = (ns as f64 - first.monotonic_ns as f64) * along;
        first.ticks.saturating_add_signed(ticks as i64)
    }

    /// CLOCK_MONOTONIC of a wall-clock time.
    pub fn from_realtime(&self, realtime_ns: u64) -> u64 {
        let last = self.anchors[self.anchors.len() - 1];
        realtime_ns.saturating_sub(last.realtime_ns.saturating_sub(last.monotonic_ns))
    }
}
