//! What a workload does before its first step.

use tt_shm_writer::{
    BufferType, CircularBuffer, CoreType, Kernel, KernelType, Launch, ProgramBinaryStatus, Record,
};

use crate::models::{Network, OPERATIONS};
use crate::pace::Pace;
use crate::workload::{Compiled, FIRST_PROGRAM, Recorded, Workload};

/// Tensors loaded per second at the start, so that one sees it happen.
pub(crate) const LOAD_RATE: u32 = 400;

/// What stands for the hash of a kernel's binary: that of its name (FNV-1a), never 0.
pub(crate) fn hash(name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, step).max(1)
}

impl<R: Record> Workload<'_, R> {
    /// Model weights in DRAM, and what stays in L1; false if it is time to end.
    pub(crate) fn load_weights(&mut self, pace: &mut Pace, stop: &dyn Fn() -> bool) -> Recorded<bool> {
        let Network { layers, weights_percent, tensors, .. } = self.assignment.network;
        let parts: u64 = tensors.iter().map(|(_, part)| part).sum::<u64>() * u64::from(layers);
        let unit = self.assignment.dram_share * weights_percent / 100 / parts;
        for layer in 0..layers {
            for (tensor, part) in tensors {
                let name = self.record.intern(format!("layers.{layer}.{tensor}"))?;
                // Whole tiles of 2 KiB.
                let alloc = self.buffer(BufferType::Dram, (unit * part).next_multiple_of(2048), name);
                self.record.alloc(&self.mesh, alloc)?;
                self.lasting.push(self.next_buffer);
                if !pace.wait(stop) {
                    return Ok(false);
                }
            }
        }
        let name = self.record.intern("semaphores")?;
        let small = self.buffer(BufferType::L1Small, u64::from(self.assignment.cores) * 8192, name);
        self.record.alloc(&self.mesh, small)?;
        self.lasting.push(self.next_buffer);
        Ok(true)
    }

    /// Compiles each operation of a step once: circular buffers, then a launch that sends the binary.
    pub(crate) fn warm_up(&mut self, pace: &mut Pace, stop: &dyn Fn() -> bool) -> Recorded<bool> {
        let mut operations = self.assignment.network.step.to_vec();
        operations.sort_unstable();
        operations.dedup();
        for number in operations {
            let (id, operation) = (FIRST_PROGRAM + number as u64, &OPERATIONS[number]);
            let name = self.record.intern(operation.name)?;
            for (index, kib) in operation.circular_buffers.iter().enumerate() {
                let cb = CircularBuffer::new(id, index as u64, kib << 10, self.assignment.cores).name(name);
                self.record.cb_alloc(&self.mesh, cb)?;
            }
            let (application, tensix) = (KernelType::Application, CoreType::Tensix);
            let kernel = Kernel::new(id, application, tensix, operation.binary_bytes, self.assignment.cores)
                .hash(hash(operation.name))
                .name(name);
            self.record.launch(&self.mesh, Launch::new(id, &[kernel], ProgramBinaryStatus::NotSent))?;
            self.programs.push(Compiled { id, kernel });
            if !pace.wait(stop) {
                return Ok(false);
            }
        }
        let Compiled { id, kernel } = self.programs[0];
        self.record.launch(&self.mesh, Launch::new(id, &[kernel], ProgramBinaryStatus::Committed))?;
        self.note_kernel_ring()?;
        Ok(true)
    }
}
