//! Converts ticks to times, without spinning to measure a frequency.
//!
//! A producer stores one [`Anchor`] when it starts; an observer takes another one later. The line through
//! both is the clock: the longer the producer has run, the more precise it is, and it costs the producer a
//! microsecond in total.

use std::time::Duration;

use crate::clock::{ClockKind, NANOS_PER_SECOND, SUSPENSION_NS, monotonic_ns, realtime_ns, suspended_ns};
use crate::past;

/// Anchors closer together than this say little about the frequency: reading one is uncertain by some 50 ns.
const MIN_SPAN_NS: u64 = 1_000_000;

const READINGS: usize = 5;

/// Wall clocks that differ by more than this were set, or ran on while the machine was suspended.
const SET_NS: u128 = 1_000_000_000;

/// How long a line is measured without an anchor of the producer's.
const MEASURED_SPAN: Duration = Duration::from_millis(5);

/// One moment, on three clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Anchor {
    /// The producer's clock.
    pub ticks: u64,
    /// CLOCK_MONOTONIC, in nanoseconds.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME, in nanoseconds.
    pub realtime_ns: u64,
    /// How long the machine had been suspended by then; 0 in a producer's anchor, which does not record it.
    pub suspended_ns: u64,
}

impl Anchor {
    /// Reads the three clocks as close together as five attempts get.
    ///
    /// An interruption between two readings makes an attempt wide; the tightest is kept.
    #[must_use]
    pub fn now(kind: ClockKind) -> Self {
        let mut best = Self::read(kind);
        for _ in 1..READINGS {
            let next = Self::read(kind);
            if next.0 < best.0 {
                best = next;
            }
        }
        Self { suspended_ns: suspended_ns(), ..best.1 }
    }

    /// How far the wall clock is ahead of CLOCK_MONOTONIC.
    fn wall_offset(&self) -> i128 {
        i128::from(self.realtime_ns) - i128::from(self.monotonic_ns)
    }

    /// One attempt, and how many ticks it took.
    fn read(kind: ClockKind) -> (u64, Self) {
        if past::is_set() {
            // What is replayed has no ticks but these.
            let (monotonic_ns, realtime_ns) = (monotonic_ns(), realtime_ns());
            return (0, Self { ticks: monotonic_ns, monotonic_ns, realtime_ns, suspended_ns: 0 });
        }
        let before = kind.ticks();
        let monotonic_ns = monotonic_ns();
        let after = kind.ticks();
        let realtime_ns = realtime_ns();
        let end = kind.ticks();
        let anchor = Self { ticks: before.midpoint(after), monotonic_ns, realtime_ns, suspended_ns: 0 };
        // Wrapping: a clock that steps back makes the attempt look endless, not tight.
        (end.wrapping_sub(before), anchor)
    }
}

/// Converts a producer's ticks to times: the line through two anchors.
///
/// No input makes it panic, and later ticks never convert to earlier times. Anchors that make no sense give
/// times that make no sense, for that producer alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// The clock that the ticks are from.
    pub kind: ClockKind,
    /// The anchor in the producer's header: not trusted.
    pub first: Anchor,
    /// The observer's own anchor.
    pub second: Anchor,
    slope: Slope,
}

impl Calibration {
    /// The line through the producer's stored anchor and one that the observer takes now.
    #[must_use]
    pub fn new(kind: ClockKind, first: Anchor, second: Anchor) -> Self {
        let slope = Slope::choose(kind.nominal_hz(), first, second);
        Self { kind, first, second, slope }
    }

    /// The line through two anchors of the observer's own, taken some milliseconds apart, for a producer
    /// whose anchor means nothing here.
    #[must_use]
    pub fn measure(kind: ClockKind) -> Self {
        let first = Anchor::now(kind);
        std::thread::sleep(MEASURED_SPAN);
        Self::new(kind, first, Anchor::now(kind))
    }

    /// The CLOCK_MONOTONIC time of a tick, in nanoseconds.
    ///
    /// Counted from the observer's own anchor. The line leads through both, so the choice only
    /// matters where the slope is not that of the line, and then the trusted anchor is right.
    #[must_use]
    pub fn to_monotonic_ns(&self, ticks: u64) -> u64 {
        let base = self.second;
        if ticks >= base.ticks {
            let later = self.slope.nanos(ticks - base.ticks);
            base.monotonic_ns.saturating_add(later)
        } else {
            let earlier = self.slope.nanos(base.ticks - ticks);
            base.monotonic_ns.saturating_sub(earlier)
        }
    }

    /// The wall-clock time of a tick, in nanoseconds since 1970; `None` if the machine was suspended since
    /// the producer started, or may have been: whether that was before or after the tick is not known.
    ///
    /// Uses how far wall clock and monotonic clock are apart now: had the wall clock been set since
    /// the producer started, a line through two wall-clock times would bend every interval.
    #[must_use]
    pub fn to_realtime_ns(&self, ticks: u64) -> Option<u64> {
        let offset = self.second.wall_offset();
        let suspended = self.second.suspended_ns > SUSPENSION_NS;
        if suspended && offset.abs_diff(self.first.wall_offset()) > SET_NS {
            return None;
        }
        let realtime = (i128::from(self.to_monotonic_ns(ticks)) + offset).clamp(0, i128::from(u64::MAX));
        Some(realtime as u64) // clamped to its range in the line above
    }

    /// The estimated frequency of the clock.
    #[must_use]
    pub fn ticks_per_second(&self) -> f64 {
        self.slope.ticks as f64 * NANOS_PER_SECOND as f64 / self.slope.nanos as f64
    }
}

/// `nanos` per `ticks`; neither is 0.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Slope {
    nanos: u64,
    ticks: u64,
}

impl Slope {
    /// The slope of the anchors; that of the hardware if they are too close; 1 GHz if neither is known.
    fn choose(nominal_hz: u64, first: Anchor, second: Anchor) -> Self {
        let nominal = (nominal_hz != 0).then_some(Self { nanos: NANOS_PER_SECOND, ticks: nominal_hz });
        match (Self::between(first, second), nominal) {
            (Some(measured), Some(nominal)) if measured.nanos < MIN_SPAN_NS => nominal,
            (Some(measured), _) => measured,
            (None, Some(nominal)) => nominal,
            (None, None) => Self { nanos: 1, ticks: 1 },
        }
    }

    /// The slope of the line, in whichever order the anchors come; `None` unless both clocks moved,
    /// and in the same direction.
    fn between(first: Anchor, second: Anchor) -> Option<Self> {
        let (early, late) = if first.ticks <= second.ticks { (first, second) } else { (second, first) };
        let nanos = late.monotonic_ns.checked_sub(early.monotonic_ns)?;
        let ticks = late.ticks - early.ticks;
        (nanos != 0 && ticks != 0).then_some(Self { nanos, ticks })
    }

    fn nanos(self, ticks: u64) -> u64 {
        // 64 by 64 bits fits in 128.
        let nanos = u128::from(ticks) * u128::from(self.nanos) / u128::from(self.ticks);
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [ClockKind; 3] = [ClockKind::Tsc, ClockKind::Cntvct, ClockKind::Monotonic];

    fn anchor(ticks: u64, monotonic_ns: u64) -> Anchor {
        Anchor {
            ticks,
            monotonic_ns,
            realtime_ns: monotonic_ns.saturating_add(1_700_000_000 * NANOS_PER_SECOND),
            suspended_ns: 0,
        }
    }

    /// 3 GHz for 10 seconds.
    fn three_gigahertz() -> Calibration {
        Calibration::new(ClockKind::Tsc, anchor(6_000, 1_000), anchor(30_000_006_000, 10_000_001_000))
    }

    #[test]
    fn the_line_leads_through_both_anchors_and_beyond() {
        let clock = three_gigahertz();
        for (ticks, nanos) in [
            (6_000, 1_000),
            (30_000_006_000, 10_000_001_000),
            (15_000_006_000, 5_000_001_000),
            (60_000_006_000, 20_000_001_000),
            (3_000, 0),
        ] {
            assert_eq!(clock.to_monotonic_ns(ticks), nanos);
        }
        assert!((clock.ticks_per_second() - 3e9).abs() < 1.0);
    }

    #[test]
    fn wall_clock_follows_the_observer() {
        let mut clock = three_gigahertz();
        clock.first.realtime_ns = 0; // the clock has been set since the producer started
        let offset = 1_700_000_000 * NANOS_PER_SECOND;
        assert_eq!(clock.to_realtime_ns(6_000), Some(offset + 1_000));
        assert_eq!(clock.to_realtime_ns(15_000_006_000), Some(offset + 5_000_001_000));
    }

    #[test]
    fn nobody_knows_the_wall_clock_before_a_suspension() {
        let hour = 3600 * NANOS_PER_SECOND;
        let mut clock = three_gigahertz();
        clock.second.suspended_ns = hour;
        assert!(clock.to_realtime_ns(6_000).is_some(), "suspended before the producer started");
        clock.second.realtime_ns += hour;
        assert_eq!(clock.to_realtime_ns(6_000), None);
        clock.second.suspended_ns = 1_000;
        assert!(clock.to_realtime_ns(6_000).is_some(), "the clock was set, and never suspended");
    }

    #[test]
    fn the_order_of_anchors_does_not_change_the_line() {
        let clock = three_gigahertz();
        let swapped = Calibration::new(clock.kind, clock.second, clock.first);
        for ticks in [6_000, 9_000, 15_000_006_000, 90_000_006_000] {
            let (a, b) = (clock.to_monotonic_ns(ticks), swapped.to_monotonic_ns(ticks));
            assert!(a.abs_diff(b) <= 1, "{a} {b}");
        }
    }

    #[test]
    fn close_anchors_use_the_stated_frequency() {
        let close = (anchor(0, 0), anchor(100, MIN_SPAN_NS - 1));
        let slope = Slope::choose(25_000_000, close.0, close.1);
        assert_eq!(slope.nanos(25), 1_000);
        // Nothing stated: the measured slope is all there is.
        let slope = Slope::choose(0, close.0, close.1);
        assert_eq!(slope.nanos(100), MIN_SPAN_NS - 1);
        // Far enough apart: measuring wins.
        let slope = Slope::choose(25_000_000, anchor(0, 0), anchor(100, MIN_SPAN_NS));
        assert_eq!(slope.nanos(100), MIN_SPAN_NS);
    }

    #[test]
    fn nonsense_falls_back() {
        for (first, second) in [
            (anchor(5, 5), anchor(5, 5)),
            (anchor(5, 5), anchor(5, 9)),
            (anchor(5, 5), anchor(9, 5)),
            (anchor(5, 9), anchor(9, 5)),
        ] {
            assert_eq!(Slope::choose(0, first, second), Slope { nanos: 1, ticks: 1 });
            assert_eq!(Slope::choose(7, first, second).ticks, 7);
        }
    }

    #[test]
    fn extremes_neither_panic_nor_run_backwards() {
        let mut extremes = vec![0, 1, 2, 999, MIN_SPAN_NS, NANOS_PER_SECOND, u64::MAX];
        extremes.extend([u64::MAX - 1, u64::MAX / 2, i64::MAX as u64 + 1]);
        extremes.sort_unstable();
        let anchors: Vec<Anchor> = extremes
            .iter()
            .flat_map(|&ticks| extremes.iter().map(move |&nanos| anchor(ticks, nanos)))
            .collect();
        for kind in KINDS {
            for &first in &anchors {
                for &second in &anchors {
                    let clock = Calibration::new(kind, first, second);
                    let frequency = clock.ticks_per_second();
                    assert!(frequency.is_finite() && frequency > 0.0);
                    let times = extremes.iter().map(|&t| (clock.to_monotonic_ns(t), clock.to_realtime_ns(t)));
                    assert!(times.is_sorted(), "{clock:?}");
                    assert_eq!(clock.to_monotonic_ns(second.ticks), second.monotonic_ns);
                }
            }
        }
    }

    #[test]
    fn any_line_is_monotone() {
        let mut random = fastrand::Rng::with_seed(0);
        // Shifted: small numbers are as likely as large ones.
        let mut next = || random.u64(..) >> random.u32(..64);
        for _ in 0..20_000 {
            let clock = Calibration::new(ClockKind::Tsc, anchor(next(), next()), anchor(next(), next()));
            let (a, b) = (next(), next());
            let (low, high) = (a.min(b), a.max(b));
            assert!(clock.to_monotonic_ns(low) <= clock.to_monotonic_ns(high));
            assert!(clock.to_realtime_ns(low) <= clock.to_realtime_ns(high));
        }
    }

    #[test]
    fn real_anchors_agree_with_the_real_clock() {
        let kind = ClockKind::best();
        let first = Anchor::now(kind);
        // Until the anchors are far enough apart to mean something; no upper bound is asserted.
        while monotonic_ns() - first.monotonic_ns < 2 * MIN_SPAN_NS {
            std::hint::spin_loop();
        }
        let second = Anchor::now(kind);
        let clock = Calibration::new(kind, first, second);
        let (before, ticks, after) = (monotonic_ns(), kind.ticks(), monotonic_ns());
        let converted = clock.to_monotonic_ns(ticks);
        // Wide: a preempted anchor may be off by much. This catches wrong units and signs.
        let slack = 100 * MIN_SPAN_NS;
        assert!(before <= converted + slack && converted <= after + slack);
    }
}
