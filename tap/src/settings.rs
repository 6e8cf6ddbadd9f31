//! What a user may set, by the environment.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::hooks::hooks;

/// How many calls there are from one comparison with the allocator to the next: 1 compares after every call. Rounded up to
/// a power of two.
const CHECK_ENV: &str = "TT_SHM_TAP_CHECK_EVERY";
const CHECK_EVERY: u64 = 256;
/// Whether operations are to tell their names, `0` for not: also where tt-metal's Inspector is off.
const NAMES_ENV: &str = "TT_SHM_TAP_NAMES";

/// A comparison is due when these bits of the number of calls are 0.
pub(crate) fn check_mask() -> u64 {
    static MASK: AtomicU64 = AtomicU64::new(u64::MAX);
    match MASK.load(Ordering::Relaxed) {
        u64::MAX => {
            let set = std::env::var(CHECK_ENV).ok().and_then(|text| text.parse::<u64>().ok());
            let every = set.filter(|every| *every > 0).unwrap_or(CHECK_EVERY);
            let mask = every.min(1 << 32).next_power_of_two() - 1;
            MASK.store(mask, Ordering::Relaxed);
            mask
        }
        mask => mask,
    }
}

/// A yes or no of the environment, read once. Not by [`std::sync::OnceLock`]: a child that is forked while another thread
/// reads it would wait for ever. Who comes second may read it, too.
struct Switch(AtomicU8);

impl Switch {
    const UNKNOWN: u8 = 0;
    const NO: u8 = 1;
    const YES: u8 = 2;

    const fn new() -> Switch {
        Switch(AtomicU8::new(Switch::UNKNOWN))
    }

    #[inline]
    fn is_on(&self, read: fn() -> bool) -> bool {
        match self.0.load(Ordering::Relaxed) {
            Switch::UNKNOWN => {
                let is_on = read();
                self.0.store(if is_on { Switch::YES } else { Switch::NO }, Ordering::Relaxed);
                is_on
            }
            known => known == Switch::YES,
        }
    }
}

/// Whether operations are to tell their names.
pub(crate) fn names() -> bool {
    static NAMES: Switch = Switch::new();
    NAMES.is_on(|| std::env::var_os(NAMES_ENV).is_none_or(|text| text != "0"))
}

/// Whether the call sites of allocations are wanted, which takes some microseconds each.
#[inline]
pub(crate) fn call_sites() -> bool {
    static SITES: Switch = Switch::new();
    SITES.is_on(|| std::env::var_os(tt_shm_writer::BACKTRACE_ENV).is_some_and(|text| text == "1"))
}

/// Functions of tt-metal, mangled and with commas in between, that are treated as if this version had none: for tests of
/// what happens then.
const WITHOUT_ENV: &str = "TT_SHM_TAP_WITHOUT";

/// Whether a function of tt-metal is to be treated as missing.
pub(crate) fn is_hidden(symbol: &CStr) -> bool {
    let Ok(hidden) = std::env::var(WITHOUT_ENV) else { return false };
    // Without a function that is replaced, the job could not go on.
    let is_replaced = || hooks().any(|hook| hook.name == symbol);
    hidden.split(',').any(|one| one.as_bytes() == symbol.to_bytes()) && !is_replaced()
}
