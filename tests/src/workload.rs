//! A deterministic mix of calls: what a host reports, and at the same time what its model believes.

use crate::model::{DeviceModel, Name, Thing, truth};
use crate::script::Truth;
use fastrand::Rng;
use shm_layout::{Class, CoreType, KernelType};
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, Device, Kernel, Launch, ProgramBinaryStatus, Record, RecordError,
};

/// Live buffers per device around which the mix settles.
const LIVE: usize = 200;
/// Programs per device.
const PROGRAMS: u64 = 6;

/// One thread's mix over the devices of a process.
pub struct Workload {
    random: Rng,
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
            random: Rng::with_seed(seed ^ thread << 32),
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
        let device = self.random.usize(..self.devices.len());
        match self.random.u64(..10) {
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
        let buffer_type = types[self.random.usize(..5)];
        let (id, size) = (self.next_id, self.random.u64(..1 << 20));
        self.next_id += 1;
        tracker.alloc(self.devices[device], Alloc::new(buffer_type, id, size))?;
        let thing = Thing::new(buffer_type.class(), size);
        self.models[device].add(Name::Buffer(id), thing);
        self.buffers[device].push(id);
        Ok(())
    }

    fn free(&mut self, tracker: &impl Record, device: usize) -> Result<(), RecordError> {
        let place = self.random.usize(..self.buffers[device].len());
        let id = self.buffers[device].swap_remove(place);
        tracker.free(self.devices[device], id)?;
        self.models[device].remove(Name::Buffer(id));
        Ok(())
    }

    /// Launches, dispatches or destroys a program.
    fn program_step(&mut self, tracker: &impl Record, device: usize) -> Result<(), RecordError> {
        let program = self.programs + self.random.u64(..PROGRAMS);
        let target = self.devices[device];
        let model = &mut self.models[device];
        if !model.has_program(program) {
            return self.launch(tracker, device, program);
        }
        if self.random.u64(..8) > 0 {
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
        let (binary, cores) = (self.random.u64(..100_000), 1 + self.random.u32(..64));
        for cb in 0..2 {
            let size = self.random.u64(..4096);
            tracker.cb_alloc(target, CircularBuffer::new(program, cb, size, cores))?;
            let thing = Thing::new(Class::Cb, size * u64::from(cores));
            self.models[device].add(Name::Cb(program, cb), thing);
        }
        let ethernet = self.random.u64(..4) == 0;
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
