//! What devices and a process's share of one have in common in JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use tt_shm_reader::Class;

use crate::model::{ClassFigure, Clock, Memory, basis, kernel_loaded, live_range};

/// What devices and a process's share of one have in common.
#[derive(Debug, Serialize)]
pub(super) struct FiguresJson {
    dram_used_bytes: u64,
    dram_used_high_bytes: Option<u64>,
    dram_used_exact: bool,
    dram_requested_bytes: u64,
    dram_peak_bytes: u64,
    dram_peak_high_bytes: Option<u64>,
    dram_peak_exact: bool,
    dram_peak_time: Option<String>,
    l1_used_bytes: u64,
    l1_used_high_bytes: Option<u64>,
    l1_used_exact: bool,
    l1_requested_bytes: u64,
    l1_peak_bytes: u64,
    l1_peak_high_bytes: Option<u64>,
    l1_peak_exact: bool,
    l1_peak_time: Option<String>,
    eth_l1_used_bytes: u64,
    eth_l1_used_high_bytes: Option<u64>,
    eth_l1_used_exact: bool,
    eth_l1_peak_bytes: u64,
    eth_l1_peak_high_bytes: Option<u64>,
    eth_l1_peak_exact: bool,
    eth_l1_peak_time: Option<String>,
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
    live_exact: bool,
    requested_bytes: u64,
    basis: &'static str,
    live_count: u64,
    peak_bytes: u64,
    peak_high_bytes: Option<u64>,
    peak_exact: bool,
    peak_time: Option<String>,
    peak_count: Option<u64>,
}

/// The parts that [`FiguresJson`] is made of.
pub(super) struct Figures<'a> {
    pub(super) memories: [&'a Memory; 3],
    pub(super) classes: &'a [ClassFigure; Class::COUNT],
    pub(super) cb_resident: u64,
    pub(super) kernel_resident: u64,
    /// Turns times of peaks into wall-clock times.
    pub(super) clock: Clock,
    /// Dispatches, cached dispatches, failed allocations.
    pub(super) counts: [u64; 3],
}

impl Figures<'_> {
    pub(super) fn json(&self) -> FiguresJson {
        let [dram, l1, eth] = self.memories;
        let [dispatches, cached_dispatches, failed_allocs] = self.counts;
        let time = |memory: &Memory| memory.peak.time.and_then(|time| self.clock.rfc3339(time));
        let live = |class: Class| self.classes[class as usize].bytes;
        let (kernel_loaded_bytes, kernel_count) = kernel_loaded(self.classes);
        FiguresJson {
            dram_used_bytes: dram.used,
            dram_used_high_bytes: dram.used_range().high,
            dram_used_exact: dram.used_range().is_exact(),
            dram_requested_bytes: dram.requested,
            dram_peak_bytes: dram.peak.range.low,
            dram_peak_high_bytes: dram.peak.range.high,
            dram_peak_exact: dram.peak.is_exact(),
            dram_peak_time: time(dram),
            l1_used_bytes: l1.used,
            l1_used_high_bytes: l1.used_range().high,
            l1_used_exact: l1.used_range().is_exact(),
            l1_requested_bytes: l1.requested,
            l1_peak_bytes: l1.peak.range.low,
            l1_peak_high_bytes: l1.peak.range.high,
            l1_peak_exact: l1.peak.is_exact(),
            l1_peak_time: time(l1),
            eth_l1_used_bytes: eth.used,
            eth_l1_used_high_bytes: eth.used_range().high,
            eth_l1_used_exact: eth.used_range().is_exact(),
            eth_l1_peak_bytes: eth.peak.range.low,
            eth_l1_peak_high_bytes: eth.peak.range.high,
            eth_l1_peak_exact: eth.peak.is_exact(),
            eth_l1_peak_time: time(eth),
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
            classes: Class::ALL.map(|class| (class.name(), self.class_json(class))).into(),
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

    fn class_json(&self, class: Class) -> ClassJson {
        let figure = &self.classes[class as usize];
        // Who could not be read may have something of every class.
        let incomplete = self.memories.iter().any(|memory| memory.incomplete);
        ClassJson {
            live_bytes: figure.bytes,
            live_exact: live_range(figure.bytes, incomplete).is_exact(),
            requested_bytes: figure.requested,
            basis: figure.basis(),
            live_count: figure.count,
            peak_bytes: figure.peak.range.low,
            peak_high_bytes: figure.peak.range.high,
            peak_exact: figure.peak.is_exact(),
            peak_time: figure.peak.time.and_then(|time| self.clock.rfc3339(time)),
            peak_count: figure.peak.count,
        }
    }
}
