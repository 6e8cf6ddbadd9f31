//! The report: combined peaks of all processes, and what each of them never freed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Serialize, Serializer};
use tt_shm_reader::{Class, Counters, DeviceStats};

use super::Followed;
use super::child::End;
#[cfg(test)]
use super::child::ExitJson;
use super::watch::{FoundProcesses, Observed, Unfreed};
use crate::directory::{Claims, DeviceId, Directory};
use crate::escape::Foreign;
use crate::model::{Clock, Device, FIGURES, Figure, Held, Interval, Moment, Peak, word};
#[cfg(test)]
use crate::schema;

/// What a run used.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Report {
    /// How long it ran.
    #[serde(rename = "duration_ms", serialize_with = "duration_ms")]
    #[cfg_attr(test, schemars(with = "u64"))]
    pub(super) lasted: Duration,
    #[serde(flatten)]
    #[cfg_attr(test, schemars(with = "ExitJson"))]
    pub(super) end: End,
    /// Devices that its processes reported, by index among those of the run.
    pub(super) devices: Vec<Peaks>,
    /// Its processes that reported memory.
    pub(super) processes: Vec<Ran>,
    /// Pids of processes that are not counted and may be others': TT_SHM_RUN was not set for them, and they ended before their
    /// parents could be asked for. If they were of the run, its peaks are at least what is said.
    #[serde(rename = "unknown_pids")]
    pub(super) unknown: Vec<u32>,
    /// Allocations that failed, of all its processes.
    #[serde(rename = "failed_allocations")]
    pub(super) failed: u64,
}

/// A process.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Ran {
    /// As it is called here.
    pub(super) pid: u32,
    /// Its name.
    pub(super) name: Foreign,
    /// Whether it outlived the command: what it holds may yet be freed.
    #[serde(rename = "running")]
    pub(super) alive: bool,
    /// Whether the list is complete; `None` if it could not be read.
    #[serde(rename = "never_freed_exact")]
    pub(super) leaks_exact: Option<bool>,
    /// What it held at its end, or at the end of the command; most bytes first.
    #[serde(rename = "never_freed")]
    pub(super) leaks: Vec<Leak>,
    /// How often its sums were compared with those of the device's allocator.
    pub(super) self_checks: u64,
    /// How many of these comparisons found a difference.
    pub(super) self_checks_different: u64,
}

/// Live allocations of one class with the same name and call site.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Leak {
    /// Index; `None` if not known.
    pub(super) device: Option<usize>,
    /// Memory class.
    #[serde(serialize_with = "word")]
    #[cfg_attr(test, schemars(schema_with = "schema::words::<Class>"))]
    pub(super) class: Class,
    /// Its name; `None` if it has none.
    pub(super) name: Option<Foreign>,
    /// Where it was allocated; `None` if not recorded.
    #[serde(rename = "call_site")]
    pub(super) site: Option<Foreign>,
    /// Bytes of all.
    pub(super) bytes: u64,
    /// Allocations.
    pub(super) count: u64,
}

/// A device.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Peaks {
    /// Its place in this report.
    pub(super) index: usize,
    #[serde(flatten)]
    pub(super) id: DeviceId,
    /// DRAM there is; `None` if no process says.
    #[serde(rename = "dram_total_bytes")]
    pub(super) dram_total: Option<u64>,
    /// L1 there is; `None` if no process says.
    #[serde(rename = "l1_total_bytes")]
    pub(super) l1_total: Option<u64>,
    /// The most that all processes of the run held together: sums as in a snapshot, then by memory class.
    #[serde(rename = "peaks", serialize_with = "peaks")]
    #[cfg_attr(test, schemars(schema_with = "peaks_schema"))]
    pub(super) figures: Vec<(&'static Figure, Peak)>,
}

/// A peak.
///
/// Not a [`Peak`]: without the number of allocations, which is known only if an aggregation counted them.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PeakJson {
    #[serde(flatten)]
    #[cfg_attr(test, schemars(with = "crate::model::Bounds"))]
    range: Interval,
    /// When it was reached first; `None` if nobody knows, or there was none.
    time: Option<Moment>,
}

fn peaks<S: Serializer>(figures: &[(&'static Figure, Peak)], serializer: S) -> Result<S::Ok, S::Error> {
    let peak = |peak: &Peak| PeakJson { range: peak.range, time: peak.time };
    let by_name: BTreeMap<&str, PeakJson> =
        figures.iter().map(|(figure, of)| (key(figure), peak(of))).collect();
    by_name.serialize(serializer)
}

#[cfg(test)]
fn peaks_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let peak = generator.subschema_for::<PeakJson>();
    let names = FIGURES.iter().filter(|figure| figure.has_peak()).map(key);
    schema::object(names.map(|name| (name.to_owned(), peak.clone())))
}

fn duration_ms<S: Serializer>(lasted: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(lasted.as_millis()).unwrap_or(u64::MAX))
}

/// Builds the report from what was found.
pub(super) fn report(
    end: End,
    lasted: Duration,
    found: FoundProcesses,
    followed: Option<&Followed>,
) -> Report {
    let (processes, unknown) = found.into_observed();
    let mut claims = Claims::new();
    processes.iter().for_each(|process| claims.add_entries(process.uid, &process.devices));
    let directory = claims.finish();
    let counters = processes.iter().flat_map(|process| process.counters.iter().flatten());
    let failed = counters.map(|counters| counters.failed_allocs).sum();
    // A process that is unknown or unreadable may have used any amount on any device.
    let bounded = unknown.is_empty() && processes.iter().all(|process| process.counters.is_some());
    let peaks = |(index, id): (usize, &DeviceId)| {
        let entry = directory.settled(id.chip_id)?;
        let (dram_total, l1_total) = (entry.dram_total(), entry.l1_total());
        let mut figures = peaks_of(id, &processes, followed);
        if !bounded {
            figures.iter_mut().for_each(|(_, peak)| peak.range.high = None);
        }
        Some(Peaks { index, id: id.clone(), dram_total, l1_total, figures })
    };
    Report {
        end,
        lasted,
        devices: directory.devices.iter().enumerate().filter_map(peaks).collect(),
        processes: processes.iter().map(|process| ran(process, &directory)).collect(),
        unknown,
        failed,
    }
}

/// The peaks of a device: those of the aggregation if it followed all processes, bounded by the processes' own peaks,
/// which are exact unless they were reset.
fn peaks_of(id: &DeviceId, all: &[Observed], followed: Option<&Followed>) -> Vec<(&'static Figure, Peak)> {
    let own: Vec<&Counters> = all.iter().flat_map(|one| one.on(id.chip_id)).collect();
    let all_followed = |followed: &&Followed| {
        let mut on_chip = all.iter().filter(|one| one.on(id.chip_id).next().is_some());
        on_chip.all(|one| followed.identities.contains(&one.identity))
    };
    let merged = followed.filter(all_followed).and_then(|followed| {
        followed.snapshot.devices.iter().find(|(_, stats)| stats.entry.chip_id == id.chip_id)
    });
    figures(merged.map(|(_, stats)| stats), &own, id, Clock::now())
}

/// The peak of each figure that has one. Those of the processes themselves are exact, where they count them.
fn figures(
    merged: Option<&DeviceStats>,
    own: &[&Counters],
    id: &DeviceId,
    clock: Clock,
) -> Vec<(&'static Figure, Peak)> {
    let merged = merged.map(|stats| Device::new(0, 0, id, stats, clock, false).held);
    let own: Vec<(Held, bool)> =
        own.iter().map(|own| (Held::by_one(own, clock), own.peak_reset_time != 0)).collect();
    let figures = FIGURES.iter().filter(|figure| figure.has_peak());
    figures
        .map(|figure| {
            let merged = merged.as_ref().and_then(|held| figure.of(held)).map(|memory| memory.peak);
            let own =
                own.iter().filter_map(|(held, was_reset)| Some((figure.of(held)?.peak.range, *was_reset)));
            (figure, joined(merged, own))
        })
        .collect()
}

/// The aggregation's peak, bounded by the processes' own: together they had at least what one of them had, and at most
/// the sum. If one of them reset its peaks, what it had before is unknown.
fn joined(merged: Option<Peak>, own: impl Iterator<Item = (Interval, bool)>) -> Peak {
    let merged = merged.unwrap_or(Peak { range: Interval::at_least(0), ..Peak::default() });
    let (mut low, mut most) = (merged.range.low, Some(0_u64));
    for (range, was_reset) in own {
        low = low.max(range.low);
        let high = range.high.filter(|_| !was_reset);
        most = most.zip(high).map(|(most, high)| most.saturating_add(high));
    }
    let high = [merged.range.high, most].into_iter().flatten().min();
    let range = Interval { low, high: high.map(|high| high.max(low)) };
    // The time belongs to that value only.
    if low == merged.range.low { Peak { range, ..merged } } else { Peak { range, ..Peak::default() } }
}

/// The key of a figure: a class by its name, as everywhere.
fn key(figure: &Figure) -> &'static str {
    figure.class().map_or(figure.key, Class::name)
}

fn ran(process: &Observed, directory: &Directory) -> Ran {
    let index = |device: u8| directory.index_of(process.devices.get(usize::from(device))?.chip_id);
    let leak = |held: &Unfreed| Leak {
        device: index(held.device),
        class: held.class,
        name: held.name.clone(),
        site: held.site.clone(),
        bytes: held.bytes,
        count: held.count,
    };
    Ran {
        pid: process.pid,
        name: process.name.clone(),
        alive: process.alive,
        leaks: process.leaks.iter().map(leak).collect(),
        leaks_exact: process.leaks_exact,
        self_checks: process.self_checks[0],
        self_checks_different: process.self_checks[1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_reader::DeviceEntry;

    /// A process with this much DRAM of chip 7 in each of its entries.
    fn observed(entries: &[u64]) -> Observed {
        let counters = |dram: &u64| Counters { dram_peak_bytes: *dram, ..Counters::ZERO };
        Observed {
            identity: 1,
            pid: 2,
            uid: 0,
            name: "".into(),
            alive: false,
            devices: vec![DeviceEntry { chip_id: 7, ..bytemuck::Zeroable::zeroed() }; entries.len()],
            counters: Some(entries.iter().map(counters).collect()),
            leaks: Vec::new(),
            leaks_exact: Some(true),
            self_checks: [0; 2],
        }
    }

    fn dram(processes: Vec<Observed>, unknown: Vec<u32>) -> Interval {
        let found = FoundProcesses::of(processes, unknown);
        let report = report(End::Exited(0), Duration::ZERO, found, None);
        report.devices[0].figures[0].1.range
    }

    #[test]
    fn entries_of_one_chip_are_added_up() {
        assert_eq!(dram(vec![observed(&[10])], vec![]), Interval::exact(10));
        assert_eq!(dram(vec![observed(&[10, 5])], vec![]), Interval { low: 10, high: Some(15) });
    }

    #[test]
    fn whoever_could_not_be_read_may_have_had_anything() {
        assert_eq!(dram(vec![observed(&[10])], vec![4711]), Interval::at_least(10));
        let unread = Observed { counters: None, ..observed(&[3]) };
        assert_eq!(dram(vec![observed(&[10]), unread], vec![]), Interval::at_least(10));
    }
}
