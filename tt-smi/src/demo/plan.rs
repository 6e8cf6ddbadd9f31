//! What a worker runs.

use super::banks::Banks;
use super::board::{DRAM_BANKS, DRAM_BYTES, L1_PER_CORE, TENSIX_CORES};
use super::models::Network;
use crate::cli::WorkerArgs;

/// Processes whose fabric kernels fit into ethernet L1 beside each other.
const FABRIC_WORKERS: u32 = 4;

/// What a worker runs, scaled so that all of them fit on the devices.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) network: Network,
    pub(super) seed: u64,
    pub(super) rate: u32,
    /// Cores that it uses on each device.
    pub(super) cores: u32,
    /// Bytes of DRAM that it may use on each device.
    pub(super) dram_share: u64,
    /// Its part of the DRAM.
    pub(super) dram: Banks,
    /// Its part of the L1 of each core.
    pub(super) l1: Banks,
    pub(super) fabric: bool,
}

impl Plan {
    /// For one worker of several.
    pub(crate) fn new(network: &Network, args: &WorkerArgs) -> Plan {
        let sharers = args.workers.max(3);
        let dram_share = DRAM_BYTES * 9 / 10 / u64::from(sharers);
        let cores = (TENSIX_CORES * 3 / sharers).max(1);
        let (worker, workers) = (u64::from(args.worker), u64::from(sharers));
        Plan {
            network: *network,
            seed: args.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(args.worker)),
            rate: args.rate,
            cores,
            dram_share,
            dram: Banks::part(DRAM_BYTES / DRAM_BANKS, DRAM_BANKS, worker, workers),
            l1: Banks::part(L1_PER_CORE, u64::from(cores), worker, workers),
            fabric: args.worker < FABRIC_WORKERS,
        }
    }
}
