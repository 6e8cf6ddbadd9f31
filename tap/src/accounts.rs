//! The accounts of an allocator: the devices of the segment that stand for it, and what is reported of them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use tt_shm_writer::{
    Alloc, Arch, BufferType, CoreMemory, Device, DeviceInfo, FailedAlloc, Mesh, NameId, Pool, Pools, Record,
    Tracker,
};

use crate::chips;
use crate::metal::{self, Allocator, Buffer, KINDS};
use crate::needs;
use crate::notes;
use crate::per_core::{self, Cores};
use crate::rectangles;
use crate::segment::{self, Segment};
use crate::settings;
use crate::site;

mod late;

use late::Late;
pub(crate) use late::Look;

/// The id of a chip that tt-metal does not tell, with its number in the low half: it stands for that chip in this process
/// only.
const NAMELESS: u64 = 0xffff_ffff_0000_0000;

/// The accounts of an allocator.
pub(crate) struct Accounts {
    segment: &'static Segment,
    /// What tt-metal calls it: a device, or a mesh.
    device: metal::Device,
    /// One for each chip.
    mesh: Mesh,
    /// The numbers of the chips, in the order of the mesh.
    chips: Vec<(u32, Device)>,
    first: Device,
    alignment: u64,
    /// Which of the allocators of its chips it is.
    slot: segment::Slot,
    /// Buffers that were dropped with all others and that the allocator lists ever since. They may be gone.
    dropped: Mutex<HashSet<Buffer>>,
    /// Whether there are any: usually not, and then nobody has to lock.
    any_dropped: AtomicBool,
    /// Whether a buffer took some of the cores only. The allocator's statistics do not have those.
    any_partial: AtomicBool,
    /// What lives, and its ids: only if the allocator does not list it.
    live: Option<Mutex<HashMap<Buffer, u64>>>,
    /// If it was in use before this library came.
    late: Option<Late>,
}

impl Accounts {
    /// Registers the chips of the device that the allocator is for, and what it holds already, if it was met late. `None`
    /// if that cannot be known or reported.
    pub(crate) fn open(
        allocator: Allocator,
        device: metal::Device,
        holds_something: bool,
    ) -> Option<Accounts> {
        if !needs::has_hooks() || !metal::is_supported() {
            return None;
        }
        chips::learn_mesh(device);
        let numbers = known(device.chips(), "the chips of a device")?;
        let pools = pools(allocator);
        let alignment = allocator.alignment()?;
        let listed = allocator.buffers();
        let live = listed.is_none().then(Mutex::default);
        let held = if holds_something {
            known(listed, "what a device held before the tap came")?
        } else {
            Vec::new()
        };
        let segment = segment::current()?;
        if holds_something {
            // Before anything is shown.
            segment.unsettled();
        }
        let slot = segment.claim(&numbers, pools);
        let tracker = segment.tracker();
        let grid = allocator.bank_cores().and_then(|cores| rectangles::grid(&cores));
        let register = |number: &u32| {
            let (id, arch) = metal::chip(*number);
            let arch = if arch == Arch::Unknown { metal::mesh_architecture(device) } else { arch };
            tracker.register_device(&DeviceInfo {
                chip_id: id.unwrap_or(NAMELESS | u64::from(*number)),
                allocator: slot.number,
                pools,
                logical_id: Some(*number),
                arch,
                l1: core_memory(allocator, pools),
                l1_base: allocator.l1_base(),
                grid,
                ..DeviceInfo::default()
            })
        };
        let devices: Result<Vec<Device>, _> = numbers.iter().map(register).collect();
        let devices = devices.inspect_err(|error| notes::unobserved(&error.to_string())).ok()?;
        let first = *devices.first()?;
        let accounts = Accounts {
            segment,
            device,
            chips: numbers.iter().copied().zip(devices.iter().copied()).collect(),
            mesh: Mesh::new(devices),
            first,
            alignment,
            slot,
            dropped: Mutex::default(),
            any_dropped: AtomicBool::new(false),
            any_partial: AtomicBool::new(false),
            live,
            late: holds_something.then(Late::new),
        };
        let _ = tracker.device_open(&accounts.mesh);
        if !needs::sees_programs() {
            segment.partial();
        }
        // One that is being allocated right now has no address yet, and asking for it would end the process.
        for buffer in held.into_iter().filter(|buffer| buffer.is_allocated()) {
            accounts.allocated(buffer, None);
        }
        Some(accounts)
    }

    pub(crate) fn tracker(&self) -> &'static Tracker {
        self.segment.tracker()
    }

    /// What tt-metal calls the device or mesh.
    pub(crate) fn device(&self) -> metal::Device {
        self.device
    }

    /// All of its chips.
    pub(crate) fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Some of its chips, by their numbers; `None` if one is not its own.
    pub(crate) fn devices(&self, numbers: &[u32]) -> Option<Mesh> {
        let device =
            |number: &u32| self.chips.iter().find(|(known, _)| known == number).map(|(_, device)| *device);
        numbers.iter().map(device).collect::<Option<Vec<_>>>().map(Mesh::new)
    }

    /// Reports a buffer that was allocated, just now at this address or earlier; its kind and id, if it was.
    pub(crate) fn allocated(&self, buffer: Buffer, address: Option<u64>) -> Option<(BufferType, u64)> {
        let reported = self.report(buffer, address);
        if reported.is_none() {
            // It is held nevertheless.
            self.segment.partial();
        }
        reported
    }

    fn report(&self, buffer: Buffer, address: Option<u64>) -> Option<(BufferType, u64)> {
        let (kind, id, alloc) = self.describe(buffer, address)?;
        // Only what is allocated just now comes from here.
        let is_sited = address.is_some() && settings::call_sites();
        let alloc = match is_sited.then(site::here).flatten() {
            Some(site) => alloc.site(self.tracker().intern(&site).unwrap_or(NameId::NONE)),
            None => alloc,
        };
        self.undrop(buffer);
        self.live().map(|mut live| live.insert(buffer, id));
        if self.late.as_ref().is_some_and(|late| late.is_allocated_again(id)) {
            let _ = self.tracker().free(&self.mesh, id);
            self.forget_peaks();
        }
        self.tracker().alloc(&self.mesh, alloc).ok().map(|()| (kind, id))
    }

    /// Reports a buffer whose allocation was missed.
    fn allocated_unseen(&self, buffer: Buffer) {
        let described = self.describe(buffer, None);
        let reported = described.and_then(|(.., alloc)| self.tracker().alloc(&self.mesh, alloc).ok());
        if reported.is_none() {
            self.segment.partial();
        }
    }

    /// What is to be said of a buffer that is allocated.
    #[inline]
    fn describe(&self, buffer: Buffer, address: Option<u64>) -> Option<(BufferType, u64, Alloc)> {
        let (kind, id) = (known(buffer.kind(), "the kind of a buffer")?, buffer.id());
        let alloc = Alloc::new(kind, id, buffer.size());
        let cores = per_core::cores_of(buffer, kind);
        let alloc = match (buffer.per_bank(self.alignment), cores) {
            (Some(per_bank), Cores::All) => alloc.bytes_per_bank(per_bank),
            (Some(per_bank), Cores::Some(cores)) => {
                self.any_partial.store(true, Ordering::Relaxed);
                alloc.cores(cores).occupied(per_bank.saturating_mul(u64::from(cores)))
            }
            (_, Cores::Unknown) => known(None, "the cores of a buffer")?,
            (None, _) => alloc,
        };
        let alloc = match address.or_else(|| buffer.address()) {
            // One with an address for each core has none that would be true of all.
            Some(address) if cores == Cores::All => alloc.address(address),
            _ => alloc,
        };
        Some((kind, id, alloc))
    }

    /// What lives, if the allocator does not list it.
    fn live(&self) -> Option<MutexGuard<'_, HashMap<Buffer, u64>>> {
        self.live.as_ref().map(|live| live.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
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

    /// Reports a buffer that is about to be freed.
    pub(crate) fn freed(&self, buffer: Buffer) {
        let id = buffer.id();
        self.live().map(|mut live| live.remove(&buffer));
        if self.late.as_ref().is_some_and(|late| late.is_freed_unseen(id)) {
            self.allocated_unseen(buffer);
            self.forget_peaks();
        }
        let _ = self.tracker().free(&self.mesh, id);
    }

    /// Reports that everything is about to be freed.
    pub(crate) fn freed_all(&self, allocator: Allocator) {
        for (_, id) in self.live().iter_mut().flat_map(|live| live.drain()) {
            let _ = self.tracker().free(&self.mesh, id);
        }
        let mut dropped = self.dropped.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for buffer in allocator.buffers().into_iter().flatten() {
            if dropped.insert(buffer) {
                let _ = self.tracker().free_dropped(&self.mesh, buffer.id());
            }
        }
        self.any_dropped.store(!dropped.is_empty(), Ordering::Release);
        // What the allocator lists from now on is not what it holds.
        self.settled();
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
        self.failed_to(failed);
    }

    /// Reports something that could not be allocated.
    pub(crate) fn failed_to(&self, failed: FailedAlloc) {
        let _ = self.tracker().alloc_failed(&self.mesh, failed);
    }

    /// Reports how full the kernel ring of its chips is.
    pub(crate) fn ring(&self, total: u64, used: u64, programs: u64) {
        let _ = self.tracker().kernel_ring(&self.mesh, total, used, programs);
    }

    /// Whether the allocator says of a kind of memory what was reported; `None` if it cannot tell.
    pub(crate) fn agrees(&self, allocator: Allocator, kind: BufferType) -> Option<bool> {
        let true_sum = self.allocators_sum(allocator, kind)?;
        Some(true_sum == self.reported_sum(kind)?)
    }

    /// The bytes of a kind of memory that are in use, as the allocator says; `None` if it cannot tell.
    fn allocators_sum(&self, allocator: Allocator, kind: BufferType) -> Option<u64> {
        let is_l1 = matches!(kind, BufferType::L1 | BufferType::L1Small);
        if is_l1 && self.any_partial.load(Ordering::Relaxed) {
            return None;
        }
        let (statistics, banks) = (allocator.statistics(kind)?, allocator.banks(kind)?);
        // A sum that no memory has is not what was reported.
        Some(statistics.allocated.saturating_mul(u64::from(banks)))
    }

    /// The same, as it was reported.
    fn reported_sum(&self, kind: BufferType) -> Option<u64> {
        let counters = self.tracker().counters(self.first)?;
        Some(counters.class(kind.class()).live_bytes)
    }

    /// The allocator is gone.
    pub(crate) fn close(&self) {
        self.settled();
        let _ = self.tracker().device_close(&self.mesh);
        self.slot.release();
    }
}

/// What is known; says of it that it is not, if it is not.
fn known<T>(value: Option<T>, what: &str) -> Option<T> {
    if value.is_none() {
        notes::unobserved(&format!("not known: {what}"));
    }
    value
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
