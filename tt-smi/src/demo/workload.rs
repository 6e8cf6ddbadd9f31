//! A believable tt-metal workload: weights, programs, steps with transient buffers.

use tt_shm_writer::{
    Alloc, BufferType, Class, CoreType, Device, Kernel, KernelType, MarkerPhase, Mesh, NameId, Record,
    RecordError,
};

use super::board::{self, DRAM_BANKS, ETH_CORES, L1_PER_CORE, TENSIX_CORES};
use super::models::OPERATIONS;
use super::pace::Pace;
use super::plan::Plan;
use super::random::{Random, hash};
use super::setup;

pub(super) type Recorded<T = ()> = Result<T, RecordError>;

/// Kernels that a process loads when it opens a device: bytes and cores.
const FABRIC: (u64, u32) = (57_344, ETH_CORES);
const DISPATCH: (u64, u32) = (47_104, 2);
/// Ids are the host's own: buffers count up, programs and kernels have ranges of their own.
const FABRIC_KERNEL: u64 = 0xf000;
const DISPATCH_KERNEL: u64 = 0xd000;
pub(super) const FIRST_PROGRAM: u64 = 0x1000;
const FIRST_BUFFER: u64 = 0x10_0000;
/// The ring buffer that application kernels share.
const KERNEL_RING_BYTES: u64 = 70 << 10;
/// Blocks of the cache that one request fills before it is done.
const CACHE_BLOCKS: usize = 24;

/// A compiled program.
pub(super) struct Compiled {
    pub(super) id: u64,
    pub(super) kernel: Kernel,
}

/// A running workload.
pub(crate) struct Workload<'a, R: Record> {
    pub(super) record: &'a R,
    pub(super) plan: &'a Plan,
    pub(super) mesh: Mesh,
    devices: Vec<Device>,
    random: Random,
    pub(super) next_buffer: u64,
    next_address: u64,
    /// Everything that lives until the end.
    pub(super) lasting: Vec<u64>,
    cache: Vec<u64>,
    trace: Option<u64>,
    pub(super) programs: Vec<Compiled>,
    activation: NameId,
    step: NameId,
}

impl<'a, R: Record> Workload<'a, R> {
    /// Opens the devices: the runtime's own kernels are loaded.
    pub(crate) fn open(record: &'a R, plan: &'a Plan, devices: u32) -> Recorded<Self> {
        let devices = (0..devices).map(|number| record.register_device(&board::device(number)));
        let devices = devices.collect::<Recorded<Vec<Device>>>()?;
        let workload = Workload {
            record,
            plan,
            mesh: Mesh::new(devices.clone()),
            devices,
            random: Random::new(plan.seed),
            next_buffer: FIRST_BUFFER,
            next_address: plan.dram_base,
            lasting: Vec::new(),
            cache: Vec::new(),
            trace: None,
            programs: Vec::new(),
            activation: record.intern("activation")?,
            step: record.intern("step")?,
        };
        record.device_open(&workload.mesh)?;
        if plan.fabric {
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
            let mut pace = Pace::per_second(self.plan.rate);
            let mut step = 0;
            while self.run_step(step, &mut pace, stop)? {
                step += 1;
            }
        }
        self.close()
    }

    pub(super) fn buffer(&mut self, of: BufferType, size: u64, name: NameId) -> Alloc {
        self.next_buffer += 1;
        let alloc = Alloc::new(of, self.next_buffer, size).name(name);
        match of {
            BufferType::Dram | BufferType::Trace => {
                // Round and round in the worker's own part of the DRAM.
                if self.next_address + size > self.plan.dram_base + self.plan.dram_share {
                    self.next_address = self.plan.dram_base;
                }
                let address = self.next_address;
                self.next_address += size;
                // Addresses are those of a bank, the same in each.
                alloc.address(address / DRAM_BANKS).bytes_per_bank(size / DRAM_BANKS)
            }
            _ => alloc.cores(self.plan.cores).bytes_per_bank(size / u64::from(self.plan.cores)),
        }
    }

    /// Which binaries the ring buffer of kernels holds changes as it goes round.
    pub(super) fn note_kernel_ring(&mut self) -> Recorded {
        let used = self.random.range(KERNEL_RING_BYTES / 2, KERNEL_RING_BYTES).next_multiple_of(32);
        let programs = self.random.range(1, self.programs.len() as u64 + 1);
        self.record.kernel_ring(&self.mesh, KERNEL_RING_BYTES, used, programs)
    }

    /// A trace replaces the one before it.
    fn capture_trace(&mut self) -> Recorded {
        if let Some(trace) = self.trace.take() {
            self.record.free(&self.mesh, trace)?;
        }
        let name = self.record.intern("decode_trace")?;
        let size = self.random.range(4, 48) << 20;
        let trace = self.buffer(BufferType::Trace, size, name);
        self.record.alloc(&self.mesh, trace)?;
        self.trace = Some(self.next_buffer);
        Ok(())
    }

    /// One step: every operation is dispatched with the activations it reads and makes.
    fn run_step(&mut self, number: u64, pace: &mut Pace, stop: &dyn Fn() -> bool) -> Recorded<bool> {
        let record = self.record;
        record.marker(MarkerPhase::Begin, number, self.step)?;
        let mut input = None;
        for operation in self.plan.network.step {
            if !pace.wait(stop) {
                return Ok(false);
            }
            let most = OPERATIONS[*operation].activation << 10;
            let size = self.random.range(most / 2, most).next_multiple_of(32) * u64::from(self.plan.cores);
            let alloc = self.buffer(BufferType::L1, size, self.activation);
            let output = record.alloc_guard(self.mesh.clone(), alloc)?;
            record.dispatch(&self.mesh, FIRST_PROGRAM + *operation as u64)?;
            // What it read is freed now, what it made is read by the next one.
            drop(input.replace(output));
        }
        drop(input);
        self.grow_cache()?;
        self.meet_trouble()?;
        if number % 32 == 31 {
            self.note_kernel_ring()?;
        }
        if number % 200 == 199 {
            self.capture_trace()?;
        }
        record.marker(MarkerPhase::End, number, self.step)?;
        Ok(true)
    }

    /// A request fills the cache block by block and frees it when it is done.
    fn grow_cache(&mut self) -> Recorded {
        if self.cache.len() >= CACHE_BLOCKS {
            for block in std::mem::take(&mut self.cache) {
                self.record.free(&self.mesh, block)?;
            }
        }
        let name = self.record.intern("kv_cache")?;
        let block = self.plan.dram_share / 100 / CACHE_BLOCKS as u64;
        let id = self.next_buffer + 1;
        for device in self.devices.clone() {
            // Each device serves other requests, so each needs another amount under the same id.
            let size = (block * self.random.range(4, 12)).next_multiple_of(2048);
            self.next_buffer = id - 1;
            let block = self.buffer(BufferType::Dram, size, name);
            self.record.alloc(device, block)?;
        }
        self.cache.push(self.next_buffer);
        Ok(())
    }

    /// Now and then an allocation does not fit, as in real life: enough is free, but in pieces.
    fn meet_trouble(&mut self) -> Recorded {
        if !self.random.one_in(150) {
            return Ok(());
        }
        let device = self.devices[self.random.range(0, self.devices.len() as u64) as usize];
        let free = L1_PER_CORE * u64::from(TENSIX_CORES) / 4;
        let request = self.random.range(free / 2, free);
        self.record.alloc_failed(device, Class::L1, request, free, request / 2)
    }

    fn close(&mut self) -> Recorded {
        let lasting = std::mem::take(&mut self.lasting).into_iter();
        for id in lasting.chain(std::mem::take(&mut self.cache)).chain(self.trace.take()) {
            self.record.free(&self.mesh, id)?;
        }
        for program in std::mem::take(&mut self.programs) {
            self.record.program_end(&self.mesh, program.id)?;
        }
        self.record.kernel_unload(&self.mesh, DISPATCH_KERNEL, None)?;
        if self.plan.fabric {
            self.record.kernel_unload(&self.mesh, FABRIC_KERNEL, None)?;
        }
        self.record.device_close(&self.mesh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::WorkerArgs;
    use crate::demo::board::DRAM_BYTES;
    use crate::demo::models::NETWORKS;
    use std::time::{Duration, Instant};
    use tt_shm_reader::Segment;
    use tt_shm_writer::Tracker;

    #[test]
    fn a_worker_uses_what_it_may_and_frees_it_all() {
        let namespace = format!("smi-workload-{}", std::process::id());
        let tracker = Tracker::builder().enabled(true).namespace(namespace).open().unwrap();
        let args = WorkerArgs { worker: 1, workers: 3, devices: 2, seed: 5, rate: 10_000, parent: 0 };
        let plan = Plan::new(&NETWORKS[1], &args);
        let mut workload = Workload::open(&tracker, &plan, args.devices).unwrap();
        let begun = Instant::now();
        workload.run(&|| begun.elapsed() > Duration::from_millis(400)).unwrap();
        for device in &workload.devices {
            let counters = tracker.counters(*device).unwrap();
            assert!(counters.dispatches > counters.cached_dispatches && counters.cached_dispatches > 0);
            assert!((1..DRAM_BYTES / 3).contains(&counters.dram_peak_bytes));
            assert!((1..L1_PER_CORE * u64::from(TENSIX_CORES) / 3).contains(&counters.l1_peak_bytes));
            let live: u64 = counters.classes.iter().map(|class| class.live_bytes + class.live_count).sum();
            assert_eq!((live, counters.dram_used(), counters.l1_used(), counters.eth_used()), (0, 0, 0, 0));
        }
        let segment = Segment::open(&tracker.segment_path().unwrap()).unwrap();
        assert_eq!(segment.anomalies().iter().sum::<u64>(), 0);
    }
}
