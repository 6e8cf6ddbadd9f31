//! `tt-smi peak`: peak memory use, when it was reached, and by whom.

use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use tt_shm_reader::{Class, Table};

use crate::cli::PeakArgs;
use crate::model::{Clock, Device, FIGURES, Interval, Makeup, Model, Peak, Problem, Rank};
use crate::output::columns::{Align, Columns};
use crate::output::json::{self, Envelope, PeakJson};
use crate::output::paint::Paint;
use crate::output::table::{why_nothing, write_problems};
use crate::settings::Settings;
use crate::source::Source;
use crate::units::{UNKNOWN, age, bytes, percent};

/// Time limit for the aggregator to carry out a reset.
const RESET_TIMEOUT: Duration = Duration::from_secs(5);

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
    } else {
        now.write_devices(&mut out, settings.paint, none_matches, write)?;
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
    /// Whether it is a part of the one before it.
    is_part: bool,
    now: Interval,
    total: Option<u64>,
    peak: &'a Peak,
    makeup: Option<&'a Makeup>,
}

/// The memories, and the classes that were ever used.
fn entries(device: &Device) -> Vec<Entry<'_>> {
    let peaks = FIGURES.iter().filter(|figure| figure.has_peak());
    let amounts = peaks.filter_map(|figure| Some((figure, figure.of(&device.held)?)));
    let used =
        amounts.filter(|(figure, memory)| figure.rank == Rank::Whole || !memory.peak.range.is_nothing());
    used.map(|(figure, memory)| Entry {
        name: figure.label,
        is_part: figure.is_part(),
        now: memory.used_range(),
        // Kernels lie in reserved memory, which is no part of what can be allocated.
        total: figure.capacity(&device.held).flatten(),
        peak: &memory.peak,
        makeup: figure.sum_of.and_then(|place| device.makeup(place)),
    })
    .collect()
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
    for Entry { name, is_part, now, total, peak, .. } in entries {
        columns.push(vec![
            format!("  {}{name}", if *is_part { "  " } else { "" }),
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
    /// By the stem of the figure.
    #[serde(flatten)]
    others: std::collections::BTreeMap<&'static str, PeakJson>,
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
        dram: memory(&device.held.dram.peak, &device.dram_makeup),
        l1: memory(&device.held.l1.peak, &device.l1_makeup),
        others: FIGURES
            .iter()
            .filter(|figure| figure.has_peak() && figure.class().is_none())
            .filter(|figure| figure.sum_of.is_none())
            .filter_map(|figure| Some((figure.stem, PeakJson::new(&figure.of(&device.held)?.peak, clock))))
            .collect(),
        classes: Class::ALL
            .map(|class| (class.name(), PeakJson::new(&device.held.class(class).peak, clock)))
            .into(),
    }
}
