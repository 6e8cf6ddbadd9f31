//! `tt-smi peak`: peak memory use, when it was reached, and by whom.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use tt_shm_reader::{Class, Table};

use crate::cli::PeakArgs;
use crate::lists::fold::fold;
use crate::model::{
    Clock, Device, FIGURES, Figure, Interval, Makeup, Model, Moment, Peak, Problem, Rank, hex,
};
use crate::output::columns::{Align, Columns};
use crate::output::json::{self, Envelope};
use crate::output::paint::Paint;
use crate::output::table::{why_nothing, write_problems};
#[cfg(test)]
use crate::schema;
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
    let since = model.window_since.and_then(Moment::rfc3339);
    let since = since.unwrap_or_else(|| "the start of the processes".to_owned());
    writeln!(out, "Peaks since {since} ({})", model.origin.describe())?;
    // What would be printed alike for several devices, such as those of a mesh, is printed once.
    for folded in
        fold(model.devices.iter().map(|device| (Some(device.index), Section::of(device, model.clock))))
    {
        let Section { kind, lines, makeups } = &folded.value;
        let head = match folded.count() {
            1 => format!("Device {}  {kind}", folded.devices()),
            _ => format!("Devices {}  {kind}  (figures of each)", folded.devices()),
        };
        writeln!(out, "\n{}", paint.bold(&head))?;
        write_lines(out, lines, paint)?;
        for makeup in makeups {
            writeln!(out, "{}", paint.dim(makeup))?;
        }
    }
    write_problems(out, model, paint)
}

/// What is printed of a device, without its index.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Section {
    kind: String,
    /// The cells of the table.
    lines: Vec<Vec<String>>,
    /// What the peaks were made of.
    makeups: Vec<String>,
}

impl Section {
    fn of(device: &Device, clock: Clock) -> Section {
        let entries = entries(device);
        let makeup = |entry: &Entry<'_>| {
            entry.makeup.map(|makeup| format!("  {} peak: {}", entry.name, describe(makeup)))
        };
        Section {
            kind: device.kind(),
            lines: entries.iter().map(|entry| entry.cells(clock)).collect(),
            makeups: entries.iter().filter_map(makeup).collect(),
        }
    }
}

impl Entry<'_> {
    fn cells(&self, clock: Clock) -> Vec<String> {
        let Entry { name, is_part, now, total, peak, .. } = self;
        let or_unknown = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
        vec![
            format!("  {}{name}", if *is_part { "  " } else { "" }),
            peak.range.text(),
            percent(peak.range.low, *total),
            or_unknown(peak.count.map(|count| count.to_string())),
            ago(peak, clock),
            now.text(),
            if peak.is_exact() { "yes" } else { "no" }.to_owned(),
        ]
    }
}

fn write_lines(out: &mut dyn Write, lines: &[Vec<String>], paint: Paint) -> io::Result<()> {
    use Align::{Left, Right};
    let heads = [("PEAK", Right), ("% OF CAP", Right), ("COUNT", Right), ("AGO", Right), ("NOW", Right)];
    let heads = [("  WHAT", Left)].into_iter().chain(heads).chain([("EXACT", Left)]);
    let mut columns = Columns::new(&heads.collect::<Vec<_>>());
    for line in lines {
        columns.push(line.clone());
    }
    columns.write(out, paint)
}

/// How long ago a peak was first reached; "time unknown" if that is not known.
fn ago(peak: &Peak, clock: Clock) -> String {
    match peak.time {
        Some(time) => age(clock.age_ns(time.monotonic_ns)),
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PeaksJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    /// Since when; `None`: since the processes started.
    peaks_since: Option<Moment>,
    /// By index.
    devices: Vec<DevicePeaksJson<'a>>,
    /// What could not be read or is in doubt; with file, owner, reason and what to do. Many alike are one.
    errors: Vec<String>,
}

/// A device.
///
/// Not a [`Device`]: shorter, with what identifies the device and nothing else beside the peaks.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DevicePeaksJson<'a> {
    /// What --device takes.
    index: usize,
    /// Stable id of the chip, hexadecimal.
    #[serde(serialize_with = "hex")]
    #[cfg_attr(test, schemars(schema_with = "schema::hex"))]
    chip_id: u64,
    /// PCI address; `None` if not known.
    #[cfg_attr(test, schemars(schema_with = "schema::pci_address"))]
    pci_address: Option<&'a str>,
    /// DRAM: a largest value, and what it was made of.
    dram: MemoryPeakJson<'a>,
    /// L1 of Tensix cores: a largest value, and what it was made of.
    l1: MemoryPeakJson<'a>,
    /// By the stem of the figure.
    #[serde(flatten)]
    #[cfg_attr(test, schemars(schema_with = "others_schema"))]
    others: BTreeMap<&'static str, &'a Peak>,
    /// By memory class.
    #[cfg_attr(test, schemars(schema_with = "schema::by_class_of::<Peak>"))]
    classes: BTreeMap<&'static str, &'a Peak>,
}

/// A largest value, and what it was made of.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MemoryPeakJson<'a> {
    #[serde(flatten)]
    peak: &'a Peak,
    #[serde(flatten)]
    makeup: &'a Makeup,
}

/// The figures that are neither a class nor a sum of classes.
fn others() -> impl Iterator<Item = &'static Figure> {
    let peaks = FIGURES.iter().filter(|figure| figure.has_peak());
    peaks.filter(|figure| figure.class().is_none() && figure.sum_of.is_none())
}

#[cfg(test)]
fn others_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let peak = generator.subschema_for::<Peak>();
    schema::object(others().map(|figure| (figure.stem.to_owned(), schema::named(peak.clone(), figure.help))))
}

impl<'a> PeaksJson<'a> {
    fn new(model: &'a Model, namespace: &str) -> PeaksJson<'a> {
        PeaksJson {
            envelope: Envelope::new(model.clock, &model.host, namespace),
            peaks_since: model.window_since,
            devices: model.devices.iter().map(DevicePeaksJson::new).collect(),
            errors: model.problems.iter().map(Problem::line).collect(),
        }
    }
}

impl<'a> DevicePeaksJson<'a> {
    fn new(device: &'a Device) -> DevicePeaksJson<'a> {
        let Device { index, id, held, dram_makeup, l1_makeup, .. } = device;
        DevicePeaksJson {
            index: *index,
            chip_id: id.chip_id,
            pci_address: id.pci.as_deref(),
            dram: MemoryPeakJson { peak: &held.dram.peak, makeup: dram_makeup },
            l1: MemoryPeakJson { peak: &held.l1.peak, makeup: l1_makeup },
            others: others().filter_map(|figure| Some((figure.stem, &figure.of(held)?.peak))).collect(),
            classes: Class::ALL.map(|class| (class.name(), &held.class(class).peak)).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Interval;
    use crate::screen::{More, fixture};

    fn text(model: &Model) -> String {
        let mut out = Vec::new();
        write(&mut out, model, Paint::PLAIN).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn devices_that_are_alike_are_printed_once() {
        let mut model = fixture::data(4, 1, More::None).model;
        let alike = text(&model);
        assert_eq!(alike.matches("WHAT").count(), 1, "{alike}");
        assert!(alike.contains("Devices 0-3 x4  -  (figures of each)"), "{alike}");
        model.devices[2].held.dram.peak.range = Interval::exact(7);
        let different = text(&model);
        assert!(
            different.contains("Devices 0-1,3 x3") && different.contains("\nDevice 2  -\n"),
            "{different}"
        );
    }
}
