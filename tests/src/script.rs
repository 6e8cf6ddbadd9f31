//! What a test tells a host process, a line of JSON each, and what it answers.

use serde::{Deserialize, Serialize};
use shm_layout::Class;

/// One thing to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Command {
    /// Open the tracker and register these chips.
    Open {
        /// Slots of the ring, default if 0.
        ring_slots: u64,
        /// Chips to register, in this order.
        chips: Vec<u64>,
    },
    /// Run a deterministic mix of calls to its end.
    Work {
        /// Seed of the mix.
        seed: u64,
        /// Calls in all, on each thread.
        calls: u64,
        /// Threads; each has ids of its own.
        threads: u64,
        /// Pause between calls in microseconds.
        pause_us: u64,
    },
    /// Begin such a mix in the background, until [`Command::Stop`].
    Start {
        /// Seed of the mix.
        seed: u64,
        /// Pause between calls in microseconds.
        pause_us: u64,
    },
    /// End the background mix.
    Stop,
    /// The figures that users know: 2 fabric, 2 dispatch and 5 application kernels on each device.
    Figures,
    /// Allocate this many buffers of 64 bytes.
    Grow {
        /// How many.
        count: u64,
    },
    /// Allocate and free one buffer this many times, as fast as possible.
    Spin {
        /// How many times.
        pairs: u64,
    },
    /// Register one more chip, described like this.
    Register {
        /// Its chip id.
        chip: u64,
        /// Bytes of DRAM.
        dram_bytes: u64,
        /// Bus of its PCI address.
        bus: u8,
    },
    /// Allocate a buffer of DRAM on the first device. Not part of the truth.
    Hold {
        /// Its id.
        id: u64,
        /// Its size.
        bytes: u64,
    },
    /// Free what was never allocated, which is refused and counted.
    Misuse,
    /// An allocation of DRAM on the first device fails, with what the allocator says.
    Fail {
        /// Bytes asked for.
        request: u64,
        /// Bytes free.
        free: u64,
        /// Largest free block.
        largest: u64,
    },
    /// Operations on a mesh of all devices, each named after it has allocated; the mesh is closed while buffers are live.
    /// Not part of the truth.
    Operations,
    /// Sums were compared with the allocator's this often, and differed this often.
    SelfChecks {
        /// Comparisons.
        made: u64,
        /// Differences.
        different: u64,
    },
    /// Tell the truth.
    Truth,
    /// Drop the tracker.
    Close,
    /// Leave by `exit` without dropping the tracker.
    Exit,
    /// Become `sleep`, which knows nothing of trackers.
    Exec,
}

/// What a host answers to a [`Command`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// Done.
    Done,
    /// The truth.
    Truth(Truth),
    /// It went wrong.
    Failed(String),
}

/// What a process knows of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// By the order of registration.
    pub devices: Vec<DeviceTruth>,
    /// Everything live: device, class, id, size; sorted.
    pub live: Vec<(u8, u8, u64, u64)>,
}

/// What a process knows of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTruth {
    /// Live bytes by class code.
    pub bytes: [u64; Class::COUNT],
    /// Bytes asked for, of what is live, by class code.
    pub requested: [u64; Class::COUNT],
    /// Live allocations by class code.
    pub counts: [u64; Class::COUNT],
    /// DRAM used.
    pub dram_used: u64,
    /// L1 used.
    pub l1_used: u64,
    /// Ethernet L1 used.
    pub eth_used: u64,
    /// Largest DRAM used.
    pub dram_peak: u64,
    /// Largest L1 used.
    pub l1_peak: u64,
    /// Dispatches.
    pub dispatches: u64,
    /// Of those, cached.
    pub cached: u64,
    /// Several threads made the order of calls unknowable, and so L1 used and the peaks.
    pub order_unknown: bool,
}
