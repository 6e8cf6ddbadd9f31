//! `tt-smi list`: the devices, whether or not anything is allocated on them: those that processes report on, and those
//! that only the driver knows.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::Now;
use crate::cli::ListArgs;
use crate::driver::{Driver, DriverDevice, Joined};
use crate::escape::fit;
use crate::model::{COLUMNS, Cell, Column, Device, Model, Problem, Reading};
use crate::output::columns::{Align, Columns};
use crate::output::json::{self, Envelope};
use crate::output::paint::Paint;
use crate::output::table::{why_nothing, write_problems};
#[cfg(test)]
use crate::schema;
use crate::select::DeviceSelector;
use crate::settings::Settings;
use crate::source::Source;
use crate::units::{UNKNOWN, bytes_or_unknown};

pub(crate) fn run(args: &ListArgs, settings: &Settings) -> anyhow::Result<()> {
    let driver = Driver::read();
    let reading = Source::open(&settings.namespace)?.read()?;
    let (mut now, mut joined) = selected(&reading, &driver, &args.devices.on.device)?;
    let is_any = !joined.unreported.is_empty();
    joined.unreported.retain(|device| args.devices.query.matches(device));
    let none_matches = now.match_devices(&args.devices.query) || (is_any && now.model.devices.is_empty());
    let mut out = super::stdout();
    if args.json {
        json::write(&mut out, &ListJson::new(&now.model, &driver, &joined, settings.namespace.as_str()))?;
    } else {
        let none_matches = none_matches && joined.unreported.is_empty();
        now.write_devices(&mut out, settings.paint, none_matches, |out, model, paint| {
            write(out, model, &driver, &joined, paint)
        })?;
    }
    out.flush()?;
    now.ensure_readable()
}

/// The devices that selectors mean, or all of them. A chip id or PCI address may be that of a device that only the
/// driver knows.
fn selected(
    reading: &Reading,
    driver: &Driver,
    selectors: &[DeviceSelector],
) -> anyhow::Result<(Now, Joined)> {
    let all = Now::of(reading, &[])?;
    let mut joined = driver.join(&all.model.devices);
    if selectors.is_empty() {
        return Ok((all, joined));
    }
    let is_unreported =
        |selector: &&DeviceSelector| joined.unreported.iter().any(|device| device.is_meant_by(selector));
    let (unreported, reported): (Vec<_>, Vec<_>) = selectors.iter().partition(is_unreported);
    joined.unreported.retain(|device| unreported.iter().any(|selector| device.is_meant_by(selector)));
    let reported: Vec<DeviceSelector> = reported.into_iter().cloned().collect();
    let mut now = if reported.is_empty() { all } else { Now::of(reading, &reported)? };
    if reported.is_empty() {
        now.model.keep(|_| false);
    }
    Ok((now, joined))
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

fn write(
    out: &mut dyn Write,
    model: &Model,
    driver: &Driver,
    joined: &Joined,
    paint: Paint,
) -> io::Result<()> {
    if model.devices.is_empty() && joined.unreported.is_empty() {
        writeln!(out, "No device: {}.", why_nothing(model))?;
        return write_problems(out, model, paint);
    }
    let with_driver = !driver.devices.is_empty();
    let mut columns = match with_driver {
        true => Columns::new(&[&HEADS[..], &DRIVER_HEADS].concat()),
        false => Columns::new(&HEADS),
    };
    for device in &model.devices {
        let mut cells = reported_cells(device);
        if with_driver {
            let sources = device.sources.iter().copied();
            cells.extend(driver_cells(joined.reported.get(&device.index), sources));
        }
        columns.push(cells);
    }
    for device in &joined.unreported {
        let mut cells = unreported_cells(device);
        cells.extend(driver_cells(Some(device), []));
        columns.push(cells);
    }
    columns.write(out, paint)?;
    if !joined.unreported.is_empty() {
        writeln!(
            out,
            "Devices without a number: no process reports on them; sizes are nominal, by their boards' names."
        )?;
    }
    driver.gaps.iter().try_for_each(|gap| writeln!(out, "driver: {gap}"))?;
    write_problems(out, model, paint)
}

fn or_unknown(text: Option<String>) -> String {
    text.unwrap_or_else(|| UNKNOWN.to_owned())
}

fn reported_cells(device: &Device) -> Vec<String> {
    vec![
        device.index.to_string(),
        or_unknown(device.board.as_ref().map(|board| fit(board, 24))),
        device.arch.unwrap_or(UNKNOWN).to_owned(),
        or_unknown(device.id.pci.clone()),
        format!("{:#018x}", device.id.chip_id),
        or_unknown(device.id.logical.map(|id| id.to_string())),
        bytes_or_unknown(device.held.dram.total),
        bytes_or_unknown(device.held.l1.total),
        bytes_or_unknown(device.held.eth_l1.total),
    ]
}

fn unreported_cells(device: &DriverDevice) -> Vec<String> {
    let nominal = device.nominal;
    vec![
        UNKNOWN.to_owned(),
        or_unknown(device.board.clone()),
        device.arch.unwrap_or(UNKNOWN).to_owned(),
        or_unknown(device.pci_address.clone()),
        or_unknown(device.asic_id.clone()),
        UNKNOWN.to_owned(),
        bytes_or_unknown(nominal.map(|nominal| nominal.dram_bytes)),
        bytes_or_unknown(nominal.and_then(|nominal| nominal.l1_bytes)),
        bytes_or_unknown(nominal.map(|nominal| nominal.eth_l1_bytes)),
    ]
}

/// What the driver tells of a device, and where the line is from.
fn driver_cells(
    device: Option<&DriverDevice>,
    reported: impl IntoIterator<Item = &'static str>,
) -> Vec<String> {
    let sensors = device.map(|device| &device.sensors);
    let temperature = sensors.and_then(|sensors| sensors.temperature_celsius);
    let power = sensors.and_then(|sensors| sensors.power_watts);
    let sources: Vec<&str> = reported.into_iter().chain(device.map(|device| device.source)).collect();
    vec![
        or_unknown(temperature.map(|celsius| format!("{celsius:.1} °C"))),
        or_unknown(power.map(|watts| format!("{watts:.1} W"))),
        or_unknown(device.and_then(DriverDevice::aiclk).map(|clock| format!("{clock} MHz"))),
        or_unknown(device.map(|device| device.holders.len().to_string())),
        or_unknown(Some(sources.join("+")).filter(|sources| !sources.is_empty())),
    ]
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ListJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    /// Devices that processes report on, by index.
    devices: Vec<DeviceJson<'a>>,
    /// Devices that only the driver knows, by number: no process reports on them. No figure of use is known.
    unreported_devices: &'a [DriverDevice],
    /// Version of the driver; `None` if it is not loaded.
    driver_version: Option<&'a str>,
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
    /// What can be allocated of each memory.
    #[serde(flatten)]
    #[cfg_attr(test, schemars(schema_with = "capacities_schema"))]
    capacities: BTreeMap<&'static str, Cell>,
    /// Processes that have something on it.
    processes: u64,
    /// What the driver tells of it; `None` if the driver has no such device.
    driver: Option<&'a DriverDevice>,
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
    fn new(model: &'a Model, driver: &'a Driver, joined: &'a Joined, namespace: &str) -> ListJson<'a> {
        let device = |device: &'a Device| DeviceJson {
            device,
            capacities: capacities().map(|column| (column.name.as_str(), column.of_device(device))).collect(),
            processes: device.processes,
            driver: joined.reported.get(&device.index),
        };
        ListJson {
            envelope: Envelope::new(model.clock, &model.host, namespace),
            devices: model.devices.iter().map(device).collect(),
            unreported_devices: &joined.unreported,
            driver_version: driver.version.as_deref(),
            driver_gaps: &driver.gaps,
            errors: &model.problems,
        }
    }
}
