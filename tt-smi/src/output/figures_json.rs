//! What devices and a process's share of one have in common in JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use tt_shm_reader::Class;

use crate::model::{ClassFigure, Memory, basis, kernel_loaded};

/// What devices and a process's share of one have in common.
#[derive(Debug, Serialize)]
pub(super) struct FiguresJson {
    dram_used_bytes: u64,
    dram_requested_bytes: u64,
    dram_peak_bytes: u64,
    dram_peak_high_bytes: Option<u64>,
    dram_peak_exact: bool,
    l1_used_bytes: u64,
    l1_requested_bytes: u64,
    l1_peak_bytes: u64,
    l1_peak_high_bytes: Option<u64>,
    l1_peak_exact: bool,
    eth_l1_used_bytes: u64,
    eth_l1_peak_bytes: u64,
    eth_l1_peak_high_bytes: Option<u64>,
    eth_l1_peak_exact: bool,
    dram_buffer_bytes: u64,
    trace_used_bytes: u64,
    l1_buffer_bytes: u64,
    l1_small_used_bytes: u64,
    cb_allocated_bytes: u64,
    cb_resident_bytes: u64,
    kernel_loaded_bytes: u64,
    kernel_resident_bytes: u64,
    kernel_application_bytes: u64,
    kernel_fabric_bytes: u64,
    kernel_dispatch_bytes: u64,
    kernel_count: u64,
    system_memory_bytes: u64,
    dispatches: u64,
    cached_dispatches: u64,
    failed_allocs: u64,
    basis: &'static str,
    classes: BTreeMap<&'static str, ClassJson>,
}

#[derive(Debug, Serialize)]
struct ClassJson {
    live_bytes: u64,
    requested_bytes: u64,
    basis: &'static str,
    live_count: u64,
    peak_bytes: u64,
    peak_high_bytes: Option<u64>,
    peak_exact: bool,
    peak_count: Option<u64>,
}

/// The parts that [`FiguresJson`] is made of.
pub(super) struct Figures<'a> {
    pub(super) memories: [&'a Memory; 3],
    pub(super) classes: &'a [ClassFigure; Class::COUNT],
    pub(super) cb_resident: u64,
    pub(super) kernel_resident: u64,
    /// Dispatches, cached dispatches, failed allocations.
    pub(super) counts: [u64; 3],
}

impl Figures<'_> {
    pub(super) fn json(&self) -> FiguresJson {
        let [dram, l1, eth] = self.memories;
        let [dispatches, cached_dispatches, failed_allocs] = self.counts;
        let live = |class: Class| self.classes[class as usize].bytes;
        let (kernel_loaded_bytes, kernel_count) = kernel_loaded(self.classes);
        FiguresJson {
            dram_used_bytes: dram.used,
            dram_requested_bytes: dram.requested,
            dram_peak_bytes: dram.peak.low,
            dram_peak_high_bytes: dram.peak.high,
            dram_peak_exact: dram.peak.is_exact(),
            l1_used_bytes: l1.used,
            l1_requested_bytes: l1.requested,
            l1_peak_bytes: l1.peak.low,
            l1_peak_high_bytes: l1.peak.high,
            l1_peak_exact: l1.peak.is_exact(),
            eth_l1_used_bytes: eth.used,
            eth_l1_peak_bytes: eth.peak.low,
            eth_l1_peak_high_bytes: eth.peak.high,
            eth_l1_peak_exact: eth.peak.is_exact(),
            dram_buffer_bytes: live(Class::Dram),
            trace_used_bytes: live(Class::Trace),
            l1_buffer_bytes: live(Class::L1),
            l1_small_used_bytes: live(Class::L1Small),
            cb_allocated_bytes: live(Class::Cb),
            cb_resident_bytes: self.cb_resident,
            kernel_loaded_bytes,
            kernel_resident_bytes: self.kernel_resident,
            kernel_application_bytes: live(Class::KernelApplication),
            kernel_fabric_bytes: live(Class::KernelFabric),
            kernel_dispatch_bytes: live(Class::KernelDispatch),
            kernel_count,
            system_memory_bytes: live(Class::SystemMemory),
            dispatches,
            cached_dispatches,
            failed_allocs,
            basis: self.basis(),
            classes: Class::ALL.map(|class| (class.name(), class_json(&self.classes[class as usize]))).into(),
        }
    }
}

impl Figures<'_> {
    /// What the bytes used of the device's memory are.
    fn basis(&self) -> &'static str {
        let pools = Class::ALL.into_iter().filter(|class| class.pool().is_some());
        let add = |sum: (u64, u64), figure: &ClassFigure| {
            (sum.0.saturating_add(figure.requested_basis), sum.1.saturating_add(figure.bytes))
        };
        let (requested, bytes) = pools.map(|class| &self.classes[class as usize]).fold((0, 0), add);
        basis(requested, bytes)
    }
}

fn class_json(class: &ClassFigure) -> ClassJson {
    ClassJson {
        live_bytes: class.bytes,
        requested_bytes: class.requested,
        basis: class.basis(),
        live_count: class.count,
        peak_bytes: class.peak.low,
        peak_high_bytes: class.peak.high,
        peak_exact: class.peak.is_exact(),
        peak_count: class.peak.count,
    }
}
