//! The truth: the writers' private logs, merged by each event's own stamp.
//!
//! What is older than `KEPT_NS` is folded into a base that knows the largest values since any moment, and every
//! value of the last minute. What is younger is kept event by event, because a claim is judged against what a reader
//! had to know, or could know, when it was read.

mod chip;
mod collect;

pub use chip::Sample;
pub use collect::Source;

use super::account::{Account, Amounts, DRAM, L1, QUANTITIES, Summary};
use super::maxima::{Best, Holders};
use super::sums::Change;
use super::timeline::Timeline;
use crate::soak::mix::Mix;
use chip::Chip;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// Chips of a soak: as many devices as a writer registers at most.
pub const CHIPS: usize = 4;
/// A table may be so old and still be called fresh.
const KEPT_NS: u64 = 2_500_000_000;
/// An end is noticed within this time: until then its process may still be counted in what is used now.
const NOTICE_NS: u64 = 1_000_000_000;

/// A segment's truth.
pub struct Process {
    /// Identity of its segment.
    pub identity: u64,
    /// When its segment was made.
    pub started: u64,
    /// Between which moments it ended.
    pub ended: Option<(u64, u64)>,
    mixes: Vec<Mix>,
    accounts: Vec<Account>,
    /// Position of its last event.
    pub position: u64,
    /// Its latest events.
    pub recent: VecDeque<Recent>,
    /// Whether `recent` goes back to its first event.
    pub whole: bool,
}

/// An event of a process.
#[derive(Clone)]
pub struct Recent {
    /// Its position.
    pub position: u64,
    /// Its device.
    pub device: usize,
    /// Its ticks.
    pub ticks: u64,
    /// When its call had returned.
    pub known: u64,
    /// What the process has behind it.
    pub summary: Rc<Summary>,
}

/// An allocation that failed.
#[derive(Clone)]
pub struct Failed {
    /// When.
    pub ticks: u64,
    /// Bytes asked for.
    pub request: u64,
    /// Bytes free.
    pub free: u64,
    /// On which device.
    pub device: usize,
    /// Whether ends leave no doubt about who held what, and who that was: filled in when it is old.
    pub holders: Option<Holders>,
}

/// An event that its call returned long after.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// Its device.
    pub device: usize,
    /// Its ticks.
    pub ticks: u64,
    /// When its call had returned.
    pub known: u64,
}

/// What is true of a device for one reading.
pub struct Verity {
    /// What it may use now.
    pub now: (Amounts, Amounts),
    /// By quantity: the largest value that it must, and may, have had.
    pub peaks: Vec<(Best, Best)>,
}

/// When something was read, and what a reader had to know.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Everything that was known by then has to be in it.
    pub as_of: u64,
    /// Nothing that happened later can be in it.
    pub read: u64,
    /// Start of the window of peaks: at least from the second on, at most from the first on.
    pub window: (u64, u64),
}

/// The merged truth.
pub struct Oracle {
    /// Ticks and nanoseconds.
    pub timeline: Timeline,
    /// Every segment that there was.
    pub processes: Vec<Process>,
    by_identity: HashMap<u64, usize>,
    /// Those that live, or ended lately.
    current: Vec<usize>,
    chips: Vec<Chip>,
    tail: VecDeque<Change>,
    /// Events of calls that have not returned.
    provisional: Vec<Change>,
    /// Everything up to here is in the base.
    base: u64,
    /// Events of the last minute that became known later than they are waited for.
    late: Vec<Late>,
    /// By identity and position.
    pub failures: HashMap<(u64, u64), Failed>,
    /// Calls that returned.
    pub calls: u64,
    /// Events that became known later behind their stamp than an aggregator waits.
    pub late_events: u64,
    /// Events that their writer delayed between clock and commit.
    pub delayed: u64,
}

impl Oracle {
    /// Nothing happened yet. Takes a tenth of a second to measure the clock.
    pub fn begin() -> Oracle {
        Oracle {
            timeline: Timeline::begin(),
            processes: Vec::new(),
            by_identity: HashMap::new(),
            current: Vec::new(),
            chips: (0..CHIPS).map(|_| Chip::new()).collect(),
            tail: VecDeque::new(),
            provisional: Vec::new(),
            base: 0,
            failures: HashMap::new(),
            calls: 0,
            late: Vec::new(),
            late_events: 0,
            delayed: 0,
        }
    }

    /// A process by the identity of its segment.
    pub fn process(&self, identity: u64) -> Option<&Process> {
        self.by_identity.get(&identity).map(|number| &self.processes[*number])
    }

    /// Everything that a process holds: device, class, id, size. Sorted.
    pub fn live(&self, identity: u64) -> Vec<(u8, u8, u64, u64)> {
        let accounts = self.process(identity).map_or(&[][..], |process| &process.accounts);
        let of = |(device, account): (usize, &Account)| -> Vec<_> {
            account.live().map(|(class, id, size)| (device as u8, class, id, size)).collect()
        };
        let mut live: Vec<_> = accounts.iter().enumerate().flat_map(of).collect();
        live.sort_unstable();
        live
    }

    /// Whether an event on a device, not later than `until`, became known only after `as_of`.
    pub fn is_unsettled(&self, device: usize, until: u64, as_of: u64) -> bool {
        self.late.iter().any(|late| late.device == device && late.ticks <= until && late.known > as_of)
    }

    /// What each process had on a device at a time, and its next event.
    pub fn held_at(&self, device: usize, quantity: usize, ns: u64) -> Vec<String> {
        let at = self.timeline.to_ticks(ns);
        let text = |process: &Process| {
            let mut on = process.recent.iter().filter(|recent| recent.device == device);
            let before = on.clone().rev().find(|recent| recent.ticks <= at)?;
            let next = on.find(|recent| recent.ticks > at);
            let tell = |recent: &Recent| {
                let (time, known) = (self.timeline.to_ns(recent.ticks), self.timeline.to_ns(recent.known));
                format!(
                    "{} (event {} at {time}, known {known})",
                    recent.summary.now[quantity], recent.position
                )
            };
            let next = next.map_or("nothing".to_owned(), tell);
            Some(format!("{:x} had {}, then {next}", process.identity, tell(before)))
        };
        self.current.iter().filter_map(|number| text(&self.processes[*number])).collect()
    }

    /// Events of the time since a moment that became known late, and when.
    pub fn late_since(&self, ns: u64) -> Vec<String> {
        let since = self.timeline.to_ticks(ns);
        let lately = self.late.iter().filter(|late| late.ticks >= since);
        let text = |late: &Late| {
            let (time, known) = (self.timeline.to_ns(late.ticks), self.timeline.to_ns(late.known));
            format!("{time} an event on device {} that was known at {known}", late.device)
        };
        lately.map(text).collect()
    }

    /// What is true of a device for somebody who reads at a moment.
    pub fn verity(&self, device: usize, moment: &Moment) -> Verity {
        let chip = &self.chips[device];
        let (from_least, from_most) = (moment.window.1, moment.window.0);
        let mut peaks: Vec<(Best, Best)> =
            chip.low.iter().zip(&chip.high).map(|(l, h)| (l.since(from_least), h.since(from_most))).collect();
        let mut sums = chip.sums.clone();
        let mut now = (self.base > moment.as_of).then_some((sums.low, sums.high));
        let mut changes: Vec<&Change> = self.tail.iter().chain(&self.provisional).collect();
        changes.retain(|change| {
            change.device == device && change.ticks <= moment.read && change.before <= moment.read
        });
        changes.sort_by_key(|change| change.ticks);
        let mut last = (sums.low, sums.high);
        sums.walk(
            changes.into_iter(),
            |change| change.known <= moment.as_of,
            |ticks, low, high, sums| {
                if ticks > moment.as_of {
                    let (least, most) = now.get_or_insert(last);
                    for quantity in 0..QUANTITIES {
                        least[quantity] = least[quantity].min(low[quantity]);
                        most[quantity] = most[quantity].max(high[quantity]);
                    }
                }
                last = (*low, *high);
                for (quantity, (least, most)) in peaks.iter_mut().enumerate() {
                    let holders = || matches!(quantity, DRAM | L1).then(|| sums.holders());
                    least.change(ticks, low[quantity], || None);
                    most.change(ticks, high[quantity], holders);
                }
            },
        );
        let (low, mut high) = now.unwrap_or(last);
        self.add_unnoticed(device, moment, &mut high);
        let end = |(least, most): (Best, Best)| (least.end(moment.read), most.end(moment.read));
        Verity { now: (low, high), peaks: peaks.into_iter().map(end).collect() }
    }

    /// Processes that have ended so lately that they may still be counted.
    fn add_unnoticed(&self, device: usize, moment: &Moment, high: &mut Amounts) {
        let as_of = self.timeline.to_ns(moment.as_of);
        let since = self.timeline.to_ticks(as_of.saturating_sub(NOTICE_NS));
        for process in self.current.iter().map(|number| &self.processes[*number]) {
            let lately = process.ended.is_some_and(|(_, end)| (since..=moment.as_of).contains(&end));
            if let Some(account) = process.accounts.get(device).filter(|_| lately) {
                high.iter_mut().zip(account.summary.now).for_each(|(high, held)| *high += held);
            }
        }
    }

    /// The moment, in nanoseconds, up to which [`Oracle::series`] is complete.
    pub fn base_ns(&self) -> u64 {
        self.timeline.to_ns(self.base)
    }

    /// What a device used from `from` to `to`, the value at the beginning first; `None` if that is not known any more.
    pub fn series(&self, device: usize, from: u64, to: u64) -> Option<impl Iterator<Item = &Sample>> {
        let series = &self.chips[device].series;
        let first = series.partition_point(|sample| sample.ns <= from).checked_sub(1)?;
        (to <= self.base_ns()).then(|| series.range(first..).take_while(move |sample| sample.ns <= to))
    }

    /// The latest processes that ended between two moments: segment, and how long before the second they were started
    /// and had ended.
    pub fn ends(&self, from: u64, to: u64) -> Vec<String> {
        let ago =
            |ticks: u64| self.timeline.to_ns(to).saturating_sub(self.timeline.to_ns(ticks)) as f64 / 1e6;
        let ended = self.processes.iter().rev().filter_map(|process| {
            let (_, end) = process.ended.filter(|(_, end)| (from..=to).contains(end))?;
            Some(format!("{:x} {:.1}..{:.1} ms before", process.identity, ago(process.started), ago(end)))
        });
        ended.take(4).collect()
    }

    /// When the oldest of the processes that live now was started.
    pub fn oldest_start(&self, as_of: u64) -> u64 {
        let alive = |process: &&Process| process.ended.is_none_or(|(_, end)| end > as_of);
        let current = self.current.iter().map(|number| &self.processes[*number]);
        current.filter(alive).map(|process| process.started).min().unwrap_or(u64::MAX)
    }
}
