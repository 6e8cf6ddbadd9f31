//! What a peak was made of: by class, and by the processes that held it.

use tt_shm_reader::{Composition, UsedMemory};

use crate::code::{Done, call};
use crate::objects::{self, tt_shm_snapshot};
use crate::raw::{Handle, OutStruct, versioned};
use crate::rows::{
    TT_SHM_DEVICE_DRAM_COMPOSITION_EXACT, TT_SHM_DEVICE_L1_COMPOSITION_EXACT, row_of, tt_shm_peak,
};
use crate::types::{TT_SHM_CLASSES, by_class, no_such};

/// The memories that peaks are of: DRAM.
pub const TT_SHM_MEMORY_DRAM: u32 = 0;
/// L1 of Tensix cores.
pub const TT_SHM_MEMORY_L1: u32 = 1;

/// Holders that are kept with a peak, or with a failure.
pub const TT_SHM_HOLDERS: usize = 8;

/// A process's share of a peak.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct tt_shm_holder {
    /// Identity of its segment; 0 in an unused entry.
    pub identity: u64,
    /// Its pid, as it sees it.
    pub pid: u64,
    /// Bytes that it held.
    pub bytes: u64,
}

/// What a peak was made of.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_composition {
    /// `sizeof(tt_shm_composition)`.
    pub size: u32,
    /// 1 if this is all of it. If not, `peak.low` is made of this, as far as it is known.
    pub exact: u32,
    /// The peak.
    pub peak: tt_shm_peak,
    /// Bytes by `TT_SHM_CLASS_...`; circular buffers as resident, kernels 0.
    pub classes: [u64; TT_SHM_CLASSES],
    /// The largest holders, largest first.
    pub holders: [tt_shm_holder; TT_SHM_HOLDERS],
    /// Bytes of all other holders.
    pub others: u64,
}

versioned!(tt_shm_composition);

// The size of the first version, which callers may have been compiled with.
const _: () = assert!(size_of::<tt_shm_composition>() == 368);

/// A memory by its number.
pub(crate) fn memory(code: u32) -> Done<UsedMemory> {
    match code {
        TT_SHM_MEMORY_DRAM => Ok(UsedMemory::Dram),
        TT_SHM_MEMORY_L1 => Ok(UsedMemory::L1),
        other => Err(no_such("memory", other.into())),
    }
}

/// What the peak of a memory (`TT_SHM_MEMORY_...`) of the device in a row was made of. `TT_SHM_ERR_NOT_FOUND` if there is no
/// such row.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_snapshot_composition(
    snapshot: Handle<tt_shm_snapshot>,
    device_row: u32,
    memory: u32,
    composition: OutStruct<tt_shm_composition>,
) -> i32 {
    call(|| {
        let snapshot = objects::get(snapshot)?;
        let device = row_of(&snapshot.devices, device_row.into(), "device")?;
        let (found, peak, exact) = match self::memory(memory)? {
            UsedMemory::Dram => {
                (&device.dram_composition, device.dram_peak, TT_SHM_DEVICE_DRAM_COMPOSITION_EXACT)
            }
            UsedMemory::L1 => (&device.l1_composition, device.l1_peak, TT_SHM_DEVICE_L1_COMPOSITION_EXACT),
        };
        composition.set(&made_of(found, peak.into(), device.flags & exact != 0))
    })
}

fn made_of(found: &Composition, peak: tt_shm_peak, is_exact: bool) -> tt_shm_composition {
    tt_shm_composition {
        size: size_of::<tt_shm_composition>() as u32,
        exact: u32::from(is_exact),
        peak,
        classes: by_class(&found.classes),
        holders: found.holders.map(|holder| tt_shm_holder {
            identity: holder.identity,
            pid: holder.pid,
            bytes: holder.bytes,
        }),
        others: found.others,
    }
}
