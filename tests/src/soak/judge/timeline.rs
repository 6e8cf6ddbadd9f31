//! Ticks as CLOCK_MONOTONIC nanoseconds and back: a line through readings that the soak takes all the time, so that
//! neither a slewed clock nor a long run makes it wrong.

use std::time::Duration;
use tt_shm_os::{Anchor, ClockKind};

/// Between the first two readings.
const FIRST_SPAN: Duration = Duration::from_millis(100);

/// The readings, oldest first.
pub struct Timeline {
    kind: ClockKind,
    anchors: Vec<Anchor>,
}

impl Timeline {
    /// Begins to measure.
    pub fn begin() -> Timeline {
        let kind = ClockKind::best();
        let first = Anchor::now(kind);
        // Two at least, and so far apart that what lies beside them is right, too.
        std::thread::sleep(FIRST_SPAN);
        Timeline { kind, anchors: vec![first, Anchor::now(kind)] }
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
        let next = self.anchors.partition_point(is_before).clamp(1, self.anchors.len() - 1);
        (self.anchors[next - 1], self.anchors[next])
    }

    /// The time of a tick.
    pub fn to_ns(&self, ticks: u64) -> u64 {
        let (first, second) = self.piece(|anchor| anchor.ticks <= ticks);
        let along =
            (second.monotonic_ns - first.monotonic_ns) as f64 / (second.ticks - first.ticks).max(1) as f64;
        let nanos = (ticks as f64 - first.ticks as f64) * along;
        first.monotonic_ns.saturating_add_signed(nanos as i64)
    }

    /// The tick of a time.
    pub fn to_ticks(&self, ns: u64) -> u64 {
        let (first, second) = self.piece(|anchor| anchor.monotonic_ns <= ns);
        let along =
            (second.ticks - first.ticks) as f64 / (second.monotonic_ns - first.monotonic_ns).max(1) as f64;
        let ticks = (ns as f64 - first.monotonic_ns as f64) * along;
        first.ticks.saturating_add_signed(ticks as i64)
    }

    /// CLOCK_MONOTONIC of a wall-clock time.
    pub fn from_realtime(&self, realtime_ns: u64) -> u64 {
        let last = self.anchors[self.anchors.len() - 1];
        realtime_ns.saturating_sub(last.realtime_ns.saturating_sub(last.monotonic_ns))
    }
}
