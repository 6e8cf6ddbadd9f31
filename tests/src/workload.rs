//! A deterministic mix of calls: what a host reports, and at the same time what its model believes.

use crate::model::{DeviceModel, Name, Thing, truth};
use crate::script::Truth;
use shm_layout::{Class, CoreType, KernelType};
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, Device, Kernel, Launch, ProgramBinaryStatus, Record, RecordError,
};

/// Live buffers per device around which the mix settles.
const LIVE: usize = 200;
/// Programs per device.
const PROGRAMS: u64 = 6;

/// A small generator; the same seed gives the same mix everywhere.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From any seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// One thread's mix over the devices of a process.
pub struct Workload {
    random: Random,
    devices: Vec<Device>,
    models: Vec<DeviceModel>,
    buffers: Vec<Vec<u64>>,
    /// Ids start here, so that threads do not meet.
    next_id: u64,
    /// First id of this thread's programs.
    programs: u64,
    /// Programs displace each other, so with several threads nobody knows what is resident.
    with_programs: bool,
}

impl Workload {
    /// The mix of thread number `thread` of `threads`.
    pub fn new(seed: u64, devices: Vec<Device>, thread: u64, threads: u64) -> Workload {
        let count = devices.len();
        Workload {
            random: Random::new(seed ^ thread << 32),
            devices,
            models: vec![DeviceModel::default(); count],
            buffers: vec![Vec::new(); count],
            next_id: thread << 48 | 1,
            programs: thread << 48 | 1 << 40,
            with_programs: threads == 1,
        }
    }

    /// What the model believes.
    pub fn truth(&self) -> Truth {
        truth(&self.models)
    }

    /// Makes one call.
    pub fn step(&mut self, tracker: &impl Record) -> Result<(), RecordError> {
        let device = self.random.below(self.devices.len() as u64) as usize;
        match self.random.below(10) {
            0 | 1 if self.with_programs => self.program_step(tracker, device),
            choice if choice < 6 && self.buffers[device].len() < LIVE => self.alloc(tracker, device),
            _ if !self.buffers[device].is_empty() => self.free(tracker, device),
            _ => self.alloc(tracker, device),
        }
    }

    fn alloc(&mut self, tracker: &impl Record, device: usize) -> Result<(), RecordError> {
        let types = [
            BufferType::Dram,
            BufferType::L1,
            BufferType::L1Small,
            BufferType::Trace,
            BufferType::SystemMemory,
        ];
        let buffer_type = types[self.random.below(5) as usize];
        let (id, size) = (self.next_id, self.random.below(1 << 20));
        self.next_id += 1;
        tracker.alloc(self.devices[device], Alloc::new(buffer_type, id, size))?;
        let thing = Thing::new(buffer_type.class(), size);
        self.models[device].add(Name::Buffer(id), thing);
        self.buffers[device].push(id);
        Ok(())
    }

    fn free(&mut self, tracker: &impl Record, device: usize) -> Result<(), RecordError> {
        let place = self.random.below(self.buffers[device].len() as u64) as usize;
        let id = self.buffers[device].swap_remove(place);
        tracker.free(self.devices[device], id)?;
        self.models[device].remove(Name::Buffer(id));
        Ok(())
    }

    /// Launches, dispatches or destroys a program.
    fn program_step(&mut self, tracker: &impl Record, device: usize) -> Result<(), RecordError> {
        let program = self.programs + self.random.below(PROGRAMS);
        let target = self.devices[device];
        let model = &mut self.models[device];
        if !model.has_program(program) {
            return self.launch(tracker, device, program);
        }
        if self.random.below(8) > 0 {
            tracker.dispatch(target, program)?;
            model.dispatch(program, true, 0);
            return Ok(());
        }
        tracker.program_end(target, program)?;
        (0..2).for_each(|cb| model.remove(Name::Cb(program, cb)));
        model.remove(Name::Kernel(program));
        Ok(())
    }

    fn launch(&mut self, tracker: &impl Record, device: usize, program: u64) -> Result<(), RecordError> {
        let target = self.devices[device];
        let (binary, cores) = (self.random.below(100_000), 1 + self.random.below(64) as u32);
        for cb in 0..2 {
            let size = self.random.below(4096);
            tracker.cb_alloc(target, CircularBuffer::new(program, cb, size, cores))?;
            let thing = Thing::new(Class::Cb, size * u64::from(cores));
            self.models[device].add(Name::Cb(program, cb), thing);
        }
        let ethernet = self.random.below(4) == 0;
        let core_type = if ethernet { CoreType::Ethernet } else { CoreType::Tensix };
        let kernel = Kernel::new(program, KernelType::Application, core_type, binary, cores);
        tracker.launch(target, Launch::new(program, &[kernel], ProgramBinaryStatus::NotSent))?;
        let class = Class::KernelApplication;
        let model = &mut self.models[device];
        model.add(Name::Kernel(program), Thing::new(class, binary * u64::from(cores)).on_ethernet(ethernet));
        model.dispatch(program, false, 0);
        Ok(())
    }
}
