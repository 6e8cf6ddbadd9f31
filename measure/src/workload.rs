//! What is repeated: pairs of allocation and free on anything that can be told of them.

use crate::sink::{Sink, Tracked, WrongSum};
use fastrand::Rng;
use tt_shm_writer::Record;

/// Surrounds each event of a workload, to time it or not.
pub trait Probe {
    /// Runs one event.
    fn event<R>(&mut self, work: impl FnOnce() -> R) -> R;
}

/// Times nothing: what is left is the workload itself.
#[derive(Clone, Copy, Debug)]
pub struct Untimed;

impl Probe for Untimed {
    #[inline(always)]
    fn event<R>(&mut self, work: impl FnOnce() -> R) -> R {
        work()
    }
}

/// A piece of work to be repeated.
pub trait Workload {
    /// Events per step.
    fn events(&self) -> u64;

    /// One repetition.
    fn step<P: Probe>(&mut self, probe: &mut P);

    /// Events after which all its memory was touched, about: before that, caches hold what ran before it.
    fn footprint(&self) -> u64 {
        0
    }

    /// Waits until nobody else is busy with what was done.
    fn settle(&mut self) {}
}

/// One call, one event.
#[derive(Clone, Copy, Debug)]
pub struct Single<F>(pub F);

impl<F: FnMut()> Workload for Single<F> {
    fn events(&self) -> u64 {
        1
    }

    #[inline(always)]
    fn step<P: Probe>(&mut self, probe: &mut P) {
        probe.event(&mut self.0);
    }
}

/// Which allocation is freed next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Any of them; the next allocation has an id that was never used, as tt-metal's buffers have.
    Random,
    /// Any of them; the next allocation has the same id. What was just looked up is found in cache.
    RandomSameId,
    /// The youngest: a burst of allocations, freed in reverse order.
    Lifo,
}

impl Order {
    /// As it is called in results.
    pub fn name(self) -> &'static str {
        match self {
            Order::Random => "random",
            Order::RandomSameId => "random, same id",
            Order::Lifo => "lifo",
        }
    }
}

/// Allocations of a burst.
const BURST: usize = 32;
/// Bytes of each allocation.
pub const SIZE: u64 = 4096;

/// Pairs of free and allocation, with a constant number live.
#[derive(Debug)]
pub struct Pairs<S> {
    /// Who is told.
    pub sink: S,
    live: Vec<u64>,
    next: u64,
    order: Order,
    random: Rng,
}

impl<S: Sink> Pairs<S> {
    /// Allocates `live` buffers. Ids begin at `first`: threads that share a sink must differ.
    pub fn new(mut sink: S, live: usize, order: Order, first: u64) -> Pairs<S> {
        let ids: Vec<u64> = (first..first + live as u64).collect();
        for id in &ids {
            sink.alloc(*id, SIZE);
        }
        Pairs { sink, live: ids, next: first + live as u64, order, random: Rng::with_seed(first) }
    }

    /// Frees everything, so that the sink can be used again.
    pub fn finish(mut self) -> S {
        for id in &self.live {
            self.sink.free(*id, SIZE);
        }
        self.sink
    }

    /// Bytes that are live between two steps.
    pub fn live_bytes(&self) -> u64 {
        self.live.len() as u64 * SIZE
    }

    /// Changes the order.
    pub fn set_order(&mut self, order: Order) {
        self.order = order;
    }

    #[inline(always)]
    fn pair<P: Probe>(&mut self, probe: &mut P) {
        let slot = self.random.usize(..self.live.len());
        let old = self.live[slot];
        let new = if self.order == Order::Random { self.fresh() } else { old };
        self.live[slot] = new;
        probe.event(|| self.sink.free(old, SIZE));
        probe.event(|| self.sink.alloc(new, SIZE));
    }

    #[inline(always)]
    fn burst<P: Probe>(&mut self, probe: &mut P) {
        let first = self.next;
        self.next += BURST as u64;
        for id in first..self.next {
            probe.event(|| self.sink.alloc(id, SIZE));
        }
        for id in (first..self.next).rev() {
            probe.event(|| self.sink.free(id, SIZE));
        }
    }

    #[inline(always)]
    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}

impl<S: Sink> Workload for Pairs<S> {
    fn events(&self) -> u64 {
        if self.order == Order::Lifo { 2 * BURST as u64 } else { 2 }
    }

    #[inline(always)]
    fn step<P: Probe>(&mut self, probe: &mut P) {
        match self.order {
            Order::Lifo => self.burst(probe),
            Order::Random | Order::RandomSameId => self.pair(probe),
        }
    }

    fn footprint(&self) -> u64 {
        2 * self.live.len() as u64
    }

    fn settle(&mut self) {
        self.sink.settle();
    }
}

impl<R: Record> Pairs<Tracked<R>> {
    /// Whether the tracker counts what is live.
    pub fn check(&self) -> Result<(), WrongSum> {
        WrongSum::check("bytes of DRAM counted", self.sink.dram_bytes(), self.live_bytes())
    }
}
