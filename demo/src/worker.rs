//! A worker, and what it is given of the devices.

use std::ops::Range;

use tt_shm_writer::{Record, RecordError};

use crate::banks::Banks;
use crate::board::{DRAM, DRAM_BANKS, L1, L1_SMALL, TENSIX_CORES, TRACE};
use crate::models::{NETWORKS, Network, OPERATIONS};
use crate::workload::Workload;

/// Processes whose fabric kernels fit into ethernet L1 beside each other.
const FABRIC_WORKERS: u32 = 4;
/// Workers for which the networks are made: more of them have smaller ones, fewer leave room.
const USUAL_WORKERS: u32 = 3;

/// One of several processes that share the devices.
#[derive(Clone, Copy, Debug)]
pub struct Worker {
    /// Its number, from 0.
    pub number: u32,
    /// Workers in all.
    pub workers: u32,
    /// Devices of the mesh, the same for all workers.
    pub devices: u32,
    /// The same seed gives the same workload.
    pub seed: u64,
    /// Dispatches per second.
    pub rate: u32,
}

impl Worker {
    /// The network that it pretends to run; workers take them in turn.
    pub fn network(&self) -> &'static str {
        self.model().name
    }

    /// Runs until `stop` says so, then frees everything.
    pub fn run(&self, record: &impl Record, stop: &dyn Fn() -> bool) -> Result<(), RecordError> {
        Workload::open(record, &self.assignment(), self.devices)?.run(stop)
    }

    fn model(&self) -> &'static Network {
        &NETWORKS[self.number as usize % NETWORKS.len()]
    }

    /// Its part of a range of addresses, the same in every bank.
    fn part(&self, addresses: Range<u64>) -> Range<u64> {
        let parts = u64::from(self.workers.max(USUAL_WORKERS));
        let length = (addresses.end - addresses.start) / parts / 32 * 32;
        let start = addresses.start + length * u64::from(self.number);
        start..start + length
    }

    pub(crate) fn assignment(&self) -> Assignment {
        let network = *self.model();
        let sharers = u64::from(self.workers.max(USUAL_WORKERS));
        let per_core = |kib: u64| ((kib << 10) * u64::from(USUAL_WORKERS) / sharers).next_multiple_of(32);
        // As in tt-metal, programs take L1 from the bottom up: as much as the largest of them needs.
        let programs = network.step.iter().map(|number| &OPERATIONS[*number]);
        let of_program =
            programs.map(|program| program.circular_buffers.iter().map(|kib| per_core(*kib)).sum());
        let l1 = self.part(L1);
        let buffers = l1.start + of_program.max().unwrap_or(0);
        Assignment {
            network,
            seed: self.seed.wrapping_mul(1_000_003).wrapping_add(self.number.into()),
            rate: self.rate,
            sharers,
            programs: l1.start,
            dram: Banks::new(self.part(DRAM), DRAM_BANKS),
            trace: Banks::new(self.part(TRACE), DRAM_BANKS),
            l1: Banks::new(buffers..l1.end, TENSIX_CORES.into()),
            l1_small: Banks::new(self.part(L1_SMALL), TENSIX_CORES.into()),
            fabric: self.number < FABRIC_WORKERS,
        }
    }
}

/// What a worker runs, scaled so that all of them fit on the devices.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    pub(crate) network: Network,
    pub(crate) seed: u64,
    pub(crate) rate: u32,
    sharers: u64,
    /// Where its programs begin in the L1 of each core.
    pub(crate) programs: u64,
    pub(crate) dram: Banks,
    pub(crate) trace: Banks,
    pub(crate) l1: Banks,
    pub(crate) l1_small: Banks,
    pub(crate) fabric: bool,
}

impl Assignment {
    /// Of what the networks are made for, as much as there is for this worker.
    pub(crate) fn share(&self, bytes: u64) -> u64 {
        (bytes * u64::from(USUAL_WORKERS) / self.sharers).next_multiple_of(32)
    }
}
