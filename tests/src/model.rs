//! A naive model of what a process holds: it keeps every live thing and knows nothing of events, rows,
//! latches or counters. What the monitor says is compared with it.

use crate::script::{DeviceTruth, Truth};
use shm_layout::Class;
use std::collections::{BTreeMap, BTreeSet};

/// A live thing.
#[derive(Clone, Copy, Debug)]
pub struct Thing {
    /// Its class.
    pub class: Class,
    /// Bytes that it occupies.
    pub size: u64,
    /// Bytes that were asked for.
    pub requested: u64,
    /// Whether it lies on ethernet cores.
    pub ethernet: bool,
}

impl Thing {
    /// Something that occupies what was asked for, not on ethernet cores.
    pub fn new(class: Class, size: u64) -> Thing {
        Thing { class, size, requested: size, ethernet: false }
    }

    /// The same on ethernet cores, if so.
    pub fn on_ethernet(self, ethernet: bool) -> Thing {
        Thing { ethernet, ..self }
    }

    /// So many bytes were asked for.
    pub fn asked_for(self, requested: u64) -> Thing {
        Thing { requested, ..self }
    }
}

/// Names a thing: circular buffers by program too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// A buffer.
    Buffer(u64),
    /// A circular buffer of a program.
    Cb(u64, u64),
    /// A kernel; its program has the same id.
    Kernel(u64),
}

impl Name {
    /// The id that the host gave it.
    pub fn id(self) -> u64 {
        match self {
            Name::Buffer(id) | Name::Cb(_, id) | Name::Kernel(id) => id,
        }
    }

    fn program(self) -> Option<u64> {
        match self {
            Name::Buffer(_) => None,
            Name::Cb(program, _) | Name::Kernel(program) => Some(program),
        }
    }
}

/// What a process holds on one device.
#[derive(Clone, Debug, Default)]
pub struct DeviceModel {
    live: BTreeMap<Name, Thing>,
    resident: Resident,
    sums: DeviceTruth,
}

/// What is resident: fabric and dispatch kernels while they are loaded, and in each lane what the program dispatched
/// there last had then and still has.
#[derive(Clone, Debug, Default)]
pub struct Resident {
    system: BTreeSet<Name>,
    lanes: BTreeMap<u8, (u64, BTreeSet<Name>)>,
}

impl Resident {
    /// Something begins to live.
    pub fn add(&mut self, name: Name, class: Class) {
        if class.is_system_kernel() {
            self.system.insert(name);
        }
    }

    /// Something ends.
    pub fn remove(&mut self, name: Name) {
        self.system.remove(&name);
        for (_, names) in self.lanes.values_mut() {
            names.remove(&name);
        }
    }

    /// A program is dispatched: from now on it is in this lane and in no other.
    pub fn dispatch(&mut self, live: &BTreeMap<Name, Thing>, program: u64, lane: u8) {
        self.lanes.retain(|_, (resident, _)| *resident != program);
        let cbs = live.range(Name::Cb(program, 0)..=Name::Cb(program, u64::MAX)).map(|(name, _)| *name);
        let kernel = [Name::Kernel(program)].into_iter().filter(|name| live.contains_key(name));
        self.lanes.insert(lane, (program, cbs.chain(kernel).collect()));
    }

    /// Everything, as often as it is resident.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.system.iter().chain(self.lanes.values().flat_map(|(_, names)| names))
    }
}

impl DeviceModel {
    /// Something begins to live.
    pub fn add(&mut self, name: Name, thing: Thing) {
        self.live.insert(name, thing);
        self.sums.bytes[thing.class as usize] += thing.size;
        self.sums.requested[thing.class as usize] += thing.requested;
        self.sums.counts[thing.class as usize] += 1;
        self.resident.add(name, thing.class);
        self.measure();
    }

    /// Something ends.
    pub fn remove(&mut self, name: Name) {
        let thing = self.live.remove(&name).expect("the workload frees only what is live");
        self.sums.bytes[thing.class as usize] -= thing.size;
        self.sums.requested[thing.class as usize] -= thing.requested;
        self.sums.counts[thing.class as usize] -= 1;
        self.resident.remove(name);
        self.measure();
    }

    /// An application program is dispatched in a lane.
    pub fn dispatch(&mut self, program: u64, cached: bool, lane: u8) {
        self.resident.dispatch(&self.live, program, lane);
        self.sums.dispatches += 1;
        self.sums.cached += u64::from(cached);
        self.measure();
    }

    /// Peaks are counted anew.
    pub fn reset_peaks(&mut self) {
        (self.sums.dram_peak, self.sums.l1_peak) = (self.sums.dram_used, self.sums.l1_used);
    }

    /// Whether something of a program is live.
    pub fn has_program(&self, program: u64) -> bool {
        self.live.keys().any(|name| name.program() == Some(program))
    }

    fn measure(&mut self) {
        let bytes = |class: Class| self.sums.bytes[class as usize];
        let resident = |wanted: &dyn Fn(&Thing) -> bool| -> u64 {
            self.resident.names().map(|name| self.live[name]).filter(wanted).map(|t| t.size).sum()
        };
        let dram = bytes(Class::Dram) + bytes(Class::Trace);
        // Kernels on Tensix cores lie in reserved memory.
        let l1 = bytes(Class::L1) + bytes(Class::L1Small) + resident(&|thing| thing.class == Class::Cb);
        self.sums.eth_used = resident(&|thing| thing.ethernet);
        self.sums.dram_used = dram;
        self.sums.l1_used = l1;
        self.sums.dram_peak = self.sums.dram_peak.max(dram);
        self.sums.l1_peak = self.sums.l1_peak.max(l1);
    }

    /// The figures.
    pub fn truth(&self) -> DeviceTruth {
        self.sums.clone()
    }

    /// Everything live: class, id, size.
    pub fn live(&self) -> impl Iterator<Item = (u8, u64, u64)> {
        self.live.iter().map(|(name, thing)| (thing.class as u8, name.id(), thing.size))
    }
}

/// What a process holds on all its devices.
pub fn truth(devices: &[DeviceModel]) -> Truth {
    let live = devices.iter().enumerate().flat_map(|(number, device)| {
        device.live().map(move |(class, id, size)| (number as u8, class, id, size))
    });
    let mut live: Vec<_> = live.collect();
    live.sort_unstable();
    Truth { devices: devices.iter().map(DeviceModel::truth).collect(), live }
}

impl Truth {
    /// Adds what another thread of the same process did. Peaks are unknowable then.
    pub fn merge(&mut self, other: Truth) {
        self.devices.resize(self.devices.len().max(other.devices.len()), DeviceTruth::default());
        for (sum, device) in self.devices.iter_mut().zip(&other.devices) {
            let add = |sum: &mut u64, more: u64| *sum += more;
            sum.bytes.iter_mut().zip(device.bytes).for_each(|(sum, more)| add(sum, more));
            sum.requested.iter_mut().zip(device.requested).for_each(|(sum, more)| add(sum, more));
            sum.counts.iter_mut().zip(device.counts).for_each(|(sum, more)| add(sum, more));
            add(&mut sum.dram_used, device.dram_used);
            add(&mut sum.dispatches, device.dispatches);
            add(&mut sum.cached, device.cached);
            sum.order_unknown = true;
        }
        self.live.extend(other.live);
        self.live.sort_unstable();
    }
}
