//! The report: combined peaks of all processes, and what each of them never freed.
//!
//! A process whose sums differ from those of the device's allocator makes everything inexact that it is part of.

use std::time::Duration;

use serde::{Serialize, Serializer};
use tt_shm_reader::{Class, Sum};

use super::Followed;
use super::child::End;
#[cfg(test)]
use super::child::ExitJson;
use super::composition::Left;
use super::notices::Notice;
use super::peaks::{Peaks, peaks_on};
use super::watch::{FoundProcesses, Observed, Unfreed};
use crate::directory::{Claims, Directory};
use crate::escape::Foreign;
use crate::model::word;
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
    /// What the library in processes that use tt-metal noticed: what they allocated unseen comes first. Then the run's
    /// peaks are at least what is said.
    pub(super) notices: Vec<Notice>,
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
    /// Whether that list is complete; `None` if its events were not followed.
    #[serde(rename = "dropped_at_close_exact")]
    pub(super) dropped_exact: Option<bool>,
    /// What it had not freed when it closed a device, which then freed it; most bytes first.
    #[serde(rename = "dropped_at_close")]
    pub(super) dropped: Vec<Leak>,
    /// How often its sums were compared with those of the device's allocator.
    pub(super) self_checks: u64,
    /// How many of these comparisons found a difference.
    pub(super) self_checks_different: u64,
}

/// Allocations of one class on one device with the same name and call site.
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

fn duration_ms<S: Serializer>(lasted: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(lasted.as_millis()).unwrap_or(u64::MAX))
}

/// Builds the report from what was found.
pub(super) fn report(
    end: End,
    lasted: Duration,
    found: FoundProcesses,
    followed: Option<&Followed>,
    notices: Vec<Notice>,
) -> Report {
    let (processes, unknown) = found.into_observed();
    let mut claims = Claims::new();
    processes.iter().for_each(|process| claims.add_entries(process.uid, &process.devices));
    let directory = claims.finish();
    let counters = processes.iter().flat_map(|process| process.counters.iter().flatten());
    let failed = counters.map(|counters| counters.failed_allocs).sum();
    // A process that is unknown, unreadable or unobserved may have used any amount on any device.
    let all_seen = unknown.is_empty() && !notices.iter().any(|notice| notice.unobserved);
    let bounded = all_seen && processes.iter().all(|process| process.counters.is_some());
    let devices = directory.devices.iter().enumerate();
    let devices = devices.filter_map(|device| peaks_on(device, &directory, &processes, followed, bounded));
    let left = |process: &Observed| followed.and_then(|followed| followed.composer.left(process.identity));
    Report {
        end,
        lasted,
        devices: devices.collect(),
        processes: processes.iter().map(|process| ran(process, left(process), &directory)).collect(),
        unknown,
        failed,
        notices,
    }
}

fn ran(process: &Observed, left: Option<&Left>, directory: &Directory) -> Ran {
    let index = |device: u8| directory.index_of(process.devices.get(usize::from(device))?.chip_id);
    let leak = |held: &Unfreed| Leak {
        device: index(held.device),
        class: held.class,
        name: held.name.clone(),
        site: held.site.clone(),
        bytes: held.bytes,
        count: held.count,
    };
    let dropped = left.into_iter().flat_map(|left| &left.dropped);
    let dropped = dropped.map(|((device, class, name, site), Sum { bytes, count })| Leak {
        device: index(*device),
        class: *class,
        name: name.clone(),
        site: site.clone(),
        bytes: *bytes,
        count: *count,
    });
    let mut dropped: Vec<Leak> = dropped.collect();
    dropped.sort_by_key(|leak| std::cmp::Reverse(leak.bytes));
    let is_same = !process.is_doubtful();
    Ran {
        pid: process.pid,
        name: process.name.clone(),
        alive: process.alive,
        leaks: process.leaks.iter().map(leak).collect(),
        leaks_exact: process.leaks_exact.map(|exact| exact && is_same),
        dropped,
        dropped_exact: left.map(|left| !left.is_incomplete && is_same),
        self_checks: process.self_checks[0],
        self_checks_different: process.self_checks[1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Interval;
    use tt_shm_reader::{Counters, DeviceEntry};

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
            partial: false,
        }
    }

    fn dram(processes: Vec<Observed>, unknown: Vec<u32>) -> Interval {
        dram_with(processes, unknown, Vec::new())
    }

    fn dram_with(processes: Vec<Observed>, unknown: Vec<u32>, notices: Vec<Notice>) -> Interval {
        let found = FoundProcesses::of(processes, unknown);
        let report = report(End::Exited(0), Duration::ZERO, found, None, notices);
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
        let notice = |unobserved| vec![Notice { unobserved, text: "".into(), pids: vec![3] }];
        assert_eq!(dram_with(vec![observed(&[10])], vec![], notice(true)), Interval::at_least(10));
        assert_eq!(dram_with(vec![observed(&[10])], vec![], notice(false)), Interval::exact(10));
    }

    #[test]
    fn a_difference_takes_away_exact() {
        let same = || Observed { self_checks: [9, 0], ..observed(&[10]) };
        let different = Observed { self_checks: [9, 1], ..observed(&[10]) };
        assert!(dram(vec![same()], vec![]).is_exact());
        let found = FoundProcesses::of(vec![same(), different], vec![]);
        let report = report(End::Exited(0), Duration::ZERO, found, None, Vec::new());
        assert!(report.devices[0].figures.iter().all(|(_, peak)| peak.range.high.is_none()));
        let exact: Vec<_> = report.processes.iter().map(|ran| ran.leaks_exact).collect();
        assert_eq!(exact, [Some(true), Some(false)]);
    }
}
