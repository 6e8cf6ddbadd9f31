//! The clock that the writer stamps events with, as a stopwatch.

use std::sync::OnceLock;
use std::time::Duration;
use tt_shm_os::{Anchor, Calibration, ClockKind};

/// How long the frequency is measured: an anchor is uncertain by some 50 ns, so this gives six digits.
const SPAN: Duration = Duration::from_millis(50);

/// Reads ticks and turns them into nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    kind: ClockKind,
    ns_per_tick: f64,
}

impl Stopwatch {
    /// The machine's best clock; its frequency is measured at the first call.
    pub fn get() -> Stopwatch {
        static MEASURED: OnceLock<Stopwatch> = OnceLock::new();
        *MEASURED.get_or_init(|| {
            let kind = ClockKind::best();
            let first = Anchor::now(kind);
            std::thread::sleep(SPAN);
            let hz = Calibration::new(kind, first, Anchor::now(kind)).ticks_per_second();
            Stopwatch { kind, ns_per_tick: 1e9 / hz }
        })
    }

    /// The clock behind it.
    pub fn kind(self) -> ClockKind {
        self.kind
    }

    /// Ticks now.
    #[inline(always)]
    pub fn ticks(self) -> u64 {
        self.kind.ticks()
    }

    /// Ticks since an earlier reading. Two cores may differ by some ticks, so not below zero.
    #[inline(always)]
    pub fn since(self, start: u64) -> u64 {
        self.ticks().saturating_sub(start)
    }

    /// So many ticks in nanoseconds.
    pub fn ns(self, ticks: u64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }
}
