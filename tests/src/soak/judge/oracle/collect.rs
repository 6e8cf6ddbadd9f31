//! The writers' logs, read on from where they were read to and merged by stamp.

use super::chip::SERIES_NS;
use super::{Failed, KEPT_NS, Late, Oracle, Process, Recent};
use crate::model::{Name, Thing};
use crate::soak::judge::account::Account;
use crate::soak::judge::actor::{Plan, seed_of};
use crate::soak::judge::log::{Code, Entry, Log};
use crate::soak::judge::sums::{Change, What};
use crate::soak::mix::{Mix, Step};
use shm_layout::Class;
use shm_layout::protocol::observe::Slot;
use std::collections::VecDeque;
use std::rc::Rc;
use tt_shm_reader::Segment;

/// How long an aggregator waits for events of other processes.
const MERGED_NS: u64 = 500_000;

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

impl Oracle {
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
}

impl Late {
    fn of(change: &Change) -> Late {
        Late { device: change.device, ticks: change.ticks, known: change.known }
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
