//! A snapshot for spreadsheets: exact bytes; what is not known is empty.

use std::fmt::Display;
use std::io::{self, Write};

use crate::model::{COLUMNS, Claim, Device, Model, Process, Usage, Word, process_columns};

/// A heading, and what stands below it. The figures come after these.
type DeviceColumn = (&'static str, fn(&Device) -> String);
type ProcessColumn = (&'static str, fn(&Process, &Usage) -> String);

const DEVICE_COLUMNS: &[DeviceColumn] = &[
    ("index", |device| device.index.to_string()),
    ("logical_id", |device| known(device.id.logical)),
    ("chip_id", |device| format!("{:#018x}", device.id.chip_id)),
    ("arch", |device| known(device.arch)),
    ("board", |device| known(device.board.as_ref())),
    ("pci_address", |device| known(device.id.pci.as_ref())),
];

const PROCESS_COLUMNS: &[ProcessColumn] = &[
    ("pid", |process, _| known(process.pid)),
    ("claimed", |process, _| known(process.claimed)),
    ("namespace_pid", |process, _| process.namespace_pid.to_string()),
    ("uid", |process, _| process.uid.to_string()),
    ("user", |process, _| known(process.user.as_ref())),
    ("name", |process, _| process.name.to_string()),
    ("command", |process, _| known(process.command.as_ref())),
    ("state", |process, _| process.state.word().to_owned()),
    ("running_seconds", |process, _| process.running_seconds().to_string()),
    ("index", |_, usage| usage.device.to_string()),
    ("logical_id", |_, usage| known(usage.logical)),
    ("claims_conflict", |_, usage| known(usage.claim.as_ref().map(Claim::text))),
];

/// A line per device.
pub fn write_devices(out: &mut dyn Write, model: &Model, namespace: &str) -> io::Result<()> {
    let line = |device| {
        let about = DEVICE_COLUMNS.iter().map(|(_, cell)| cell(device));
        about.chain(COLUMNS.iter().map(|column| column.of_device(device).text())).collect()
    };
    let heads = DEVICE_COLUMNS.iter().map(|(head, _)| *head).chain(COLUMNS.iter().map(|c| c.name.as_str()));
    write_records(out, model, namespace, heads, model.devices.iter().map(line))
}

/// A line per process and device.
pub fn write_processes(out: &mut dyn Write, model: &Model, namespace: &str) -> io::Result<()> {
    let line = |process: &Process, usage: &Usage| {
        let about = PROCESS_COLUMNS.iter().map(|(_, cell)| cell(process, usage));
        about.chain(process_columns().map(|column| column.of_held(&usage.held).text())).collect()
    };
    let lines = model
        .processes
        .iter()
        .flat_map(|process| process.usages.iter().map(move |usage| line(process, usage)));
    let heads = PROCESS_COLUMNS.iter().map(|(head, _)| *head);
    write_records(
        out,
        model,
        namespace,
        heads.chain(process_columns().map(|column| column.name.as_str())),
        lines,
    )
}

/// Headings stand also where there is nothing below them. Before each line is when and where it was written.
pub(crate) fn write_records<'a>(
    out: &mut dyn Write,
    model: &Model,
    namespace: &str,
    heads: impl Iterator<Item = &'a str>,
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
