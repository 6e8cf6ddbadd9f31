//! Several threads that do the same at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use tt_shm_measure::clock::Stopwatch;
use tt_shm_measure::host_work::HostWork;
use tt_shm_measure::sink::{Sink, Tracked};
use tt_shm_measure::timing::{Effort, Measured, Timed, round};
use tt_shm_measure::workload::{Probe, SIZE, Workload};
use tt_shm_writer::Tracker;

/// A workload for each thread.
#[derive(Debug)]
pub struct Team<W>(Vec<W>);

impl<W> Team<W> {
    /// No more than there are cores, or the scheduler is measured.
    pub fn new(members: impl Into<Vec<W>>) -> Team<W> {
        Team(members.into())
    }
}

/// Nanoseconds per event that each thread sees while all run. A round lasts from the first start to the
/// last end: threads that do not run at the same time make it longer, and do not seem to be undisturbed.
pub fn measure_together<W: Workload + Send>(team: Team<W>, effort: Effort) -> Measured {
    let gate = Gate { members: team.0.len(), arrived: AtomicUsize::new(0) };
    let effort = Effort { rounds: effort.rounds / 5, events: effort.events * 5, ..effort };
    let results: Vec<(Vec<Span>, Timed)> = std::thread::scope(|scope| {
        let start = |workload| scope.spawn(|| member(workload, &gate, effort));
        let threads: Vec<_> = team.0.into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    let length = |round: usize| {
        let start = results.iter().map(|(spans, _)| spans[round].start).min();
        let end = results.iter().map(|(spans, _)| spans[round].end).max();
        Some(end?.saturating_sub(start?))
    };
    let best = (0..effort.rounds as usize).filter_map(length).min().unwrap_or(0);
    let mut all = Timed::default();
    for (_, timed) in &results {
        all.merge(timed);
    }
    let ns = Stopwatch::get().ns(best) / effort.events as f64;
    Measured { ns, percentiles: Some(all.percentiles()) }
}

/// One event after a piece of other work, which is not timed: how hosts use a handle that their threads share.
#[derive(Debug)]
pub struct Spaced<S> {
    sink: S,
    work: HostWork,
    id: u64,
    live: bool,
}

impl<S: Sink> Spaced<S> {
    /// Allocates and frees this buffer, with so many nanoseconds of work before each.
    pub fn new(sink: S, id: u64, ns: f64) -> Spaced<S> {
        Spaced { sink, work: HostWork::of(ns), id, live: false }
    }
}

impl<S: Sink> Workload for Spaced<S> {
    fn events(&self) -> u64 {
        1
    }

    fn step<P: Probe>(&mut self, probe: &mut P) {
        self.work.run();
        let Spaced { sink, id, live, .. } = self;
        match live {
            true => probe.event(|| sink.free(*id, SIZE)),
            false => probe.event(|| sink.alloc(*id, SIZE)),
        }
        *live = !*live;
    }
}

/// Two threads that use a handle in turns, never at the same time: the first event of each turn, which takes the bias
/// of the lock from the other. A turn is long enough to get it.
pub fn hand_over(sink: &Tracked<Tracker>, turns: u64) -> Measured {
    let (to_other, from_main) = channel::<()>();
    let (to_main, from_other) = channel::<()>();
    let turn = |sink: &mut Tracked<Tracker>, id: u64, timed: &mut Timed| {
        // The other one has gone to sleep by then, and this one has done something else before it reports.
        HostWork::of(SOME_WORK_NS).run();
        timed.event(|| sink.alloc(id, SIZE));
        sink.free(id, SIZE);
        for _ in 0..TURN {
            sink.alloc(id, SIZE);
            sink.free(id, SIZE);
        }
    };
    let mut other = sink.share();
    let thread = std::thread::spawn(move || {
        let mut timed = Timed::default();
        while from_main.recv().is_ok() {
            turn(&mut other, 1, &mut timed);
            let _ = to_main.send(());
        }
        timed
    });
    let (mut own, mut all) = (sink.share(), Timed::default());
    for _ in 0..turns {
        turn(&mut own, 2, &mut all);
        to_other.send(()).expect("the other thread waits");
        from_other.recv().expect("the other thread answers");
    }
    drop(to_other);
    all.merge(&thread.join().expect("no thread panics"));
    all.median()
}

const SOME_WORK_NS: f64 = 50_000.0;
/// Pairs in a turn: after many evictions it takes this many uses in a row to get the bias.
const TURN: u64 = 40_000;

/// Lets all start at the same moment, each running already: being woken takes as long as a round.
struct Gate {
    members: usize,
    arrived: AtomicUsize,
}

impl Gate {
    fn pass(&self, number: usize) {
        self.arrived.fetch_add(1, Ordering::Relaxed);
        let mut looks = 0_u32;
        while self.arrived.load(Ordering::Relaxed) < (number + 1) * self.members {
            looks += 1;
            // The other one may be waiting for this core.
            if looks.is_multiple_of(1000) {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}

/// A round of one thread, in ticks, which are common to all cores.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u64,
    end: u64,
}

fn member<W: Workload>(mut workload: W, gate: &Gate, effort: Effort) -> (Vec<Span>, Timed) {
    let clock = Stopwatch::get();
    let mut spans = Vec::new();
    for number in 0..effort.rounds as usize {
        gate.pass(number);
        let start = clock.ticks();
        round(&mut workload, effort);
        spans.push(Span { start, end: clock.ticks() });
    }
    let mut timed = Timed::default();
    gate.pass(effort.rounds as usize);
    for _ in 0..effort.samples / workload.events() {
        workload.step(&mut timed);
    }
    (spans, timed)
}
