//! Clocks that cost a few nanoseconds to read.
//!
//! Events carry raw ticks: converting them, or a call into the vDSO, would cost more than the rest of an
//! emit. The observer converts them; see [`Calibration`](crate::Calibration).

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::past;

/// The counter that a producer's ticks come from. All of them are common to all cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClockKind {
    /// The invariant time stamp counter of x86_64. Its frequency is not known in advance.
    Tsc,
    /// The virtual counter of aarch64, at the frequency in `cntfrq_el0`.
    Cntvct,
    /// CLOCK_MONOTONIC, in nanoseconds, where there is nothing better.
    Monotonic,
}

impl ClockKind {
    /// The code of this kind in a header; never 0.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::Tsc => 1,
            Self::Cntvct => 2,
            Self::Monotonic => 3,
        }
    }

    /// The kind with this code.
    #[must_use]
    pub const fn from_code(code: u32) -> Option<Self> {
        match code {
            1 => Some(Self::Tsc),
            2 => Some(Self::Cntvct),
            3 => Some(Self::Monotonic),
            _ => None,
        }
    }

    /// The cheapest clock of this machine that runs evenly on all cores.
    ///
    /// On x86_64 that is the TSC if the processor calls it invariant and the kernel has not rejected it: a
    /// TSC that is not in step on all cores is called invariant too. The clock source that the kernel has
    /// chosen for itself does not matter. Decided once: CPUID traps to the hypervisor in a guest.
    #[must_use]
    pub fn best() -> Self {
        // Not a OnceLock: a child forked while another thread was in it would wait for that thread forever.
        // Threads that come at the same time all find out, and find the same.
        static BEST: AtomicU32 = AtomicU32::new(0);
        Self::from_code(BEST.load(Ordering::Relaxed)).unwrap_or_else(|| {
            let best = arch::best(SOURCES);
            BEST.store(best.code(), Ordering::Relaxed);
            best
        })
    }

    /// Reads the clock.
    ///
    /// Not serialising: the processor may take the reading some nanoseconds before or after the
    /// neighbouring instructions, so two threads that hand over a lock may see ticks step back by
    /// that much. A kind that this processor doesn't have reads as CLOCK_MONOTONIC: kinds may come
    /// from a foreign header, and a wrong time is better than a panic.
    #[inline]
    #[must_use]
    pub fn ticks(self) -> u64 {
        arch::counter(self).unwrap_or_else(monotonic_ns)
    }

    /// The ticks per second that the hardware states; 0 if it states none, or if it is not this hardware.
    #[must_use]
    pub fn nominal_hz(self) -> u64 {
        match self {
            Self::Monotonic => NANOS_PER_SECOND,
            Self::Tsc | Self::Cntvct => arch::nominal_hz(self),
        }
    }
}

pub(crate) const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The clock sources that the kernel would use.
const SOURCES: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// CLOCK_MONOTONIC: nanoseconds since boot, without time spent suspended.
///
/// A time namespace (rare; containers don't make one by default) may shift it.
#[must_use]
pub fn monotonic_ns() -> u64 {
    past::monotonic_ns().unwrap_or_else(|| to_nanos(clock_gettime(ClockId::Monotonic)))
}

/// CLOCK_BOOTTIME: nanoseconds since boot, with time spent suspended.
#[must_use]
fn boottime_ns() -> u64 {
    to_nanos(clock_gettime(ClockId::Boottime))
}

/// How long the machine has been suspended since boot, in nanoseconds. Two clocks are read one after the
/// other, so less than [`SUSPENSION_NS`] means nothing.
#[must_use]
pub fn suspended_ns() -> u64 {
    if past::is_set() { 0 } else { boottime_ns().saturating_sub(monotonic_ns()) }
}

/// A suspension is longer than this; the difference of two readings is shorter.
pub const SUSPENSION_NS: u64 = 5_000_000;

/// Since when the machine is known not to have been suspended: 0 if it never was, otherwise only since now.
#[must_use]
pub fn awake_since() -> u64 {
    if suspended_ns() > SUSPENSION_NS { monotonic_ns() } else { 0 }
}

/// CLOCK_REALTIME: nanoseconds since 1970; 0 if the clock is set to an earlier time.
#[must_use]
pub fn realtime_ns() -> u64 {
    past::realtime_ns().unwrap_or_else(|| to_nanos(clock_gettime(ClockId::Realtime)))
}

fn to_nanos(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(NANOS_PER_SECOND).saturating_add(nanos)
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use std::arch::x86_64::{__cpuid, _rdtsc};

    use super::ClockKind;

    /// "Advanced power management": EDX bit 8 says that the TSC never stops nor changes its pace.
    const POWER_LEAF: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;

    pub(super) fn best(sources: &str) -> ClockKind {
        let has_leaf = __cpuid(0x8000_0000).eax >= POWER_LEAF;
        let invariant = has_leaf && __cpuid(POWER_LEAF).edx & INVARIANT_TSC != 0;
        if invariant && is_accepted(sources) { ClockKind::Tsc } else { ClockKind::Monotonic }
    }

    /// Whether the kernel lists the TSC. Where there is no list, as in some containers, it rejects nothing.
    fn is_accepted(sources: &str) -> bool {
        let Ok(sources) = std::fs::read_to_string(sources) else { return true };
        sources.split_ascii_whitespace().any(|source| source == "tsc")
    }

    #[inline]
    pub(super) fn counter(kind: ClockKind) -> Option<u64> {
        match kind {
            // SAFETY: every x86_64 has RDTSC; Linux forbids it only to those who ask (PR_SET_TSC).
            ClockKind::Tsc => Some(unsafe { _rdtsc() }),
            ClockKind::Cntvct | ClockKind::Monotonic => None,
        }
    }

    pub(super) fn nominal_hz(_: ClockKind) -> u64 {
        0 // CPUID leaf 0x15 states it on some processors, off by up to 1 %: worse than measuring
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_tsc_that_the_kernel_rejected_is_not_used() {
            let list = tempfile::NamedTempFile::new().unwrap();
            let best_of = |content: &str| {
                std::fs::write(&list, content).unwrap();
                best(list.path().to_str().unwrap())
            };
            let (without, with) = (best_of("kvm-clock hpet acpi_pm \n"), best_of("kvm-clock tsc hpet\n"));
            assert_eq!(without, ClockKind::Monotonic);
            assert_eq!(with, best("/nonexistent"), "no list rejects nothing");
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use std::arch::asm;

    use super::ClockKind;

    pub(super) fn best(_sources: &str) -> ClockKind {
        ClockKind::Cntvct
    }

    #[inline]
    pub(super) fn counter(kind: ClockKind) -> Option<u64> {
        match kind {
            ClockKind::Cntvct => {
                let ticks: u64;
                // SAFETY: reads a register that Linux lets user space read; touches nothing else.
                unsafe {
                    asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
                }
                Some(ticks)
            }
            ClockKind::Tsc | ClockKind::Monotonic => None,
        }
    }

    pub(super) fn nominal_hz(kind: ClockKind) -> u64 {
        if kind != ClockKind::Cntvct {
            return 0;
        }
        let hz: u64;
        // SAFETY: reads a register that Linux lets user space read; touches nothing else.
        unsafe {
            asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags));
        }
        hz
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod arch {
    use super::ClockKind;

    pub(super) fn best(_sources: &str) -> ClockKind {
        ClockKind::Monotonic
    }

    pub(super) fn counter(_: ClockKind) -> Option<u64> {
        None
    }

    pub(super) fn nominal_hz(_: ClockKind) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [ClockKind; 3] = [ClockKind::Tsc, ClockKind::Cntvct, ClockKind::Monotonic];

    #[test]
    fn codes_round_trip() {
        for kind in ALL {
            assert_eq!(ClockKind::from_code(kind.code()), Some(kind));
        }
        for code in [0, 4, u32::MAX] {
            assert_eq!(ClockKind::from_code(code), None);
        }
    }

    #[test]
    fn every_kind_can_be_read_anywhere() {
        for kind in ALL {
            assert_ne!(kind.ticks(), 0, "{kind:?}");
            let _ = kind.nominal_hz();
        }
        assert_eq!(ClockKind::best(), ClockKind::best());
    }

    #[test]
    fn clocks_go_forward() {
        let (ticks, monotonic) = (ClockKind::Monotonic.ticks(), monotonic_ns());
        assert!(ticks <= monotonic && monotonic <= monotonic_ns());
        // 2020-01-01: catches a wrong unit, not a wrong calendar.
        assert!(realtime_ns() > 1_577_836_800 * NANOS_PER_SECOND);
    }

    #[test]
    fn odd_times_saturate() {
        let time = |tv_sec, tv_nsec| to_nanos(Timespec { tv_sec, tv_nsec });
        assert_eq!(time(1, 5), NANOS_PER_SECOND + 5);
        assert_eq!(time(-1, 0), 0);
        assert_eq!(time(i64::MAX, 999_999_999), u64::MAX);
    }
}
