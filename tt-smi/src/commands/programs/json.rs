//! Programs as JSON.

use serde::Serialize;
use tt_shm_reader::{CoreType, Kernel, KernelType};

use crate::lists::programs::{Entry, Listing, Sharing};
use crate::model::{Clock, word, word_or_null, words_of};
use crate::output::json::Envelope;
#[cfg(test)]
use crate::schema;

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ListingJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    /// Whether these are all programs: nothing was missing, and no process too busy to be read.
    exact: bool,
    /// Dispatched last first.
    programs: Vec<ProgramJson<'a>>,
    /// Which kernel bytes are copies, by device.
    kernel_sharing: &'a [Sharing],
    /// What could not be read or is in doubt; with file, owner, reason and what to do. Many alike are one.
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

/// A program.
///
/// Not an [`Entry`]: that has the reader's `Program`, which knows no serde and has its kernels by device.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ProgramJson<'a> {
    /// Its process, as it is called here.
    pid: u32,
    /// Whether pid is only what the segment claims: /proc has no process of that pid, owner and start time.
    claimed: bool,
    /// The process's number for it.
    id: u64,
    /// Its name, or that of one of its kernels; `None` if not known.
    name: Option<&'a str>,
    /// Types of its kernels, each once.
    #[serde(serialize_with = "words_of")]
    #[cfg_attr(test, schemars(schema_with = "schema::list_of_words::<KernelType>"))]
    types: &'a [KernelType],
    /// Indices of its devices.
    devices: &'a [usize],
    /// Its kernels on all devices.
    kernel_bytes: u64,
    /// Its circular buffers on all devices.
    cb_bytes: u64,
    /// Its circular buffers.
    cb_count: u64,
    /// Dispatches on all devices: one call on a mesh counts on each.
    dispatches: u64,
    /// Dispatches that found the binary on the device.
    cache_hits: u64,
    /// Dispatches that did not.
    cache_misses: u64,
    /// Milliseconds since the last; `None` if there was none.
    last_dispatch_age_ms: Option<u64>,
    /// Tracking began after some of it was loaded.
    late: bool,
    /// On the first of its devices; the others are the same unless the host loads them differently.
    kernels: Vec<KernelJson>,
}

/// A kernel.
///
/// Not the reader's `Kernel`, which knows no serde and has 0 for unknown cores.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct KernelJson {
    /// The process's number for it.
    id: u64,
    /// Type; `None` if not known.
    #[serde(serialize_with = "word_or_null")]
    #[cfg_attr(test, schemars(schema_with = "schema::words_or_null::<KernelType>"))]
    r#type: Option<KernelType>,
    /// Kind of cores.
    #[serde(serialize_with = "word")]
    #[cfg_attr(test, schemars(schema_with = "schema::words::<CoreType>"))]
    core_type: CoreType,
    /// On one core; `None` if not known.
    binary_bytes: Option<u64>,
    /// Number of cores; `None` if not known.
    cores: Option<u32>,
    /// On all cores.
    total_bytes: u64,
    /// Of the binary; `None` if nobody gave one.
    #[cfg_attr(test, schemars(schema_with = "schema::hex_or_null"))]
    hash: Option<String>,
}

impl<'a> ProgramJson<'a> {
    fn new(entry: &'a Entry) -> ProgramJson<'a> {
        let Entry { pid, claimed, program, devices, last_dispatch_ns, .. } = entry;
        let kernels = program.devices.first().map_or(&[][..], |device| &device.kernels);
        ProgramJson {
            pid: *pid,
            claimed: *claimed,
            id: program.id,
            name: program.name.as_deref(),
            types: &program.kernel_types,
            devices,
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
            r#type: kernel.kernel_type,
            core_type: kernel.core_type,
            binary_bytes: kernel.binary_bytes(),
            cores: Some(kernel.cores).filter(|cores| *cores != 0),
            total_bytes: kernel.bytes,
            hash: kernel.hash.map(|hash| format!("{hash:#018x}")),
        }
    }
}
