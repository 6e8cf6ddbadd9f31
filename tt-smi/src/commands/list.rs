//! `tt-smi list`: the devices, whether or not anything is allocated on them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::cli::ListArgs;
use crate::escape::fit;
use crate::model::{COLUMNS, Cell, Column, Device, Model, Problem};
use crate::output::columns::{Align, Columns};
use crate::output::json::{self, Envelope};
use crate::output::paint::Paint;
use crate::output::table::{why_nothing, write_problems};
#[cfg(test)]
use crate::schema;
use crate::settings::Settings;
use crate::units::{UNKNOWN, bytes_or_unknown};

pub(crate) fn run(args: &ListArgs, settings: &Settings) -> anyhow::Result<()> {
    let mut now = super::Now::read(settings, &args.devices.on.device)?;
    let none_matches = now.match_devices(&args.devices.query);
    let mut out = super::stdout();
    if args.json {
        json::write(&mut out, &ListJson::new(&now.model, settings.namespace.as_str()))?;
    } else {
        now.write_devices(&mut out, settings.paint, none_matches, write)?;
    }
    out.flush()?;
    now.ensure_readable()
}

fn write(out: &mut dyn Write, model: &Model, paint: Paint) -> io::Result<()> {
    use Align::{Left, Right};
    if model.devices.is_empty() {
        writeln!(out, "No device: {}.", why_nothing(model))?;
        return write_problems(out, model, paint);
    }
    let mut columns = Columns::new(&[
        ("DEV", Right),
        ("BOARD", Left),
        ("ARCH", Left),
        ("PCI", Left),
        ("CHIP", Left),
        ("LOGICAL", Right),
        ("DRAM", Right),
        ("L1", Right),
        ("ETH L1", Right),
    ]);
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
    for device in &model.devices {
        columns.push(vec![
            device.index.to_string(),
            or_unknown(device.board.as_ref().map(|board| fit(board, 24))),
            device.arch.unwrap_or(UNKNOWN).to_owned(),
            or_unknown(device.id.pci.clone()),
            format!("{:#018x}", device.id.chip_id),
            or_unknown(device.id.logical.map(|id| id.to_string())),
            bytes_or_unknown(device.held.dram.total),
            bytes_or_unknown(device.held.l1.total),
            bytes_or_unknown(device.held.eth_l1.total),
        ]);
    }
    columns.write(out, paint)?;
    write_problems(out, model, paint)
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ListJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    /// By index.
    devices: Vec<DeviceJson<'a>>,
    /// What is missing.
    errors: &'a [Problem],
}

/// A device.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DeviceJson<'a> {
    #[serde(flatten)]
    device: &'a Device,
    /// What can be allocated of each memory.
    #[serde(flatten)]
    #[cfg_attr(test, schemars(schema_with = "capacities_schema"))]
    capacities: BTreeMap<&'static str, Cell>,
    /// Processes that have something on it.
    processes: u64,
}

/// What can be allocated.
fn capacities() -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(|column| column.name.ends_with("_total_bytes"))
}

#[cfg(test)]
fn capacities_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schema::object(capacities().map(|column| (column.name.clone(), schema::column_of(column))))
}

impl<'a> ListJson<'a> {
    fn new(model: &'a Model, namespace: &str) -> ListJson<'a> {
        let device = |device: &'a Device| DeviceJson {
            device,
            capacities: capacities().map(|column| (column.name.as_str(), column.of_device(device))).collect(),
            processes: device.processes,
        };
        ListJson {
            envelope: Envelope::new(model.clock, &model.host, namespace),
            devices: model.devices.iter().map(device).collect(),
            errors: &model.problems,
        }
    }
}
