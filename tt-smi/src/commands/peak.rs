//! `tt-smi peak`: peak memory use, when it was reached, and by whom.

use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use tt_shm_reader::{Class, Table};

use crate::cli::PeakArgs;
use crate::model::{Clock, Device, Interval, Makeup, Model, Peak, Problem};
use crate::output::columns::{Align, Columns};
use crate::output::json::{self, Envelope, PeakJson};
use crate::output::paint::Paint;
use crate::output::table::{why_nothing, write_problems};
use crate::output::units::{UNKNOWN, age, bytes, percent};
use crate::settings::Settings;
use crate::source::Source;

/// Time limit for the aggregator to carry out a reset.
const RESET_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs the command.
pub(crate) fn run(args: &PeakArgs, settings: &Settings) -> anyhow::Result<()> {
    if args.reset {
        reset(settings)?;
        eprintln!("tt-smi: started a new window: peaks restart at the current use");
    }
    let reading = Source::open(&settings.namespace)?.read()?;
    let mut now = super::Now::of(&reading, &args.devices.on.device)?;
    let none_matches = now.match_devices(&args.devices.query);
    let mut out = super::stdout();
    if args.json {
        json::write(&mut out, &PeaksJson::new(&now.model, settings.namespace.as_str()))?;
    } else if none_matches {
        writeln!(out, "No matching devices.")?;
        write_problems(&mut out, &now.model, settings.paint)?;
    } else {
        write(&mut out, &now.model, settings.paint)?;
    }
    out.flush()?;
    now.ensure_readable()
}

fn reset(settings: &Settings) -> anyhow::Result<()> {
    let namespace = &settings.namespace;
    let table = Table::open(namespace).ok().filter(|table| table.freshness().is_fresh());
    let table = table.with_context(|| {
        format!("no aggregator is running in namespace {namespace}, so there are no peaks to reset; start one with `tt-smi aggregate`")
    })?;
    let owner = std::fs::metadata(table.path()).map(|file| file.uid());
    let owner = owner.unwrap_or_else(|_| rustix::process::geteuid().as_raw());
    Ok(tt_shm_aggregator::request_reset(&settings.namespace, owner, RESET_TIMEOUT)?)
}

/// A line of the table: a memory or class, its peak, and what the peak was made of.
struct Entry<'a> {
    name: &'static str,
    now: Interval,
    total: Option<u64>,
    peak: &'a Peak,
    makeup: Option<&'a Makeup>,
}

/// The memories, then the classes that were ever used.
fn entries(device: &Device) -> Vec<Entry<'_>> {
    let (dram, l1, eth) = (&device.dram, &device.l1, &device.eth_l1);
    let mut entries = vec![
        Entry {
            name: "DRAM",
            now: dram.used_range(),
            total: dram.total,
            peak: &dram.peak,
            makeup: Some(&device.dram_makeup),
        },
        Entry {
            name: "L1",
            now: l1.used_range(),
            total: l1.total,
            peak: &l1.peak,
            makeup: Some(&device.l1_makeup),
        },
        Entry { name: "eth L1", now: eth.used_range(), total: eth.total, peak: &eth.peak, makeup: None },
    ];
    // Kernels are in reserved memory, which cannot be allocated from.
    let residents = [
        ("CBs resident", device.live(device.cb_resident), l1.total, &device.cb_resident_peak),
        ("kernels resident", device.live(device.kernel_resident), None, &device.kernel_resident_peak),
    ];
    for (name, now, total, peak) in residents.into_iter().filter(|(.., peak)| !peak.range.is_nothing()) {
        entries.push(Entry { name, now, total, peak, makeup: None });
    }
    for class in Class::ALL {
        let figure = device.class(class);
        if !figure.peak.range.is_nothing() {
            let (name, now, peak) = (class.name(), device.live(figure.bytes), &figure.peak);
            entries.push(Entry { name, now, total: None, peak, makeup: None });
        }
    }
    entries
}

fn write(out: &mut dyn Write, model: &Model, paint: Paint) -> io::Result<()> {
    if model.devices.is_empty() {
        writeln!(out, "No device: {}.", why_nothing(model))?;
        return write_problems(out, model, paint);
    }
    let since = model.window_since.and_then(|since| model.clock.rfc3339(since));
    let since = since.unwrap_or_else(|| "the start of the processes".to_owned());
    writeln!(out, "Peaks since {since} ({})", model.origin.describe())?;
    for device in &model.devices {
        let head = format!("Device {}  {}", device.index, device.kind());
        writeln!(out, "\n{}", paint.bold(&head))?;
        let entries = entries(device);
        write_entries(out, &entries, model.clock, paint)?;
        for Entry { name, makeup, .. } in &entries {
            let Some(makeup) = makeup else { continue };
            writeln!(out, "{}", paint.dim(&format!("  {name} peak: {}", describe(makeup))))?;
        }
    }
    write_problems(out, model, paint)
}

fn write_entries(out: &mut dyn Write, entries: &[Entry<'_>], clock: Clock, paint: Paint) -> io::Result<()> {
    use Align::{Left, Right};
    let heads = [("PEAK", Right), ("% OF CAP", Right), ("COUNT", Right), ("AGO", Right), ("NOW", Right)];
    let heads = [("  WHAT", Left)].into_iter().chain(heads).chain([("EXACT", Left)]);
    let mut columns = Columns::new(&heads.collect::<Vec<_>>());
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
    for Entry { name, now, total, peak, .. } in entries {
        columns.push(vec![
            format!("  {name}"),
            peak.range.text(),
            percent(peak.range.low, *total),
            or_unknown(peak.count.map(|count| count.to_string())),
            ago(peak, clock),
            now.text(),
            if peak.is_exact() { "yes" } else { "no" }.to_owned(),
        ]);
    }
    columns.write(out, paint)
}

/// How long ago a peak was first reached; "time unknown" if that is not known.
fn ago(peak: &Peak, clock: Clock) -> String {
    match peak.time {
        Some(time) => age(clock.age_ns(time)),
        None if peak.range.is_nothing() => UNKNOWN.to_owned(),
        None => "time unknown".to_owned(),
    }
}

/// `l1 8.0 MiB, cb 1.2 MiB; held by pid 42 5.0 MiB, pid 43 4.2 MiB`.
fn describe(makeup: &Makeup) -> String {
    let classes = makeup.classes.iter().map(|(class, held)| format!("{} {}", class.name(), bytes(*held)));
    let holders = makeup.holders.iter().map(|holder| format!("pid {} {}", holder.pid, bytes(holder.bytes)));
    let others = (makeup.others > 0).then(|| format!("others {}", bytes(makeup.others)));
    let (classes, holders) = (classes.collect::<Vec<_>>(), holders.chain(others).collect::<Vec<_>>());
    let doubt = if makeup.exact { "" } else { " (may be incomplete)" };
    match (classes.is_empty(), holders.is_empty()) {
        (true, true) if makeup.exact => "nothing was used".to_owned(),
        (true, true) => "composition unknown".to_owned(),
        // A peak from before any aggregator merged the rings: the holder is known, the classes are not.
        (true, false) => format!("held by {}{doubt}", holders.join(", ")),
        _ => format!("{}; held by {}{doubt}", classes.join(", "), holders.join(", ")),
    }
}

#[derive(Serialize)]
struct PeaksJson {
    #[serde(flatten)]
    envelope: Envelope,
    peaks_since: Option<String>,
    devices: Vec<DevicePeaksJson>,
    errors: Vec<String>,
}

#[derive(Serialize)]
struct DevicePeaksJson {
    index: usize,
    chip_id: String,
    pci_address: Option<String>,
    dram: MemoryPeakJson,
    l1: MemoryPeakJson,
    eth_l1: PeakJson,
    cb_resident: PeakJson,
    kernel_resident: PeakJson,
    classes: std::collections::BTreeMap<&'static str, PeakJson>,
}

#[derive(Serialize)]
struct MemoryPeakJson {
    #[serde(flatten)]
    peak: PeakJson,
    composition_exact: bool,
    classes_bytes: std::collections::BTreeMap<&'static str, u64>,
    holders: Vec<HolderJson>,
    others_bytes: u64,
}

#[derive(Serialize)]
struct HolderJson {
    pid: u64,
    bytes: u64,
}

impl PeaksJson {
    fn new(model: &Model, namespace: &str) -> PeaksJson {
        PeaksJson {
            envelope: Envelope::new(model.clock, &model.host, namespace),
            peaks_since: model.window_since.and_then(|since| model.clock.rfc3339(since)),
            devices: model.devices.iter().map(|device| device_json(device, model.clock)).collect(),
            errors: model.problems.iter().map(Problem::line).collect(),
        }
    }
}

fn device_json(device: &Device, clock: Clock) -> DevicePeaksJson {
    let memory = |peak: &Peak, makeup: &Makeup| MemoryPeakJson {
        peak: PeakJson::new(peak, clock),
        composition_exact: makeup.exact,
        classes_bytes: makeup.classes.iter().map(|(class, bytes)| (class.name(), *bytes)).collect(),
        holders: makeup
            .holders
            .iter()
            .map(|holder| HolderJson { pid: holder.pid, bytes: holder.bytes })
            .collect(),
        others_bytes: makeup.others,
    };
    DevicePeaksJson {
        index: device.index,
        chip_id: format!("{:#018x}", device.id.chip_id),
        pci_address: device.id.pci.clone(),
        dram: memory(&device.dram.peak, &device.dram_makeup),
        l1: memory(&device.l1.peak, &device.l1_makeup),
        eth_l1: PeakJson::new(&device.eth_l1.peak, clock),
        cb_resident: PeakJson::new(&device.cb_resident_peak, clock),
        kernel_resident: PeakJson::new(&device.kernel_resident_peak, clock),
        classes: Class::ALL
            .map(|class| (class.name(), PeakJson::new(&device.class(class).peak, clock)))
            .into(),
    }
}
