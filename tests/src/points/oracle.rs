//! What must be seen of a process after each of its steps, by the naive model.

use super::step::{BULK, CB_BYTES, DRAM_BYTES, KERNEL_BYTES, Scenario, Step};
use crate::model::{DeviceModel, Name, Thing, truth};
use crate::script::Truth;
use shm_layout::{Class, CoreType};
use std::collections::{BTreeMap, BTreeSet};

/// Dispatches and cached ones of a program, by device and program.
pub type Dispatches = BTreeMap<(u8, u64), (u64, u64)>;

/// What can be seen of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// Totals, peaks and the live list.
    pub truth: Truth,
    /// Programs that were dispatched and have something left.
    pub programs: Dispatches,
    /// Registered chips, and their DRAM.
    pub chips: Vec<(u64, u64)>,
    /// Interned names.
    pub names: Vec<String>,
    /// Misuses counted.
    pub anomalies: u64,
    /// What is live and has no row.
    pub unlisted: u64,
    /// Names of buffers, by device and id.
    pub labels: BTreeMap<(u8, u64), String>,
    /// Comparisons with the allocator, and those that found a difference.
    pub self_checks: [u64; 2],
}

/// What can be seen under a process's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// No segment.
    Absent,
    /// A segment.
    Present(World),
}

/// What each step of a scenario leads to: one state per event, the last of which stays.
pub fn states(scenario: Scenario) -> Vec<Vec<State>> {
    let mut oracle = Oracle::default();
    scenario.steps().into_iter().map(|step| oracle.take(step)).collect()
}

#[derive(Default)]
struct Oracle {
    open: bool,
    models: Vec<DeviceModel>,
    programs: Dispatches,
    chips: Vec<(u64, u64)>,
    names: Vec<String>,
    unlisted: BTreeSet<u64>,
    unlisted_count: u64,
    anomalies: u64,
    kernels: BTreeSet<(usize, u64)>,
    labels: BTreeMap<(u8, u64), String>,
    self_checks: [u64; 2],
}

impl Oracle {
    fn take(&mut self, step: Step) -> Vec<State> {
        let mut seen = Vec::new();
        match step {
            Step::Open => self.open = true,
            Step::Close | Step::Exit => self.open = false,
            Step::Register(chip) => {
                self.chips.push((chip, DRAM_BYTES));
                self.models.push(DeviceModel::default());
            }
            Step::Name(name) => self.names.push(name.to_owned()),
            Step::Alloc(device, buffer_type, id, size) => {
                self.buffer(device, buffer_type.class(), id, size);
                self.label(device, id);
            }
            Step::Rename(device, id) => self.label(device, id),
            Step::SelfCheck => {
                self.self_checks[0] += 1;
                seen.push(self.state());
                self.self_checks[1] += 1;
            }
            Step::AllocOnAll(id, size) => {
                for device in 0..self.models.len() {
                    self.buffer(device, Class::L1, id, size);
                    // One event per device.
                    seen.push(self.state());
                }
            }
            Step::Unlisted(device, id, size) => {
                self.unlisted.insert(id);
                self.buffer(device, Class::Dram, id, size);
                // What is wrong with a list is counted behind the event.
                seen.push(self.state());
                self.anomalies += 1;
                seen.push(self.state());
                self.unlisted_count += 1;
            }
            Step::Free(device, id) => {
                let unlisted = self.unlisted.remove(&id);
                self.models[device].remove(Name::Buffer(id));
                self.labels.remove(&(device as u8, id));
                seen.push(self.state());
                self.unlisted_count -= u64::from(unlisted);
            }
            Step::FreeMisjudged(device, id) => {
                self.models[device].remove(Name::Buffer(id));
                self.labels.remove(&(device as u8, id));
                seen.push(self.state());
                self.anomalies += 1;
            }
            Step::AllocTwice(..) | Step::FreeNothing(..) => self.anomalies += 1,
            Step::Load(device, kernel_type, core_type, id) => {
                self.kernel(device, kernel_type.class(), core_type, id);
            }
            Step::Cb(device, program, id) => {
                let thing = Thing::new(Class::Cb, 4 * CB_BYTES);
                self.models[device].add(Name::Cb(program, id), thing);
            }
            Step::CbFree(device, program, id) => self.models[device].remove(Name::Cb(program, id)),
            Step::Unload(device, id) => {
                self.models[device].remove(Name::Kernel(id));
                self.kernels.remove(&(device, id));
                // The end of a program is an event of its own.
                seen.push(self.state());
                if !self.models[device].has_program(id) {
                    self.programs.remove(&(device as u8, id));
                }
            }
            Step::Launch(device, id) => {
                let new = self.kernels.insert((device, id));
                if new {
                    self.kernel(device, Class::KernelApplication, CoreType::Tensix, id);
                    seen.push(self.state());
                }
                self.dispatch(device, id, !new);
            }
            Step::Dispatch(device, id) => self.dispatch(device, id, true),
            Step::ResetPeaks(device) => self.models[device].reset_peaks(),
            Step::Bulk(count) => (0..count).for_each(|id| self.buffer(0, Class::Dram, BULK | id, 1)),
            Step::Tell(_) | Step::Pause => {}
        }
        seen.push(self.state());
        seen
    }

    fn label(&mut self, device: usize, id: u64) {
        if let Some(name) = self.names.last() {
            self.labels.insert((device as u8, id), name.clone());
        }
    }

    fn buffer(&mut self, device: usize, class: Class, id: u64, size: u64) {
        self.models[device].add(Name::Buffer(id), Thing::new(class, size));
    }

    fn kernel(&mut self, device: usize, class: Class, core_type: CoreType, id: u64) {
        let (size, ethernet) = (2 * KERNEL_BYTES, core_type == CoreType::Ethernet);
        self.kernels.insert((device, id));
        self.models[device].add(Name::Kernel(id), Thing::new(class, size).on_ethernet(ethernet));
    }

    fn dispatch(&mut self, device: usize, id: u64, cached: bool) {
        self.models[device].dispatch(id, cached, 0);
        let (dispatches, hits) = self.programs.entry((device as u8, id)).or_default();
        *dispatches += 1;
        *hits += u64::from(cached);
    }

    fn state(&self) -> State {
        if !self.open {
            return State::Absent;
        }
        let mut truth = truth(&self.models);
        truth.live.retain(|(_, _, id, _)| !self.unlisted.contains(id));
        State::Present(World {
            truth,
            programs: self.programs.clone(),
            chips: self.chips.clone(),
            names: self.names.clone(),
            anomalies: self.anomalies,
            unlisted: self.unlisted_count,
            labels: self.labels.clone(),
            self_checks: self.self_checks,
        })
    }
}
