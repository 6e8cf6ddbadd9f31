//! Cases that take turns, so that whatever else goes on on the machine meets all of them alike, and their
//! ratios hold.

use crate::sink::WrongSum;
use crate::timing::{Effort, Measured, Timed, mean_ns, round};
use crate::workload::Workload;

/// How long a round takes, about. Shorter than a scheduler's slice: most run without an interruption.
const ROUND_NS: f64 = 300_000.0;
/// Most events before a turn's rounds, which bring the case's memory back into the caches. Larger cases do
/// not fit there anyway.
const WARM_UP: u64 = 50_000;
/// Rounds of a turn whose mean counts.
const ROUNDS: u64 = 3;
/// Rounds of a turn whose events are timed one by one.
const TIMED_ROUNDS: u64 = 2;
/// Fewest of them in a turn: a round trip takes so long that a round has but a few.
const TIMED_EVENTS: u64 = 64;
/// Events of the round that says how long one takes.
const TRIAL: u64 = 200;

/// What becomes a case's figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The mean of its best round.
    BestRound,
    /// The median of single events: where a round also has to do what is not to be counted, and for round
    /// trips, where the best is one that happened to find both threads on one core.
    Median,
}

/// All cases, in the order in which they were added.
#[derive(Default)]
pub struct Interleaved<'a> {
    cases: Vec<Box<dyn Turn + 'a>>,
}

impl<'a> Interleaved<'a> {
    /// One more case. What it does must be right before it is timed; [`Interleaved::finish`] looks again.
    pub fn add<W, C>(&mut self, figure: Figure, workload: W, check: C) -> Result<(), WrongSum>
    where
        W: Workload + 'a,
        C: Fn(&mut W) -> Result<(), WrongSum> + 'a,
    {
        self.cases.push(Box::new(Case::new(figure, workload, check)?));
        Ok(())
    }

    /// One turn of every case: a few milliseconds each.
    pub fn pass(&mut self) {
        for case in &mut self.cases {
            case.turn();
        }
    }

    /// What all turns came to, in the order of the cases.
    pub fn finish(mut self) -> Result<Vec<Measured>, WrongSum> {
        self.cases.iter_mut().map(|case| case.result()).collect()
    }
}

trait Turn {
    fn turn(&mut self);

    fn result(&mut self) -> Result<Measured, WrongSum>;
}

struct Case<W, C> {
    figure: Figure,
    workload: W,
    check: C,
    effort: Effort,
    best: u64,
    timed: Timed,
}

impl<W, C> Case<W, C>
where
    W: Workload,
    C: Fn(&mut W) -> Result<(), WrongSum>,
{
    fn new(figure: Figure, mut workload: W, check: C) -> Result<Case<W, C>, WrongSum> {
        let trial = Effort { rounds: 0, events: TRIAL, samples: 0 };
        let ticks = (0..3).map(|_| round(&mut workload, trial)).min().unwrap_or(0);
        check(&mut workload)?;
        let events = ROUND_NS / mean_ns(ticks, &workload, trial).max(0.1);
        let effort = Effort { events: (events as u64).clamp(workload.events(), 100_000), ..trial };
        Ok(Case { figure, workload, check, effort, best: u64::MAX, timed: Timed::default() })
    }
}

impl<W, C> Turn for Case<W, C>
where
    W: Workload,
    C: Fn(&mut W) -> Result<(), WrongSum>,
{
    fn turn(&mut self) {
        let warm_up = self.workload.footprint().min(WARM_UP).max(self.effort.events);
        round(&mut self.workload, Effort { events: warm_up, ..self.effort });
        for _ in 0..ROUNDS {
            self.best = self.best.min(round(&mut self.workload, self.effort));
        }
        let timed = (TIMED_ROUNDS * self.effort.events).max(TIMED_EVENTS);
        for _ in 0..timed / self.workload.events() {
            self.workload.step(&mut self.timed);
        }
        self.workload.settle();
    }

    fn result(&mut self) -> Result<Measured, WrongSum> {
        (self.check)(&mut self.workload)?;
        let median = self.timed.median();
        Ok(match self.figure {
            Figure::BestRound => Measured { ns: mean_ns(self.best, &self.workload, self.effort), ..median },
            Figure::Median => median,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Nothing;
    use crate::workload::{Order, Pairs};

    fn pairs() -> Pairs<Nothing> {
        Pairs::new(Nothing, 10, Order::Random, 0)
    }

    #[test]
    fn every_case_gets_a_figure_and_a_distribution() {
        let mut interleaved = Interleaved::default();
        interleaved.add(Figure::BestRound, pairs(), |_| Ok(())).unwrap();
        interleaved.add(Figure::BestRound, pairs(), |_| Ok(())).unwrap();
        interleaved.pass();
        let found = interleaved.finish().unwrap();
        assert!(found.len() == 2 && found.iter().all(|one| one.ns > 0.0 && one.percentiles.is_some()));
    }

    #[test]
    fn a_wrong_sum_ends_it_before_anything_is_timed() {
        let mut interleaved = Interleaved::default();
        let wrong =
            interleaved.add(Figure::BestRound, pairs(), |_| WrongSum::check("bytes", 1, 2)).unwrap_err();
        assert_eq!(wrong.to_string(), "1 bytes, not 2");
    }
}
