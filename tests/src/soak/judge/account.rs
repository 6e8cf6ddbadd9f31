//! What one process has on one device, by accounting of its own: the one place that says what "used" means here.

use super::super::mix::Step;
use crate::model::{Name, Resident, Thing};
use shm_layout::Class;
use std::collections::BTreeMap;

/// Quantities that have a peak: the bytes of the classes by code, then the sums.
pub const PEAKED: usize = Class::COUNT + 5;
/// Live allocations, by class.
pub const COUNTS: usize = PEAKED;
/// Bytes that were asked for, by class.
pub const REQUESTED: usize = COUNTS + Class::COUNT;
/// Bytes ever allocated, by class.
pub const ALLOCATED: usize = REQUESTED + Class::COUNT;
/// Allocations ever made, by class.
pub const ALLOCATIONS: usize = ALLOCATED + Class::COUNT;
/// Dispatches.
pub const DISPATCHES: usize = ALLOCATIONS + Class::COUNT;
/// Of those, the ones that found the binary cached.
pub const CACHED: usize = DISPATCHES + 1;
/// Allocations that failed.
pub const FAILED: usize = DISPATCHES + 2;
/// All quantities.
pub const QUANTITIES: usize = DISPATCHES + 3;
/// DRAM used.
pub const DRAM: usize = Class::COUNT;
/// L1 of Tensix cores used.
pub const L1: usize = Class::COUNT + 1;
/// L1 of ethernet cores used.
pub const ETH: usize = Class::COUNT + 2;
/// Circular buffers of resident programs.
pub const CB_RESIDENT: usize = Class::COUNT + 3;
/// Kernels on Tensix cores that are resident.
pub const KERNEL_RESIDENT: usize = Class::COUNT + 4;

/// A value of every quantity.
pub type Amounts = [u64; QUANTITIES];

/// What a quantity is called in a report.
pub fn name_of(quantity: usize) -> String {
    let of = |first: usize, what: &str| format!("{} {what}", Class::ALL[quantity - first].name());
    match quantity {
        DRAM => "dram_used".into(),
        L1 => "l1_used".into(),
        ETH => "eth_used".into(),
        CB_RESIDENT => "cb_resident".into(),
        KERNEL_RESIDENT => "kernel_resident".into(),
        DISPATCHES => "dispatches".into(),
        CACHED => "cached_dispatches".into(),
        FAILED => "failed_allocs".into(),
        ALLOCATIONS.. => of(ALLOCATIONS, "alloc_count"),
        ALLOCATED.. => of(ALLOCATED, "alloc_bytes"),
        REQUESTED.. => of(REQUESTED, "requested_bytes"),
        COUNTS.. => of(COUNTS, "live_count"),
        _ => of(0, "live_bytes"),
    }
}

/// A largest value since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Top {
    /// Bytes.
    pub bytes: u64,
    /// When it was reached first, in ticks; 0 if never.
    pub ticks: u64,
    /// Buffers at that time.
    pub count: u64,
}

impl Top {
    fn raise(&mut self, bytes: u64, ticks: u64, count: u64) {
        if bytes > self.bytes {
            *self = Top { bytes, ticks, count };
        }
    }
}

/// A process on a device behind one of its events.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Position of that event.
    pub position: u64,
    /// Everything now.
    pub now: Amounts,
    /// The process's own peaks: of the classes, DRAM, L1 and ethernet.
    pub tops: [Top; ETH + 1],
}

impl Default for Summary {
    fn default() -> Summary {
        Summary { position: 0, now: [0; QUANTITIES], tops: Default::default() }
    }
}

impl Summary {
    /// Live allocations of a class.
    pub fn count(&self, class: Class) -> u64 {
        self.now[COUNTS + class as usize]
    }

    /// Buffers in DRAM.
    pub fn dram_count(&self) -> u64 {
        self.count(Class::Dram) + self.count(Class::Trace)
    }

    /// Buffers in L1.
    pub fn l1_count(&self) -> u64 {
        self.count(Class::L1) + self.count(Class::L1Small)
    }
}

/// The same while it goes on.
#[derive(Clone, Debug, Default)]
pub struct Account {
    live: BTreeMap<Name, Thing>,
    resident: Resident,
    /// What it comes to.
    pub summary: Summary,
}

impl Account {
    /// One event.
    pub fn apply(&mut self, step: Step, position: u64, ticks: u64) {
        match step {
            Step::Add(name, thing) => self.add(name, thing),
            Step::Remove(name) => self.remove(name),
            Step::Dispatch(program, cached, lane) => self.dispatch(program, cached, lane),
            Step::Forget(_) => {}
            Step::ResetPeaks => self.summary.tops = Default::default(),
        }
        self.measure(ticks, matches!(step, Step::ResetPeaks));
        self.summary.position = position;
    }

    /// An allocation failed.
    pub fn fail(&mut self, position: u64) {
        self.summary.now[FAILED] += 1;
        self.summary.position = position;
    }

    /// Everything live: class, id, size.
    pub fn live(&self) -> impl Iterator<Item = (u8, u64, u64)> {
        self.live.iter().map(|(name, thing)| (thing.class as u8, name.id(), thing.size))
    }

    fn add(&mut self, name: Name, thing: Thing) {
        let class = thing.class as usize;
        self.live.insert(name, thing);
        let now = &mut self.summary.now;
        now[class] += thing.size;
        now[COUNTS + class] += 1;
        now[REQUESTED + class] += thing.requested;
        now[ALLOCATED + class] += thing.size;
        now[ALLOCATIONS + class] += 1;
        self.resident.add(name, thing.class);
    }

    fn remove(&mut self, name: Name) {
        let thing = self.live.remove(&name).expect("a mix frees only what is live");
        let (class, now) = (thing.class as usize, &mut self.summary.now);
        now[class] -= thing.size;
        now[COUNTS + class] -= 1;
        now[REQUESTED + class] -= thing.requested;
        self.resident.remove(name);
    }

    fn dispatch(&mut self, program: u64, cached: bool, lane: u8) {
        self.resident.dispatch(&self.live, program, lane);
        self.summary.now[DISPATCHES] += 1;
        self.summary.now[CACHED] += u64::from(cached);
    }

    fn measure(&mut self, ticks: u64, reset: bool) {
        let resident = |wanted: fn(&Thing) -> bool| -> u64 {
            self.resident.names().map(|name| &self.live[name]).filter(|t| wanted(t)).map(|t| t.size).sum()
        };
        let cbs = resident(|thing| thing.class == Class::Cb);
        let kernels = resident(|thing| thing.class != Class::Cb && !thing.ethernet);
        let ethernet = resident(|thing| thing.ethernet);
        let summary = &mut self.summary;
        let now = &mut summary.now;
        (now[CB_RESIDENT], now[KERNEL_RESIDENT], now[ETH]) = (cbs, kernels, ethernet);
        now[DRAM] = now[Class::Dram as usize] + now[Class::Trace as usize];
        now[L1] = now[Class::L1 as usize] + now[Class::L1Small as usize] + cbs;
        let (dram, l1) = (summary.dram_count(), summary.l1_count());
        for (quantity, top) in summary.tops.iter_mut().enumerate() {
            let count = match quantity {
                DRAM => dram,
                L1 => l1,
                ETH => 0,
                class => summary.now[COUNTS + class],
            };
            let bytes = summary.now[quantity];
            if reset {
                *top = Top { bytes, ticks, count };
            } else {
                top.raise(bytes, ticks, count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_is_what_was_dispatched_last() {
        let thing = |class, size| Thing::new(class, size);
        let mut account = Account::default();
        account.apply(Step::Add(Name::Cb(1, 0), thing(Class::Cb, 10)), 1, 100);
        account.apply(Step::Add(Name::Kernel(1), thing(Class::KernelApplication, 5)), 2, 200);
        assert_eq!(account.summary.now[L1], 0);
        account.apply(Step::Dispatch(1, false, 0), 3, 300);
        let now = account.summary.now;
        assert_eq!(
            (now[L1], now[CB_RESIDENT], now[KERNEL_RESIDENT]),
            (10, 10, 5),
            "kernels are no part of L1"
        );
        account.apply(Step::Remove(Name::Cb(1, 0)), 4, 400);
        assert_eq!(account.summary.now[L1], 0);
        assert_eq!(account.summary.tops[L1], Top { bytes: 10, ticks: 300, count: 0 });
    }
}
