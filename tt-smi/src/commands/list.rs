//! `tt-smi list`: the devices, whether or not anything is allocated on them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::cli::ListArgs;
use crate::escape::fit;
use crate::model::{COLUMNS, Clock, Device, Model};
use crate::output::columns::{Align, Columns};
use crate::output::identity_json::{DeviceIdentityJson, ErrorJson, error_json};
use crate::output::json::{self, Envelope};
use crate::output::paint::Paint;
use crate::output::table::{why_nothing, write_problems};
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
struct ListJson {
    #[serde(flatten)]
    envelope: Envelope,
    devices: Vec<DeviceJson>,
    errors: Vec<ErrorJson>,
}

#[derive(Serialize)]
struct DeviceJson {
    #[serde(flatten)]
    identity: DeviceIdentityJson,
    /// What can be allocated of each memory.
    #[serde(flatten)]
    capacities: BTreeMap<&'static str, serde_json::Value>,
    processes: u64,
}

impl DeviceJson {
    fn new(device: &Device, clock: Clock) -> DeviceJson {
        let capacities = COLUMNS.iter().filter(|column| column.name.ends_with("_total_bytes"));
        DeviceJson {
            identity: DeviceIdentityJson::new(device),
            capacities: capacities.map(|c| (c.name.as_str(), c.of_device(device).json(clock))).collect(),
            processes: device.processes,
        }
    }
}

impl ListJson {
    fn new(model: &Model, namespace: &str) -> ListJson {
        ListJson {
            envelope: Envelope::new(model.clock, &model.host, namespace),
            devices: model.devices.iter().map(|device| DeviceJson::new(device, model.clock)).collect(),
            errors: model.problems.iter().map(error_json).collect(),
        }
    }
}
