//! The figures of a process on a device that device-wide sums and peaks are made of.

use shm_layout::table::{Composition, Holder, PEAK_HOLDERS};
use shm_layout::{Class, Counters};

/// Bytes used now, as [`Counters`] defines it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) dram: u64,
    pub(crate) l1: u64,
    pub(crate) eth: u64,
}

impl Used {
    #[inline]
    pub(crate) fn of(counters: &Counters) -> Used {
        Used { dram: counters.dram_used(), l1: counters.l1_used(), eth: counters.eth_used() }
    }

    /// Takes one process's old share out and its new one in. Plausible counters keep the sum of 1024
    /// processes below 2^63; the arithmetic wraps so that a mistake here could not bring the monitor down.
    #[inline]
    pub(crate) fn exchange(&mut self, old: Used, new: Used) {
        self.dram = self.dram.wrapping_sub(old.dram).wrapping_add(new.dram);
        self.l1 = self.l1.wrapping_sub(old.l1).wrapping_add(new.l1);
        self.eth = self.eth.wrapping_sub(old.eth).wrapping_add(new.eth);
    }
}

/// What is resident of circular buffers, and of kernels on Tensix cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resident {
    pub(crate) cb: u64,
    pub(crate) kernels: u64,
}

impl Resident {
    #[inline]
    pub(crate) fn of(counters: &Counters) -> Resident {
        let kernels = counters.kernel_resident_bytes.wrapping_add(counters.system_kernel_bytes);
        Resident { cb: counters.cb_resident_bytes, kernels }
    }

    /// See [`Used::exchange`].
    #[inline]
    pub(crate) fn exchange(&mut self, old: Resident, new: Resident) {
        self.cb = self.cb.wrapping_sub(old.cb).wrapping_add(new.cb);
        self.kernels = self.kernels.wrapping_sub(old.kernels).wrapping_add(new.kernels);
    }
}

/// One class of a device, all processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) bytes: u64,
    pub(crate) count: u64,
    pub(crate) alloc_bytes: u64,
    pub(crate) alloc_count: u64,
}

impl Live {
    #[inline]
    pub(crate) fn of(counters: &Counters, class: usize) -> Live {
        let class = &counters.classes[class];
        Live {
            bytes: class.live_bytes,
            count: class.live_count,
            alloc_bytes: class.alloc_bytes,
            alloc_count: class.alloc_count,
        }
    }

    #[inline]
    pub(crate) fn exchange(&mut self, old: Live, new: Live) {
        self.bytes = self.bytes.wrapping_sub(old.bytes).wrapping_add(new.bytes);
        self.count = self.count.wrapping_sub(old.count).wrapping_add(new.count);
        self.alloc_bytes = self.alloc_bytes.wrapping_sub(old.alloc_bytes).wrapping_add(new.alloc_bytes);
        self.alloc_count = self.alloc_count.wrapping_sub(old.alloc_count).wrapping_add(new.alloc_count);
    }

    /// The same with nothing to add to what was allocated in all.
    pub(crate) fn without_history(self) -> Live {
        Live { alloc_bytes: 0, alloc_count: 0, ..self }
    }
}

/// Which of the two memories a composition is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Dram,
    L1,
}

impl Memory {
    fn used(self, counters: &Counters) -> u64 {
        match self {
            Memory::Dram => counters.dram_used(),
            Memory::L1 => counters.l1_used(),
        }
    }

    fn has(self, class: Class) -> bool {
        match self {
            Memory::Dram => class.shares_memory(Class::Dram),
            Memory::L1 => class.shares_memory(Class::L1),
        }
    }

    /// A process's bytes of each class in this memory; they add up to what it uses.
    fn classes(self, counters: &Counters) -> [u64; Class::COUNT] {
        let used = counters.used_by_class();
        Class::ALL.map(|class| if self.has(class) { used[class as usize] } else { 0 })
    }
}

/// A process's share: who, and its counters.
pub(crate) struct Share<'a> {
    pub(crate) identity: u64,
    pub(crate) pid: u64,
    pub(crate) counters: &'a Counters,
}

/// Who holds what of a memory at this moment.
pub(crate) fn compose<'a>(memory: Memory, shares: impl Iterator<Item = Share<'a>>) -> Composition {
    let mut composition: Composition = bytemuck::Zeroable::zeroed();
    let mut holders = Vec::new();
    for share in shares {
        let classes = memory.classes(share.counters);
        for (sum, bytes) in composition.classes.iter_mut().zip(classes) {
            *sum = sum.wrapping_add(bytes);
        }
        let bytes = memory.used(share.counters);
        if bytes > 0 {
            holders.push(Holder { identity: share.identity, pid: share.pid, bytes });
        }
    }
    holders.sort_unstable_by_key(|holder| (std::cmp::Reverse(holder.bytes), holder.identity));
    let kept = holders.len().min(PEAK_HOLDERS);
    composition.holders[..kept].copy_from_slice(&holders[..kept]);
    composition.others = holders[kept..].iter().fold(0, |sum, holder| sum.wrapping_add(holder.bytes));
    composition
}

/// A peak that one process reached by itself, at a time when nobody merged: all that is known is that
/// it held this much.
pub(crate) fn held_alone(identity: u64, pid: u64, bytes: u64) -> Composition {
    let mut composition: Composition = bytemuck::Zeroable::zeroed();
    composition.holders[0] = Holder { identity, pid, bytes };
    composition
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(dram: u64) -> Counters {
        let mut counters = Counters::ZERO;
        counters.classes[Class::Dram as usize].live_bytes = dram;
        counters
    }

    #[test]
    fn the_largest_holders_come_first_and_the_rest_is_summed() {
        let all: Vec<Counters> = (1..=10).map(counters).collect();
        let shares = all.iter().enumerate().map(|(i, counters)| Share {
            identity: i as u64,
            pid: 100 + i as u64,
            counters,
        });
        let composition = compose(Memory::Dram, shares);
        assert_eq!(composition.classes[Class::Dram as usize], 55);
        assert_eq!(composition.holders.map(|holder| holder.bytes), [10, 9, 8, 7, 6, 5, 4, 3]);
        assert_eq!(composition.others, 3);
    }

    #[test]
    fn l1_classes_add_up_to_what_is_used() {
        let mut counters = Counters::ZERO;
        counters.classes[Class::L1 as usize].live_bytes = 5;
        counters.classes[Class::KernelFabric as usize].live_bytes = 100;
        counters.classes[Class::KernelDispatch as usize].live_bytes = 40;
        counters.system_kernel_bytes = 60;
        counters.system_kernel_eth_bytes = 80;
        counters.cb_resident_bytes = 7;
        let classes = Memory::L1.classes(&counters);
        assert_eq!(classes.iter().sum::<u64>(), counters.l1_used());
        assert_eq!(classes[Class::KernelDispatch as usize], 40);
    }
}
