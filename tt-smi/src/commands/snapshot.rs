//! `tt-smi snapshot`: the current state of devices and processes.

use std::io::Write;

use crate::cli::{Format, SnapshotArgs};
use crate::output::snapshot_json::SnapshotJson;
use crate::output::table::{self, Parts};
use crate::output::{csv, json, prometheus};
use crate::settings::Settings;
use crate::threshold::ensure_below;

pub(crate) fn run(args: &SnapshotArgs, settings: &Settings) -> anyhow::Result<()> {
    let mut now = super::Now::read(settings, &args.only.on.device)?;
    now.model.processes.retain(|process| args.only.query.matches(process));
    let model = &now.model;
    let namespace = settings.namespace.as_str();
    let mut out = super::stdout();
    let format = if args.json { Format::Json } else { args.format };
    let is_csv = format == Format::Csv;
    match format {
        Format::Table => {
            let parts = Parts { processes: args.processes, detail: args.detail };
            table::write(&mut out, model, parts, settings.paint)?;
        }
        Format::Json => json::write(&mut out, &SnapshotJson::new(model, namespace))?,
        Format::Csv if args.processes => csv::write_processes(&mut out, model, namespace)?,
        Format::Csv => csv::write_devices(&mut out, model, namespace)?,
        Format::Prometheus => prometheus::write(&mut out, model)?,
    }
    out.flush()?;
    if is_csv {
        // CSV has no column for problems.
        model.problems.iter().for_each(|problem| eprintln!("tt-smi: {}", problem.text()));
    }
    ensure_below(&args.limits.fail_above, model)?;
    now.ensure_readable()
}
