//! What the kernel driver tells of devices, and who holds them.

mod device;
mod holder;
mod measure;

pub use device::DriverDevice;
pub(crate) use device::FIRMWARE;
pub use holder::{HolderJson, SilentHolder};
pub use measure::{MEASURES, Measure};

use std::time::{Duration, Instant};

use tt_shm_aggregator::driver_stats;
use tt_shm_driver::{Holders, Monitor, Roots, Version};
use tt_shm_reader::DriverStats;

/// Names a folder that has other `sys`, `proc` and, for tt-metal's regions, `dev/shm` than this machine's. For tests.
const ROOT_ENV: &str = "TT_SMI_ROOT";
/// Where nothing is: what this machine has now says nothing of a record.
const NOWHERE: &str = "/nonexistent";
/// Time between two looks at who holds devices: the screen asks often.
const REFRESH: Duration = Duration::from_secs(1);

/// This machine's `sys` and `proc`, or those that the environment names.
pub(crate) fn roots() -> Roots {
    if tt_shm_os::past::is_set() {
        return Roots::below(NOWHERE);
    }
    std::env::var_os(ROOT_ENV).map_or_else(Roots::default, Roots::below)
}

/// This machine's shared memory, for tt-metal's regions, or that which the environment names.
pub(crate) fn region_roots() -> tt_shm_region::Roots {
    if tt_shm_os::past::is_set() {
        return tt_shm_region::Roots::below(NOWHERE);
    }
    std::env::var_os(ROOT_ENV).map_or_else(tt_shm_region::Roots::default, tt_shm_region::Roots::below)
}

/// The driver's devices, for who has no table to read them from.
pub(crate) fn rows() -> Vec<DriverStats> {
    let mut monitor = Monitor::new(roots());
    monitor.poll(Instant::now());
    let version = monitor.version().as_ref().ok();
    monitor.devices().iter().map(|device| driver_stats(device, version, tt_shm_os::monotonic_ns())).collect()
}

/// Who holds the devices, looked up once a second.
#[derive(Debug, Default)]
pub(crate) struct HolderCache {
    found: Option<(Instant, Vec<u32>, Holders)>,
}

impl HolderCache {
    /// Who holds these devices, as far as this user may see.
    pub(crate) fn get(&mut self, version: Option<&str>, numbers: &[u32]) -> &Holders {
        let now = Instant::now();
        let is_fresh =
            |(at, of, _): &(Instant, Vec<u32>, Holders)| now.duration_since(*at) < REFRESH && of == numbers;
        if !self.found.as_ref().is_some_and(is_fresh) {
            let version = version.and_then(Version::parse);
            let holders = Holders::read(&roots(), version.as_ref(), numbers);
            self.found = Some((now, numbers.to_vec(), holders));
        }
        self.found.as_ref().map(|(_, _, holders)| holders).expect("just read")
    }
}
