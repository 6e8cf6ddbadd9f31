//! Metrics of processes on devices.

use tt_shm_reader::Class;

use super::devices;
use super::family::{Families, Kind, Labels};
use crate::model::{Model, Process, ProcessState, Usage};

type Metric = (&'static str, Kind, &'static str, fn(&Usage) -> u64);

const METRICS: &[Metric] = &[
    ("tt_process_dram_bytes", Kind::Gauge, "DRAM that a process uses: buffers and traces.", |u| u.dram.used),
    ("tt_process_dram_peak_bytes", Kind::Gauge, "Most DRAM that a process used; exact.", |u| {
        u.dram.peak.range.low
    }),
    ("tt_process_l1_bytes", Kind::Gauge, "L1 of Tensix cores that a process uses.", |u| u.l1.used),
    ("tt_process_l1_peak_bytes", Kind::Gauge, "Most L1 that a process used; exact.", |u| u.l1.peak.range.low),
    ("tt_process_eth_l1_bytes", Kind::Gauge, "L1 of ethernet cores that a process uses.", |u| u.eth_l1.used),
    ("tt_process_l1_small_bytes", Kind::Gauge, "Buffers in the small region of L1.", |u| {
        u.class(Class::L1Small).bytes
    }),
    ("tt_process_trace_bytes", Kind::Gauge, "Trace buffers; part of the DRAM.", |u| {
        u.class(Class::Trace).bytes
    }),
    ("tt_process_cb_bytes", Kind::Gauge, "Resident circular buffers; part of the L1.", |u| u.cb_resident),
    ("tt_process_kernel_loaded_bytes", Kind::Gauge, "Kernels that are loaded, resident or not.", |u| {
        u.kernel_loaded().0
    }),
    ("tt_process_dispatches_total", Kind::Counter, "Programs dispatched.", |u| u.dispatches),
    ("tt_process_cached_dispatches_total", Kind::Counter, "Programs dispatched with a cached binary.", |u| {
        u.cached_dispatches
    }),
    ("tt_process_failed_allocs_total", Kind::Counter, "Allocations that failed.", |u| u.failed_allocs),
];

pub(super) fn add(families: &mut Families, model: &Model) {
    let alive = || model.processes.iter().filter(|process| process.state == ProcessState::Alive);
    for (name, kind, help, figure) in METRICS {
        for process in alive() {
            for usage in &process.usages {
                families.add(name, *kind, help, labels(process, usage, model), figure(usage) as f64);
            }
        }
    }
    for process in alive() {
        for usage in process.usages.iter().filter(|usage| usage.claim.is_some()) {
            let help = "1 if what a process says of the device is not taken for true.";
            let labels = labels(process, usage, model);
            families.add("tt_process_claims_conflict", Kind::Gauge, help, labels, 1.0);
        }
    }
    for process in alive() {
        if let Some(rate) = process.events_per_second {
            let help = "Events of the last second.";
            families.add(
                "tt_process_events_per_second",
                Kind::Gauge,
                help,
                own_labels(process, Labels::default()),
                rate,
            );
        }
    }
}

fn labels(process: &Process, usage: &Usage, model: &Model) -> Labels {
    let device = model.devices.iter().find(|device| device.index == usage.device);
    let labels = device.map_or_else(|| Labels::default().with("device", usage.device), devices::labels);
    own_labels(process, labels)
}

/// The pid here where it is known, and whether it is only claimed; beside it what the process calls itself, which is another in a container.
fn own_labels(process: &Process, labels: Labels) -> Labels {
    labels
        .with_known("pid", process.pid)
        .with_known("claimed", process.claimed.filter(|claimed| *claimed))
        .with("namespace_pid", process.namespace_pid)
        .with("process", &process.name)
        .with("user", process.owner())
}
