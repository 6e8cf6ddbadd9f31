//! The peaks of a device: what all processes of the run held together, and what they held then.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use tt_shm_reader::{Class, Counters, DeviceStats, Sum, UsedMemory, device_flags};

use super::Followed;
use super::composition::Part;
use super::watch::Observed;
use crate::directory::{DeviceId, Directory};
use crate::escape::Foreign;
use crate::model::{Clock, Device, FIGURES, Figure, Held, Interval, Moment, Peak, by_word, word};
#[cfg(test)]
use crate::schema;

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
    /// What was held when these peaks were reached.
    #[serde(rename = "peak_composition")]
    pub(super) made_of: Compositions,
    /// Allocations that failed on it.
    #[serde(rename = "failed_allocations")]
    pub(super) failed: u64,
    /// The same by memory class. Less in all if events were missed.
    #[serde(rename = "failed_by_class", serialize_with = "by_word")]
    #[cfg_attr(test, schemars(schema_with = "schema::some_classes_counts"))]
    pub(super) failed_by_class: Vec<(Class, u64)>,
}

/// What was held when the peaks of a device were reached.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Compositions {
    /// When the most DRAM was used.
    #[serde(rename = "dram_used")]
    pub(super) dram: MadeOf,
    /// When the most L1 was used.
    #[serde(rename = "l1_used")]
    pub(super) l1: MadeOf,
}

/// What a peak was made of.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct MadeOf {
    /// Whether the peak is exact, and this is all of it, under the right names.
    pub(super) exact: bool,
    /// Its parts, most bytes first.
    pub(super) parts: Vec<PartOfPeak>,
}

/// A part of a peak: what one process held of one class under one name.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PartOfPeak {
    /// What it is called; circular buffers are called after their program. `None` if it has no name.
    pub(super) name: Option<Foreign>,
    /// Memory class.
    #[serde(serialize_with = "word")]
    #[cfg_attr(test, schemars(schema_with = "schema::words::<Class>"))]
    pub(super) class: Class,
    /// Bytes of all.
    pub(super) bytes: u64,
    /// Buffers; of circular buffers, the programs.
    pub(super) count: u64,
    /// The process, as it is called here.
    pub(super) pid: u32,
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

/// The peaks of a device of the directory. If they are not bounded, processes may have used any amount that nobody saw.
pub(super) fn peaks_on(
    (index, id): (usize, &DeviceId),
    directory: &Directory,
    all: &[Observed],
    followed: Option<&Followed>,
    is_bounded: bool,
) -> Option<Peaks> {
    let entry = directory.settled(id.chip_id)?;
    let (dram_total, l1_total) = (entry.dram_total(), entry.l1_total());
    let mut figures = peaks_of(id, all, followed);
    let on_chip = || all.iter().filter(|one| one.on(id.chip_id).next().is_some());
    // What differs from the allocator's own sums may be more than was reported.
    if !is_bounded || on_chip().any(Observed::is_doubtful) {
        figures.iter_mut().for_each(|(_, peak)| peak.range.high = None);
    }
    let made_of = |memory, key| {
        let peak = figures.iter().find(|(figure, _)| figure.key == key).map(|(_, peak)| peak);
        made_of(id.chip_id, memory, peak?, all, followed?)
    };
    let made_of = Compositions {
        dram: made_of(UsedMemory::Dram, "dram_used").unwrap_or_default(),
        l1: made_of(UsedMemory::L1, "l1_used").unwrap_or_default(),
    };
    let failed = on_chip().flat_map(|one| one.on(id.chip_id)).map(|counters| counters.failed_allocs).sum();
    let failed_by_class = failed_by_class(id.chip_id, all, followed);
    Some(Peaks { index, id: id.clone(), dram_total, l1_total, figures, made_of, failed, failed_by_class })
}

/// What the peak of a memory was made of: exact if it is all of an exact peak.
fn made_of(
    chip_id: u64,
    memory: UsedMemory,
    peak: &Peak,
    all: &[Observed],
    followed: &Followed,
) -> Option<MadeOf> {
    let composition = followed.composer.composition(chip_id, memory)?;
    let exact = composition.is_complete && peak.range == Interval::exact(composition.bytes());
    let part = |part: Part| {
        let process = all.iter().find(|process| process.identity == part.identity)?;
        let Part { name, class, sum: Sum { bytes, count }, .. } = part;
        Some(PartOfPeak { name, class, bytes, count, pid: process.pid })
    };
    let parts: Option<Vec<PartOfPeak>> = composition.parts.into_iter().map(part).collect();
    Some(MadeOf { exact, parts: parts? })
}

fn failed_by_class(chip_id: u64, all: &[Observed], followed: Option<&Followed>) -> Vec<(Class, u64)> {
    let mut by_class: BTreeMap<Class, u64> = BTreeMap::new();
    for process in all {
        let left = followed.and_then(|followed| followed.composer.left(process.identity));
        for ((device, class), count) in left.iter().flat_map(|left| &left.failed) {
            let entry = process.devices.get(usize::from(*device));
            if entry.is_some_and(|entry| entry.chip_id == chip_id) {
                *by_class.entry(*class).or_default() += count;
            }
        }
    }
    by_class.into_iter().collect()
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
    let unseen = merged.is_some_and(|stats| stats.flags & device_flags::SYSTEM_KERNELS_UNSEEN != 0);
    let merged = merged.map(|stats| Device::new(0, 0, id, stats, clock, false).held);
    let held = |own: &Counters| {
        let mut held = Held::by_one(own, clock);
        if unseen {
            held.doubt_system_kernels();
        }
        held
    };
    let own: Vec<(Held, bool)> = own.iter().map(|own| (held(own), own.peak_reset_time != 0)).collect();
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
