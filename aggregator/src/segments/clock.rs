//! One time for all processes: converts ticks of any clock to CLOCK_MONOTONIC nanoseconds.
//!
//! Each kind of clock has one line, made of readings that the aggregator takes itself, so that events of two
//! processes are compared by their raw ticks and no header is trusted. The line is corrected now and then
//! without a step, by changing its slope until it meets the true time: a step would reorder the events around
//! it. Each bend is kept as a knot, so that an old tick converts to the same time as when it was new.

use std::time::Duration;

use tt_shm_os::{Anchor, Calibration, ClockKind, SUSPENSION_NS, awake_since, monotonic_ns, suspended_ns};

const KINDS: [ClockKind; 3] = [ClockKind::Tsc, ClockKind::Cntvct, ClockKind::Monotonic];
/// The longest time between two corrections.
const PERIOD_NS: u64 = 4_000_000_000;
/// The time until the first correction. A slope measured over two milliseconds is soon far off if a reading
/// was disturbed. Each following period is twice as long as the one before.
const FIRST_PERIOD_NS: u64 = 8_000_000;
/// How long the first slope is measured.
const FIRST_SPAN: Duration = Duration::from_millis(2);
/// With a larger error than this, the machine was suspended, or the clock is not what it claims to be.
const MAX_ERROR_NS: u64 = 10_000_000;
/// The most knots of a line. Beyond this, the knot that its neighbours predict best is dropped.
const MAX_KNOTS: usize = 512;
const FRACTION_BITS: u32 = 32;

/// The lines of all clocks.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    lines: [Line; KINDS.len()],
    next_correction: u64,
    /// The time from the last correction to the next.
    period: u64,
    /// How long the machine had been suspended in total at the last look.
    suspended: u64,
    /// Since when it is known not to have been suspended.
    awake_since: u64,
    /// The ticks of the best clock at the last look.
    ticks: u64,
    steps: u64,
    /// The last step, and the earliest time at which it can have happened.
    news: Option<(Step, u64)>,
    /// When the lines were last found to be right.
    corrected: u64,
}

/// An irregularity of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It went back; earlier ticks have no meaning any more.
    Back,
    /// It was this many nanoseconds ahead of, or behind, CLOCK_MONOTONIC.
    Ahead(u64),
    Behind(u64),
}

/// A point at which a line was bent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Knot {
    ticks: u64,
    ns: u64,
    /// Nanoseconds per tick from here to the next knot, as a fraction of 2^32.
    slope: u64,
}

#[derive(Debug, Clone)]
struct Line {
    kind: ClockKind,
    origin: Anchor,
    /// Where the line was last bent.
    base: Knot,
    /// Where the line meets the true time after that, and continues with the measured slope. However late the
    /// next correction comes, it does not overshoot.
    target: Knot,
    /// The slope since the origin, for ticks older than all knots.
    long_slope: u64,
    /// The knots before the base, in order.
    knots: Vec<Knot>,
}

impl Clock {
    /// Begins to measure every clock of this machine. Times must not be converted before [`Clock::measure`].
    pub(crate) fn begin() -> Clock {
        let lines = KINDS.map(|kind| Line::new(kind, Anchor::default(), Anchor::now(kind)));
        Clock {
            lines,
            next_correction: 0,
            period: FIRST_PERIOD_NS,
            suspended: suspended_ns(),
            awake_since: awake_since(),
            ticks: 0,
            steps: 0,
            news: None,
            corrected: monotonic_ns(),
        }
    }

    /// Ends the first measurement, once it has taken two milliseconds.
    pub(crate) fn measure(&mut self) {
        let begun = self.lines.iter().map(|line| line.origin.monotonic_ns).max().unwrap_or(0);
        let passed = Duration::from_nanos(monotonic_ns().saturating_sub(begun));
        std::thread::sleep(FIRST_SPAN.saturating_sub(passed));
        for line in &mut self.lines {
            *line = Line::new(line.kind, line.origin, Anchor::now(line.kind));
        }
        self.next_correction = monotonic_ns() + self.period;
    }

    /// A clock that was measured.
    #[cfg(test)]
    pub(crate) fn new() -> Clock {
        let mut clock = Clock::begin();
        clock.measure();
        clock
    }

    /// Converts a tick to a time. Later ticks never convert to earlier times. 0 if the clock is `None`.
    #[inline]
    pub(crate) fn to_ns(&self, kind: Option<ClockKind>, ticks: u64) -> u64 {
        match kind {
            Some(ClockKind::Tsc) => self.lines[0].to_ns(ticks),
            Some(ClockKind::Cntvct) => self.lines[1].to_ns(ticks),
            Some(ClockKind::Monotonic) => ticks,
            None => 0,
        }
    }

    /// How often a clock stepped. Times and order of events around a step are not known.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Since when the machine is known not to have been suspended, so that wall-clock times can be derived.
    pub(crate) fn awake_since(&self) -> u64 {
        self.awake_since
    }

    /// Takes the last step, with the earliest time at which it can have happened.
    pub(crate) fn take_step(&mut self) -> Option<(Step, u64)> {
        self.news.take()
    }

    /// Corrects the lines if a correction is due, or at once if the machine was suspended or a clock went
    /// back.
    pub(crate) fn correct(&mut self, now: u64) {
        let (suspended, ticks) = (suspended_ns(), ClockKind::best().ticks());
        let woke = suspended.saturating_sub(self.suspended) > SUSPENSION_NS;
        let back = ticks < self.ticks;
        if woke {
            self.awake_since = monotonic_ns();
        }
        (self.suspended, self.ticks) = (suspended, ticks);
        if now < self.next_correction && !woke && !back {
            return;
        }
        self.period = (2 * self.period).min(PERIOD_NS);
        self.next_correction = now + self.period;
        let since = std::mem::replace(&mut self.corrected, now);
        for line in &mut self.lines {
            if let Some(step) = line.correct(Anchor::now(line.kind), self.period, woke) {
                (self.steps, self.news) = (self.steps + 1, Some((step, since)));
            }
        }
    }
}

impl Line {
    fn new(kind: ClockKind, first: Anchor, second: Anchor) -> Line {
        let slope = slope_of(&Calibration::new(kind, first, second));
        let base = Knot::of(second, slope);
        Line { kind, origin: second, base, target: base, long_slope: slope, knots: Vec::new() }
    }

    #[inline]
    fn to_ns(&self, ticks: u64) -> u64 {
        if ticks >= self.target.ticks {
            self.target.onwards(ticks)
        } else if ticks >= self.base.ticks {
            self.base.onwards(ticks)
        } else {
            self.to_past_ns(ticks)
        }
    }

    /// Converts from the knot before it; before the first knot, with the slope of the whole line.
    #[cold]
    #[inline(never)]
    fn to_past_ns(&self, ticks: u64) -> u64 {
        let after = self.knots.partition_point(|knot| knot.ticks <= ticks);
        let next = self.knots.get(after).unwrap_or(&self.base);
        match after.checked_sub(1).and_then(|before| self.knots.get(before)) {
            Some(before) => before.onwards(ticks).min(next.ns),
            None => next.ns.saturating_sub(scale(next.ticks - ticks, self.long_slope)),
        }
    }

    /// Bends the line at `now` so that it meets the true time one period later. Returns a step if the clock
    /// made one. `woke` tells that the machine was suspended since the last look, during which some clocks
    /// run on and others do not.
    fn correct(&mut self, now: Anchor, period: u64, woke: bool) -> Option<Step> {
        if now.ticks < self.base.ticks {
            // Ticks repeat. Earlier ones now convert to times after now, which are not believed.
            let base = Knot::of(now, self.long_slope);
            *self = Line { origin: now, base, target: base, knots: Vec::new(), ..*self };
            return Some(Step::Back);
        }
        let measured = slope_of(&Calibration::new(self.kind, self.origin, now));
        let reached = self.to_ns(now.ticks);
        if reached.abs_diff(now.monotonic_ns) > MAX_ERROR_NS {
            return self.start_anew(now, measured, reached).filter(|_| !woke);
        }
        // Never so soon that the line would have to stand still.
        let span = period.max(2 * reached.abs_diff(now.monotonic_ns));
        let target = Knot {
            ticks: now.ticks.saturating_add(unscale(span, measured)),
            ns: now.monotonic_ns.saturating_add(span),
            slope: measured,
        };
        let base = Knot { ticks: now.ticks, ns: reached, slope: 0 };
        self.bend(Knot { slope: base.slope_to(target), ..base });
        (self.target, self.long_slope) = (target, measured);
        None
    }

    /// Continues from the true time. Earlier ticks keep their times: up to where the line reached this time,
    /// if the clock ran on while time did not.
    fn start_anew(&mut self, now: Anchor, measured: u64, reached: u64) -> Option<Step> {
        let first = self.knots.is_empty();
        if first {
            // The first measurement was wrong; what was measured since repairs it.
            let base = Knot::of(now, measured);
            (self.origin, self.base, self.target, self.long_slope) = (now, base, base, measured);
            return None;
        }
        let (ns, ahead) = (now.monotonic_ns, reached > now.monotonic_ns);
        if ahead && ns > self.base.ns {
            let from = if ns > self.target.ns { self.target } else { self.base };
            let corner = from.ticks + unscale(ns - from.ns, from.slope);
            self.bend(Knot { ticks: corner.min(now.ticks), ns, slope: 0 });
        }
        let base = Knot { ticks: now.ticks, ns: ns.max(self.base.ns), slope: self.long_slope };
        if !ahead {
            // The clock stood still, or time leapt: ticks in between are somewhere on the way.
            self.settle_target(base.ticks);
            self.base.slope = self.base.slope_to(base);
        }
        self.bend(base);
        self.origin = now;
        let error = reached.abs_diff(ns);
        Some(if ahead { Step::Ahead(error) } else { Step::Behind(error) })
    }

    /// Makes the target the base if the line has passed it by then.
    fn settle_target(&mut self, by: u64) {
        if self.target.ticks > self.base.ticks && self.target.ticks < by {
            self.keep(self.base);
            self.base = self.target;
        }
    }

    /// Continues the line from here.
    fn bend(&mut self, base: Knot) {
        self.settle_target(base.ticks);
        self.keep(self.base);
        (self.base, self.target) = (base, base);
    }

    /// Keeps a knot.
    fn keep(&mut self, knot: Knot) {
        self.knots.push(knot);
        if self.knots.len() > MAX_KNOTS {
            let without = |at: usize| {
                let (before, after) = (self.knots[at - 1], self.knots[at + 1]);
                Knot { slope: before.slope_to(after), ..before }
            };
            let miss = |at: &usize| without(*at).onwards(self.knots[*at].ticks).abs_diff(self.knots[*at].ns);
            if let Some(least) = (1..self.knots.len() - 1).min_by_key(miss) {
                self.knots[least - 1] = without(least);
                self.knots.remove(least);
            }
        }
    }
}

impl Knot {
    fn of(anchor: Anchor, slope: u64) -> Knot {
        Knot { ticks: anchor.ticks, ns: anchor.monotonic_ns, slope }
    }

    /// The time of a tick that is not before this knot.
    #[inline]
    fn onwards(&self, ticks: u64) -> u64 {
        self.ns.saturating_add(scale(ticks - self.ticks, self.slope))
    }

    /// The slope of a line from here to a later knot.
    fn slope_to(&self, next: Knot) -> u64 {
        let (span, rise) = (next.ticks.saturating_sub(self.ticks), next.ns.saturating_sub(self.ns));
        let slope = (u128::from(rise) << FRACTION_BITS) / u128::from(span.max(1));
        u64::try_from(slope).unwrap_or(u64::MAX)
    }
}

#[inline]
fn scale(ticks: u64, slope: u64) -> u64 {
    let nanos = (u128::from(ticks) * u128::from(slope)) >> FRACTION_BITS;
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

fn unscale(nanos: u64, slope: u64) -> u64 {
    let ticks = (u128::from(nanos) << FRACTION_BITS) / u128::from(slope.max(1));
    u64::try_from(ticks).unwrap_or(u64::MAX / 2).min(u64::MAX / 2)
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
        Anchor { ticks, monotonic_ns, realtime_ns: 0, suspended_ns: 0 }
    }

    #[test]
    fn a_correction_makes_no_step_and_converges() {
        // 2 ticks per nanosecond in truth, first measured 100 ppm wrong.
        let mut line = Line::new(ClockKind::Monotonic, anchor(0, 0), anchor(2_000_000_000, 1_000_100_000));
        let mut last = 0;
        for second in (5..=60).step_by(4) {
            let ticks = second * 2_000_000_000;
            let before = line.to_ns(ticks);
            line.correct(anchor(ticks, second * 1_000_000_000 + 100_000), PERIOD_NS, false);
            assert_eq!(line.to_ns(ticks), before, "no step");
            assert!(line.to_ns(ticks) >= last);
            last = line.to_ns(ticks + 7_900_000_000);
        }
        let error = line.to_ns(61 * 2_000_000_000).abs_diff(61_000_100_000);
        assert!(error < 1_000, "{error}");
    }

    #[test]
    fn a_wrong_first_measurement_heals() {
        let mut line = Line::new(ClockKind::Monotonic, anchor(0, 0), anchor(1_000_000, 1_000_000));
        assert_eq!(line.correct(anchor(2_000_000, 900_000_000), PERIOD_NS, false), None);
        assert_eq!(line.to_ns(2_000_000), 900_000_000);
        line.correct(anchor(2_002_000_000, 2_900_000_000), PERIOD_NS, false);
        line.correct(anchor(6_002_000_000, 6_900_000_000), PERIOD_NS, false);
        assert!(line.to_ns(6_003_000_000).abs_diff(6_901_000_000) < 1_000, "the slope heals");
    }

    /// Corrections that come much later than they should, after pauses, and readings that are off by a little.
    #[test]
    fn it_does_not_overshoot_however_late_the_next_correction_comes() {
        let mut line = Line::new(ClockKind::Monotonic, anchor(0, 0), anchor(4_000_000, 2_000_300));
        let mut now = 2_000_000;
        for round in 0..200_u64 {
            now += 1_000_000 * [8, 60, 3, 400, 90][round as usize % 5];
            let noise = [0, 400, 100, 0, 300][round as usize % 5];
            line.correct(anchor(2 * now, now + noise), 16_000_000, false);
            let later = now + 300_000_000;
            let error = line.to_ns(2 * later).abs_diff(later);
            assert!(error < 50_000, "{error} ns after {round} corrections");
        }
        let times: Vec<u64> = (0..2 * now).step_by(1_000_003).map(|ticks| line.to_ns(ticks)).collect();
        assert!(times.is_sorted());
    }

    /// The first slope is that of two milliseconds: what disturbed it must not be in the times of the next second.
    #[test]
    fn the_first_corrections_come_soon_and_then_rarely() {
        let mut clock = Clock::new();
        let mut spans = Vec::new();
        for _ in 0..12 {
            let due = clock.next_correction;
            clock.correct(due - 1);
            assert_eq!(clock.next_correction, due, "not before it is time");
            clock.correct(due);
            spans.push((clock.next_correction - due) / 1_000_000);
        }
        assert_eq!(spans, [16, 32, 64, 128, 256, 512, 1024, 2048, 4000, 4000, 4000, 4000]);
        let first = Clock::new();
        assert!(first.next_correction <= monotonic_ns() + FIRST_PERIOD_NS);
    }

    const SECOND: u64 = 1_000_000_000;

    /// A clock of 2 ticks per nanosecond, followed for that many periods; and the time at its end.
    fn followed(periods: u64) -> (Line, u64) {
        let mut line = Line::new(ClockKind::Monotonic, anchor(0, 0), anchor(2_000_000, 1_000_000));
        for period in 1..=periods {
            line.correct(anchor(2 * period * PERIOD_NS, period * PERIOD_NS), PERIOD_NS, false);
        }
        (line, periods * PERIOD_NS)
    }

    /// NTP turns the clock by 500 ppm for four seconds: what happened hours ago stays where it was.
    #[test]
    fn a_turn_of_the_clock_does_not_move_what_is_old() {
        let (mut line, end) = followed(6 * 900);
        let events = [PERIOD_NS / 2, 3600 * SECOND, 5 * 3600 * SECOND, end - SECOND];
        line.correct(anchor(2 * (end + PERIOD_NS), end + PERIOD_NS + PERIOD_NS / 2000), PERIOD_NS, false);
        for event in events {
            let error = line.to_ns(2 * event).abs_diff(event);
            assert!(error < 1_000_000, "an event at {event} ns moved by {error} ns");
        }
        assert!(line.knots.len() <= MAX_KNOTS);
        let times: Vec<u64> = (0..10_000).map(|n| line.to_ns(n * 5_000_000_000)).collect();
        assert!(times.is_sorted());
    }

    /// The machine sleeps for an hour in which the counter runs on and CLOCK_MONOTONIC does not.
    #[test]
    fn a_suspension_moves_no_event_before_it() {
        let (mut line, end) = followed(100);
        let asleep = 3600 * SECOND;
        let before = line.to_ns(2 * (end + SECOND));
        let woken = end + 2 * SECOND;
        assert_eq!(line.correct(anchor(2 * (woken + asleep), woken), PERIOD_NS, true), None);
        assert!(line.to_ns(2 * (end + SECOND)).abs_diff(before) < 1_000);
        assert!(
            line.to_ns(2 * (end + 2 * SECOND + asleep / 2)).abs_diff(woken) < 1_000,
            "nothing happens asleep"
        );
        assert!(line.to_ns(2 * (woken + asleep + SECOND)).abs_diff(woken + SECOND) < 100_000);
    }

    #[test]
    fn a_clock_that_steps_is_noticed() {
        let (mut line, end) = followed(100);
        let later = end + SECOND;
        assert_eq!(line.clone().correct(anchor(500, later), PERIOD_NS, false), Some(Step::Back));
        assert_eq!(line.clone().correct(anchor(500, later), PERIOD_NS, true), Some(Step::Back));
        let step = line.clone().correct(anchor(2 * (later + SECOND), later), PERIOD_NS, false);
        assert!(matches!(step, Some(Step::Ahead(_))), "{step:?}");
        let step = line.correct(anchor(2 * end + 2, later), PERIOD_NS, false);
        assert!(matches!(step, Some(Step::Behind(_))), "{step:?}");
        line.correct(anchor(500, later), PERIOD_NS, false);
        assert!(line.to_ns(500 + 2 * SECOND).abs_diff(later + SECOND) < 1_000, "it goes on");
    }

    #[test]
    fn real_ticks_are_real_times() {
        let clock = Clock::new();
        let kind = ClockKind::best();
        let (before, ticks, after) = (monotonic_ns(), kind.ticks(), monotonic_ns());
        let slack = 100_000_000;
        let time = clock.to_ns(Some(kind), ticks);
        assert!(before <= time + slack && time <= after + slack);
    }
}
