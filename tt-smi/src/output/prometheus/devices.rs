//! Metrics of devices.

use tt_shm_reader::Class;

use super::family::{Families, Kind, Labels};
use crate::model::{Device, KERNEL_CLASSES, Model};

/// A metric of each device: `None` leaves it out.
type Metric = (&'static str, &'static str, fn(&Device) -> Option<f64>);

const METRICS: &[Metric] = &[
    ("tt_dram_used_bytes", "DRAM used: buffers and traces.", |d| bytes(d.dram.used)),
    ("tt_dram_requested_bytes", "DRAM asked for by what uses it.", |d| bytes(d.dram.requested)),
    ("tt_dram_total_bytes", "DRAM that can be allocated, as processes report it.", |d| {
        d.dram.total.and_then(bytes)
    }),
    ("tt_dram_reserved_bytes", "DRAM that the allocator does not give.", |d| d.dram.reserved.and_then(bytes)),
    ("tt_dram_peak_bytes", "Most DRAM used that was seen.", |d| bytes(d.dram.peak.low)),
    (
        "tt_dram_peak_high_bytes",
        "Most DRAM that can have been used; equal to the peak if that is exact.",
        |d| d.dram.peak.high.and_then(bytes),
    ),
    ("tt_l1_used_bytes", "L1 of Tensix cores used: buffers and resident circular buffers.", |d| {
        bytes(d.l1.used)
    }),
    ("tt_l1_requested_bytes", "L1 asked for by what uses it.", |d| bytes(d.l1.requested)),
    ("tt_l1_total_bytes", "L1 of all Tensix cores that can be allocated, as processes report it.", |d| {
        d.l1.total.and_then(bytes)
    }),
    ("tt_l1_reserved_bytes", "L1 of Tensix cores that the allocator does not give.", |d| {
        d.l1.reserved.and_then(bytes)
    }),
    ("tt_l1_peak_bytes", "Most L1 used that was seen.", |d| bytes(d.l1.peak.low)),
    ("tt_l1_peak_high_bytes", "Most L1 that can have been used; equal to the peak if that is exact.", |d| {
        d.l1.peak.high.and_then(bytes)
    }),
    ("tt_eth_l1_used_bytes", "L1 of ethernet cores used.", |d| bytes(d.eth_l1.used)),
    ("tt_eth_l1_total_bytes", "L1 of all ethernet cores, as processes report it.", |d| {
        d.eth_l1.total.and_then(bytes)
    }),
    ("tt_trace_used_bytes", "Trace buffers; part of the DRAM used.", |d| bytes(d.class(Class::Trace).bytes)),
    ("tt_l1_small_used_bytes", "Buffers in the small region of L1; part of the L1 used.", |d| {
        bytes(d.class(Class::L1Small).bytes)
    }),
    ("tt_cb_used_bytes", "Resident circular buffers; part of the L1 used.", |d| bytes(d.cb_resident)),
    ("tt_cb_allocated_bytes", "All circular buffers that are allocated, resident or not.", |d| {
        bytes(d.class(Class::Cb).bytes)
    }),
    ("tt_kernel_used_bytes", "Kernels resident on Tensix cores, in reserved memory.", |d| {
        bytes(d.kernel_resident)
    }),
    ("tt_device_processes", "Processes that have something on the device.", |d| Some(d.processes as f64)),
    ("tt_device_events_per_second", "Events of the last second.", |d| d.events_per_second),
    ("tt_device_dispatches_per_second", "Dispatches of the last second.", |d| d.dispatches_per_second),
];

fn bytes(count: u64) -> Option<f64> {
    Some(count as f64)
}

pub(super) fn add(families: &mut Families, model: &Model) {
    for (name, help, figure) in METRICS {
        for device in &model.devices {
            if let Some(value) = figure(device) {
                families.add(name, Kind::Gauge, help, labels(device), value);
            }
        }
    }
    for device in &model.devices {
        for class in KERNEL_CLASSES {
            let kernel = class.kernel_type().map(|kernel| kernel.label().to_lowercase());
            let labels = labels(device).with_known("type", kernel);
            let help = "All kernels that are loaded, resident or not.";
            let value = device.class(class).bytes as f64;
            families.add("tt_kernel_loaded_bytes", Kind::Gauge, help, labels, value);
        }
    }
}

/// What tells a device from others.
pub(super) fn labels(device: &Device) -> Labels {
    Labels::default()
        .with("device", device.index)
        .with_known("pci_bdf", device.id.pci.as_ref())
        .with_known("arch", device.arch)
        .with_known("board", device.board.as_ref())
        .with("chip_id", format!("{:#018x}", device.id.chip_id))
}
