//! A snapshot for spreadsheets: exact bytes; what is not known is empty.

use std::fmt::Display;
use std::io::{self, Write};

use tt_shm_reader::Class;

use crate::model::{Device, Model, Process, Usage};

/// A heading, and what stands below it.
type DeviceColumn = (&'static str, fn(&Device) -> String);
type ProcessColumn = (&'static str, fn(&Process, &Usage) -> String);

const DEVICE_COLUMNS: &[DeviceColumn] = &[
    ("index", |device| device.index.to_string()),
    ("logical_id", |device| known(device.id.logical)),
    ("chip_id", |device| format!("{:#018x}", device.id.chip_id)),
    ("arch", |device| known(device.arch)),
    ("board", |device| known(device.board.as_ref())),
    ("pci_address", |device| known(device.id.pci.as_ref())),
    ("dram_used_bytes", |device| device.dram.used.to_string()),
    ("dram_requested_bytes", |device| device.dram.requested.to_string()),
    ("dram_total_bytes", |device| known(device.dram.total)),
    ("dram_reserved_bytes", |device| known(device.dram.reserved)),
    ("dram_peak_bytes", |device| device.dram.peak.low.to_string()),
    ("l1_used_bytes", |device| device.l1.used.to_string()),
    ("l1_requested_bytes", |device| device.l1.requested.to_string()),
    ("l1_total_bytes", |device| known(device.l1.total)),
    ("l1_reserved_bytes", |device| known(device.l1.reserved)),
    ("l1_peak_bytes", |device| device.l1.peak.low.to_string()),
    ("eth_l1_used_bytes", |device| device.eth_l1.used.to_string()),
    ("eth_l1_total_bytes", |device| known(device.eth_l1.total)),
    ("trace_used_bytes", |device| device.class(Class::Trace).bytes.to_string()),
    ("l1_small_used_bytes", |device| device.class(Class::L1Small).bytes.to_string()),
    ("cb_allocated_bytes", |device| device.class(Class::Cb).bytes.to_string()),
    ("cb_resident_bytes", |device| device.cb_resident.to_string()),
    ("kernel_loaded_bytes", |device| device.kernel_loaded().0.to_string()),
    ("kernel_resident_bytes", |device| device.kernel_resident.to_string()),
    ("processes", |device| device.processes.to_string()),
    ("dispatches", |device| device.dispatches.to_string()),
    ("cached_dispatches", |device| device.cached_dispatches.to_string()),
    ("failed_allocs", |device| device.failed_allocs.to_string()),
    ("events_per_second", |device| known(device.events_per_second)),
];

const PROCESS_COLUMNS: &[ProcessColumn] = &[
    ("pid", |process, _| known(process.pid)),
    ("claimed", |process, _| known(process.claimed)),
    ("namespace_pid", |process, _| process.namespace_pid.to_string()),
    ("uid", |process, _| process.uid.to_string()),
    ("user", |process, _| known(process.user.as_ref())),
    ("name", |process, _| process.name.to_string()),
    ("command", |process, _| known(process.command())),
    ("state", |process, _| process.state_name().to_owned()),
    ("running_seconds", |process, _| (process.age_ns as f64 / 1e9).to_string()),
    ("index", |_, usage| usage.device.to_string()),
    ("logical_id", |_, usage| known(usage.logical)),
    ("dram_used_bytes", |_, usage| usage.dram.used.to_string()),
    ("dram_requested_bytes", |_, usage| usage.dram.requested.to_string()),
    ("dram_peak_bytes", |_, usage| usage.dram.peak.low.to_string()),
    ("l1_used_bytes", |_, usage| usage.l1.used.to_string()),
    ("l1_requested_bytes", |_, usage| usage.l1.requested.to_string()),
    ("l1_peak_bytes", |_, usage| usage.l1.peak.low.to_string()),
    ("eth_l1_used_bytes", |_, usage| usage.eth_l1.used.to_string()),
    ("trace_used_bytes", |_, usage| usage.class(Class::Trace).bytes.to_string()),
    ("l1_small_used_bytes", |_, usage| usage.class(Class::L1Small).bytes.to_string()),
    ("cb_allocated_bytes", |_, usage| usage.class(Class::Cb).bytes.to_string()),
    ("cb_resident_bytes", |_, usage| usage.cb_resident.to_string()),
    ("kernel_loaded_bytes", |_, usage| usage.kernel_loaded().0.to_string()),
    ("kernel_resident_bytes", |_, usage| usage.kernel_resident.to_string()),
    ("dispatches", |_, usage| usage.dispatches.to_string()),
    ("cached_dispatches", |_, usage| usage.cached_dispatches.to_string()),
    ("failed_allocs", |_, usage| usage.failed_allocs.to_string()),
];

/// A line per device.
pub fn write_devices(out: &mut dyn Write, model: &Model, namespace: &str) -> io::Result<()> {
    let line = |device| DEVICE_COLUMNS.iter().map(|(_, cell)| cell(device)).collect();
    let heads = DEVICE_COLUMNS.iter().map(|(head, _)| *head);
    write(out, model, namespace, heads, model.devices.iter().map(line))
}

/// A line per process and device.
pub fn write_processes(out: &mut dyn Write, model: &Model, namespace: &str) -> io::Result<()> {
    let line = |process: &Process, usage: &Usage| {
        PROCESS_COLUMNS.iter().map(|(_, cell)| cell(process, usage)).collect()
    };
    let lines = model
        .processes
        .iter()
        .flat_map(|process| process.usages.iter().map(move |usage| line(process, usage)));
    write(out, model, namespace, PROCESS_COLUMNS.iter().map(|(head, _)| *head), lines)
}

/// Headings stand also where there is nothing below them.
fn write(
    out: &mut dyn Write,
    model: &Model,
    namespace: &str,
    heads: impl Iterator<Item = &'static str>,
    lines: impl Iterator<Item = Vec<String>>,
) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(["timestamp", "host", "namespace"].into_iter().chain(heads))?;
    let common = [model.clock.timestamp(), model.host.clone(), namespace.to_owned()];
    for line in lines {
        csv.write_record(common.iter().cloned().chain(line).map(harmless))?;
    }
    csv.flush()
}

fn known(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A spreadsheet runs what begins like a formula; with an apostrophe before it, it is text. Names are escaped for
/// terminals already.
fn harmless(cell: String) -> String {
    if cell.starts_with(['=', '+', '-', '@']) { format!("'{cell}") } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        for (cell, expected) in [("=1+1", "'=1+1"), ("@x", "'@x"), ("a=b", "a=b"), ("12", "12")] {
            assert_eq!(harmless(cell.to_owned()), expected);
        }
    }
}
