//! `tt-smi list`: the devices, whether or not anything is allocated on them: those of the driver, and those that processes
//! report on.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use tt_shm_reader::Told;

use super::Now;
use crate::cli::ListArgs;
use crate::driver::{DriverDevice, Measure};
use crate::escape::{Foreign, fit};
use crate::model::{COLUMNS, Cell, Column, Device, Memory, Model, NOMINAL, Problem, Unit};
use crate::output::columns::{Align, Columns};
use crate::output::json::{self, Envelope};
use crate::output::paint::Paint;
use crate::output::table::{why_nothing, write_problems};
#[cfg(test)]
use crate::schema;
use crate::settings::Settings;
use crate::units::{UNKNOWN, bytes};

pub(crate) fn run(args: &ListArgs, settings: &Settings) -> anyhow::Result<()> {
    let mut now = Now::read(settings, &args.devices.on.device)?;
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

/// Headings of what is known of a device in any case.
const HEADS: [(&str, Align); 9] = [
    ("DEV", Align::Right),
    ("BOARD", Align::Left),
    ("ARCH", Align::Left),
    ("PCI", Align::Left),
    ("CHIP", Align::Left),
    ("LOGICAL", Align::Right),
    ("DRAM", Align::Right),
    ("L1", Align::Right),
    ("ETH L1", Align::Right),
];

/// Headings of what the driver adds.
const DRIVER_HEADS: [(&str, Align); 5] = [
    ("TEMP", Align::Right),
    ("POWER", Align::Right),
    ("AICLK", Align::Right),
    ("HOLDERS", Align::Right),
    ("SOURCE", Align::Left),
];

fn write(out: &mut dyn Write, model: &Model, paint: Paint) -> io::Result<()> {
    if model.devices.is_empty() {
        writeln!(out, "No device: {}.", why_nothing(model))?;
        return write_problems(out, model, paint);
    }
    let with_driver = model.devices.iter().any(|device| device.driver.is_some());
    let mut columns = match with_driver {
        true => Columns::new(&[&HEADS[..], &DRIVER_HEADS].concat()),
        false => Columns::new(&HEADS),
    };
    for device in &model.devices {
        let mut line = cells(device);
        if with_driver {
            line.extend(driver_cells(device));
        }
        columns.push(line);
    }
    columns.write(out, paint)?;
    if model.devices.iter().any(is_nominal) {
        writeln!(out, "~ nominal, by the name of the board: no process tells how much there is.")?;
    }
    model.driver_gaps.iter().try_for_each(|gap| writeln!(out, "driver: {gap}"))?;
    write_problems(out, model, paint)
}

fn is_nominal(device: &Device) -> bool {
    device.capacity_source == Some(NOMINAL)
}

fn or_unknown(text: Option<String>) -> String {
    text.unwrap_or_else(|| UNKNOWN.to_owned())
}

fn cells(device: &Device) -> Vec<String> {
    let mark = if is_nominal(device) { "~" } else { "" };
    let total = |memory: &Memory| or_unknown(memory.total.map(|total| format!("{mark}{}", bytes(total))));
    vec![
        device.index.to_string(),
        or_unknown(device.board.as_ref().map(|board| fit(board, 24))),
        device.arch.unwrap_or(UNKNOWN).to_owned(),
        or_unknown(device.id.pci.clone()),
        format!("{:#018x}", device.id.chip_id),
        or_unknown(device.id.logical.map(|id| id.to_string())),
        total(&device.held.dram),
        total(&device.held.l1),
        total(&device.held.eth_l1),
    ]
}

/// What the driver tells of a device, and where the line is from.
fn driver_cells(device: &Device) -> Vec<String> {
    let driver = device.driver.as_ref();
    let measured = |told: Told| Some(format!("{} {}", device.measured(told)?, Measure::of(told)?.unit));
    vec![
        or_unknown(measured(Told::Temperature)),
        or_unknown(measured(Told::Power)),
        or_unknown(measured(Told::Aiclk)),
        or_unknown(driver.and_then(|driver| driver.holder_count).map(|count| count.to_string())),
        or_unknown(Some(device.sources.join("+")).filter(|sources| !sources.is_empty())),
    ]
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ListJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    /// All devices, by index: those of the driver, and those that processes report on.
    devices: Vec<DeviceJson<'a>>,
    /// Version of the driver; `None` if it is not loaded, or has no device.
    driver_version: Option<&'a Foreign>,
    /// What the driver and procfs do not tell, and what to do.
    driver_gaps: &'a [String],
    /// What is missing.
    errors: &'a [Problem],
}

/// A device.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DeviceJson<'a> {
    #[serde(flatten)]
    device: &'a Device,
    /// What can be allocated of each memory, and what the driver measures.
    #[serde(flatten)]
    #[cfg_attr(test, schemars(schema_with = "capacities_schema"))]
    capacities: BTreeMap<&'static str, Cell>,
    /// Processes that have something on it.
    processes: u64,
    /// What the driver tells of it; `None` if the driver has no such device.
    driver: Option<&'a DriverDevice>,
}

/// What can be allocated, and what the driver measures.
fn capacities() -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(|column| column.name.ends_with("_total_bytes") || column.unit == Unit::Measure)
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
            driver: device.driver.as_ref(),
        };
        ListJson {
            envelope: Envelope::new(model.clock, &model.host, namespace),
            devices: model.devices.iter().map(device).collect(),
            driver_version: model.driver_version(),
            driver_gaps: &model.driver_gaps,
            errors: &model.problems,
        }
    }
}
