//! What a thread has on one device, by a model that knows nothing of events, rows, latches or counters.

use super::mix::Step;
use crate::model::{DeviceModel, Thing};
use crate::script::DeviceTruth;
use shm_layout::Class;
use std::collections::BTreeMap;

/// The most that was used since the last reset.
#[derive(Clone, Debug, Default)]
pub struct Peaks {
    /// By class code.
    pub classes: [u64; Class::COUNT],
    /// DRAM.
    pub dram: u64,
    /// L1 of Tensix cores.
    pub l1: u64,
    /// L1 of ethernet cores.
    pub eth: u64,
}

/// What a thread has on one device.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    model: DeviceModel,
    peaks: Peaks,
    /// Bytes and number ever allocated, by class code.
    allocated: [(u64, u64); Class::COUNT],
    /// Dispatches of each program, and how many of them were cached.
    programs: BTreeMap<u64, (u64, u64)>,
}

impl Ledger {
    /// Something happens.
    pub fn apply(&mut self, step: Step) {
        match step {
            Step::Add(name, thing) => {
                self.model.add(name, thing);
                self.count(thing);
            }
            Step::Remove(name) => self.model.remove(name),
            Step::Dispatch(program, cached, lane) => {
                self.model.dispatch(program, cached, lane);
                let (dispatches, hits) = self.programs.entry(program).or_default();
                *dispatches += 1;
                *hits += u64::from(cached);
            }
            Step::Forget(program) => drop(self.programs.remove(&program)),
            Step::ResetPeaks => self.peaks = Peaks::default(),
        }
        self.measure();
    }

    fn count(&mut self, thing: Thing) {
        let (bytes, count) = &mut self.allocated[thing.class as usize];
        *bytes += thing.size;
        *count += 1;
    }

    fn measure(&mut self) {
        let now = self.model.truth();
        let raise = |peak: &mut u64, value: u64| *peak = (*peak).max(value);
        self.peaks.classes.iter_mut().zip(now.bytes).for_each(|(peak, bytes)| raise(peak, bytes));
        raise(&mut self.peaks.dram, now.dram_used);
        raise(&mut self.peaks.l1, now.l1_used);
        raise(&mut self.peaks.eth, now.eth_used);
    }

    /// What is used now.
    pub fn now(&self) -> DeviceTruth {
        self.model.truth()
    }

    /// The most that was used.
    pub fn peaks(&self) -> &Peaks {
        &self.peaks
    }

    /// Bytes and number ever allocated, by class code.
    pub fn allocated(&self) -> [(u64, u64); Class::COUNT] {
        self.allocated
    }

    /// Program, dispatches, cached ones.
    pub fn programs(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.programs.iter().map(|(id, (dispatches, hits))| (*id, *dispatches, *hits))
    }

    /// Everything live: class, id, size.
    pub fn live(&self) -> impl Iterator<Item = (u8, u64, u64)> {
        self.model.live()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Name;

    fn dram(size: u64) -> Thing {
        Thing::new(Class::Dram, size)
    }

    #[test]
    fn peaks_outlive_what_made_them_until_they_are_reset() {
        let mut ledger = Ledger::default();
        ledger.apply(Step::Add(Name::Buffer(1), dram(100)));
        ledger.apply(Step::Add(Name::Buffer(2), dram(50)));
        ledger.apply(Step::Remove(Name::Buffer(1)));
        assert_eq!((ledger.now().dram_used, ledger.peaks().dram), (50, 150));
        ledger.apply(Step::ResetPeaks);
        assert_eq!((ledger.peaks().dram, ledger.peaks().classes[0]), (50, 50));
        assert_eq!(ledger.allocated()[0], (150, 2));
    }
}
