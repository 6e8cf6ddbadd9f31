//! The accounts of an allocator: the devices of the segment that stand for it, and what is reported of them.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tt_shm_writer::{
    Alloc, BufferType, CoreMemory, Device, DeviceInfo, FailedAlloc, Mesh, Pool, Pools, Record, Tracker,
};

use crate::chips;
use crate::metal::{self, Allocator, Buffer, KINDS};
use crate::segment;

/// The id of a chip that tt-metal does not tell, with its number in the low half: it stands for that chip in this process
/// only.
const NAMELESS: u64 = 0xffff_ffff_0000_0000;

/// The accounts of an allocator.
pub(crate) struct Accounts {
    tracker: &'static Tracker,
    /// One for each chip.
    mesh: Mesh,
    first: Device,
    alignment: u64,
    /// Which of the allocators of its chips it is.
    slot: segment::Slot,
    /// Buffers that were dropped with all others and that the allocator lists ever since. They may be gone.
    dropped: Mutex<HashSet<Buffer>>,
    /// Whether there are any: usually not, and then nobody has to lock.
    any_dropped: AtomicBool,
}

impl Accounts {
    /// Registers the chips that a buffer of the allocator is on, and what it holds already, if it was met late. `None`
    /// if that cannot be known or reported.
    pub(crate) fn open(allocator: Allocator, buffer: Buffer, holds_something: bool) -> Option<Accounts> {
        if !metal::is_supported() {
            return None;
        }
        let device = buffer.device()?;
        chips::learn_mesh(device);
        let numbers = device.chips()?;
        let pools = pools(allocator);
        let alignment = allocator.alignment()?;
        let segment = segment::current()?;
        let slot = segment.claim(&numbers, pools);
        let tracker = segment.tracker();
        let register = |number: &u32| {
            let (id, arch) = metal::chip(*number);
            tracker.register_device(&DeviceInfo {
                chip_id: id.unwrap_or(NAMELESS | u64::from(*number)),
                allocator: slot.number,
                pools,
                logical_id: Some(*number),
                arch,
                l1: core_memory(allocator, pools),
                ..DeviceInfo::default()
            })
        };
        let devices: Vec<Device> = numbers.iter().map(register).collect::<Result<_, _>>().ok()?;
        let first = *devices.first()?;
        let accounts = Accounts {
            tracker,
            mesh: Mesh::new(devices),
            first,
            alignment,
            slot,
            dropped: Mutex::default(),
            any_dropped: AtomicBool::new(false),
        };
        let _ = tracker.device_open(&accounts.mesh);
        if holds_something {
            for held in allocator.buffers()? {
                accounts.allocated(held, None);
            }
        }
        Some(accounts)
    }

    pub(crate) fn tracker(&self) -> &'static Tracker {
        self.tracker
    }

    /// Reports a buffer that was allocated; its kind, if it was.
    pub(crate) fn allocated(&self, buffer: Buffer, address: Option<u64>) -> Option<BufferType> {
        let kind = buffer.kind()?;
        let alloc = Alloc::new(kind, buffer.id(), buffer.size());
        let alloc = match buffer.per_bank(self.alignment) {
            Some(per_bank) => alloc.bytes_per_bank(per_bank),
            None => alloc,
        };
        let alloc = match address.or_else(|| buffer.address()) {
            Some(address) => alloc.address(address),
            None => alloc,
        };
        self.undrop(buffer);
        self.tracker.alloc(&self.mesh, alloc).ok().map(|()| kind)
    }

    /// A buffer that is allocated again, or another at its address, is to be freed again.
    fn undrop(&self, buffer: Buffer) {
        // Acquire: pairs with the Release in `freed_all`.
        if !self.any_dropped.load(Ordering::Acquire) {
            return;
        }
        let mut dropped = self.dropped.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        dropped.remove(&buffer);
    }

    /// Reports a buffer that is about to be freed; its kind, if it was.
    pub(crate) fn freed(&self, buffer: Buffer) -> Option<BufferType> {
        let kind = buffer.kind()?;
        self.tracker.free(&self.mesh, buffer.id()).ok().map(|()| kind)
    }

    /// Reports that everything is about to be freed.
    pub(crate) fn freed_all(&self, allocator: Allocator) {
        let mut dropped = self.dropped.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for buffer in allocator.buffers().into_iter().flatten() {
            if dropped.insert(buffer) {
                let _ = self.tracker.free(&self.mesh, buffer.id());
            }
        }
        self.any_dropped.store(!dropped.is_empty(), Ordering::Release);
    }

    /// Reports a buffer that could not be allocated, with the allocator's own figures.
    pub(crate) fn failed(&self, allocator: Allocator, buffer: Buffer) {
        let Some(kind) = buffer.kind() else { return };
        let mut failed = FailedAlloc::new(kind.class(), buffer.size());
        if let Some(statistics) = allocator.statistics(kind) {
            failed = failed.free_per_bank(statistics.free, statistics.largest_free);
        }
        if let (Some(needed), Some(banks)) = (buffer.per_bank(self.alignment), allocator.banks(kind)) {
            failed = failed.needed_per_bank(needed, banks);
        }
        let _ = self.tracker.alloc_failed(&self.mesh, failed);
    }

    /// Whether the allocator says of a kind of memory what was reported; `None` if it cannot tell.
    pub(crate) fn agrees(&self, allocator: Allocator, kind: BufferType) -> Option<bool> {
        let (statistics, banks) = (allocator.statistics(kind)?, allocator.banks(kind)?);
        let counters = self.tracker.counters(self.first)?;
        let reported = counters.class(kind.class()).live_bytes;
        Some(statistics.allocated.checked_mul(u64::from(banks)) == Some(reported))
    }

    /// The allocator is gone.
    pub(crate) fn close(&self) {
        let _ = self.tracker.device_close(&self.mesh);
        self.slot.release();
    }
}

/// What the allocator can provide.
fn pools(allocator: Allocator) -> Pools {
    let alignment = allocator.alignment().unwrap_or(0);
    let pool = |kind: BufferType| {
        let (statistics, banks) = (allocator.statistics(kind)?, allocator.banks(kind)?);
        Some(Pool { banks, bank_bytes: statistics.total, alignment })
    };
    let [dram, l1, l1_small, trace] = KINDS.map(pool);
    Pools { dram, trace, l1, l1_small }
}

/// All L1 of the cores that L1 buffers are spread over.
fn core_memory(allocator: Allocator, pools: Pools) -> Option<CoreMemory> {
    let bytes_per_core = allocator.core_bytes()?;
    Some(CoreMemory { cores: pools.l1?.banks, bytes_per_core })
}
