//! So many times a second, and no drift.

use std::time::{Duration, Instant};

/// Longest sleep: whoever waits looks this often whether it is to end.
const SLICE: Duration = Duration::from_millis(20);
/// Not worth a sleep.
const SHORT: Duration = Duration::from_micros(500);

/// Keeps a rate.
#[derive(Debug)]
pub(crate) struct Pace {
    next: Instant,
    interval: Duration,
}

impl Pace {
    /// So many times a second, from now on.
    pub(crate) fn per_second(rate: u32) -> Pace {
        Pace { next: Instant::now(), interval: Duration::from_secs(1) / rate.max(1) }
    }

    /// Waits until it is time again; false if `stop` says so.
    pub(crate) fn wait(&mut self, stop: &dyn Fn() -> bool) -> bool {
        self.next += self.interval;
        loop {
            if stop() {
                return false;
            }
            let ahead = self.next.saturating_duration_since(Instant::now());
            if ahead < SHORT {
                break;
            }
            std::thread::sleep(ahead.min(SLICE));
        }
        // Far behind, as after SIGSTOP: go on from here instead of catching up.
        self.next = self.next.max(Instant::now() - Duration::from_secs(1));
        true
    }
}
