//! What a workload does before its first step.

use tt_shm_writer::{
    BufferType, CircularBuffer, CoreType, Dispatch, Kernel, KernelType, Launch, ProgramBinaryStatus, Record,
};

use crate::board::TENSIX_CORES;
use crate::models::{Network, OPERATIONS, Operation};
use crate::pace::Pace;
use crate::workload::{Compiled, FIRST_PROGRAM, Recorded, Workload};

/// Tensors loaded per second at the start, so that one sees it happen.
pub(crate) const LOAD_RATE: u32 = 400;
/// DRAM for the weights of a network that has the usual share.
const DRAM_SHARE: u64 = 3700 << 20;
/// Small buffers in the L1 of each core.
const SEMAPHORES: u64 = 8192;

/// What stands for the hash of a kernel's binary: that of its name (FNV-1a), never 0.
pub(crate) fn hash(name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, step).max(1)
}

impl<R: Record> Workload<'_, R> {
    /// Hundredths of the DRAM that this worker may use on each device.
    pub(crate) fn dram_percent(&self) -> u64 {
        self.assignment.share(DRAM_SHARE) / 100
    }

    /// Model weights in DRAM, and what stays in L1; false if it is time to end.
    pub(crate) fn load_weights(&mut self, pace: &mut Pace, stop: &dyn Fn() -> bool) -> Recorded<bool> {
        let Network { layers, weights_percent, in_l1, tensors, .. } = self.assignment.network;
        let parts: u64 = tensors.iter().map(|(_, part)| part).sum::<u64>() * u64::from(layers);
        let unit = self.dram_percent() * weights_percent / parts;
        for layer in 0..layers {
            for (tensor, part) in tensors {
                // Whole tiles of 2 KiB.
                let size = (unit * part).next_multiple_of(2048);
                self.keep(BufferType::Dram, size, &format!("layers.{layer}.{tensor}"))?;
                if !pace.wait(stop) {
                    return Ok(false);
                }
            }
        }
        let on_all_cores = |bytes| bytes * u64::from(TENSIX_CORES);
        let semaphores = self.assignment.share(SEMAPHORES);
        self.keep(BufferType::L1Small, on_all_cores(semaphores), "semaphores")?;
        let weights = self.assignment.share(in_l1 << 10);
        self.keep(BufferType::L1, on_all_cores(weights), "layers.0.sharded")?;
        Ok(true)
    }

    /// A buffer that lives until the end.
    fn keep(&mut self, of: BufferType, size: u64, name: &str) -> Recorded {
        let name = self.record.intern(name)?;
        let kept = self.allocate(of, &[size], name)?;
        self.lasting.extend(kept);
        Ok(())
    }

    /// Compiles each operation of a step once: circular buffers, then a launch that sends the binary.
    pub(crate) fn warm_up(&mut self, pace: &mut Pace, stop: &dyn Fn() -> bool) -> Recorded<bool> {
        let mut operations = self.assignment.network.step.to_vec();
        operations.sort_unstable();
        operations.dedup();
        for number in operations {
            self.compile(FIRST_PROGRAM + number as u64, &OPERATIONS[number])?;
            if !pace.wait(stop) {
                return Ok(false);
            }
        }
        let Compiled { id, kernel } = self.programs[0];
        self.record.launch(&self.mesh, Launch::new(id, &[kernel], ProgramBinaryStatus::Committed))?;
        Ok(true)
    }

    /// Its circular buffers lie behind each other, on the cores that it runs on.
    fn compile(&mut self, id: u64, operation: &Operation) -> Recorded {
        let (columns, rows) = operation.cores;
        let cores = columns * rows;
        let ranges = self.record.intern(format!("0,0-{},{}", columns - 1, rows - 1))?;
        let name = self.record.intern(operation.name)?;
        let mut address = self.assignment.programs;
        for (index, kib) in operation.circular_buffers.iter().enumerate() {
            let bytes = self.assignment.share(kib << 10);
            let cb = CircularBuffer::new(id, index as u64, bytes, cores);
            self.record.cb_alloc(&self.mesh, cb.address(address).name(name).core_ranges(ranges))?;
            address += bytes;
        }
        let (application, tensix) = (KernelType::Application, CoreType::Tensix);
        let kernel = Kernel::new(id, application, tensix, operation.binary_bytes, cores)
            .hash(hash(operation.name))
            .name(name)
            .core_ranges(ranges);
        let dispatch = Dispatch::new(id).name(name);
        self.record.launch(&self.mesh, Launch::of(dispatch, &[kernel], ProgramBinaryStatus::NotSent))?;
        self.programs.push(Compiled { id, kernel });
        Ok(())
    }
}
