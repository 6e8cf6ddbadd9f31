//! What the run used: peaks of all its processes together, and what each of them never freed.

use std::time::Duration;

use tt_shm_reader::{Class, Counters, DeviceStats};

use super::child::End;
use super::follow::Followed;
use super::observed::{Held, Observed};
use super::watch::Inner;
use crate::directory::{Claims, DeviceId, Directory};
use crate::escape::Foreign;
use crate::model::{Device, Peak};

/// Everything there is to tell.
pub(super) struct Report {
    pub(super) end: End,
    pub(super) lasted: Duration,
    pub(super) processes: Vec<Ran>,
    pub(super) devices: Vec<Peaks>,
    /// Pids of processes without the number of the run that ended before their parents could be asked for.
    pub(super) unknown: Vec<u32>,
    /// Allocations that failed.
    pub(super) failed: u64,
}

/// A process of the run.
pub(super) struct Ran {
    pub(super) pid: u32,
    pub(super) name: Foreign,
    /// Whether it still runs: what it holds may yet be freed.
    pub(super) alive: bool,
    pub(super) leaks: Vec<Leak>,
    /// `None` if what it holds could not be read.
    pub(super) leaks_exact: Option<bool>,
}

/// Live allocations of one class with the same name and call site.
pub(super) struct Leak {
    pub(super) device: Option<usize>,
    pub(super) class: Class,
    pub(super) name: Option<Foreign>,
    pub(super) site: Option<Foreign>,
    pub(super) bytes: u64,
    pub(super) count: u64,
}

/// The most that was used on a device.
pub(super) struct Peaks {
    pub(super) index: usize,
    pub(super) id: DeviceId,
    pub(super) dram_total: Option<u64>,
    pub(super) l1_total: Option<u64>,
    /// `dram_used`, `l1_used`, `eth_l1_used`, then the classes.
    pub(super) figures: Vec<(&'static str, Peak)>,
}

/// Puts together what was found.
pub(super) fn report(end: End, lasted: Duration, found: Inner, followed: Option<&Followed>) -> Report {
    let (processes, unknown) = found.into_observed();
    let mut claims = Claims::default();
    processes.iter().for_each(|process| claims.add_entries(&process.devices));
    let directory = claims.finish();
    let counters = processes.iter().flat_map(|process| &process.counters);
    let failed = counters.map(|counters| counters.failed_allocs).sum();
    let peaks = |(index, id): (usize, &DeviceId)| peaks_of(index, id, &processes, followed);
    Report {
        end,
        lasted,
        devices: directory.devices.iter().enumerate().filter_map(peaks).collect(),
        processes: processes.iter().map(|process| ran(process, &directory)).collect(),
        unknown,
        failed,
    }
}

/// Whether a peak of a device may count what a process held there after it had ended.
fn casts_doubt_on(process: &Observed, peak: &Peak, chip_id: u64) -> bool {
    let holds = |own: &Counters| {
        let resident = [own.cb_resident_bytes, own.kernel_resident_bytes, own.kernel_resident_eth_bytes];
        Class::ALL.iter().any(|class| own.class(*class).live_bytes > 0)
            || resident.iter().any(|bytes| *bytes > 0)
    };
    peak.time.is_some_and(|time| process.alive_at < time) && process.on(chip_id).is_some_and(holds)
}

/// The peaks of a device: of the merged rings if nothing is missing there, and nobody in doubt; of a process that was
/// alone on the device what it counted itself, which is exact whatever was missed, unless it reset its peaks; else a
/// range.
fn peaks_of(index: usize, id: &DeviceId, all: &[Observed], followed: Option<&Followed>) -> Option<Peaks> {
    let merged = followed.and_then(|followed| {
        followed.snapshot.devices.iter().find(|(_, stats)| stats.entry.chip_id == id.chip_id)
    });
    let own: Vec<&Counters> = all.iter().filter_map(|one| one.on(id.chip_id)).collect();
    let all_followed = followed.is_some_and(|followed| {
        let on_chip = all.iter().filter(|one| one.on(id.chip_id).is_some());
        on_chip.into_iter().all(|one| followed.identities.contains(&one.identity))
    });
    let entry = all.iter().flat_map(|one| &one.devices).find(|entry| entry.chip_id == id.chip_id)?;
    let doubted = |peak: &Peak| all.iter().any(|one| casts_doubt_on(one, peak, id.chip_id));
    let figures = figures(merged.map(|(_, stats)| stats).filter(|_| all_followed), &own, &doubted);
    Some(Peaks { index, id: id.clone(), dram_total: entry.dram_total(), l1_total: entry.l1_total(), figures })
}

fn figures(
    merged: Option<&DeviceStats>,
    own: &[&Counters],
    doubted: &dyn Fn(&Peak) -> bool,
) -> Vec<(&'static str, Peak)> {
    let nobody = DeviceId { chip_id: 0, logical: None, pci: None };
    let merged = merged.map(|stats| Device::new(0, 0, &nobody, stats, false));
    let sure = |merged: Option<Peak>| merged.filter(|peak| !doubted(peak));
    let peak = |merged: Option<Peak>, count: fn(&Counters) -> u64| best(sure(merged), own, count);
    let mut figures = vec![
        ("dram_used", peak(merged.as_ref().map(|m| m.dram.peak), |own| own.dram_peak_bytes)),
        ("l1_used", peak(merged.as_ref().map(|m| m.l1.peak), |own| own.l1_peak_bytes)),
        ("eth_l1_used", peak(merged.as_ref().map(|m| m.eth_l1.peak), |own| own.eth_peak_bytes)),
    ];
    for class in Class::ALL {
        let merged = merged.as_ref().map(|m| m.class(class).peak);
        let counted = |own: &&Counters| own.class(class).peak_bytes;
        figures.push((class.name(), best_of(sure(merged), own.iter().map(counted).collect(), forgot(own))));
    }
    figures
}

fn best(merged: Option<Peak>, own: &[&Counters], count: fn(&Counters) -> u64) -> Peak {
    best_of(merged, own.iter().map(|own| count(own)).collect(), forgot(own))
}

/// Whether a process reset its own peaks: nobody knows what it had before.
fn forgot(own: &[&Counters]) -> bool {
    own.iter().any(|own| own.peak_reset_time != 0)
}

fn best_of(merged: Option<Peak>, own: Vec<u64>, forgot: bool) -> Peak {
    match (merged, &own[..]) {
        (Some(merged), _) if merged.is_exact() => merged,
        (_, [alone]) if !forgot => Peak { low: *alone, high: Some(*alone), ..Peak::default() },
        (merged, own) => {
            let most = own.iter().copied().fold(0, u64::saturating_add);
            let merged = merged.unwrap_or_default();
            let low = own.iter().copied().max().unwrap_or(0).max(merged.low);
            Peak { low, high: (!forgot).then_some(low.max(most)), ..Peak::default() }
        }
    }
}

fn ran(process: &Observed, directory: &Directory) -> Ran {
    let index = |device: u8| directory.index_of(process.devices.get(usize::from(device))?.chip_id);
    let leak = |held: &Held| Leak {
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
    }
}
