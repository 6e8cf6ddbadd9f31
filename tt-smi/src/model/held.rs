//! What is held on a device: by all processes together, or by one of them.

use tt_shm_reader::{Class, Counters, DeviceEntry, DeviceStats};

use super::{Basis, Clock, Interval, Memory, Peak};

/// What is held on a device: by all processes together, or by one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// DRAM.
    pub dram: Memory,
    /// L1 of Tensix cores: buffers and resident circular buffers.
    pub l1: Memory,
    /// L1 of ethernet cores.
    pub eth_l1: Memory,
    /// By class code.
    pub classes: [Memory; Class::COUNT],
    /// Circular buffers of the programs dispatched last.
    pub cb_resident: Memory,
    /// Kernels resident on Tensix cores: fabric, dispatch, and those of the programs dispatched last.
    pub kernel_resident: Memory,
    /// All loaded kernels, of any type and on any core.
    pub kernel_loaded: Memory,
    /// The ring buffer that application kernels share, if reported; its count is that of programs.
    pub kernel_ring: Option<Memory>,
    /// Dispatches of living processes.
    pub dispatches: u64,
    /// Of these, with a cached binary.
    pub cached_dispatches: u64,
    /// Allocations that failed, of living processes.
    pub failed_allocs: u64,
}

impl Held {
    /// By all processes together.
    pub fn by_all(stats: &DeviceStats, incomplete: bool, clock: Clock) -> Held {
        let entry = &stats.entry;
        let of = |used: u64, peak: &tt_shm_reader::Peak| Memory::of(used, Peak::found(peak, clock));
        let classes = stats.classes.map(|class| Memory {
            requested: class.requested_bytes,
            requested_basis: class.requested_basis_bytes,
            count: Some(class.live_count),
            ..of(class.live_bytes, &class.peak)
        });
        let kernels = stats.kernel_resident_bytes.saturating_add(stats.system_kernel_bytes);
        let mut held = Held {
            dram: of(stats.dram_used_bytes, &stats.dram_peak),
            l1: of(stats.l1_used_bytes, &stats.l1_peak),
            eth_l1: of(stats.eth_used_bytes, &stats.eth_peak),
            classes,
            cb_resident: of(stats.cb_resident_bytes, &stats.cb_resident_peak),
            kernel_resident: of(kernels, &stats.kernel_resident_peak),
            kernel_loaded: kernel_loaded(&classes),
            kernel_ring: kernel_ring(stats),
            dispatches: stats.dispatches,
            cached_dispatches: stats.cached_dispatches,
            failed_allocs: stats.failed_allocs,
        };
        held.set_requested();
        held.set_capacity(entry);
        for memory in [&mut held.eth_l1, &mut held.cb_resident, &mut held.kernel_resident] {
            memory.peak = memory.peak.without_count();
        }
        held.all_mut().for_each(|memory| memory.incomplete = incomplete);
        held
    }

    /// By one process.
    pub fn by_one(counters: &Counters, clock: Clock) -> Held {
        let counted = |used: u64, bytes: u64, time: u64, count: Option<u64>| {
            Memory::of(used, Peak::counted(bytes, time, count, clock))
        };
        let classes = Class::ALL.map(|class| {
            let own = counters.class(class);
            Memory {
                requested: own.requested_bytes,
                requested_basis: counters.requested_basis_bytes[class as usize],
                count: Some(own.live_count),
                ..counted(own.live_bytes, own.peak_bytes, own.peak_time, Some(own.peak_count))
            }
        });
        let uncounted = |used: u64| Memory::of(used, Peak::uncounted(used));
        let mut held = Held {
            dram: counted(
                counters.dram_used(),
                counters.dram_peak_bytes,
                counters.dram_peak_time,
                Some(counters.dram_peak_count),
            ),
            l1: counted(
                counters.l1_used(),
                counters.l1_peak_bytes,
                counters.l1_peak_time,
                Some(counters.l1_peak_count),
            ),
            eth_l1: counted(counters.eth_used(), counters.eth_peak_bytes, counters.eth_peak_time, None),
            classes,
            cb_resident: uncounted(counters.cb_resident_bytes),
            kernel_resident: uncounted(counters.kernels_resident()),
            kernel_loaded: kernel_loaded(&classes),
            kernel_ring: None,
            dispatches: counters.dispatches,
            cached_dispatches: counters.cached_dispatches,
            failed_allocs: counters.failed_allocs,
        };
        held.set_requested();
        held
    }

    /// Nothing of it is exact: whoever told it is not to be relied on, or tells only a part.
    pub fn doubt(&mut self) {
        self.all_mut().for_each(doubt);
    }

    /// Nobody told of fabric and dispatch kernels, which may be there: what they would be part of is a lower bound.
    pub fn doubt_system_kernels(&mut self) {
        let classes = Class::ALL.into_iter().zip(&mut self.classes);
        classes.filter(|(class, _)| class.is_system_kernel()).for_each(|(_, memory)| doubt(memory));
        [&mut self.eth_l1, &mut self.kernel_resident, &mut self.kernel_loaded].into_iter().for_each(doubt);
    }

    /// One class.
    pub fn class(&self, class: Class) -> &Memory {
        &self.classes[class as usize]
    }

    /// What a class adds to the memory it lies in: circular buffers count while they are resident.
    pub fn share(&self, class: Class) -> &Memory {
        match class {
            Class::Cb => &self.cb_resident,
            class => self.class(class),
        }
    }

    /// What the bytes of the allocator's pools are: see [`Memory::basis`].
    pub fn basis(&self) -> Basis {
        let pools = Class::ALL.into_iter().filter(|class| class.pool().is_some());
        self.sum(pools).basis()
    }

    /// Several classes together. Nobody counts the peak of such a sum.
    fn sum(&self, classes: impl Iterator<Item = Class>) -> Memory {
        sum(classes.map(|class| *self.class(class)))
    }

    fn set_requested(&mut self) {
        for (memory, kind) in
            [(&mut self.dram, tt_shm_reader::Memory::Dram), (&mut self.l1, tt_shm_reader::Memory::L1)]
        {
            let classes = Class::ALL.into_iter().filter(|class| class.memory() == kind);
            let requested = classes.map(|class| match class {
                Class::Cb => self.cb_resident.requested,
                class => self.classes[class as usize].requested,
            });
            memory.requested = requested.fold(0, u64::saturating_add);
        }
    }

    fn set_capacity(&mut self, entry: &DeviceEntry) {
        (self.dram.total, self.dram.reserved) = (entry.dram_total(), entry.dram_reserved());
        (self.l1.total, self.l1.reserved) = (entry.l1_total(), entry.l1_reserved());
        self.eth_l1.total = entry.eth_l1_total();
    }

    /// Every amount of memory. Each field is named, so that none can be forgotten.
    fn all_mut(&mut self) -> impl Iterator<Item = &mut Memory> {
        let Held {
            dram,
            l1,
            eth_l1,
            classes,
            cb_resident,
            kernel_resident,
            kernel_loaded,
            kernel_ring,
            dispatches: _,
            cached_dispatches: _,
            failed_allocs: _,
        } = self;
        [dram, l1, eth_l1, cb_resident, kernel_resident, kernel_loaded]
            .into_iter()
            .chain(kernel_ring)
            .chain(classes)
    }
}

fn doubt(memory: &mut Memory) {
    memory.incomplete = true;
    memory.peak.range = Interval::at_least(memory.peak.range.low);
}

fn kernel_ring(stats: &DeviceStats) -> Option<Memory> {
    let total = Some(stats.kernel_ring_total_bytes).filter(|total| *total != 0)?;
    let used = stats.kernel_ring_used_bytes;
    let count = Some(stats.kernel_ring_programs);
    Some(Memory { total: Some(total), count, ..Memory::of(used, Peak::uncounted(used)) })
}

fn kernel_loaded(classes: &[Memory; Class::COUNT]) -> Memory {
    let kernels = Class::ALL.into_iter().filter(|class| class.memory() == tt_shm_reader::Memory::Kernels);
    sum(kernels.map(|class| classes[class as usize]))
}

fn sum(parts: impl Iterator<Item = Memory>) -> Memory {
    let mut all = parts.fold(Memory { count: Some(0), ..Memory::default() }, |sum, part| Memory {
        used: sum.used.saturating_add(part.used),
        requested: sum.requested.saturating_add(part.requested),
        requested_basis: sum.requested_basis.saturating_add(part.requested_basis),
        count: sum.count.zip(part.count).map(|(sum, part)| sum.saturating_add(part)),
        incomplete: sum.incomplete || part.incomplete,
        ..sum
    });
    all.peak = Peak::uncounted(all.used);
    all
}
