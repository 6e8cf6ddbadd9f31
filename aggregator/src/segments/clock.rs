//! One time for all processes: ticks of any clock as CLOCK_MONOTONIC nanoseconds.
//!
//! Each kind of clock has one line, made of readings that the aggregator takes itself, so that events of
//! two processes are compared by their raw ticks and no header is believed. The line is corrected now and
//! then without a step, by changing its slope: a step would swap the order of events next to it.

use std::time::Duration;

use tt_shm_os::{Anchor, Calibration, ClockKind, monotonic_ns};

const KINDS: [ClockKind; 3] = [ClockKind::Tsc, ClockKind::Cntvct, ClockKind::Monotonic];
/// Between two corrections.
const PERIOD_NS: u64 = 4_000_000_000;
/// How long the very first slope is measured.
const FIRST_SPAN: Duration = Duration::from_millis(2);
/// Beyond this the machine was suspended, or the clock is not what it says: the line starts anew.
const MAX_ERROR_NS: u64 = 10_000_000;
const FRACTION_BITS: u32 = 32;

/// All lines.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    lines: [Line; KINDS.len()],
    next_correction: u64,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    kind: ClockKind,
    origin: Anchor,
    base_ticks: u64,
    base_ns: u64,
    /// Nanoseconds per tick, as a fraction of 2^32.
    slope: u64,
}

impl Clock {
    /// Begins to measure every clock of this machine. Ask for no time before [`Clock::measure`].
    pub(crate) fn begin() -> Clock {
        let lines = KINDS.map(|kind| Line::new(kind, Anchor::default(), Anchor::now(kind)));
        Clock { lines, next_correction: 0 }
    }

    /// Ends the first measurement, once it has taken two milliseconds.
    pub(crate) fn measure(&mut self) {
        let begun = self.lines.iter().map(|line| line.origin.monotonic_ns).max().unwrap_or(0);
        let passed = Duration::from_nanos(monotonic_ns().saturating_sub(begun));
        std::thread::sleep(FIRST_SPAN.saturating_sub(passed));
        for line in &mut self.lines {
            *line = Line::new(line.kind, line.origin, Anchor::now(line.kind));
        }
        self.next_correction = monotonic_ns() + PERIOD_NS / 4;
    }

    /// A clock that was measured.
    #[cfg(test)]
    pub(crate) fn new() -> Clock {
        let mut clock = Clock::begin();
        clock.measure();
        clock
    }

    /// The time of a tick. Later ticks never get earlier times.
    #[inline]
    pub(crate) fn to_ns(&self, kind: ClockKind, ticks: u64) -> u64 {
        match kind {
            ClockKind::Tsc => self.lines[0].to_ns(ticks),
            ClockKind::Cntvct => self.lines[1].to_ns(ticks),
            ClockKind::Monotonic => ticks,
        }
    }

    /// How often a clock stepped.
    pub(crate) fn steps(&self) -> u64 {
        0
    }

    /// Corrects the lines if it is time to.
    pub(crate) fn correct(&mut self, now: u64) {
        if now < self.next_correction {
            return;
        }
        self.next_correction = now + PERIOD_NS;
        for line in &mut self.lines {
            line.correct(Anchor::now(line.kind));
        }
    }
}

impl Line {
    fn new(kind: ClockKind, first: Anchor, second: Anchor) -> Line {
        let slope = slope_of(&Calibration::new(kind, first, second));
        Line { kind, origin: second, base_ticks: second.ticks, base_ns: second.monotonic_ns, slope }
    }

    #[inline]
    fn to_ns(self, ticks: u64) -> u64 {
        let nanos = |ticks: u64| {
            let nanos = (u128::from(ticks) * u128::from(self.slope)) >> FRACTION_BITS;
            u64::try_from(nanos).unwrap_or(u64::MAX)
        };
        if ticks >= self.base_ticks {
            self.base_ns.saturating_add(nanos(ticks - self.base_ticks))
        } else {
            self.base_ns.saturating_sub(nanos(self.base_ticks - ticks))
        }
    }

    /// Bends the line at `now` so that it meets the true time one period later.
    fn correct(&mut self, now: Anchor) {
        let measured = slope_of(&Calibration::new(self.kind, self.origin, now));
        let reached = self.to_ns(now.ticks);
        if reached.abs_diff(now.monotonic_ns) > MAX_ERROR_NS {
            // With the slope measured since: if it was the first measurement that went wrong, this heals it; if
            // the machine was suspended, the next correction does.
            let (base_ticks, base_ns) = (now.ticks, now.monotonic_ns);
            *self = Line { origin: now, base_ticks, base_ns, slope: measured, ..*self };
            return;
        }
        let error = now.monotonic_ns as f64 - reached as f64;
        let slope = measured as f64 * (1.0 + error / PERIOD_NS as f64);
        *self = Line { base_ticks: now.ticks, base_ns: reached, slope: slope as u64, ..*self };
    }
}

fn slope_of(calibration: &Calibration) -> u64 {
    let nanos_per_tick = 1e9 / calibration.ticks_per_second();
    // Saturates: a clock that makes no sense gives times that make no sense, and nothing worse.
    (nanos_per_tick * (1_u64 << FRACTION_BITS) as f64).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(ticks: u64, monotonic_ns: u64) -> Anchor {
        Anchor { ticks, monotonic_ns, realtime_ns: 0 }
    }

    #[test]
    fn a_correction_makes_no_step_and_converges() {
        // 2 ticks per nanosecond in truth, first measured 100 ppm wrong.
        let mut line = Line::new(ClockKind::Monotonic, anchor(0, 0), anchor(2_000_000_000, 1_000_100_000));
        let mut last = 0;
        for second in (5..=60).step_by(4) {
            let ticks = second * 2_000_000_000;
            let before = line.to_ns(ticks);
            line.correct(anchor(ticks, second * 1_000_000_000 + 100_000));
            assert_eq!(line.to_ns(ticks), before, "no step");
            assert!(line.to_ns(ticks) >= last);
            last = line.to_ns(ticks + 7_900_000_000);
        }
        let error = line.to_ns(61 * 2_000_000_000).abs_diff(61_000_100_000);
        assert!(error < 1_000, "{error}");
    }

    #[test]
    fn a_jump_starts_the_line_anew() {
        let mut line = Line::new(ClockKind::Monotonic, anchor(0, 0), anchor(1_000_000, 1_000_000));
        line.correct(anchor(2_000_000, 900_000_000));
        assert_eq!(line.to_ns(2_000_000), 900_000_000);
        line.correct(anchor(2_002_000_000, 2_900_000_000));
        line.correct(anchor(6_002_000_000, 6_900_000_000));
        assert!(line.to_ns(6_003_000_000).abs_diff(6_901_000_000) < 1_000, "the slope heals");
    }

    #[test]
    fn real_ticks_are_real_times() {
        let clock = Clock::new();
        let kind = ClockKind::best();
        let (before, ticks, after) = (monotonic_ns(), kind.ticks(), monotonic_ns());
        let slack = 100_000_000;
        let time = clock.to_ns(kind, ticks);
        assert!(before <= time + slack && time <= after + slack);
    }
}
