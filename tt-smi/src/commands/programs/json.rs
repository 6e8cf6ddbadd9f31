//! Programs as JSON.

use serde::Serialize;
use tt_shm_reader::{Kernel, KernelType};

use crate::lists::programs::{Entry, Listing, Sharing};
use crate::model::{Clock, core_type_name};
use crate::output::json::Envelope;

#[derive(Serialize)]
pub(super) struct ListingJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    /// Whether the programs of all processes could be read.
    exact: bool,
    programs: Vec<ProgramJson<'a>>,
    kernel_sharing: &'a [Sharing],
    errors: &'a [String],
}

impl<'a> ListingJson<'a> {
    pub(super) fn new(listing: &'a Listing, namespace: &str) -> ListingJson<'a> {
        ListingJson {
            envelope: Envelope::new(Clock::now(), &crate::model::host(), namespace),
            exact: !listing.is_inexact,
            programs: listing.entries.iter().map(ProgramJson::new).collect(),
            kernel_sharing: &listing.sharing,
            errors: &listing.errors,
        }
    }
}

#[derive(Serialize)]
struct ProgramJson<'a> {
    pid: u32,
    /// Whether /proc does not confirm the pid.
    claimed: bool,
    id: u64,
    name: Option<&'a str>,
    types: Vec<&'static str>,
    devices: Vec<usize>,
    kernel_bytes: u64,
    cb_bytes: u64,
    cb_count: u64,
    dispatches: u64,
    cache_hits: u64,
    cache_misses: u64,
    last_dispatch_age_ms: Option<u64>,
    late: bool,
    /// On the first device; the others are the same unless the host loads them differently.
    kernels: Vec<KernelJson>,
}

#[derive(Serialize)]
struct KernelJson {
    id: u64,
    r#type: Option<&'static str>,
    core_type: &'static str,
    binary_bytes: Option<u64>,
    cores: Option<u32>,
    total_bytes: u64,
    hash: Option<String>,
}

impl<'a> ProgramJson<'a> {
    fn new(entry: &'a Entry) -> ProgramJson<'a> {
        let Entry { pid, claimed, program, devices, last_dispatch_ns } = entry;
        let kernels = program.devices.first().map_or(&[][..], |device| &device.kernels);
        ProgramJson {
            pid: *pid,
            claimed: *claimed,
            id: program.id,
            name: program.name.as_deref(),
            types: program.kernel_types.iter().map(|kernel| type_name(*kernel)).collect(),
            devices: devices.clone(),
            kernel_bytes: program.kernel_bytes,
            cb_bytes: program.cb_bytes,
            cb_count: program.cb_count,
            dispatches: program.dispatches,
            cache_hits: program.cache_hits,
            cache_misses: program.cache_misses,
            last_dispatch_age_ms: last_dispatch_ns.map(|nanos| nanos / 1_000_000),
            late: program.late,
            kernels: kernels.iter().map(KernelJson::new).collect(),
        }
    }
}

impl KernelJson {
    fn new(kernel: &Kernel) -> KernelJson {
        KernelJson {
            id: kernel.id,
            r#type: kernel.kernel_type.map(type_name),
            core_type: core_type_name(kernel.core_type),
            binary_bytes: kernel.binary_bytes(),
            cores: Some(kernel.cores).filter(|cores| *cores != 0),
            total_bytes: kernel.bytes,
            hash: kernel.hash.map(|hash| format!("{hash:#018x}")),
        }
    }
}

fn type_name(kernel: KernelType) -> &'static str {
    match kernel {
        KernelType::Application => "application",
        KernelType::Fabric => "fabric",
        KernelType::Dispatch => "dispatch",
    }
}
