//! The figures of a process on a device, from which device-wide sums and peaks are made.

use shm_layout::table::{Composition, Holder, PEAK_HOLDERS};
use shm_layout::{Class, ClassCounters, Counters, LANES};

/// The number of figures of a device that have a peak. Those of the classes come first, by [`Class`] code.
pub(crate) const FIGURES: usize = Class::COUNT + 5;
/// DRAM used.
pub(crate) const DRAM: usize = Class::COUNT;
/// L1 of Tensix cores used.
pub(crate) const L1: usize = Class::COUNT + 1;
/// L1 of ethernet cores used.
pub(crate) const ETH: usize = Class::COUNT + 2;
/// Resident circular buffers.
pub(crate) const CB_RESIDENT: usize = Class::COUNT + 3;
/// Resident kernels on Tensix cores.
pub(crate) const KERNEL_RESIDENT: usize = Class::COUNT + 4;

/// All figures at one moment, of one process or of all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) bytes: [u64; FIGURES],
    /// The number of allocations behind the bytes; 0 for figures without a count.
    pub(crate) counts: [u64; FIGURES],
}

impl Sums {
    pub(crate) const ZERO: Sums = Sums { bytes: [0; FIGURES], counts: [0; FIGURES] };

    /// The figures of one process.
    pub(crate) fn of(counters: &Counters) -> Sums {
        let mut sums = Sums::ZERO;
        for (class, live) in counters.classes.iter().enumerate() {
            (sums.bytes[class], sums.counts[class]) = (live.live_bytes, live.live_count);
        }
        let (Used { dram, l1, eth }, Resident { cb, kernels }) = (Used::of(counters), Resident::of(counters));
        sums.bytes[Class::COUNT..].copy_from_slice(&[dram, l1, eth, cb, kernels]);
        (sums.counts[DRAM], sums.counts[L1]) = (counters.dram_count(), counters.l1_count());
        sums
    }

    /// Replaces one process's share. Plausible counters keep the sum of all processes below 2^63; the
    /// arithmetic wraps so that a mistake here could not bring the monitor down.
    pub(crate) fn exchange(&mut self, old: &Sums, new: &Sums) {
        let each = |sum: &mut [u64; FIGURES], old: &[u64; FIGURES], new: &[u64; FIGURES]| {
            for (sum, (old, new)) in sum.iter_mut().zip(old.iter().zip(new)) {
                *sum = sum.wrapping_sub(*old).wrapping_add(*new);
            }
        };
        each(&mut self.bytes, &old.bytes, &new.bytes);
        each(&mut self.counts, &old.counts, &new.counts);
    }

    /// Replaces one process's bytes of one figure; returns the new sum.
    #[inline]
    pub(crate) fn exchange_bytes(&mut self, figure: usize, old: u64, new: u64) -> u64 {
        let sum = &mut self.bytes[figure];
        *sum = sum.wrapping_sub(old).wrapping_add(new);
        *sum
    }
}

/// The peak of a figure as a process itself knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnPeak {
    pub(crate) bytes: u64,
    /// When it was reached, in ticks; 0 if never. A process knows no peak of what is resident, only that it
    /// was also allocated or loaded: then this is 0, and the bytes are an upper bound.
    pub(crate) ticks: u64,
    pub(crate) count: u64,
}

/// The peaks of a process since its start or its last reset of peaks.
pub(crate) fn own_peaks(counters: &Counters) -> [OwnPeak; FIGURES] {
    let mut peaks = [OwnPeak::default(); FIGURES];
    for (peak, class) in peaks.iter_mut().zip(&counters.classes) {
        *peak = OwnPeak { bytes: class.peak_bytes, ticks: class.peak_time, count: class.peak_count };
    }
    let Counters { dram_peak_bytes, dram_peak_time, dram_peak_count, .. } = *counters;
    peaks[DRAM] = OwnPeak { bytes: dram_peak_bytes, ticks: dram_peak_time, count: dram_peak_count };
    let Counters { l1_peak_bytes, l1_peak_time, l1_peak_count, .. } = *counters;
    peaks[L1] = OwnPeak { bytes: l1_peak_bytes, ticks: l1_peak_time, count: l1_peak_count };
    peaks[ETH] = OwnPeak { bytes: counters.eth_peak_bytes, ticks: counters.eth_peak_time, count: 0 };
    peaks[CB_RESIDENT].bytes = peaks[Class::Cb as usize].bytes;
    // An application kernel is loaded once and resident in each lane whose program runs it.
    let kernels = Class::ALL.into_iter().filter(|class| class.kernel_type().is_some());
    let most = |class: Class| {
        let lanes = if class.is_system_kernel() { 1 } else { LANES as u64 };
        peaks[class as usize].bytes.saturating_mul(lanes)
    };
    peaks[KERNEL_RESIDENT].bytes = kernels.map(most).fold(0, u64::saturating_add);
    peaks
}

/// The memory that a process uses, as [`Counters`] defines it.
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
}

/// How much of a process's circular buffers, and of its kernels on Tensix cores, is resident.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resident {
    pub(crate) cb: u64,
    pub(crate) kernels: u64,
}

impl Resident {
    #[inline]
    pub(crate) fn of(counters: &Counters) -> Resident {
        Resident { cb: counters.cb_resident_bytes, kernels: counters.kernels_resident() }
    }
}

/// The live allocations of one class of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) bytes: u64,
    pub(crate) count: u64,
}

impl Live {
    #[inline]
    pub(crate) fn of(counters: &Counters, class: usize) -> Live {
        let ClassCounters { live_bytes: bytes, live_count: count, .. } = counters.classes[class];
        Live { bytes, count }
    }
}

/// The figure in whose count the allocations of a class are included.
#[inline]
pub(crate) fn counted_in(class: usize) -> Option<usize> {
    const FIGURE: [Option<usize>; Class::COUNT] = {
        let mut figure = [None; Class::COUNT];
        let mut code = 0;
        while code < figure.len() {
            let class = Class::ALL[code];
            if class.is_dram() {
                figure[code] = Some(DRAM);
            } else if class.is_l1_buffer() {
                figure[code] = Some(L1);
            }
            code += 1;
        }
        figure
    };
    FIGURE[class]
}

/// The memory that a composition is about.
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

/// A process's share of a device.
pub(crate) struct Share<'a> {
    pub(crate) identity: u64,
    pub(crate) pid: u64,
    pub(crate) counters: &'a Counters,
}

/// The holders of a memory at this moment.
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

/// The composition of a peak that one process reached by itself when nothing was merged: all that is known is
/// that it held this much.
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
        // Kernels lie in reserved memory.
        assert_eq!((classes[Class::Cb as usize], classes[Class::KernelDispatch as usize]), (7, 0));
    }
}
