//! The truth: the writers' private logs, merged by each event's own stamp.
//!
//! What is older than `KEPT_NS` is folded into a base that knows the largest values since any moment, and every
//! value of the last minute. What is younger is kept event by event, because a claim is judged against what a reader
//! had to know, or could know, when it was read.

use super::account::{Account, Amounts, DRAM, L1, PEAKED, QUANTITIES, Summary};
use super::actor::{Plan, seed_of};
use super::log::{Code, Entry, Log};
use super::maxima::{Best, Maxima};
use super::sums::{Change, Sums, What};
use super::timeline::Timeline;
use crate::model::{Name, Thing};
use crate::soak::mix::{Mix, Step};
use shm_layout::Class;
use shm_layout::protocol::observe::Slot;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use tt_shm_reader::Segment;

/// Chips of a soak: as many devices as a writer registers at most.
pub const CHIPS: usize = 4;
/// A table may be so old and still be called fresh.
const KEPT_NS: u64 = 2_500_000_000;
/// How long an aggregator waits for events of other processes.
const MERGED_NS: u64 = 500_000;
/// How long the values of a device are kept.
const SERIES_NS: u64 = 70_000_000_000;
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
    pub holders: Option<super::maxima::Holders>,
}

/// A writer as the oracle sees it.
pub struct Source {
    /// Its log.
    pub log: Log,
    /// What it was told.
    pub plan: Plan,
    /// Its segment, if it is one that lasts. Stays readable when the process is dead and its file removed.
    pub segment: Option<Segment>,
    /// Between which moments it was killed.
    pub killed: Option<(u64, u64)>,
    next: u64,
    process: Option<usize>,
    /// Calls that returned.
    pub calls: u64,
    /// The clock before a call that has not returned.
    pub in_flight: Option<u64>,
    delays: u64,
}

impl Source {
    /// Nothing read yet.
    pub fn new(log: Log, plan: Plan) -> Source {
        let (segment, killed, process, in_flight) = (None, None, None, None);
        Source { log, plan, segment, killed, next: 0, process, calls: 0, in_flight, delays: 0 }
    }
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

/// Value of DRAM and L1 used, least and most, from a moment on.
#[derive(Clone, Copy)]
pub struct Sample {
    /// Since when, in nanoseconds.
    pub ns: u64,
    /// The least.
    pub low: [u64; 2],
    /// The most.
    pub high: [u64; 2],
}

/// A device's truth up to the base.
struct Chip {
    sums: Sums,
    low: Vec<Maxima>,
    high: Vec<Maxima>,
    series: VecDeque<Sample>,
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
        let chip = |_| Chip {
            sums: Sums::default(),
            low: (0..PEAKED).map(|_| Maxima::default()).collect(),
            high: (0..PEAKED).map(|_| Maxima::default()).collect(),
            series: VecDeque::new(),
        };
        Oracle {
            timeline: Timeline::begin(),
            processes: Vec::new(),
            by_identity: HashMap::new(),
            current: Vec::new(),
            chips: (0..CHIPS).map(chip).collect(),
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

    /// Reads what the writers logged since the last time. They are stopped, or have ended. `judged` is the earliest
    /// moment that will be judged: what was known only after it is kept apart. Returns the events that came late.
    pub fn collect<'a>(&mut self, sources: impl Iterator<Item = &'a mut Source>, judged: u64) -> Vec<Late> {
        self.timeline.read();
        self.provisional.clear();
        let mut oldest = self.timeline.now();
        let mut fresh = Vec::new();
        for source in sources {
            self.collect_one(source, &mut fresh);
            oldest = oldest.min(source.in_flight.unwrap_or(u64::MAX));
        }
        let late: Vec<Late> = fresh.iter().filter(|change| self.is_late(change)).map(Late::of).collect();
        self.late_events += late.len() as u64;
        self.tail.extend(fresh);
        self.tail.make_contiguous().sort_by_key(|change| change.ticks);
        self.provisional.sort_by_key(|change| change.ticks);
        let now = self.timeline.now();
        let kept = self.timeline.to_ticks(self.timeline.to_ns(now).saturating_sub(KEPT_NS));
        let unknown = self.tail.iter().filter(|change| change.known > judged).map(|change| change.ticks - 1);
        self.advance(unknown.chain([oldest, kept]).min().unwrap_or(0));
        self.late.extend(&late);
        let forgotten = self.timeline.to_ticks(self.timeline.to_ns(now).saturating_sub(SERIES_NS));
        self.late.retain(|late| late.known > forgotten);
        late
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

    fn collect_one(&mut self, source: &mut Source, fresh: &mut Vec<Change>) {
        source.in_flight = None;
        let delays = source.log.delays();
        self.delayed += delays - std::mem::replace(&mut source.delays, delays);
        while let Some(entry) = source.log.entry(source.next) {
            if entry.after.is_none() {
                source.in_flight = Some(entry.before);
                self.in_flight(source, &entry, fresh);
                break;
            }
            source.next += 1;
            source.calls += 1;
            self.calls += 1;
            self.enter(source, &entry, fresh);
        }
        let Some((from, to)) = source.killed else { return };
        source.in_flight = None;
        if let Some(number) = source.process.take() {
            self.end(number, from, to, fresh);
        }
    }

    fn is_late(&self, change: &Change) -> bool {
        let delay = self.timeline.to_ns(change.known).saturating_sub(self.timeline.to_ns(change.ticks));
        matches!(change.what, What::Event(_)) && delay > MERGED_NS
    }

    fn enter(&mut self, source: &mut Source, entry: &Entry, fresh: &mut Vec<Change>) {
        let known = entry.after.unwrap_or(u64::MAX);
        match (entry.code, source.process) {
            (Code::Open, _) => source.process = Some(self.start(&source.plan, entry)),
            (Code::Close, Some(number)) => {
                source.process = None;
                self.end(number, entry.before, known, fresh);
            }
            (_, Some(number)) => {
                let process = &mut self.processes[number];
                let steps = steps_of(&mut process.mixes, entry);
                for (step, position) in steps.into_iter().zip(entry.position..) {
                    let change = process.apply(number, step, position, entry.ticks, (entry.before, known));
                    if entry.code == Code::Failed {
                        let failed = Failed {
                            ticks: entry.ticks,
                            request: entry.a,
                            free: entry.b,
                            device: change.device,
                            holders: None,
                        };
                        self.failures.insert((process.identity, position), failed);
                    }
                    fresh.push(change);
                }
            }
            _ => {}
        }
    }

    /// A call that has not returned: its ring tells how many of its events there are.
    fn in_flight(&mut self, source: &mut Source, entry: &Entry, fresh: &mut Vec<Change>) {
        let (Some(number), Some(segment)) = (source.process, &source.segment) else { return };
        if matches!(entry.code, Code::Open | Code::Close) {
            return;
        }
        let process = &self.processes[number];
        let committed: Vec<(u64, u64)> = (process.position + 1..)
            .map_while(|position| match segment.words().read_slot(position) {
                Slot::Ready(event) => Some((position, event.time)),
                Slot::Pending | Slot::Lapped => None,
            })
            .collect();
        if committed.is_empty() {
            return;
        }
        let dead = source.killed.map(|(_, to)| to);
        let mut copy = process.copy();
        let process = if dead.is_some() { &mut self.processes[number] } else { &mut copy };
        let steps = steps_of(&mut process.mixes, entry);
        for (step, (position, ticks)) in steps.into_iter().zip(committed) {
            let known = (entry.before, dead.unwrap_or(u64::MAX));
            let change = process.apply(number, step, position, ticks, known);
            if dead.is_some() { fresh.push(change) } else { self.provisional.push(change) }
        }
    }

    fn start(&mut self, plan: &Plan, entry: &Entry) -> usize {
        let seed = seed_of(plan, entry.b);
        let number = self.processes.len();
        self.by_identity.insert(entry.a, number);
        self.current.push(number);
        self.processes.push(Process {
            identity: entry.a,
            started: entry.before,
            ended: None,
            mixes: (0..plan.threads).map(|thread| Mix::new(seed, thread)).collect(),
            accounts: vec![Account::default(); plan.threads + 1],
            position: 0,
            recent: VecDeque::new(),
            whole: true,
        });
        number
    }

    fn end(&mut self, number: usize, from: u64, to: u64, fresh: &mut Vec<Change>) {
        let process = &mut self.processes[number];
        process.ended = Some((from, to));
        for device in 0..process.accounts.len() {
            let change = |ticks, what| Change {
                ticks,
                before: from,
                known: ticks,
                process: number,
                identity: process.identity,
                device,
                what,
            };
            fresh.extend([change(from, What::Ending), change(to, What::Ended)]);
        }
    }

    /// Takes everything up to a moment into the base.
    fn advance(&mut self, to: u64) {
        let old = self.tail.partition_point(|change| change.ticks <= to);
        let old: Vec<Change> = self.tail.drain(..old).collect();
        self.base = self.base.max(to);
        for (device, chip) in self.chips.iter_mut().enumerate() {
            chip.advance(
                old.iter().filter(|change| change.device == device),
                &self.timeline,
                &mut self.failures,
            );
        }
        let forgotten = self.timeline.to_ticks(self.timeline.to_ns(to).saturating_sub(KEPT_NS));
        let processes = &mut self.processes;
        self.current.retain(|number| {
            let process = &mut processes[*number];
            // The last one stays: it may be the last for long.
            while process.recent.len() > process.accounts.len() + 1 && process.recent[0].ticks < forgotten {
                process.recent.pop_front();
                process.whole = false;
            }
            let gone = process.ended.is_some_and(|(_, end)| end < forgotten);
            if gone {
                process.recent = VecDeque::new();
                (process.accounts, process.mixes, process.whole) = (Vec::new(), Vec::new(), false);
            }
            !gone
        });
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

impl Late {
    fn of(change: &Change) -> Late {
        Late { device: change.device, ticks: change.ticks, known: change.known }
    }
}

impl Chip {
    fn advance<'a>(
        &mut self,
        changes: impl Iterator<Item = &'a Change>,
        timeline: &Timeline,
        failures: &mut HashMap<(u64, u64), Failed>,
    ) {
        let Chip { sums, low: lows, high: highs, series } = self;
        if series.is_empty() {
            series.push_back(Sample { ns: 0, low: [0; 2], high: [0; 2] });
        }
        let changes: Vec<&Change> = changes.collect();
        let mut number = 0;
        sums.walk(
            changes.iter().copied(),
            |_| true,
            |ticks, low, high, sums| {
                let holders = sums.holders();
                for quantity in 0..PEAKED {
                    let held = matches!(quantity, DRAM | L1).then_some(&holders);
                    lows[quantity].change(ticks, low[quantity], held);
                    highs[quantity].change(ticks, high[quantity], held);
                }
                let of = |amounts: &Amounts| [amounts[DRAM], amounts[L1]];
                let ns = timeline.to_ns(ticks);
                let ns = series.back().map_or(ns, |last| ns.max(last.ns));
                series.push_back(Sample { ns, low: of(low), high: of(high) });
                while let Some(change) = changes.get(number).filter(|change| change.ticks <= ticks) {
                    number += 1;
                    let What::Event(summary) = &change.what else { continue };
                    if let Some(failed) = failures.get_mut(&(change.identity, summary.position)) {
                        failed.holders = (low == high).then(|| holders.clone());
                    }
                }
            },
        );
        let newest = series.back().map_or(0, |sample| sample.ns);
        while series.len() > 2 && series[1].ns + SERIES_NS < newest {
            series.pop_front();
        }
    }
}

impl Process {
    fn copy(&self) -> Process {
        Process {
            mixes: self.mixes.clone(),
            accounts: self.accounts.clone(),
            recent: VecDeque::new(),
            ..*self
        }
    }

    fn apply(
        &mut self,
        number: usize,
        (device, step): (usize, Option<Step>),
        position: u64,
        ticks: u64,
        (before, known): (u64, u64),
    ) -> Change {
        let account = &mut self.accounts[device];
        match step {
            Some(step) => account.apply(step, position, ticks),
            None => account.fail(position),
        }
        let summary = Rc::new(account.summary.clone());
        self.position = position;
        self.recent.push_back(Recent { position, device, ticks, known, summary: summary.clone() });
        let identity = self.identity;
        Change { ticks, before, known, process: number, identity, device, what: What::Event(summary) }
    }
}

/// The events of a call, each with its device; `None` is a failed allocation.
fn steps_of(mixes: &mut [Mix], entry: &Entry) -> Vec<(usize, Option<Step>)> {
    let Entry { code, thread, device, a, b, .. } = *entry;
    let buffer = Thing::new(Class::Dram, a);
    match code {
        Code::Mix => {
            let steps = mixes[thread].next_call().steps().into_iter();
            steps.map(|(place, step)| (place.device(thread), Some(step))).collect()
        }
        Code::Spike => vec![(device, Some(Step::Add(Name::Buffer(b), buffer)))],
        Code::SpikeEnd => vec![(device, Some(Step::Remove(Name::Buffer(b))))],
        Code::Failed => vec![(device, None)],
        Code::Open | Code::Close => Vec::new(),
    }
}
