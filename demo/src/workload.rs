//! A believable tt-metal workload: weights, programs, steps with transient buffers.

use fastrand::Rng;
use tt_shm_writer::{
    Alloc, AllocGuard, BufferType, CoreType, Device, FailedAlloc, Kernel, KernelType, MarkerPhase, Mesh,
    NameId, Record, RecordError,
};

use crate::banks::Banks;
use crate::board::{self, ETH_CORES, KERNEL_RING_BYTES, TENSIX_CORES};
use crate::models::{OPERATIONS, Operation};
use crate::pace::Pace;
use crate::setup::{self, hash};
use crate::worker::Assignment;

pub(crate) type Recorded<T = ()> = Result<T, RecordError>;

/// Kernels that a process loads when it opens a device: bytes and cores.
const FABRIC: (u64, u32) = (57_344, ETH_CORES);
const DISPATCH: (u64, u32) = (47_104, 2);
/// Ids are the host's own: buffers count up, programs and kernels have ranges of their own.
const FABRIC_KERNEL: u64 = 0xf000;
const DISPATCH_KERNEL: u64 = 0xd000;
pub(crate) const FIRST_PROGRAM: u64 = 0x1000;
const FIRST_BUFFER: u64 = 0x10_0000;
/// Blocks of the cache that one request fills before it is done.
const CACHE_BLOCKS: usize = 24;
/// One step in so many is that of a large batch.
const LARGE_BATCHES: u64 = 150;
/// Steps after which a worker that leaks has forgotten another buffer.
const LEAK_STEPS: u64 = 32;
/// Steps between two reports of the kernel-config ring.
const RING_STEPS: u64 = 32;

/// A compiled program.
pub(crate) struct Compiled {
    pub(crate) id: u64,
    pub(crate) kernel: Kernel,
}

/// A running workload.
pub(crate) struct Workload<'a, R: Record> {
    pub(crate) record: &'a R,
    pub(crate) assignment: &'a Assignment,
    pub(crate) mesh: Mesh,
    devices: Vec<Device>,
    random: Rng,
    pub(crate) next_buffer: u64,
    memory: [Banks; 4],
    /// Everything that lives until the end.
    pub(crate) lasting: Vec<u64>,
    cache: Vec<u64>,
    /// What it has forgotten to free.
    leaked: Vec<u64>,
    trace: Option<u64>,
    pub(crate) programs: Vec<Compiled>,
    activation: NameId,
    step: NameId,
}

impl<'a, R: Record> Workload<'a, R> {
    /// Opens the devices: the runtime's own kernels are loaded.
    pub(crate) fn open(record: &'a R, assignment: &'a Assignment, devices: u32) -> Recorded<Self> {
        let devices = (0..devices).map(|number| record.register_device(&board::device(number)));
        let devices = devices.collect::<Recorded<Vec<Device>>>()?;
        let workload = Workload {
            record,
            assignment,
            mesh: Mesh::new(devices.clone()),
            devices,
            random: Rng::with_seed(assignment.seed),
            next_buffer: FIRST_BUFFER,
            memory: [&assignment.dram, &assignment.trace, &assignment.l1, &assignment.l1_small]
                .map(Clone::clone),
            lasting: Vec::new(),
            cache: Vec::new(),
            leaked: Vec::new(),
            trace: None,
            programs: Vec::new(),
            activation: record.intern("activation")?,
            step: record.intern("step")?,
        };
        record.device_open(&workload.mesh)?;
        if assignment.fabric {
            workload.load(
                FABRIC_KERNEL,
                KernelType::Fabric,
                CoreType::Ethernet,
                FABRIC,
                "fabric_erisc_router",
            )?;
        }
        workload.load(DISPATCH_KERNEL, KernelType::Dispatch, CoreType::Tensix, DISPATCH, "cq_dispatch")?;
        Ok(workload)
    }

    fn load(&self, id: u64, of: KernelType, on: CoreType, size: (u64, u32), name: &str) -> Recorded {
        let kernel = Kernel::new(id, of, on, size.0, size.1).hash(hash(name)).name(self.record.intern(name)?);
        self.record.kernel_load(&self.mesh, kernel).map(drop)
    }

    /// Loads, warms up, runs steps until `stop` says so, and frees everything.
    pub(crate) fn run(&mut self, stop: &dyn Fn() -> bool) -> Recorded {
        let mut pace = Pace::per_second(setup::LOAD_RATE);
        if self.load_weights(&mut pace, stop)? && self.warm_up(&mut pace, stop)? {
            self.capture_trace()?;
            let mut pace = Pace::per_second(self.assignment.rate);
            let mut step = 0;
            while self.run_step(step, &mut pace, stop)? {
                step += 1;
            }
        }
        self.close()
    }

    /// A place for a buffer of these sizes, by device, under the next id; of a single size if it is the same on all. A
    /// failure is reported.
    fn place(&mut self, of: BufferType, sizes: &[u64]) -> Recorded<Option<(u64, u64)>> {
        let id = self.next_buffer + 1;
        match banks(&mut self.memory, of).take(id, sizes) {
            Ok(address) => {
                self.next_buffer = id;
                Ok(Some((id, address)))
            }
            Err(shortage) => {
                let banks = banks(&mut self.memory, of).banks();
                let failed = FailedAlloc::new(of.class(), sizes.iter().copied().max().unwrap_or(0))
                    .free(shortage.free * banks, shortage.largest * banks)
                    .needed_per_bank(shortage.needed, banks as u32);
                self.record.alloc_failed(self.devices[shortage.device], failed)?;
                Ok(None)
            }
        }
    }

    fn describe(&mut self, of: BufferType, (id, address): (u64, u64), size: u64, name: NameId) -> Alloc {
        let alloc = Alloc::new(of, id, size).name(name).address(address);
        let alloc = alloc.bytes_per_bank(banks(&mut self.memory, of).per_bank(size));
        match of {
            BufferType::L1 | BufferType::L1Small => alloc.cores(TENSIX_CORES),
            _ => alloc,
        }
    }

    /// Allocates a buffer of these sizes, by device; of a single size if it is the same on all. `None` if it has no place.
    pub(crate) fn allocate(&mut self, of: BufferType, sizes: &[u64], name: NameId) -> Recorded<Option<u64>> {
        let Some(place) = self.place(of, sizes)? else { return Ok(None) };
        if let [size] = sizes {
            let alloc = self.describe(of, place, *size, name);
            self.record.alloc(&self.mesh, alloc)?;
        } else {
            for (number, size) in sizes.iter().enumerate() {
                let alloc = self.describe(of, place, *size, name);
                self.record.alloc(self.devices[number], alloc)?;
            }
        }
        Ok(Some(place.0))
    }

    fn free(&mut self, id: u64) -> Recorded {
        self.memory.iter_mut().for_each(|banks| banks.give_back(id));
        self.record.free(&self.mesh, id).map(drop)
    }

    /// The kernel-config ring holds the binaries of the programs that ran last, as many as it has room for.
    fn note_kernel_ring(&mut self, until: usize) -> Recorded {
        let step = self.assignment.network.step;
        let (mut used, mut inside) = (0, Vec::new());
        // What ran last in the step before comes before what ran first in this one.
        for number in step[..=until].iter().rev().chain(step[until + 1..].iter().rev()) {
            let bytes = OPERATIONS[*number].binary_bytes;
            if inside.contains(number) {
                continue;
            }
            if used + bytes > KERNEL_RING_BYTES {
                break;
            }
            used += bytes;
            inside.push(*number);
        }
        self.record.kernel_ring(&self.mesh, KERNEL_RING_BYTES, used, inside.len() as u64)
    }

    /// A trace replaces the one before it.
    fn capture_trace(&mut self) -> Recorded {
        if let Some(trace) = self.trace.take() {
            self.free(trace)?;
        }
        let name = self.record.intern("decode_trace")?;
        let size = self.assignment.share(self.random.u64(4..48) << 20);
        self.trace = self.allocate(BufferType::Trace, &[size], name)?;
        Ok(())
    }

    /// One step: every operation is dispatched with the activations it reads and makes.
    fn run_step(&mut self, number: u64, pace: &mut Pace, stop: &dyn Fn() -> bool) -> Recorded<bool> {
        let record = self.record;
        record.marker(MarkerPhase::Begin, number, self.step)?;
        let is_large = self.random.u64(..LARGE_BATCHES) == 0;
        let operations = self.assignment.network.step;
        let mut input = None;
        for (place, operation) in operations.iter().enumerate() {
            if !pace.wait(stop) {
                return Ok(false);
            }
            let size = self.activation_size(&OPERATIONS[*operation], is_large);
            let mut output = self.activate(size)?;
            if output.is_none() {
                // What it reads makes room: it works in place.
                self.release(input.take());
                output = self.activate(size)?;
            }
            record.dispatch(&self.mesh, FIRST_PROGRAM + *operation as u64)?;
            // What it read is freed now, what it made is read by the next one.
            self.release(std::mem::replace(&mut input, output));
            if number.is_multiple_of(RING_STEPS)
                && place as u64 == number / RING_STEPS % operations.len() as u64
            {
                self.note_kernel_ring(place)?;
            }
        }
        self.release(input);
        self.grow_cache()?;
        if self.assignment.network.leaks && number % LEAK_STEPS == LEAK_STEPS - 1 {
            self.leak()?;
        }
        if number % 200 == 199 {
            self.capture_trace()?;
        }
        record.marker(MarkerPhase::End, number, self.step)?;
        Ok(true)
    }

    /// Most batches leave room; a large one fits only if L1 is not fragmented.
    fn activation_size(&mut self, operation: &Operation, is_large: bool) -> u64 {
        let most = self.assignment.share(operation.activation << 10);
        let range = if is_large { most * 9 / 10..most } else { most / 2..most * 3 / 4 };
        self.random.u64(range).next_multiple_of(32) * u64::from(TENSIX_CORES)
    }

    /// An activation, which is freed when the guard is dropped.
    fn activate(&mut self, size: u64) -> Recorded<Option<(u64, AllocGuard<'a, R, Mesh>)>> {
        let Some(place) = self.place(BufferType::L1, &[size])? else { return Ok(None) };
        let alloc = self.describe(BufferType::L1, place, size, self.activation);
        let guard = self.record.alloc_guard(self.mesh.clone(), alloc)?;
        Ok(Some((place.0, guard)))
    }

    fn release(&mut self, activation: Option<(u64, AllocGuard<'a, R, Mesh>)>) {
        if let Some((id, guard)) = activation {
            drop(guard);
            self.memory.iter_mut().for_each(|banks| banks.give_back(id));
        }
    }

    /// A request fills the cache block by block and frees it when it is done.
    fn grow_cache(&mut self) -> Recorded {
        if self.cache.len() >= CACHE_BLOCKS {
            self.drop_cache()?;
        }
        let name = self.record.intern("kv_cache")?;
        let block = self.dram_percent() / CACHE_BLOCKS as u64;
        // Each device serves other requests, so each needs another amount under the same id.
        let mut sizes = Vec::new();
        for _ in 0..self.devices.len() {
            sizes.push((block * self.random.u64(4..12)).next_multiple_of(2048));
        }
        match self.allocate(BufferType::Dram, &sizes, name)? {
            Some(id) => self.cache.push(id),
            // The requests are given up.
            None => self.drop_cache()?,
        }
        Ok(())
    }

    fn drop_cache(&mut self) -> Recorded {
        std::mem::take(&mut self.cache).into_iter().try_for_each(|block| self.free(block))
    }

    /// A buffer that nobody frees, until there is no room left. Then the network is loaded anew, in effect.
    fn leak(&mut self) -> Recorded {
        let name = self.record.intern("attention_mask")?;
        let size = (self.dram_percent() / 10).next_multiple_of(2048);
        match self.allocate(BufferType::Dram, &[size], name)? {
            Some(id) => self.leaked.push(id),
            None => std::mem::take(&mut self.leaked).into_iter().try_for_each(|id| self.free(id))?,
        }
        Ok(())
    }

    fn close(&mut self) -> Recorded {
        let lasting = [&mut self.lasting, &mut self.cache, &mut self.leaked].map(std::mem::take);
        for id in lasting.into_iter().flatten().chain(self.trace.take()) {
            self.free(id)?;
        }
        for program in std::mem::take(&mut self.programs) {
            self.record.program_end(&self.mesh, program.id)?;
        }
        self.record.kernel_unload(&self.mesh, DISPATCH_KERNEL, None)?;
        if self.assignment.fabric {
            self.record.kernel_unload(&self.mesh, FABRIC_KERNEL, None)?;
        }
        self.record.device_close(&self.mesh)
    }
}

/// The memory that a kind of buffer lies in.
fn banks(memory: &mut [Banks; 4], of: BufferType) -> &mut Banks {
    let [dram, trace, l1, l1_small] = memory;
    match of {
        BufferType::Dram | BufferType::SystemMemory => dram,
        BufferType::Trace => trace,
        BufferType::L1 => l1,
        BufferType::L1Small => l1_small,
    }
}

#[cfg(test)]
mod tests;
