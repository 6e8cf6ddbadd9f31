//! A believable tt-metal workload: weights, programs, steps with transient buffers.

use fastrand::Rng;
use tt_shm_writer::{
    Alloc, BufferType, Class, CoreType, Device, FailedAlloc, Kernel, KernelType, MarkerPhase, Mesh, NameId,
    Record, RecordError,
};

use crate::banks::Banks;
use crate::board::{self, DRAM_BANKS, ETH_CORES, L1_PER_CORE, TENSIX_CORES};
use crate::models::OPERATIONS;
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
/// The ring buffer that application kernels share.
const KERNEL_RING_BYTES: u64 = 70 << 10;
/// Blocks of the cache that one request fills before it is done.
const CACHE_BLOCKS: usize = 24;

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
    dram: Banks,
    l1: Banks,
    /// Everything that lives until the end.
    pub(crate) lasting: Vec<u64>,
    cache: Vec<u64>,
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
            dram: assignment.dram.clone(),
            l1: assignment.l1.clone(),
            lasting: Vec::new(),
            cache: Vec::new(),
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

    pub(crate) fn buffer(&mut self, of: BufferType, size: u64, name: NameId) -> Alloc {
        self.next_buffer += 1;
        let alloc = Alloc::new(of, self.next_buffer, size).name(name);
        let (alloc, banks) = match of {
            BufferType::Dram | BufferType::Trace => (alloc, &mut self.dram),
            _ => (alloc.cores(self.assignment.cores), &mut self.l1),
        };
        match banks.take(self.next_buffer, size) {
            Some(place) => alloc.address(place.address).bytes_per_bank(place.bytes_per_bank),
            // Then it is not known where it lies.
            None => alloc,
        }
    }

    fn free(&mut self, id: u64) -> Recorded {
        self.dram.give_back(id);
        self.l1.give_back(id);
        self.record.free(&self.mesh, id).map(drop)
    }

    /// Which binaries the ring buffer of kernels holds changes as it goes round.
    pub(crate) fn note_kernel_ring(&mut self) -> Recorded {
        let used = self.random.u64(KERNEL_RING_BYTES / 2..KERNEL_RING_BYTES).next_multiple_of(32);
        let programs = self.random.u64(1..=self.programs.len().max(1) as u64);
        self.record.kernel_ring(&self.mesh, KERNEL_RING_BYTES, used, programs)
    }

    /// A trace replaces the one before it.
    fn capture_trace(&mut self) -> Recorded {
        if let Some(trace) = self.trace.take() {
            self.free(trace)?;
        }
        let name = self.record.intern("decode_trace")?;
        let size = self.random.u64(4..48) << 20;
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
        for operation in self.assignment.network.step {
            if !pace.wait(stop) {
                return Ok(false);
            }
            let most = OPERATIONS[*operation].activation << 10;
            let size =
                self.random.u64(most / 2..most).next_multiple_of(32) * u64::from(self.assignment.cores);
            let alloc = self.buffer(BufferType::L1, size, self.activation);
            let output = record.alloc_guard(self.mesh.clone(), alloc)?;
            record.dispatch(&self.mesh, FIRST_PROGRAM + *operation as u64)?;
            // What it read is freed now, what it made is read by the next one.
            if let Some((id, read)) = input.replace((self.next_buffer, output)) {
                drop(read);
                self.l1.give_back(id);
            }
        }
        if let Some((id, read)) = input {
            drop(read);
            self.l1.give_back(id);
        }
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
                self.free(block)?;
            }
        }
        let name = self.record.intern("kv_cache")?;
        let block = self.assignment.dram_share / 100 / CACHE_BLOCKS as u64;
        self.next_buffer += 1;
        let id = self.next_buffer;
        // Each device serves other requests, so each needs another amount under the same id; the place is the
        // same on all, as large as the largest needs.
        let place = self.dram.take(id, (block * 12).next_multiple_of(2048));
        for device in self.devices.clone() {
            let size = (block * self.random.u64(4..12)).next_multiple_of(2048);
            let alloc = Alloc::new(BufferType::Dram, id, size).name(name);
            let alloc = match place {
                Some(place) => alloc.address(place.address).bytes_per_bank(size.div_ceil(DRAM_BANKS)),
                None => alloc,
            };
            self.record.alloc(device, alloc)?;
        }
        self.cache.push(id);
        Ok(())
    }

    /// Now and then an allocation fails, as in real life: enough is free, but fragmented.
    fn meet_trouble(&mut self) -> Recorded {
        if self.random.u8(..150) > 0 {
            return Ok(());
        }
        let device = self.devices[self.random.usize(..self.devices.len())];
        let free = L1_PER_CORE * u64::from(TENSIX_CORES) / 4;
        let request = self.random.u64(free / 2..free);
        self.record.alloc_failed(device, FailedAlloc::new(Class::L1, request).free(free, request / 2))
    }

    fn close(&mut self) -> Recorded {
        let lasting = std::mem::take(&mut self.lasting).into_iter();
        for id in lasting.chain(std::mem::take(&mut self.cache)).chain(self.trace.take()) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::DRAM_BYTES;
    use crate::worker::Worker;
    use std::time::{Duration, Instant};
    use tt_shm_reader::Segment;
    use tt_shm_writer::Tracker;

    #[test]
    fn a_worker_uses_what_it_may_and_frees_it_all() {
        let namespace = format!("demo-workload-{}", std::process::id());
        let tracker = Tracker::builder().enabled(true).namespace(namespace).open().unwrap();
        let worker = Worker { number: 1, workers: 3, devices: 2, seed: 5, rate: 10_000 };
        let assignment = worker.assignment();
        let mut workload = Workload::open(&tracker, &assignment, worker.devices).unwrap();
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
