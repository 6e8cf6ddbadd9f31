//! All processes of a device together, as events and ends come in the order of their ticks.
//!
//! Of each process the least and the most that it may have is kept: they differ between the two moments that an end
//! lies between, and where a reader may or may not have seen an event.

use super::account::{Amounts, QUANTITIES, Summary};
use super::maxima::Holders;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Ticks of different processes that are closer than a nanosecond have no order.
const TIE: u64 = 4;

/// What happens on a device.
#[derive(Clone)]
pub enum What {
    /// An event of the process: what it has from then on.
    Event(Rc<Summary>),
    /// From here on the process may have ended.
    Ending,
    /// From here on it has.
    Ended,
}

/// One thing that happens.
#[derive(Clone)]
pub struct Change {
    /// When, by its own stamp.
    pub ticks: u64,
    /// The clock before the call.
    pub before: u64,
    /// When everybody may know of it: the call has returned, the process has ended.
    pub known: u64,
    /// Number of the process.
    pub process: usize,
    /// Identity of its segment.
    pub identity: u64,
    /// Number of the device.
    pub device: usize,
    /// What.
    pub what: What,
}

#[derive(Clone)]
struct Part {
    identity: u64,
    low: Amounts,
    high: Amounts,
    summary: Rc<Summary>,
    /// It may have ended: an event tells that it lived then, and not for how long.
    is_ending: bool,
}

/// All processes together.
#[derive(Clone)]
pub struct Sums {
    parts: BTreeMap<usize, Part>,
    /// The least that there may be.
    pub low: Amounts,
    /// The most.
    pub high: Amounts,
}

impl Default for Sums {
    fn default() -> Sums {
        Sums { parts: BTreeMap::new(), low: [0; QUANTITIES], high: [0; QUANTITIES] }
    }
}

impl Sums {
    /// Who holds what, as far as events tell.
    pub fn holders(&self) -> Holders {
        Rc::new(self.parts.values().map(|part| (part.identity, part.summary.clone())).collect())
    }

    /// `is_known` says whether a reader has to know of it.
    fn apply(&mut self, change: &Change, is_known: bool) {
        let part = self.parts.entry(change.process).or_insert_with(|| Part {
            identity: change.identity,
            low: [0; QUANTITIES],
            high: [0; QUANTITIES],
            summary: Rc::default(),
            is_ending: false,
        });
        let (old_low, old_high) = (part.low, part.high);
        match &change.what {
            What::Event(summary) => {
                part.summary = summary.clone();
                let join = |amounts: &mut Amounts, pick: fn(u64, u64) -> u64| {
                    for (amount, now) in amounts.iter_mut().zip(summary.now) {
                        *amount = if is_known { now } else { pick(*amount, now) };
                    }
                };
                join(&mut part.low, u64::min);
                join(&mut part.high, u64::max);
                if part.is_ending {
                    part.low = [0; QUANTITIES];
                }
            }
            What::Ending => (part.low, part.is_ending) = ([0; QUANTITIES], true),
            What::Ended if is_known => (part.low, part.high) = ([0; QUANTITIES], [0; QUANTITIES]),
            What::Ended => {}
        }
        for quantity in 0..QUANTITIES {
            self.low[quantity] = self.low[quantity] - old_low[quantity] + part.low[quantity];
            self.high[quantity] = self.high[quantity] - old_high[quantity] + part.high[quantity];
        }
        if matches!(change.what, What::Ended) && is_known {
            self.parts.remove(&change.process);
        }
    }

    /// Goes through changes that are sorted by ticks, and tells `seen` what there is from each tick on: the least,
    /// the most, and the sums. `is_known` says whether a reader has to know of a change.
    pub fn walk<'a>(
        &mut self,
        changes: impl Iterator<Item = &'a Change>,
        is_known: impl Fn(&Change) -> bool,
        mut seen: impl FnMut(u64, &Amounts, &Amounts, &Sums),
    ) {
        let mut changes = changes.peekable();
        while let Some(first) = changes.next() {
            let mut group = vec![first];
            while let Some(next) = changes.next_if(|next| next.ticks <= first.ticks + TIE) {
                group.push(next);
            }
            let tied = group.iter().any(|change| change.process != first.process);
            if !tied {
                for change in group {
                    self.apply(change, is_known(change));
                    seen(change.ticks, &self.low, &self.high, self);
                }
                continue;
            }
            // In either order: at most, everybody had the most of before, between and after.
            let mut most = self.high;
            for change in group {
                let before = self.parts.get(&change.process).map_or([0; QUANTITIES], |part| part.high);
                self.apply(change, is_known(change));
                let after = self.parts.get(&change.process).map_or([0; QUANTITIES], |part| part.high);
                for quantity in 0..QUANTITIES {
                    most[quantity] += after[quantity].saturating_sub(before[quantity]);
                }
            }
            seen(first.ticks, &self.low, &most, self);
            seen(first.ticks + 1, &self.low, &self.high, self);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::account::DRAM;
    use super::*;

    fn event(process: usize, ticks: u64, known: u64, bytes: u64) -> Change {
        let mut summary = Summary::default();
        summary.now[DRAM] = bytes;
        let what = What::Event(Rc::new(summary));
        Change { ticks, before: ticks, known, process, identity: process as u64, device: 0, what }
    }

    /// Least and most of DRAM from each tick on, for a reader who has to know what was known at `as_of`.
    fn seen(changes: &[Change], as_of: u64) -> Vec<(u64, u64, u64)> {
        let mut seen = Vec::new();
        let note = |ticks, low: &Amounts, high: &Amounts, _: &Sums| seen.push((ticks, low[DRAM], high[DRAM]));
        Sums::default().walk(changes.iter(), |change| change.known <= as_of, note);
        seen
    }

    #[test]
    fn an_event_that_nobody_has_to_know_widens() {
        let changes = [event(1, 100, 110, 50), event(2, 200, 900, 70), event(1, 300, 310, 20)];
        assert_eq!(seen(&changes, 1000), [(100, 50, 50), (200, 120, 120), (300, 90, 90)]);
        assert_eq!(seen(&changes, 500), [(100, 50, 50), (200, 50, 120), (300, 20, 90)]);
    }

    #[test]
    fn an_end_lies_between_two_moments() {
        let end = |ticks, what| Change { what, ..event(1, ticks, ticks, 0) };
        let changes =
            [event(1, 100, 110, 50), end(200, What::Ending), event(2, 250, 260, 70), end(300, What::Ended)];
        assert_eq!(seen(&changes, 1000), [(100, 50, 50), (200, 0, 50), (250, 70, 120), (300, 70, 70)]);
        // What it does in between tells that it lived, but not for how long.
        let changes =
            [event(1, 100, 110, 50), end(200, What::Ending), event(1, 250, 260, 70), end(300, What::Ended)];
        assert_eq!(seen(&changes, 1000), [(100, 50, 50), (200, 0, 50), (250, 0, 70), (300, 0, 0)]);
    }

    #[test]
    fn equal_ticks_come_in_either_order() {
        let changes = [event(1, 100, 110, 50), event(1, 200, 210, 0), event(2, 200, 210, 70)];
        // At most both were held together; at least they were not.
        assert_eq!(seen(&changes, 1000), [(100, 50, 50), (200, 70, 120), (201, 70, 70)]);
    }
}
