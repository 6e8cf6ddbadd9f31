//! Compares claims with the truth.
//!
//! The rules, each in one place: an interval is true if it meets what the truth may be (`interval`); a time
//! is right within `TIME_NS`; a peak is judged over the window that it is said to be of (`moment`).

use super::account::{DRAM, L1, PEAKED, Summary};
use super::claims::{Claim, Claims, Edge, FailureClaim, Made, Own, What};
use super::maxima::{Holders, Span};
use super::oracle::{CHIPS, Moment, Oracle, Process, Recent, Verity};
use shm_layout::Class;
use std::collections::BTreeMap;

/// A time is right if it is off by no more.
const TIME_NS: u64 = 1_000_000;

/// What somebody read, and when.
#[derive(Clone, Debug)]
pub struct Reading {
    /// From where.
    pub source: &'static str,
    /// Everything that was known then has to be in it, in nanoseconds.
    pub as_of: u64,
    /// When it had been read, in ticks.
    pub read: u64,
    /// Start of the window of peaks in nanoseconds, and whether it was begun by a reset.
    pub window: (u64, bool),
    /// What it says.
    pub claims: Claims,
}

/// A claim that is not true.
#[derive(Clone, Debug)]
pub struct Falsehood {
    /// What kind of claim, for counting.
    pub kind: String,
    /// All about it.
    pub text: String,
}

impl std::fmt::Display for Falsehood {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "false: {}: {}", self.kind, self.text)
    }
}

/// What came of all claims.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    /// Claims called exact that are true.
    pub exact: u64,
    /// Ranges that are true.
    pub ranges: u64,
    /// Claims about what the oracle no longer, or not yet, knows.
    pub open: u64,
    /// Claims that are false, by kind.
    pub kinds: BTreeMap<String, u64>,
    /// The first of each kind.
    pub falsehoods: Vec<Falsehood>,
}

impl Verdicts {
    /// Claims that are false.
    pub fn wrong(&self) -> u64 {
        self.kinds.values().sum()
    }
}

impl std::fmt::Display for Verdicts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "claims: {} exact, {} ranges, {} false", self.exact, self.ranges, self.wrong())
    }
}

/// What is true for a claim, or why it cannot be told.
enum Truth {
    Between(u64, u64),
    Open,
    /// There is nothing that it could be about.
    Nothing(String),
}

/// Judges the claims of one reading.
pub struct Judge<'a> {
    oracle: &'a Oracle,
    reading: &'a Reading,
    moment: Moment,
    verities: Vec<Verity>,
    verdicts: &'a mut Verdicts,
}

impl<'a> Judge<'a> {
    /// Judges everything in a reading.
    pub fn judge(oracle: &'a Oracle, reading: &'a Reading, verdicts: &'a mut Verdicts) {
        let moment = Judge::moment(oracle, reading);
        let verities = (0..CHIPS).map(|device| oracle.verity(device, &moment)).collect();
        let mut judge = Judge { oracle, reading, moment, verities, verdicts };
        for claim in &reading.claims.figures {
            judge.figure(claim);
        }
        reading.claims.made.iter().for_each(|made| judge.made(made));
        reading.claims.failures.iter().for_each(|failure| judge.failure(failure));
    }

    /// The window of peaks begins within 1 ms of what is said. Before the first reset it reaches back to the start of
    /// the processes that are there: what others did since then belongs to it.
    fn moment(oracle: &Oracle, reading: &Reading) -> Moment {
        let ticks = |ns| oracle.timeline.to_ticks(ns);
        // Rows that are behind are one false claim, of the position; the others are judged as of then.
        let behind = reading.claims.figures.iter().filter_map(|claim| {
            let What::Position(identity) = claim.what else { return None };
            let missed =
                oracle.process(identity)?.recent.iter().find(|recent| recent.position > claim.low)?;
            Some(missed.ticks - 1)
        });
        let as_of = behind.min().unwrap_or(u64::MAX).min(ticks(reading.as_of));
        let (since, by_reset) = reading.window;
        let window = if by_reset {
            (ticks(since - TIME_NS), ticks(since + TIME_NS))
        } else {
            (0, ticks(since).min(oracle.oldest_start(as_of)))
        };
        Moment { as_of, read: reading.read, window }
    }

    fn figure(&mut self, claim: &Claim) {
        let truth = match claim.what {
            What::Now(quantity) => {
                let (low, high) = &self.verities[claim.device].now;
                Truth::Between(low[quantity], high[quantity])
            }
            What::Peak(quantity) => {
                let (least, most) = &self.verities[claim.device].peaks[quantity];
                Truth::Between(least.value, most.value)
            }
            What::Bucket(_, start, length, memory, edge) => self.bucket(claim, (start, length), memory, edge),
            What::Own(identity, position, own) => self.own(claim, identity, position, own),
            What::Position(identity) => self.position(identity),
        };
        let (low, high) = match truth {
            Truth::Between(low, high) => (low, high),
            Truth::Open => {
                self.verdicts.open += 1;
                return;
            }
            Truth::Nothing(why) => return self.wrong(claim, "time, count or owner", &why),
        };
        if claim.low > high || claim.high.is_some_and(|most| most < low) {
            let truth = if low == high { low.to_string() } else { format!("{low}..={high}") };
            let fault = if claim.low > high { "too high" } else { "too low" };
            return self.wrong(claim, fault, &format!("true is {truth}"));
        }
        match claim.what {
            What::Peak(quantity) => self.peak_time(claim, quantity, low == high),
            _ => self.right(claim),
        }
    }

    fn right(&mut self, claim: &Claim) {
        let count = if claim.is_exact() { &mut self.verdicts.exact } else { &mut self.verdicts.ranges };
        *count += 1;
    }

    fn wrong(&mut self, claim: &Claim, fault: &str, why: &str) {
        let how = if claim.is_exact() { "exact" } else { "range" };
        let high = claim.high.map_or("unknown".to_owned(), |high| high.to_string());
        let time = claim.time.map_or(String::new(), |time| format!(" at {time}"));
        let said = if claim.is_exact() { claim.low.to_string() } else { format!("{}..={high}", claim.low) };
        let held = match (claim.what, claim.time) {
            (What::Peak(quantity), Some(time)) => {
                self.oracle.held_at(claim.device, quantity, time).join("; ")
            }
            (What::Bucket(_, start, length, memory, _), _) => {
                let series = self.oracle.series(claim.device, start - TIME_NS, start + length + TIME_NS);
                let mut samples: Vec<_> = series.into_iter().flatten().collect();
                let all = samples.len();
                samples.sort_by_key(|sample| std::cmp::Reverse(sample.high[memory]));
                let top: Vec<String> = samples
                    .iter()
                    .take(4)
                    .map(|sample| {
                        let held =
                            self.oracle.held_at(claim.device, [DRAM, L1][memory], sample.ns).join("; ");
                        format!("{} {}..{} [{held}]", sample.ns, sample.low[memory], sample.high[memory])
                    })
                    .collect();
                format!("{all} samples, highest: {}", top.join(" | "))
            }
            _ => String::new(),
        };
        let text = format!("device {} {}: said {said}{time}, {how}; {why}; {held}", claim.device, claim.what);
        let family = match claim.what {
            What::Now(_) => "now",
            What::Peak(_) => "peak",
            What::Bucket(..) => "history",
            What::Own(..) => "own figure",
            What::Position(_) => "behind its heartbeat",
        };
        self.falsehood(format!("{}: {family}, {how}, {fault}", self.reading.source), &text);
    }

    fn falsehood(&mut self, kind: String, text: &str) {
        let count = self.verdicts.kinds.entry(kind.clone()).or_default();
        *count += 1;
        if *count == 1 {
            let Reading { source, as_of, window: (since, by_reset), .. } = self.reading;
            let read = self.oracle.timeline.to_ns(self.moment.read);
            let text = format!(
                "{source} as of {as_of}, read at {read}, window since {since}{}: {text}; ended in the window: {}",
                if *by_reset { " (reset)" } else { "" },
                self.oracle.ends(self.moment.window.1, self.moment.read).join(", ")
            );
            self.verdicts.falsehoods.push(Falsehood { kind, text });
        }
    }

    /// When a peak was reached: where the truth is known, and for a range, that `low` was used then.
    fn peak_time(&mut self, claim: &Claim, quantity: usize, known: bool) {
        let Some(time) = claim.time.filter(|_| claim.low > 0) else { return self.right(claim) };
        if !claim.is_exact() {
            return match self.used_around(claim.device, quantity, time) {
                Some(most) if most < claim.low => {
                    self.wrong(
                        claim,
                        "time",
                        &format!("not more than {most} was used within 1 ms of that time"),
                    );
                }
                _ => self.right(claim),
            };
        }
        let most = &self.verities[claim.device].peaks[quantity].1;
        let times: Vec<u64> = most.spans.iter().map(|span| self.reached(span)).collect();
        if known && !times.iter().any(|truth| truth.abs_diff(time) <= TIME_NS) {
            return self.wrong(claim, "time", &format!("the time is wrong: it was reached at {times:?}"));
        }
        let counts = |count: fn(&Summary) -> u64| -> Vec<u64> {
            let holders = most.spans.iter().flat_map(|span| &span.holders);
            holders.map(|all| all.iter().map(|(_, summary)| count(summary)).sum()).collect()
        };
        let counts = match quantity {
            DRAM => counts(Summary::dram_count),
            L1 => counts(Summary::l1_count),
            _ => Vec::new(),
        };
        match claim.count {
            Some(count) if known && !counts.is_empty() && !counts.contains(&count) => {
                self.wrong(claim, "count", &format!("the count is wrong: said {count}, true is {counts:?}"));
            }
            _ => self.right(claim),
        }
    }

    /// When a span began in the window.
    fn reached(&self, span: &Span) -> u64 {
        let start = self.oracle.timeline.to_ns(span.start);
        let (since, by_reset) = self.reading.window;
        if by_reset { start.max(since) } else { start }
    }

    /// The most that was used within 1 ms of a time, if that is known.
    fn used_around(&self, device: usize, quantity: usize, time: u64) -> Option<u64> {
        let memory = [DRAM, L1].iter().position(|memory| *memory == quantity)?;
        let series = self.oracle.series(device, time.saturating_sub(TIME_NS), time + TIME_NS)?;
        series.map(|sample| sample.high[memory]).max()
    }

    /// A bucket holds what was used in its time, give or take 1 ms at its ends.
    fn bucket(&self, claim: &Claim, (start, length): (u64, u64), memory: usize, edge: Edge) -> Truth {
        let end = start + length;
        let wide = self.oracle.series(claim.device, start - TIME_NS, end + TIME_NS);
        let until = self.oracle.timeline.to_ticks(end + TIME_NS);
        let settled = end + TIME_NS <= self.reading.as_of
            && !self.oracle.is_unsettled(
                claim.device,
                until,
                self.oracle.timeline.to_ticks(self.reading.as_of),
            );
        let Some(wide) = wide.filter(|_| settled) else { return Truth::Open };
        let wide: Vec<_> = wide.collect();
        let inner = self.oracle.series(claim.device, start + TIME_NS, end - TIME_NS);
        let inner: Vec<_> = inner.into_iter().flatten().collect();
        let least = |of: &[&super::oracle::Sample]| of.iter().map(|sample| sample.low[memory]).min();
        let most = |of: &[&super::oracle::Sample]| of.iter().map(|sample| sample.high[memory]).max();
        let (bottom, top) = (least(&wide).unwrap_or(0), most(&wide).unwrap_or(0));
        match edge {
            Edge::Min => {
                Truth::Between(bottom, inner.iter().map(|sample| sample.high[memory]).min().unwrap_or(top))
            }
            Edge::Max => {
                Truth::Between(inner.iter().map(|sample| sample.low[memory]).max().unwrap_or(bottom), top)
            }
            Edge::Last => {
                let last = self.oracle.series(claim.device, end - TIME_NS, end + TIME_NS);
                let last: Vec<_> = last.into_iter().flatten().collect();
                Truth::Between(least(&last).unwrap_or(bottom), most(&last).unwrap_or(top))
            }
        }
    }

    fn own(&self, claim: &Claim, identity: u64, position: u64, own: Own) -> Truth {
        let Some(process) = self.oracle.process(identity) else {
            return Truth::Nothing(format!("no process has the segment {identity:x}"));
        };
        let nothing = Summary::default();
        let on = |recent: &&Recent| recent.device == claim.device;
        let found = process.recent.iter().rev().filter(on).find(|recent| recent.position <= position);
        let summary = match found {
            Some(recent) if recent.position == position => &*recent.summary,
            _ if position > process.position || !process.whole => return Truth::Open,
            None if position == 0 => &nothing,
            _ => return Truth::Nothing(format!("event {position} of {identity:x} is on another device")),
        };
        let (value, ticks) = match own {
            Own::Now(quantity) => (summary.now[quantity], 0),
            Own::Top(quantity) => (summary.tops[quantity].bytes, summary.tops[quantity].ticks),
        };
        let time = self.oracle.timeline.to_ns(ticks);
        match (own, claim.time) {
            (Own::Top(_), Some(said)) if ticks != 0 && said.abs_diff(time) > TIME_NS => {
                Truth::Nothing(format!("the time is wrong: it was reached at {time}"))
            }
            (Own::Top(quantity), _)
                if claim.count.is_some_and(|said| said != summary.tops[quantity].count) =>
            {
                Truth::Nothing(format!("the count is wrong: true is {}", summary.tops[quantity].count))
            }
            _ => Truth::Between(value, value),
        }
    }

    /// Everything that a process's calls had done when they returned has been followed.
    fn position(&self, identity: u64) -> Truth {
        let Some(process) = self.oracle.process(identity) else {
            return Truth::Nothing(format!("no process has the segment {identity:x}"));
        };
        let Process { recent, whole, position, .. } = process;
        let as_of = self.oracle.timeline.to_ticks(self.reading.as_of);
        let known = recent.iter().rev().find(|recent| recent.known <= as_of);
        match known {
            // A call in flight has a few events at most.
            Some(known) => Truth::Between(known.position, position + 8),
            None if *whole => Truth::Between(0, position + 8),
            None => Truth::Open,
        }
    }

    /// What an exact peak was made of: that of a moment at which it was reached.
    fn made(&mut self, made: &Made) {
        let Made { peak, classes, holders, others } = made;
        let What::Peak(quantity) = peak.what else { return };
        let (least, most) = &self.verities[peak.device].peaks[quantity];
        let known = peak.is_exact() && least.value == most.value && most.value == peak.low;
        let moments: Vec<_> = most.spans.iter().flat_map(|span| &span.holders).collect();
        if !known || holders.is_empty() || moments.is_empty() {
            self.verdicts.open += 1;
            return;
        }
        let fits = moments.iter().any(|moment| {
            let held = |identity: u64| moment.iter().find(|(known, _)| *known == identity);
            let each = holders.iter().all(|(identity, bytes)| {
                held(*identity).is_some_and(|(_, summary)| summary.now[quantity] == *bytes)
            });
            let sum: u64 = holders.iter().map(|(_, bytes)| bytes).sum();
            each && sum + others == peak.low
                && (*classes == [0; Class::COUNT] || of_classes(moment, classes, quantity))
        });
        if fits {
            self.verdicts.exact += 1;
            return;
        }
        let truth: Vec<Vec<(String, u64)>> = moments
            .iter()
            .map(|moment| moment.iter().map(|(id, s)| (format!("{id:x}"), s.now[quantity])).collect())
            .collect();
        let said: Vec<_> = holders.iter().map(|(identity, bytes)| (format!("{identity:x}"), bytes)).collect();
        let text = format!(
            "device {} {}: said to be made of {said:?}, others {others}, classes {classes:?}; true is {truth:?}",
            peak.device, peak.what
        );
        self.falsehood(format!("{}: composition of an exact peak", self.reading.source), &text);
    }

    fn failure(&mut self, claim: &FailureClaim) {
        let FailureClaim { event: (identity, position), time, bytes, holders, .. } = claim;
        let Some(failed) = self.oracle.failures.get(&(*identity, *position)) else {
            // Of a call that has not returned, or of nobody.
            let of = self.oracle.process(*identity).is_some_and(|process| *position > process.position);
            if of {
                self.verdicts.open += 1;
            } else {
                let kind = format!("{}: failure", self.reading.source);
                self.falsehood(kind, &format!("event {position} of {identity:x} is no failure"));
            }
            return;
        };
        let truth = self.oracle.timeline.to_ns(failed.ticks);
        let figures = [failed.request, failed.free, failed.request / 3];
        if *bytes != figures || truth.abs_diff(*time) > TIME_NS {
            let text = format!("said {bytes:?} at {time}, true is {figures:?} at {truth}");
            return self.falsehood(format!("{}: failure", self.reading.source), &text);
        }
        let as_of = self.oracle.timeline.to_ticks(self.reading.as_of);
        let unsettled = self.oracle.is_unsettled(failed.device, failed.ticks, as_of);
        match (holders, &failed.holders) {
            (Some(said), Some(truth)) if !unsettled => self.failure_holders(claim, said, truth),
            _ => self.verdicts.open += 1,
        }
    }

    /// Who held what when an allocation failed.
    fn failure_holders(&mut self, claim: &FailureClaim, said: &[(u64, u64)], truth: &Holders) {
        let FailureClaim { event: (identity, position), others, .. } = claim;
        let each = said.iter().all(|(identity, bytes)| {
            truth.iter().any(|(known, summary)| known == identity && summary.now[DRAM] == *bytes)
        });
        let sum: u64 = said.iter().map(|(_, bytes)| bytes).sum::<u64>() + others;
        let all: u64 = truth.iter().map(|(_, summary)| summary.now[DRAM]).sum();
        if each && sum == all {
            self.verdicts.exact += 1;
            return;
        }
        let truth: Vec<_> = truth
            .iter()
            .map(|(id, s)| format!("{id:x} {} since event {}", s.now[DRAM], s.position))
            .collect();
        let said: Vec<_> = said.iter().map(|(id, bytes)| (format!("{id:x}"), bytes)).collect();
        let text = format!(
            "event {position} of {identity:x} at {}: held by {said:?} and {others}, true is {truth:?}",
            claim.time
        );
        self.falsehood(format!("{}: holders at a failure, exact", self.reading.source), &text);
    }
}

/// Whether the classes of a memory add up to these at a moment. Kernels are compared together.
fn of_classes(moment: &[(u64, std::rc::Rc<Summary>)], said: &[u64; Class::COUNT], quantity: usize) -> bool {
    let sum = |quantity: usize| -> u64 { moment.iter().map(|(_, summary)| summary.now[quantity]).sum() };
    let class = |class: Class| said[class as usize];
    if quantity == DRAM {
        return [Class::Dram, Class::Trace].iter().all(|of| class(*of) == sum(*of as usize));
    }
    // They lie in reserved memory.
    let kernels = class(Class::KernelApplication) + class(Class::KernelFabric) + class(Class::KernelDispatch);
    debug_assert!(quantity < PEAKED);
    [Class::L1, Class::L1Small].iter().all(|of| class(*of) == sum(*of as usize))
        && class(Class::Cb) == sum(super::account::CB_RESIDENT)
        && kernels == 0
}
