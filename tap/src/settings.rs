//! What a user may set, by the environment.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many calls there are from one comparison with the allocator to the next: 1 compares after every call.
const CHECK_ENV: &str = "TT_SHM_TAP_CHECK_EVERY";
const CHECK_EVERY: u64 = 64;

/// How many calls there are from one comparison to the next.
pub(crate) fn check_every() -> u64 {
    static EVERY: AtomicU64 = AtomicU64::new(0);
    match EVERY.load(Ordering::Relaxed) {
        0 => {
            let set = std::env::var(CHECK_ENV).ok().and_then(|text| text.parse().ok());
            let every = set.filter(|every| *every > 0).unwrap_or(CHECK_EVERY);
            EVERY.store(every, Ordering::Relaxed);
            every
        }
        every => every,
    }
}
