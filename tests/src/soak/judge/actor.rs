//! The writer process of a judged soak: reports, reads each event back from its own ring, and logs it.

use super::log::{CAPACITY, Code, Entry, Log};
use crate::soak::mix::Mix;
use anyhow::{Context, Result};
use fastrand::Rng;
use serde::{Deserialize, Serialize};
use shm_layout::protocol::observe::Slot;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tt_shm_os::ClockKind;
use tt_shm_reader::Segment;
use tt_shm_writer::{Alloc, BufferType, Class, Device, FailedAlloc, Record, Tracker};

/// What a writer is told, in its only argument.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Its calls follow from this.
    pub seed: u64,
    /// Threads. There is one device more: the one that they share.
    pub threads: usize,
    /// Slots of its ring.
    pub ring_slots: u64,
    /// Longest pause of a thread between two bursts, in microseconds.
    pub pause_us: u64,
    /// Calls in a burst, at most.
    pub burst: u64,
    /// Segments that it makes and closes at once, one after the other; 0 for one that lasts.
    pub lives: u64,
    /// Where to log.
    pub log: PathBuf,
}

/// The seed of the mix of a life.
pub fn seed_of(plan: &Plan, life: u64) -> u64 {
    plan.seed.wrapping_add(life << 20)
}

/// Bytes of a spike: far above what the mix holds, so that it makes a peak.
const SPIKE: u64 = 64 << 20;

/// Reports until standard input ends, or for as many lives as the plan says.
pub fn main(plan: &str) -> Result<()> {
    let plan: Plan = serde_json::from_str(plan).context("the plan is JSON")?;
    let log = Log::open(&plan.log)?;
    delay::install(plan.seed);
    if plan.lives > 0 {
        let mut number = 0;
        for life in 0..plan.lives {
            number = brief_life(&plan, &log, life, number)?;
        }
        return Ok(());
    }
    let life = Mutex::new(Life::open(&plan, &log, 0, 0)?);
    let path = life.lock().expect("nobody panicked").tracker.segment_path().context("tracking is enabled")?;
    println!("{}", path.display());
    std::io::stdout().flush()?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..plan.threads {
            let (plan, life, stop) = (&plan, &life, &stop);
            scope.spawn(move || report(plan, thread, life, stop));
        }
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stop.store(true, Ordering::Relaxed);
    });
    life.into_inner().expect("nobody panicked").close();
    Ok(())
}

fn report(plan: &Plan, thread: usize, life: &Mutex<Life<'_>>, stop: &AtomicBool) {
    let mut pace = Rng::with_seed(plan.seed.wrapping_add(thread as u64));
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..=pace.u64(..plan.burst) {
            let mut life = life.lock().expect("nobody panicked");
            if life.number + 2 * plan.burst >= CAPACITY {
                return;
            }
            life.one(thread, &mut pace);
        }
        std::thread::sleep(Duration::from_micros(pace.u64(..plan.pause_us)));
    }
}

/// Opens, reports a little, closes.
fn brief_life(plan: &Plan, log: &Log, life: u64, number: u64) -> Result<u64> {
    let mut random = Rng::with_seed(seed_of(plan, life));
    let mut life = Life::open(plan, log, life, number)?;
    let calls = random.u64(..4);
    life.spike(0, random.u64(..SPIKE));
    (0..calls).for_each(|_| life.one(0, &mut random));
    if random.u64(..2) == 0 {
        life.end_spikes(0);
    }
    Ok(life.close())
}

/// A segment and what is logged of it. Calls of several threads come one after the other, each with its reading back:
/// so the ring may be as small as it likes.
struct Life<'a> {
    tracker: Tracker,
    segment: Segment,
    devices: Vec<Device>,
    mixes: Vec<Mix>,
    log: &'a Log,
    clock: ClockKind,
    /// Of the next record.
    number: u64,
    /// Of the last event.
    position: u64,
    /// Devices and ids of spikes that live.
    spikes: Vec<(usize, u64)>,
    next_spike: u64,
}

impl<'a> Life<'a> {
    fn open(plan: &Plan, log: &'a Log, life: u64, number: u64) -> Result<Life<'a>> {
        let clock = ClockKind::best();
        let before = clock.ticks();
        let entry = Entry { thread: plan.threads, b: life, ..Entry::begun(Code::Open, before) };
        log.begin(number, &entry);
        let tracker = Tracker::builder().ring_slots(plan.ring_slots).open()?;
        let devices = crate::soak::writer::register(&tracker, plan.threads + 1)?;
        let segment = Segment::open(&tracker.segment_path().context("tracking is enabled")?)?;
        log.name(number, segment.identity());
        log.end(number, 0, clock.ticks(), clock.ticks());
        let seed = seed_of(plan, life);
        let mixes = (0..plan.threads).map(|thread| Mix::new(seed, thread)).collect();
        Ok(Life {
            tracker,
            segment,
            devices,
            mixes,
            log,
            clock,
            number: number + 1,
            position: 0,
            spikes: Vec::new(),
            next_spike: 1 << 60,
        })
    }

    /// Some call of a thread.
    fn one(&mut self, thread: usize, random: &mut Rng) {
        match random.u64(..400) {
            0 => self.fail(thread, random.u64(..1 << 30)),
            1..5 => self.spike(thread, random.u64(..SPIKE)),
            _ if !self.spikes.is_empty() && random.u64(..3) == 0 => self.end_spikes(thread),
            _ => {
                let call = self.mixes[thread].next_call();
                let events = call.steps().len() as u64;
                let (shared, own) = (self.devices[0], self.devices[thread + 1]);
                self.call(Code::Mix, thread, 0, (0, 0), events, |tracker| call.report(tracker, shared, own));
            }
        }
    }

    fn spike(&mut self, thread: usize, bytes: u64) {
        let (device, id) = (self.next_spike as usize % 2 * (thread + 1), self.next_spike);
        self.next_spike += 1;
        self.spikes.push((device, id));
        let target = self.devices[device];
        let alloc = Alloc::new(BufferType::Dram, id, bytes);
        self.call(Code::Spike, thread, device, (bytes, id), 1, |tracker| tracker.alloc(target, alloc));
    }

    fn end_spikes(&mut self, thread: usize) {
        for (device, id) in std::mem::take(&mut self.spikes) {
            let target = self.devices[device];
            self.call(Code::SpikeEnd, thread, device, (0, id), 1, |tracker| tracker.free(target, id));
        }
    }

    fn fail(&mut self, thread: usize, bytes: u64) {
        let target = self.devices[0];
        self.call(Code::Failed, thread, 0, (bytes, bytes / 2), 1, |tracker| {
            tracker.alloc_failed(target, FailedAlloc::new(Class::Dram, bytes).free(bytes / 2, bytes / 3))
        });
    }

    /// Makes a call of so many events, and logs it.
    fn call<E: std::fmt::Display>(
        &mut self,
        code: Code,
        thread: usize,
        device: usize,
        (a, b): (u64, u64),
        events: u64,
        make: impl FnOnce(&Tracker) -> Result<(), E>,
    ) {
        let before = self.clock.ticks();
        let entry = Entry { thread, device, a, b, ..Entry::begun(code, before) };
        self.log.begin(self.number, &entry);
        let made = make(&self.tracker);
        let returned = self.clock.ticks();
        let first = self.position + 1;
        self.position += events;
        let read = |position| match self.segment.words().read_slot(position) {
            Slot::Ready(event) => Some(event.time),
            Slot::Pending | Slot::Lapped => None,
        };
        let ticks = read(first).unwrap_or(0);
        // Every event of the call has its time, which lies between two readings of the clock, and there is no other.
        let all = (first..=self.position).all(|position| read(position) == Some(ticks));
        let alone = self.segment.words().head() == self.position;
        if made.is_err() || !all || !alone || !(before..=returned).contains(&ticks) {
            self.log.complain();
            let head = self.segment.words().head();
            let error = made.err().map(|error| error.to_string());
            eprintln!(
                "soak writer: {code:?} {error:?}: {before} {ticks} {returned}, {first}+{events}, {head}"
            );
        }
        self.log.set_delays(delay::taken());
        self.log.end(self.number, first, ticks, self.clock.ticks());
        self.number += 1;
    }

    /// Closes the segment; returns the number of the next record.
    fn close(self) -> u64 {
        let Life { tracker, log, clock, number, .. } = self;
        let before = clock.ticks();
        let entry = Entry::begun(Code::Close, before);
        log.begin(number, &entry);
        drop(tracker);
        log.end(number, 0, before, clock.ticks());
        number + 1
    }
}

/// Lets a thread sleep between its clock and its commit now and then.
mod delay {
    /// Without test points nothing can be put there: the soak stops processes at random instead.
    #[cfg(not(feature = "test-points"))]
    pub(super) fn install(_: u64) {}

    #[cfg(not(feature = "test-points"))]
    pub(super) fn taken() -> u64 {
        0
    }

    #[cfg(feature = "test-points")]
    pub(super) use with_points::{install, taken};

    #[cfg(feature = "test-points")]
    mod with_points {
        use crate::points::place::point_of;
        use crate::points::point::Point;
        use shm_layout::SLOT_WORDS;
        use shm_layout::points::install as hook;
        use std::sync::atomic::{AtomicU64, Ordering};
        use std::time::Duration;

        /// Stores of an event's slot: 0 for being written, the payload, the stamp.
        const STORES: u64 = SLOT_WORDS as u64 + 1;
        /// One event of so many is delayed.
        const RARE: u64 = 2221;

        static VISITS: AtomicU64 = AtomicU64::new(0);
        static TAKEN: AtomicU64 = AtomicU64::new(0);

        /// From now on.
        pub(crate) fn install(seed: u64) {
            VISITS.store(seed % RARE * STORES, Ordering::Relaxed);
            hook(|visit| {
                // Behind the first store the slot is being written: the clock was read before, the commit is to come.
                if point_of(visit) == Some(Point::EmitSlot)
                    && VISITS.fetch_add(1, Ordering::Relaxed).is_multiple_of(RARE * STORES)
                {
                    let taken = TAKEN.fetch_add(1, Ordering::Relaxed);
                    // Now and then for longer than a bucket of the history: the one it belongs to is published by then.
                    let delay = if taken % 16 == 7 { 300 } else { 3 };
                    std::thread::sleep(Duration::from_millis(delay));
                }
            });
        }

        /// Delays so far.
        pub(crate) fn taken() -> u64 {
            TAKEN.load(Ordering::Relaxed)
        }
    }
}
