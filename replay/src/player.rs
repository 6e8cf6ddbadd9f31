//! A record as if it happened now: replicas, an aggregator, its table and the clock.

use std::collections::BTreeMap;
use std::time::Duration;

use shm_layout::Event;
use tt_shm_aggregator::{Aggregator, Claim, Config, TablePublisher};
use tt_shm_os::{Namespace, past};
use tt_shm_record::{Process, Record};

use crate::error::ReplayError;
use crate::feed::{Feed, Item};
use crate::replica::Replica;

/// The longest time between two looks while something happens: rates are over a second.
const MAX_STEP_NS: u64 = 250_000_000;
/// The most events between two looks, over all processes.
const MAX_EVENTS: usize = 1 << 14;
/// How long after the beginning of a record its first checkpoints may come.
const FIRST_NS: u64 = 10_000_000_000;

/// A record that is being replayed. See the [crate](crate).
///
/// While it exists, all clocks of this process tell a time of the record. When it is dropped, its files are removed.
#[derive(Debug)]
pub struct Replay {
    record: Record,
    namespace: Namespace,
    feed: Feed,
    replicas: BTreeMap<u32, Replica>,
    /// Processes whose replica was ended.
    ended: Vec<u32>,
    aggregator: Option<Aggregator>,
    publisher: Option<TablePublisher>,
    claim: Option<Claim>,
    now: u64,
    looked: u64,
    events: usize,
}

impl Replay {
    /// Begins a replay at the beginning of the record, in a namespace of its own.
    pub fn open(record: Record) -> Result<Replay, ReplayError> {
        let random = tt_shm_os::random_u64().map_err(ReplayError::Random)?;
        let name = format!("replay-{}-{:08x}", std::process::id(), random as u32);
        // Made of allowed characters, and short.
        let namespace = Namespace::new(&name).unwrap_or_default();
        let claim = Claim::take(&namespace)?;
        let feed = Feed::new(&record);
        let mut replay = Replay {
            record,
            namespace,
            feed,
            replicas: BTreeMap::new(),
            ended: Vec::new(),
            aggregator: None,
            publisher: None,
            claim: Some(claim),
            now: 0,
            looked: 0,
            events: 0,
        };
        replay.begin()?;
        Ok(replay)
    }

    /// The record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The namespace in which the replicas are.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The time that is replayed, CLOCK_MONOTONIC of the record.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The aggregator that follows the replicas.
    pub fn aggregator(&self) -> Option<&Aggregator> {
        self.aggregator.as_ref()
    }

    /// The first and the last time that can be shown. At the first one everything is there that was there when recording
    /// began.
    pub fn span(&self) -> (u64, u64) {
        Replay::span_of(&self.record)
    }

    /// The same of a record that is not replayed.
    pub fn span_of(record: &Record) -> (u64, u64) {
        let (begin, last) = record.span_ns();
        // After that, events of some processes may be missing.
        let last = if record.finished_ns().is_some() { last } else { record.complete_until_ns() }.max(begin);
        let was_there = |process: &&Process| process.started_ns().is_none_or(|started| started < begin);
        let seen = record.processes().filter(was_there).map(|process| process.entry.seen_ns);
        let first = seen.filter(|seen| *seen < begin.saturating_add(FIRST_NS)).max().unwrap_or(begin);
        (first.clamp(begin, last), last)
    }

    /// Starts over: what was there when recording began, seen by an aggregator that starts.
    fn begin(&mut self) -> Result<(), ReplayError> {
        self.replicas.clear();
        self.ended.clear();
        self.aggregator = None;
        if let Some(publisher) = self.publisher.take() {
            self.claim = publisher.close().ok();
        }
        self.remove_files();
        self.feed = Feed::new(&self.record);
        let (first, _) = self.span();
        self.set_clock(first);
        self.apply_until(first, &mut |_| true)?;
        self.set_clock(first);
        let config = Config {
            // Nothing is late here: what happened by a time is there when it is looked at.
            merge_window: Duration::ZERO,
            published: true,
            ..Config::new(self.namespace.clone())
        };
        self.replicas.values_mut().for_each(Replica::flush);
        let aggregator = Aggregator::new(config)?;
        let claim = match self.claim.take() {
            Some(claim) => claim,
            None => Claim::take(&self.namespace)?,
        };
        self.publisher = Some(TablePublisher::create(claim, &aggregator)?);
        self.aggregator = Some(aggregator);
        self.look()
    }

    /// Goes to a time: forwards from where it is, backwards from the beginning. Calls `progress` now and then with the
    /// time that has been reached; if that returns false, it stops there. Times outside of the record are moved into it.
    pub fn seek(&mut self, time: u64, progress: &mut dyn FnMut(u64) -> bool) -> Result<(), ReplayError> {
        let (first, last) = self.span();
        let time = time.clamp(first, last);
        if time < self.now {
            self.begin()?;
        }
        self.apply_until(time, progress)?;
        self.look()?;
        if let (Some(publisher), Some(aggregator)) = (&mut self.publisher, &self.aggregator) {
            publisher.publish(aggregator)?;
        }
        Ok(())
    }

    fn apply_until(&mut self, time: u64, progress: &mut dyn FnMut(u64) -> bool) -> Result<(), ReplayError> {
        while let Some((number, ns, item)) = self.feed.next(&self.record, time)? {
            let ns = ns.max(self.now);
            if self.events > 0 && ns > self.looked.saturating_add(MAX_STEP_NS) {
                // As of the last event: nothing happened since.
                self.look()?;
            }
            self.set_clock(ns);
            let is_turn = item.is_turn();
            if is_turn {
                // What was before it has been seen by those who looked.
                self.look()?;
            }
            self.apply(number, item, time)?;
            let slots = self.replicas.get(&number).map_or(usize::MAX, Replica::ring_slots);
            if is_turn || self.events >= MAX_EVENTS.min(slots / 4) {
                self.look()?;
                if !progress(self.now) {
                    return Ok(());
                }
            }
        }
        self.set_clock(time.max(self.now));
        Ok(())
    }

    fn apply(&mut self, number: u32, item: Item, until: u64) -> Result<(), ReplayError> {
        if self.ended.contains(&number) {
            return Ok(());
        }
        if let Item::Found(found) = &item {
            if !self.replicas.contains_key(&number) {
                let replica = Replica::create(&self.namespace, &self.record, found)?;
                self.replicas.insert(number, replica);
            }
            return Ok(());
        }
        let Some(replica) = self.replicas.get_mut(&number) else { return Ok(()) };
        match item {
            Item::Found(_) => {}
            Item::Devices(devices) => replica.devices(&devices)?,
            Item::Names(names) => replica.names(&names)?,
            Item::State(state, rows) => {
                replica.state(&self.record, &state, &rows)?;
                replica.link()?;
            }
            Item::Event(event) => self.run(number, event, until)?,
            Item::Gap(last) => {
                if last > 0 {
                    replica.tear();
                }
            }
            Item::End(end) => {
                if let Some(replica) = self.replicas.remove(&number) {
                    self.ended.push(number);
                    replica.end(&end);
                }
            }
        }
        Ok(())
    }

    /// Applies an event, and those of the same process that follow before anything else happens.
    fn run(&mut self, number: u32, first: Event, until: u64) -> Result<(), ReplayError> {
        let Some(replica) = self.replicas.get_mut(&number) else { return Ok(()) };
        let room = MAX_EVENTS.min(replica.ring_slots() / 4).saturating_sub(self.events).max(1);
        let until = until.min(self.looked.saturating_add(MAX_STEP_NS)).max(self.now);
        let mut events = vec![first];
        let last = self.feed.run_of(number, until, room, &mut events);
        for event in &events {
            replica.event(&self.record, event)?;
        }
        // The whole life of a process is in the record: it was there from its first event on.
        if !replica.is_linked() && first.stamp == 1 {
            replica.link()?;
        }
        self.events += events.len();
        if last > self.now {
            self.set_clock(last);
        }
        Ok(())
    }

    /// Shows everything to the aggregator.
    fn look(&mut self) -> Result<(), ReplayError> {
        self.replicas.values_mut().for_each(Replica::flush);
        (self.looked, self.events) = (self.now, 0);
        if let Some(aggregator) = &mut self.aggregator {
            aggregator.poll();
        }
        Ok(())
    }

    fn set_clock(&mut self, ns: u64) {
        self.now = ns;
        past::set_time(ns, self.record.to_realtime_ns(ns));
    }

    /// Removes what ended processes left. The namespace is nobody else's.
    fn remove_files(&self) {
        let paths = tt_shm_reader::segment_paths(&self.namespace).unwrap_or_default();
        paths.iter().for_each(|path| drop(std::fs::remove_file(path)));
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.replicas.clear();
        self.aggregator = None;
        if let Some(publisher) = self.publisher.take() {
            self.claim = publisher.close().ok();
        }
        self.remove_files();
        if let Some(claim) = self.claim.take() {
            // On failure an empty file stays.
            let _ = claim.remove_lock_file_while_held();
        }
        past::unset_time();
    }
}
