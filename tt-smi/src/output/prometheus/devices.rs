//! Metrics of devices.

use tt_shm_reader::Class;

use super::family::{Families, Kind, Labels};
use crate::model::{Clock, Device, KERNEL_CLASSES, Model};

/// A metric of each device: `None` leaves it out.
type Metric = (&'static str, &'static str, fn(&Device, Clock) -> Option<f64>);

const METRICS: &[Metric] = &[
    ("tt_dram_used_bytes", "DRAM used: buffers and traces.", |d, _| bytes(d.dram.used)),
    ("tt_dram_used_exact", "1 if the DRAM used is exact, 0 if it may be more.", |d, _| {
        flag(d.dram.used_range().is_exact())
    }),
    ("tt_dram_requested_bytes", "DRAM asked for by what uses it.", |d, _| bytes(d.dram.requested)),
    ("tt_dram_total_bytes", "DRAM that can be allocated, as processes report it.", |d, _| {
        d.dram.total.and_then(bytes)
    }),
    ("tt_dram_reserved_bytes", "DRAM that the allocator does not give.", |d, _| {
        d.dram.reserved.and_then(bytes)
    }),
    ("tt_dram_peak_bytes", "Most DRAM used that was seen.", |d, _| bytes(d.dram.peak.range.low)),
    (
        "tt_dram_peak_high_bytes",
        "Most DRAM that can have been used; equal to the peak if that is exact.",
        |d, _| d.dram.peak.range.high.and_then(bytes),
    ),
    ("tt_dram_peak_exact", "1 if the peak is exact, 0 if it may be more.", |d, _| {
        flag(d.dram.peak.is_exact())
    }),
    (
        "tt_dram_peak_time_seconds",
        "When the peak was reached, in seconds since 1970; left out if unknown.",
        |d, clock| d.dram.peak.time.and_then(|time| clock.unix_seconds(time)),
    ),
    ("tt_l1_used_bytes", "L1 of Tensix cores used: buffers and resident circular buffers.", |d, _| {
        bytes(d.l1.used)
    }),
    ("tt_l1_used_exact", "1 if the L1 used is exact, 0 if it may be more.", |d, _| {
        flag(d.l1.used_range().is_exact())
    }),
    ("tt_l1_requested_bytes", "L1 asked for by what uses it.", |d, _| bytes(d.l1.requested)),
    ("tt_l1_total_bytes", "L1 of all Tensix cores that can be allocated, as processes report it.", |d, _| {
        d.l1.total.and_then(bytes)
    }),
    ("tt_l1_reserved_bytes", "L1 of Tensix cores that the allocator does not give.", |d, _| {
        d.l1.reserved.and_then(bytes)
    }),
    ("tt_l1_peak_bytes", "Most L1 used that was seen.", |d, _| bytes(d.l1.peak.range.low)),
    (
        "tt_l1_peak_high_bytes",
        "Most L1 that can have been used; equal to the peak if that is exact.",
        |d, _| d.l1.peak.range.high.and_then(bytes),
    ),
    ("tt_l1_peak_exact", "1 if the peak is exact, 0 if it may be more.", |d, _| flag(d.l1.peak.is_exact())),
    (
        "tt_l1_peak_time_seconds",
        "When the peak was reached, in seconds since 1970; left out if unknown.",
        |d, clock| d.l1.peak.time.and_then(|time| clock.unix_seconds(time)),
    ),
    ("tt_eth_l1_used_bytes", "L1 of ethernet cores used.", |d, _| bytes(d.eth_l1.used)),
    ("tt_eth_l1_total_bytes", "L1 of all ethernet cores, as processes report it.", |d, _| {
        d.eth_l1.total.and_then(bytes)
    }),
    ("tt_trace_used_bytes", "Trace buffers; part of the DRAM used.", |d, _| {
        bytes(d.class(Class::Trace).bytes)
    }),
    ("tt_l1_small_used_bytes", "Buffers in the small region of L1; part of the L1 used.", |d, _| {
        bytes(d.class(Class::L1Small).bytes)
    }),
    ("tt_cb_used_bytes", "Resident circular buffers; part of the L1 used.", |d, _| bytes(d.cb_resident)),
    ("tt_cb_allocated_bytes", "All circular buffers that are allocated, resident or not.", |d, _| {
        bytes(d.class(Class::Cb).bytes)
    }),
    ("tt_kernel_used_bytes", "Kernels resident on Tensix cores, in reserved memory.", |d, _| {
        bytes(d.kernel_resident)
    }),
    ("tt_device_conflict", "1 if processes disagree about the device.", |d, _| flag(d.conflict)),
    ("tt_device_incomplete", "1 if somebody who could not be read may have something on it.", |d, _| {
        flag(d.incomplete)
    }),
    ("tt_device_processes", "Processes that have something on the device.", |d, _| Some(d.processes as f64)),
    ("tt_device_events_per_second", "Events of the last second.", |d, _| d.events_per_second),
    ("tt_device_dispatches_per_second", "Dispatches of the last second.", |d, _| d.dispatches_per_second),
];

fn flag(is_so: bool) -> Option<f64> {
    Some(if is_so { 1.0 } else { 0.0 })
}

fn bytes(count: u64) -> Option<f64> {
    Some(count as f64)
}

pub(super) fn add(families: &mut Families, model: &Model) {
    for (name, help, figure) in METRICS {
        for device in &model.devices {
            if let Some(value) = figure(device, model.clock) {
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
