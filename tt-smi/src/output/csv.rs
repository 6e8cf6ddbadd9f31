//! A snapshot for spreadsheets: exact bytes; what is not known is empty.

use std::fmt::Display;
use std::io::{self, Write};

use tt_shm_reader::Class;

use crate::model::{Claim, Clock, Device, Model, Peak, Process, Usage};

/// A heading, and what stands below it.
type DeviceColumn = (&'static str, fn(&Device, Clock) -> String);
type ProcessColumn = (&'static str, fn(&Process, &Usage, Clock) -> String);

const DEVICE_COLUMNS: &[DeviceColumn] = &[
    ("index", |device, _| device.index.to_string()),
    ("logical_id", |device, _| known(device.id.logical)),
    ("chip_id", |device, _| format!("{:#018x}", device.id.chip_id)),
    ("arch", |device, _| known(device.arch)),
    ("board", |device, _| known(device.board.as_ref())),
    ("pci_address", |device, _| known(device.id.pci.as_ref())),
    // Whether all figures of what is live are "at least".
    ("incomplete", |device, _| device.incomplete.to_string()),
    ("dram_used_bytes", |device, _| device.dram.used.to_string()),
    ("dram_used_exact", |device, _| device.dram.used_range().is_exact().to_string()),
    ("dram_requested_bytes", |device, _| device.dram.requested.to_string()),
    ("dram_total_bytes", |device, _| known(device.dram.total)),
    ("dram_reserved_bytes", |device, _| known(device.dram.reserved)),
    ("dram_peak_bytes", |device, _| device.dram.peak.range.low.to_string()),
    ("dram_peak_high_bytes", |device, _| known(device.dram.peak.range.high)),
    ("dram_peak_exact", |device, _| device.dram.peak.is_exact().to_string()),
    ("dram_peak_time", |device, clock| time(&device.dram.peak, clock)),
    ("l1_used_bytes", |device, _| device.l1.used.to_string()),
    ("l1_used_exact", |device, _| device.l1.used_range().is_exact().to_string()),
    ("l1_requested_bytes", |device, _| device.l1.requested.to_string()),
    ("l1_total_bytes", |device, _| known(device.l1.total)),
    ("l1_reserved_bytes", |device, _| known(device.l1.reserved)),
    ("l1_peak_bytes", |device, _| device.l1.peak.range.low.to_string()),
    ("l1_peak_high_bytes", |device, _| known(device.l1.peak.range.high)),
    ("l1_peak_exact", |device, _| device.l1.peak.is_exact().to_string()),
    ("l1_peak_time", |device, clock| time(&device.l1.peak, clock)),
    ("eth_l1_used_bytes", |device, _| device.eth_l1.used.to_string()),
    ("eth_l1_total_bytes", |device, _| known(device.eth_l1.total)),
    ("trace_used_bytes", |device, _| device.class(Class::Trace).bytes.to_string()),
    ("l1_small_used_bytes", |device, _| device.class(Class::L1Small).bytes.to_string()),
    ("cb_allocated_bytes", |device, _| device.class(Class::Cb).bytes.to_string()),
    ("cb_resident_bytes", |device, _| device.cb_resident.to_string()),
    ("kernel_loaded_bytes", |device, _| device.kernel_loaded().0.to_string()),
    ("kernel_resident_bytes", |device, _| device.kernel_resident.to_string()),
    ("processes", |device, _| device.processes.to_string()),
    ("dispatches", |device, _| device.dispatches.to_string()),
    ("cached_dispatches", |device, _| device.cached_dispatches.to_string()),
    ("failed_allocs", |device, _| device.failed_allocs.to_string()),
    ("events_per_second", |device, _| known(device.events_per_second)),
];

const PROCESS_COLUMNS: &[ProcessColumn] = &[
    ("pid", |process, _, _| known(process.pid)),
    ("claimed", |process, _, _| known(process.claimed)),
    ("namespace_pid", |process, _, _| process.namespace_pid.to_string()),
    ("uid", |process, _, _| process.uid.to_string()),
    ("user", |process, _, _| known(process.user.as_ref())),
    ("name", |process, _, _| process.name.to_string()),
    ("command", |process, _, _| known(process.command())),
    ("state", |process, _, _| process.state_name().to_owned()),
    ("running_seconds", |process, _, _| (process.age_ns as f64 / 1e9).to_string()),
    ("index", |_, usage, _| usage.device.to_string()),
    ("logical_id", |_, usage, _| known(usage.logical)),
    ("dram_used_bytes", |_, usage, _| usage.dram.used.to_string()),
    ("dram_requested_bytes", |_, usage, _| usage.dram.requested.to_string()),
    ("dram_peak_bytes", |_, usage, _| usage.dram.peak.range.low.to_string()),
    ("dram_peak_exact", |_, usage, _| usage.dram.peak.is_exact().to_string()),
    ("dram_peak_time", |_, usage, clock| time(&usage.dram.peak, clock)),
    ("l1_used_bytes", |_, usage, _| usage.l1.used.to_string()),
    ("l1_requested_bytes", |_, usage, _| usage.l1.requested.to_string()),
    ("l1_peak_bytes", |_, usage, _| usage.l1.peak.range.low.to_string()),
    ("l1_peak_exact", |_, usage, _| usage.l1.peak.is_exact().to_string()),
    ("l1_peak_time", |_, usage, clock| time(&usage.l1.peak, clock)),
    ("eth_l1_used_bytes", |_, usage, _| usage.eth_l1.used.to_string()),
    ("trace_used_bytes", |_, usage, _| usage.class(Class::Trace).bytes.to_string()),
    ("l1_small_used_bytes", |_, usage, _| usage.class(Class::L1Small).bytes.to_string()),
    ("cb_allocated_bytes", |_, usage, _| usage.class(Class::Cb).bytes.to_string()),
    ("cb_resident_bytes", |_, usage, _| usage.cb_resident.to_string()),
    ("kernel_loaded_bytes", |_, usage, _| usage.kernel_loaded().0.to_string()),
    ("kernel_resident_bytes", |_, usage, _| usage.kernel_resident.to_string()),
    ("dispatches", |_, usage, _| usage.dispatches.to_string()),
    ("cached_dispatches", |_, usage, _| usage.cached_dispatches.to_string()),
    ("failed_allocs", |_, usage, _| usage.failed_allocs.to_string()),
    ("claims_conflict", |_, usage, _| known(usage.claim.as_ref().map(Claim::text))),
];

/// A line per device.
pub fn write_devices(out: &mut dyn Write, model: &Model, namespace: &str) -> io::Result<()> {
    let line = |device| DEVICE_COLUMNS.iter().map(|(_, cell)| cell(device, model.clock)).collect();
    let heads = DEVICE_COLUMNS.iter().map(|(head, _)| *head);
    write(out, model, namespace, heads, model.devices.iter().map(line))
}

/// A line per process and device.
pub fn write_processes(out: &mut dyn Write, model: &Model, namespace: &str) -> io::Result<()> {
    let line = |process: &Process, usage: &Usage| {
        PROCESS_COLUMNS.iter().map(|(_, cell)| cell(process, usage, model.clock)).collect()
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
    csv.write_record(["timestamp", "host", "namespace", "age_ms"].into_iter().chain(heads))?;
    let common = [model.clock.timestamp(), model.host.clone(), namespace.to_owned(), known(model.age_ms())];
    for line in lines {
        csv.write_record(common.iter().cloned().chain(line).map(harmless))?;
    }
    csv.flush()
}

/// When a peak was reached first, if that is known.
fn time(peak: &Peak, clock: Clock) -> String {
    known(peak.time.and_then(|time| clock.rfc3339(time)))
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
