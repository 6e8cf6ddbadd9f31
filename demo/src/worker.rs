//! A worker, and what it is given of the devices.

use tt_shm_writer::{Record, RecordError};

use crate::banks::Banks;
use crate::board::{DRAM_BANKS, DRAM_BYTES, L1_PER_CORE, TENSIX_CORES};
use crate::models::{NETWORKS, Network};
use crate::workload::Workload;

/// Processes whose fabric kernels fit into ethernet L1 beside each other.
const FABRIC_WORKERS: u32 = 4;

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

    pub(crate) fn assignment(&self) -> Assignment {
        let sharers = self.workers.max(3);
        let dram_share = DRAM_BYTES * 9 / 10 / u64::from(sharers);
        let cores = (TENSIX_CORES * 3 / sharers).max(1);
        let (worker, workers) = (u64::from(self.number), u64::from(sharers));
        Assignment {
            network: *self.model(),
            seed: self.seed.wrapping_mul(1_000_003).wrapping_add(worker),
            rate: self.rate,
            cores,
            dram_share,
            dram: Banks::part(DRAM_BYTES / DRAM_BANKS, DRAM_BANKS, worker, workers),
            l1: Banks::part(L1_PER_CORE, u64::from(cores), worker, workers),
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
    /// Cores that it uses on each device.
    pub(crate) cores: u32,
    /// Bytes of DRAM that it may use on each device.
    pub(crate) dram_share: u64,
    /// Its part of the DRAM.
    pub(crate) dram: Banks,
    /// Its part of the L1 of each core.
    pub(crate) l1: Banks,
    pub(crate) fabric: bool,
}
