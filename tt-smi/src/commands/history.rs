//! `tt-smi history`: memory in use and what the driver measured, over the last minute, hour or day.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde::Serialize;
use tt_shm_reader::{
    Bucket, HISTORY_RESOLUTIONS, TELEMETRY_RESOLUTIONS, TelemetryBucket, Told, bucket_flags,
};

use super::Now;
use crate::cli::{HistoryArgs, HistoryFormat};
use crate::driver::{MEASURES, Measure};
use crate::model::{Clock, Device, Model, Moment, Problem, hex};
use crate::output::columns::{Align, Columns};
use crate::output::csv::write_records;
use crate::output::json::{self, Envelope};
use crate::output::paint::Paint;
use crate::output::table::{why_nothing, write_problems};
#[cfg(test)]
use crate::schema;
use crate::settings::Settings;
use crate::source::Source;
use crate::units::{UNKNOWN, bytes};

pub(crate) fn run(args: &HistoryArgs, settings: &Settings) -> anyhow::Result<()> {
    let mut source = Source::open(&settings.namespace)?;
    let reading = source.read()?;
    let now = Now::of(&reading, &args.on.device)?;
    let resolution = args.span as usize;
    let of = |device: &Device| DeviceHistory {
        memory: source.history(device.row, device.id.chip_id, resolution),
        telemetry: device.driver.as_ref().map(|driver| source.telemetry(driver.row, resolution)),
    };
    let histories: Vec<DeviceHistory> = now.model.devices.iter().map(of).collect();
    let history = History { model: &now.model, resolution, devices: &histories, gap: reading.snapshot.gap };
    let mut out = super::stdout();
    match if args.json { HistoryFormat::Json } else { args.format } {
        HistoryFormat::Json => json::write(&mut out, &HistoryJson::new(&history, args, settings))?,
        HistoryFormat::Csv => history.write_csv(&mut out, settings.namespace.as_str())?,
        HistoryFormat::Table => history.write_tables(&mut out, settings.paint)?,
    }
    out.flush()?;
    now.ensure_readable()
}

/// What is known of the selected devices.
struct History<'a> {
    model: &'a Model,
    /// 0 a minute, 1 an hour, 2 a day.
    resolution: usize,
    /// As in the model.
    devices: &'a [DeviceHistory],
    /// A period that no aggregator saw.
    gap: Option<(u64, u64)>,
}

/// Buckets of a device, oldest first.
struct DeviceHistory {
    memory: Vec<Bucket>,
    /// `None` if the driver has no such device.
    telemetry: Option<Vec<TelemetryBucket>>,
}

/// What is known of a device in one bucket of its memory.
struct Row<'a> {
    start: u64,
    memory: Option<&'a Bucket>,
    /// The bucket of telemetry that it lies in, which may be longer.
    telemetry: Option<&'a TelemetryBucket>,
}

impl DeviceHistory {
    /// One for each bucket in which anything is known, oldest first.
    fn rows(&self, resolution: usize) -> Vec<Row<'_>> {
        let (length, measured_length) = (HISTORY_RESOLUTIONS[resolution], TELEMETRY_RESOLUTIONS[resolution]);
        let telemetry = self.telemetry.as_deref().unwrap_or_default();
        // Telemetry may reach further back than the span does.
        let first = self.memory.first().map_or(0, |bucket| bucket.start);
        let measured = telemetry.iter().map(|bucket| bucket.start).filter(|start| *start >= first);
        let known = self.memory.iter().map(|bucket| bucket.start).chain(measured);
        let starts: BTreeSet<u64> = known.map(|start| start / length * length).collect();
        let row = |start: u64| Row {
            start,
            memory: self.memory.iter().find(|bucket| bucket.start / length * length == start),
            telemetry: telemetry.iter().find(|one| one.start / measured_length == start / measured_length),
        };
        starts.into_iter().map(row).collect()
    }
}

/// What the history has of what the driver measures.
fn measures() -> impl Iterator<Item = &'static Measure> {
    MEASURES.iter().filter(|measure| Told::TRENDS.contains(&measure.told))
}

impl History<'_> {
    fn length(&self) -> u64 {
        HISTORY_RESOLUTIONS[self.resolution]
    }

    fn each(&self) -> impl Iterator<Item = (&Device, &DeviceHistory)> {
        self.model.devices.iter().zip(self.devices)
    }

    fn write_tables(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let model = self.model;
        if model.devices.is_empty() {
            writeln!(out, "No device: {}.", why_nothing(model))?;
            return write_problems(out, model, paint);
        }
        for (device, history) in self.each() {
            writeln!(out, "{}", paint.bold(&format!("Device {}  {}", device.index, device.kind())))?;
            self.write_table(out, history, paint)?;
            writeln!(out)?;
        }
        if model.origin.aggregator().is_none() {
            writeln!(out, "No aggregator runs, so the history begins now: `tt-smi aggregate` records it.")?;
        }
        if let Some((start, end)) = self.gap {
            let at = |time| model.clock.moment(time).rfc3339().unwrap_or_else(|| UNKNOWN.to_owned());
            writeln!(out, "No aggregator ran from {} to {}.", at(start), at(end))?;
        }
        write_problems(out, model, paint)
    }

    fn write_table(&self, out: &mut dyn Write, history: &DeviceHistory, paint: Paint) -> io::Result<()> {
        use Align::{Left, Right};
        let rows = history.rows(self.resolution);
        let is_known = |measure: &&Measure| {
            rows.iter().any(|row| row.telemetry.is_some_and(|t| t.trend(measure.told).is_some()))
        };
        let shown: Vec<&Measure> = measures().filter(is_known).collect();
        let memory =
            [("DRAM MIN", Right), ("MAX", Right), ("LAST", Right), ("L1 MIN", Right), ("MAX", Right)];
        let heads =
            [("TIME (UTC)", Left)].into_iter().chain(memory).chain([("LAST", Right), ("EXACT", Left)]);
        let heads = heads.chain(shown.iter().map(|measure| (measure.unit, Right)));
        let mut columns = Columns::new(&heads.collect::<Vec<_>>());
        for row in &rows {
            let time = self.model.clock.moment(row.start).rfc3339();
            let time = time.map_or_else(|| UNKNOWN.to_owned(), |time| time.chars().take(19).collect());
            let memory =
                memory_values(row.memory).map(|value| value.map_or_else(|| UNKNOWN.to_owned(), bytes));
            let exact = match row.memory.map(is_exact) {
                Some(true) => "yes",
                Some(false) => "no",
                None => UNKNOWN,
            };
            let measured = shown.iter().map(|measure| {
                let trend = row.telemetry.and_then(|telemetry| telemetry.trend(measure.told));
                trend
                    .map_or_else(|| UNKNOWN.to_owned(), |trend| measure.text(measure.scaled(trend.range().1)))
            });
            columns
                .push([time].into_iter().chain(memory).chain([exact.to_owned()]).chain(measured).collect());
        }
        match columns.is_empty() {
            true => writeln!(out, "  nothing is known of this time"),
            false => columns.write(out, paint),
        }
    }

    fn write_csv(&self, out: &mut dyn Write, namespace: &str) -> io::Result<()> {
        let measured = measures().flat_map(|measure| ENDS.map(|end| format!("{}_{end}", measure.key)));
        let heads: Vec<String> = CSV_HEADS.map(str::to_owned).into_iter().chain(measured).collect();
        let lines = self.each().flat_map(|(device, history)| {
            history
                .rows(self.resolution)
                .into_iter()
                .map(move |row| self.csv_line(device, &row))
                .collect::<Vec<_>>()
        });
        write_records(out, self.model, namespace, heads.iter().map(String::as_str), lines)
    }

    fn csv_line(&self, device: &Device, row: &Row<'_>) -> Vec<String> {
        fn known(value: Option<impl ToString>) -> String {
            value.map_or_else(String::new, |value| value.to_string())
        }
        let about = [
            device.index.to_string(),
            format!("{:#018x}", device.id.chip_id),
            known(self.model.clock.moment(row.start).rfc3339()),
            (self.length() as f64 / 1e9).to_string(),
        ];
        let memory = memory_values(row.memory).map(known);
        let exact = known(row.memory.map(is_exact));
        let measured = measures().flat_map(|measure| {
            let trend = row.telemetry.and_then(|telemetry| telemetry.trend(measure.told));
            let range = trend.map(|trend| RangeJson::of(measure, trend.range()));
            [range.map(|r| r.min), range.map(|r| r.max), range.map(|r| r.last)].map(known)
        });
        about.into_iter().chain(memory).chain([exact]).chain(measured).collect()
    }
}

/// Ends of a range, in CSV.
const ENDS: [&str; 3] = ["min", "max", "last"];

const CSV_HEADS: [&str; 11] = [
    "index",
    "chip_id",
    "start",
    "seconds",
    "dram_used_bytes_min",
    "dram_used_bytes_max",
    "dram_used_bytes_last",
    "l1_used_bytes_min",
    "l1_used_bytes_max",
    "l1_used_bytes_last",
    "exact",
];

fn memory_values(bucket: Option<&Bucket>) -> [Option<u64>; 6] {
    let values = |b: &Bucket| [b.dram_min, b.dram_max, b.dram_last, b.l1_min, b.l1_max, b.l1_last].map(Some);
    bucket.map_or([None; 6], values)
}

fn is_exact(bucket: &Bucket) -> bool {
    bucket.flags & bucket_flags::INEXACT == 0
}

/// `tt-smi history --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    /// The time that is covered: minute, hour or day. Telemetry of a minute covers eight.
    span: &'static str,
    /// The aggregator that recorded it; `None` if none runs, and it begins now.
    aggregator_pid: Option<u64>,
    /// Beginning and end of a period that no aggregator saw; `None` if there is none.
    unseen: Option<[Moment; 2]>,
    /// By index.
    devices: Vec<DeviceHistoryJson<'a>>,
    /// What is missing.
    errors: &'a [Problem],
}

/// A device.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DeviceHistoryJson<'a> {
    /// What --device takes.
    index: usize,
    /// Stable id of the chip, hexadecimal.
    #[serde(serialize_with = "hex")]
    #[cfg_attr(test, schemars(schema_with = "schema::hex"))]
    chip_id: u64,
    /// PCI address; `None` if not known.
    #[cfg_attr(test, schemars(schema_with = "schema::pci_address"))]
    pci_address: Option<&'a str>,
    /// Length of a bucket of memory.
    memory_bucket_seconds: f64,
    /// Memory in use, oldest first. A time without a bucket is unknown.
    memory: Vec<MemoryBucketJson>,
    /// Length of a bucket of telemetry.
    telemetry_bucket_seconds: f64,
    /// What the driver measured, oldest first; `None` if it has no such device.
    telemetry: Option<Vec<TelemetryBucketJson>>,
}

/// Memory in use in a bucket.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MemoryBucketJson {
    /// When it begins; `None` if that was before the machine was suspended.
    start: Moment,
    /// DRAM in use.
    dram_used_bytes: RangeJson<u64>,
    /// L1 of Tensix cores in use.
    l1_used_bytes: RangeJson<u64>,
    /// Whether everything was followed throughout.
    exact: bool,
}

/// What was measured in a bucket.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TelemetryBucketJson {
    /// When it begins; `None` if that was before the machine was suspended.
    start: Moment,
    /// By quantity; `None` if it was not known.
    #[serde(flatten)]
    #[cfg_attr(test, schemars(schema_with = "measured_schema"))]
    measured: BTreeMap<&'static str, Option<RangeJson<f64>>>,
}

/// Least, most and last of a bucket.
#[derive(Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RangeJson<T> {
    /// The least.
    min: T,
    /// The most.
    max: T,
    /// The last.
    last: T,
}

impl RangeJson<f64> {
    fn of(measure: &Measure, (min, max, last): (i64, i64, i64)) -> RangeJson<f64> {
        let [min, max, last] = [min, max, last].map(|value| measure.scaled(value));
        RangeJson { min, max, last }
    }
}

#[cfg(test)]
fn measured_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let range = generator.subschema_for::<Option<RangeJson<f64>>>();
    schema::object(
        measures().map(|measure| (measure.key.to_owned(), schema::named(range.clone(), measure.help))),
    )
}

impl<'a> HistoryJson<'a> {
    fn new(history: &'a History<'_>, args: &HistoryArgs, settings: &Settings) -> HistoryJson<'a> {
        let model = history.model;
        let device = |(device, of): (&'a Device, &DeviceHistory)| DeviceHistoryJson {
            index: device.index,
            chip_id: device.id.chip_id,
            pci_address: device.id.pci.as_deref(),
            memory_bucket_seconds: history.length() as f64 / 1e9,
            memory: of.memory.iter().map(|bucket| MemoryBucketJson::new(bucket, model.clock)).collect(),
            telemetry_bucket_seconds: TELEMETRY_RESOLUTIONS[history.resolution] as f64 / 1e9,
            telemetry: of.telemetry.as_ref().map(|buckets| {
                buckets.iter().map(|bucket| TelemetryBucketJson::new(bucket, model.clock)).collect()
            }),
        };
        HistoryJson {
            envelope: Envelope::new(model.clock, &model.host, settings.namespace.as_str()),
            span: args.span.word(),
            aggregator_pid: model.origin.aggregator(),
            unseen: history.gap.map(|(start, end)| [start, end].map(|time| model.clock.moment(time))),
            devices: history.each().map(device).collect(),
            errors: &model.problems,
        }
    }
}

impl MemoryBucketJson {
    fn new(bucket: &Bucket, clock: Clock) -> MemoryBucketJson {
        MemoryBucketJson {
            start: clock.moment(bucket.start),
            dram_used_bytes: RangeJson { min: bucket.dram_min, max: bucket.dram_max, last: bucket.dram_last },
            l1_used_bytes: RangeJson { min: bucket.l1_min, max: bucket.l1_max, last: bucket.l1_last },
            exact: is_exact(bucket),
        }
    }
}

impl TelemetryBucketJson {
    fn new(bucket: &TelemetryBucket, clock: Clock) -> TelemetryBucketJson {
        let of = |measure: &'static Measure| {
            let trend = bucket.trend(measure.told).map(|trend| RangeJson::of(measure, trend.range()));
            (measure.key, trend)
        };
        TelemetryBucketJson { start: clock.moment(bucket.start), measured: measures().map(of).collect() }
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;
    use tt_shm_reader::{TRENDS, Trend};

    use super::*;

    const LENGTH: u64 = HISTORY_RESOLUTIONS[1];

    fn memory(number: u64) -> Bucket {
        Bucket { start: number * LENGTH, dram_max: number, ..Bucket::zeroed() }
    }

    fn measured(number: u64, value: i64) -> TelemetryBucket {
        TelemetryBucket { start: number * LENGTH, known: 1, trends: [Trend::of(value); TRENDS] }
    }

    #[test]
    fn a_row_is_what_is_known_of_one_time() {
        let telemetry = Some(vec![measured(3, 1), measured(5, 2), measured(7, 3)]);
        let history = DeviceHistory { memory: vec![memory(4), memory(5)], telemetry };
        let rows: Vec<_> = history
            .rows(1)
            .iter()
            .map(|row| {
                let value = row.telemetry.map(|bucket| bucket.trends[0].range().2);
                (row.start / LENGTH, row.memory.map(|bucket| bucket.dram_max), value)
            })
            .collect();
        assert_eq!(rows, [(4, Some(4), None), (5, Some(5), Some(2)), (7, None, Some(3))]);
    }

    /// A minute has eight buckets of memory in each of telemetry.
    #[test]
    fn what_was_measured_in_two_seconds_holds_for_all_of_them() {
        let memory =
            (8..17).map(|number| Bucket { start: number * HISTORY_RESOLUTIONS[0], ..Bucket::zeroed() });
        let measured = TelemetryBucket { start: TELEMETRY_RESOLUTIONS[0], ..measured(0, 1) };
        let history = DeviceHistory { memory: memory.collect(), telemetry: Some(vec![measured]) };
        let known: Vec<bool> = history.rows(0).iter().map(|row| row.telemetry.is_some()).collect();
        assert_eq!(known, [[true; 8].as_slice(), &[false]].concat());
    }

    #[test]
    fn an_idle_device_has_rows_of_what_was_measured() {
        let history = DeviceHistory { memory: Vec::new(), telemetry: Some(vec![measured(3, 1)]) };
        assert_eq!(history.rows(1).len(), 1);
        assert_eq!(memory_values(history.rows(1)[0].memory), [None; 6]);
    }

    #[test]
    fn telemetry_that_was_not_known_is_null() {
        let json = TelemetryBucketJson::new(&measured(3, 38_500), Clock::now());
        let text = serde_json::to_value(&json).unwrap();
        assert_eq!(text["temperature_celsius"]["max"], 38.5);
        assert!(text["power_watts"].is_null(), "{text}");
    }
}
