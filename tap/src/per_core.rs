//! Buffers that take some cores and not all: those that hybrid allocators (`TT_METAL_ALLOCATOR_MODE_HYBRID`) give an
//! address of its own on each core. (Those with one address on a range of cores take it from all, as the statistics say.)

use std::sync::atomic::{AtomicBool, Ordering};

use tt_shm_writer::BufferType;

use crate::metal::{Buffer, functions};
use crate::notes;

functions! {
    is_per_core(Buffer) -> bool =
        c"_ZN2tt8tt_metal12experimental19per_core_allocation22is_per_core_allocationERKNS0_6BufferE";
    // std::optional<uint32_t>, as it is returned in a register: a number, and above it whether there is one.
    cores(Buffer) -> u64 = c"_ZNK2tt8tt_metal6Buffer9num_coresEv";
}

/// The cores that a buffer takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cores {
    /// All that its allocator has.
    All,
    /// So many of them; the allocator's statistics do not count it.
    Some(u32),
    /// Some of them, but it is not known how many.
    Unknown,
}

/// The cores that a buffer of this kind takes.
#[inline]
pub(crate) fn cores_of(buffer: Buffer, kind: BufferType) -> Cores {
    // Only L1 is on cores.
    if !matches!(kind, BufferType::L1 | BufferType::L1Small) {
        return Cores::All;
    }
    // Versions without this function have no such buffers.
    let Some(is_per_core) = is_per_core() else { return Cores::All };
    // SAFETY: a buffer that lives.
    if !unsafe { is_per_core(buffer) } {
        return Cores::All;
    }
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        notes::note(
            "some L1 buffers have an address for each core (hybrid allocator): they are counted on their cores, and not \
             compared with the allocator's statistics, which do not have them",
        );
    }
    // SAFETY: a buffer that lives.
    let Some(cores) = cores().map(|cores| unsafe { cores(buffer) }) else { return Cores::Unknown };
    let [number, is_there] = [cores as u32, (cores >> 32) as u8 as u32];
    if is_there == 1 { Cores::Some(number) } else { Cores::Unknown }
}
