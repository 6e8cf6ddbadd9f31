//! The figures of a device that a report follows, taken from counters in one place.

use shm_layout::{Class, Counters};

/// How many figures there are.
pub(crate) const FIGURES: usize = 12;
/// The figures that have a curve: DRAM and L1 used, and the classes that they are made of.
pub(crate) const CURVES: usize = 7;
/// DRAM used, L1 used.
pub(crate) const USED: [usize; 2] = [0, 1];

/// Bytes by figure.
pub(crate) type Figures = [u64; FIGURES];

/// Key and label of each figure. The first two are what is used; the next ones up to [`CURVES`] their parts.
pub(crate) const TITLES: [(&str, &str); FIGURES] = [
    ("dram_used", "DRAM"),
    ("l1_used", "L1"),
    ("dram", "DRAM buffers"),
    ("trace", "TRACE"),
    ("l1", "L1 buffers"),
    ("l1_small", "L1_SMALL"),
    ("cb_resident", "CBs resident"),
    ("cb_allocated", "CBs allocated"),
    ("kernel_resident", "kernels res."),
    ("kernel_loaded", "kernels loaded"),
    ("eth_used", "ethernet L1"),
    ("system_memory", "host memory"),
];

/// The figures of one process on one device.
#[inline]
pub(crate) fn of(counters: &Counters) -> Figures {
    let live = |class: Class| counters.class(class).live_bytes;
    [
        counters.dram_used(),
        counters.l1_used(),
        live(Class::Dram),
        live(Class::Trace),
        live(Class::L1),
        live(Class::L1Small),
        counters.cb_resident_bytes,
        live(Class::Cb),
        counters.kernels_resident(),
        counters.kernel_loaded_bytes(),
        counters.eth_used(),
        live(Class::SystemMemory),
    ]
}

/// The figure that has the buffers of a class, of those that fill a pool.
pub(crate) const POOLED: [(usize, Class); 4] =
    [(2, Class::Dram), (3, Class::Trace), (4, Class::L1), (5, Class::L1Small)];
