//! What a function of tt-metal is needed for: what is said when this version does not have it.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::hooks::hooks;
use crate::metal::{self, Symbol};
use crate::notes;
use crate::shield;
use crate::slots;

/// What is lost without a function.
enum Loss {
    /// Nothing can be counted.
    Everything,
    /// Nothing: there is another way, or nothing to know.
    Nothing,
    /// What the text says; said once.
    Part(&'static str, AtomicBool),
}

const fn part(text: &'static str) -> Loss {
    Loss::Part(text, AtomicBool::new(false))
}

/// The functions of each loss, without `tt::tt_metal::`.
static LOSSES: [(&[&str], Loss); 8] = [
    (
        &[
            "AllocatorImpl::allocate_buffer",
            "AllocatorImpl::deallocate_buffer",
            "AllocatorImpl::get_statistics",
            "AllocatorImpl::get_num_banks",
            "AllocatorImpl::get_alignment",
            "Buffer::aligned_size_per_bank",
            "Buffer::is_dram",
            "Buffer::is_l1",
            "distributed::MeshDevice::get_device_ids",
        ],
        Loss::Everything,
    ),
    (
        &[
            // Constructors and destructors, of which a class has more or fewer.
            "AllocatorImpl",
            "AllocatorImpl::clear",
            "Buffer::size",
            "Buffer::buffer_type",
            "Buffer::device",
            "Buffer::unique_id",
            "Buffer::is_trace",
            "experimental::per_core_allocation::is_per_core_allocation",
            // Hosts without ttnn have no operations, and no names for them.
            "ttnn::Tensor::is_allocated",
            "experimental::inspector::ShouldCaptureTensorSpecs",
            "Tensor::is_allocated",
            // Versions without these have no such regions.
            "detail::ProgramImpl::allocate_dataflow_buffers",
            "detail::ProgramImpl::allocate_scratchpads",
            "detail::ProgramImpl::validate_dataflow_buffer_region",
            "distributed::MeshDeviceImpl::initialize_impl",
            "distributed::MeshWorkloadImpl",
        ],
        Loss::Nothing,
    ),
    (PROGRAMS, part("what programs take of L1 is not reported, or not all of it")),
    (
        &[
            "WorkerConfigBufferMgr",
            "WorkerConfigBufferMgr::init_add_buffer",
            "WorkerConfigBufferMgr::reserve",
            "WorkerConfigBufferMgr::alloc",
            "WorkerConfigBufferMgr::free",
            "WorkerConfigBufferMgr::mark_completely_full",
        ],
        part("the kernel-config ring is not reported"),
    ),
    (
        &["experimental::inspector::IsEnabled", "experimental::inspector::EmitMeshWorkloadDebugEntry"],
        part("buffers and programs are not named after operations"),
    ),
    (
        &["AllocatorImpl::deallocate_buffers"],
        part("what closing a device drops is counted until its allocator is gone"),
    ),
    (
        &["MetalContext::instance_exists", "MetalContext::instance", "tt::Cluster::get_cluster_desc"],
        part("chips have numbers, but no ids of their own"),
    ),
    (
        &["AllocatorImpl::get_allocated_buffers"],
        part(
            "what lives is listed by the tap itself, and not known of devices that were used before it came",
        ),
    ),
];

fn loss(name: &str) -> Option<&'static Loss> {
    LOSSES.iter().find(|(names, _)| names.contains(&name)).map(|(_, loss)| loss)
}

/// Without these, some programs are not seen, or not all of what they take.
const PROGRAMS: &[&str] = &[
    "Inspector::program_created",
    "Inspector::program_destroyed",
    "GraphTracker::track_allocate_cb",
    "Inspector::program_kernel_compile_finished",
    "detail::ProgramImpl::allocate_circular_buffers",
    "distributed::MeshWorkloadImpl::add_program",
    "distributed::MeshWorkloadImpl::compile",
    "distributed::EnqueueMeshWorkload",
];

/// Whether everything is there by which programs are seen.
pub(crate) fn sees_programs() -> bool {
    let is_needed = |name: &CStr| PROGRAMS.contains(&readable(name).as_str());
    let needed = hooks().map(|hook| hook.name).filter(|name| is_needed(name));
    needed.map(Symbol::new).all(|symbol| symbol.get().is_some())
}

/// Says that this version does not have a function.
pub(crate) fn missing(symbol: &CStr) {
    let name = readable(symbol);
    match loss(&name) {
        Some(Loss::Nothing) => {}
        Some(Loss::Everything) => {
            notes::unobserved(&format!("libtt_metal.so has no {name}: the tap needs it"));
        }
        Some(Loss::Part(text, said)) => {
            // Of the functions with one purpose, the first that is looked for is named.
            if !said.swap(true, Ordering::Relaxed) {
                notes::note(&format!("libtt_metal.so has no {name}: {text}"));
            }
        }
        None => notes::note(&format!("libtt_metal.so has no {name}: what needs it is not reported")),
    }
}

/// Looks once for everything that is replaced, and says what this version does not have. Whether it has what everything
/// depends on.
pub(crate) fn has_hooks() -> bool {
    const NOT_LOOKED: u32 = 0;
    const THERE: u32 = 1;
    const MISSING: u32 = 2;
    static FOUND: AtomicU32 = AtomicU32::new(NOT_LOOKED);
    // Two that look at the same time say it twice, and the reader says it once.
    if FOUND.load(Ordering::Relaxed) == NOT_LOOKED {
        let is_missing = |name: &'static CStr| Symbol::new(name).get().is_none();
        let missing: Vec<&CStr> = hooks().map(|hook| hook.name).filter(|name| is_missing(name)).collect();
        let is_fatal = |name: &&CStr| matches!(loss(&readable(name)), Some(Loss::Everything));
        FOUND.store(if missing.iter().any(is_fatal) { MISSING } else { THERE }, Ordering::Relaxed);
    }
    FOUND.load(Ordering::Relaxed) == THERE
}

/// At the end of a process: if tt-metal has none of what is replaced, nothing of this library was called before.
extern "C" fn at_exit() {
    shield::shielded(|| {
        let allocate = c"_ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE";
        if notes::are_wanted()
            && metal::library().is_some()
            && has_hooks()
            && slots::is_called_through(allocate) == Some(false)
        {
            notes::unobserved(
                "libtt_metal.so calls its allocator directly (built with LTO, -Bsymbolic or hidden symbols): the tap \
                 cannot come between",
            );
        }
    });
}

// SAFETY: the loader calls what is listed here when the process ends, without arguments that matter.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

/// The name in a mangled one, without its arguments: each part stands behind its length.
pub(crate) fn readable(symbol: &CStr) -> String {
    let whole = symbol.to_string_lossy();
    let mut rest = whole.trim_start_matches("_ZN").trim_start_matches('K');
    let mut parts = Vec::new();
    while let Some(digits) = rest.find(|c: char| !c.is_ascii_digit()).filter(|digits| *digits > 0) {
        let part = rest[..digits].parse().ok().and_then(|length: usize| rest.get(digits..digits + length));
        let Some(part) = part else { break };
        parts.push(part);
        rest = &rest[digits + part.len()..];
    }
    let name = parts.join("::");
    let name = name.strip_prefix("tt::tt_metal::").unwrap_or(&name);
    if name.is_empty() { whole.into_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_without_their_arguments() {
        let exists =
            c"_ZN2tt8tt_metal12MetalContext15instance_existsEN4ttsl10StrongTypeIiNS0_12ContextIdTagEEE";
        assert_eq!(readable(exists), "MetalContext::instance_exists");
        assert_eq!(readable(c"_ZNK2tt8tt_metal6Buffer4sizeEv"), "Buffer::size");
        assert_eq!(readable(c"_ZNK2tt7Cluster16get_cluster_descEv"), "tt::Cluster::get_cluster_desc");
        assert_eq!(readable(c"_ZTIN2tt8tt_metal6DeviceE"), "_ZTIN2tt8tt_metal6DeviceE");
        assert_eq!(readable(c"_ZN99x"), "_ZN99x", "a length that is a lie");
    }
}
