//! A time of the past in place of now, for a program that replays a record.
//!
//! All observers ask for the time in one place, so one word there lets the code that watches live processes watch
//! recorded ones. It belongs to the whole process and is set only by a program that does nothing else: a tracker in the
//! same process would report wrong times.

use std::sync::atomic::{AtomicU64, Ordering};

/// The time that is now, CLOCK_MONOTONIC; 0 if it is not replaced.
static MONOTONIC: AtomicU64 = AtomicU64::new(0);
/// The same moment, CLOCK_REALTIME.
static REALTIME: AtomicU64 = AtomicU64::new(0);

/// Makes a moment of the past the time that every clock of this process tells, until the next call. Counters of the
/// processor are not replaced, except in anchors, where they run with CLOCK_MONOTONIC.
///
/// A time of 0 becomes 1: there is no process then, and 0 stands for the real clocks.
pub fn set_time(monotonic_ns: u64, realtime_ns: u64) {
    // Relaxed: whoever replays reads and sets it on one thread; another thread sees one time or the next.
    REALTIME.store(realtime_ns, Ordering::Relaxed);
    MONOTONIC.store(monotonic_ns.max(1), Ordering::Relaxed);
}

/// Ends what [`set_time`] began.
pub fn unset_time() {
    MONOTONIC.store(0, Ordering::Relaxed);
}

/// Whether the clocks of this process tell a time of the past.
#[must_use]
pub fn is_set() -> bool {
    MONOTONIC.load(Ordering::Relaxed) != 0
}

pub(crate) fn monotonic_ns() -> Option<u64> {
    Some(MONOTONIC.load(Ordering::Relaxed)).filter(|time| *time != 0)
}

pub(crate) fn realtime_ns() -> Option<u64> {
    is_set().then(|| REALTIME.load(Ordering::Relaxed))
}
