//! Who holds a device, and who of them reports to nobody.

use std::collections::{BTreeMap, BTreeSet};

use shm_layout::table::{DriverStats, driver_flags};
use tt_shm_driver::{DeviceHolders, Holder};
use tt_shm_os::PidMap;

/// The processes that report, by pid. Another process may have here the pid that a process in a container sees itself, so
/// that one is only compared with what drivers before 2.7 list: the pids that processes see themselves.
#[derive(Debug, Default)]
pub(crate) struct Reporters {
    /// With the row of each process, as they are called here.
    here: Vec<(usize, u32)>,
    /// As they see themselves.
    own: Vec<u32>,
}

impl Reporters {
    /// Adds the process of a row, by its PID namespace and its pid there.
    pub(crate) fn add(&mut self, process: usize, pids: &PidMap, namespace: u64, pid: u64) {
        let Ok(pid) = u32::try_from(pid) else { return };
        self.here.extend(pids.pid_here(namespace, pid).map(|pid| (process, pid)));
        self.own.push(pid);
    }

    /// Whether the process that has this pid here reports.
    pub(crate) fn has(&self, pid: u32) -> bool {
        self.here.iter().any(|(_, known)| *known == pid)
    }

    /// Whether a holder reports.
    fn has_holder(&self, holder: &Holder) -> bool {
        if holder.is_believed() { self.has(holder.pid) } else { self.own.contains(&holder.pid) }
    }

    /// The pids of the process of a row.
    pub(crate) fn pids_of(&self, process: usize) -> Vec<u32> {
        self.here.iter().filter(|(row, _)| *row == process).map(|(_, pid)| *pid).collect()
    }
}

/// The holders of a device that have not reported yet, and since when they are known.
#[derive(Debug, Default)]
pub(crate) struct Silent {
    since: BTreeMap<u32, u64>,
    /// Since when there are holders that have no pid here.
    invisible_since: Option<u64>,
}

/// What changed about silent holders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Whether there is a silent holder now.
    pub(crate) is_silent: bool,
    /// Since when somebody held it who left without a report: what was used since then is not known.
    pub(crate) left_since: Option<u64>,
}

impl Silent {
    /// Takes over who holds the device at `now`, and notes it in the row.
    pub(crate) fn update(
        &mut self,
        stats: &mut DriverStats,
        holders: &DeviceHolders,
        reporters: &Reporters,
        now: u64,
    ) -> Change {
        let pids: Vec<u32> = holders.processes.iter().map(|holder| holder.pid).collect();
        let reporting = holders.processes.iter().filter(|holder| reporters.has_holder(holder));
        let reporting: BTreeSet<u32> = reporting.map(|holder| holder.pid).collect();
        let silent = |pid: u32| !reporting.contains(&pid);
        let unreported = pids.iter().filter(|pid| silent(**pid)).count() as u64;
        stats.flags |= driver_flags::HOLDERS;
        stats.holders = pids.len() as u64;
        stats.unreported_holders = unreported;
        stats.invisible_holders = holders.invisible.into();
        // Whoever reports by now tells what it holds, and had nothing to tell before.
        let mut left = Vec::new();
        self.since.retain(|pid, since| {
            let is_held = pids.contains(pid);
            // Who is not among the holders any more has left, unless it reports.
            if !is_held && !reporters.has(*pid) {
                left.push(*since);
            }
            is_held && silent(*pid)
        });
        for pid in pids.into_iter().filter(|pid| silent(*pid)) {
            self.since.entry(pid).or_insert(now);
        }
        self.invisible_since = match (holders.invisible > 0, self.invisible_since) {
            (true, since) => since.or(Some(now)),
            (false, since) => {
                left.extend(since);
                None
            }
        };
        let is_silent = !self.since.is_empty() || self.invisible_since.is_some();
        Change { is_silent, left_since: left.into_iter().min() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;
    use tt_shm_driver::{Confidence, Listing};

    fn held(pids: &[u32], invisible: u32) -> DeviceHolders {
        let holder =
            |pid: &u32| Holder { pid: *pid, handles: 1, confidence: Confidence::Listed, facts: None };
        let processes = pids.iter().map(holder).collect();
        DeviceHolders { number: 0, listing: Listing::Driver, processes, invisible, malformed: 0 }
    }

    fn reporting(pids: &[u32]) -> Reporters {
        Reporters { here: pids.iter().map(|pid| (0, *pid)).collect(), own: Vec::new() }
    }

    #[test]
    fn who_holds_and_does_not_report_is_silent_until_it_reports() {
        let (mut silent, mut stats) = (Silent::default(), DriverStats::zeroed());
        let nobody = Change::default();
        assert_eq!(silent.update(&mut stats, &held(&[], 0), &reporting(&[]), 1), nobody);
        let change = silent.update(&mut stats, &held(&[7, 8], 0), &reporting(&[8]), 2);
        assert_eq!(change, Change { is_silent: true, left_since: None });
        assert_eq!((stats.holders, stats.unreported_holders, stats.flags), (2, 1, driver_flags::HOLDERS));
        assert_eq!(silent.update(&mut stats, &held(&[7, 8], 0), &reporting(&[7, 8]), 3), nobody);
        assert_eq!(silent.update(&mut stats, &held(&[], 0), &reporting(&[]), 4), nobody, "both had reported");
    }

    #[test]
    fn who_leaves_without_a_report_leaves_a_doubt() {
        let (mut silent, mut stats) = (Silent::default(), DriverStats::zeroed());
        silent.update(&mut stats, &held(&[7], 0), &reporting(&[]), 2);
        silent.update(&mut stats, &held(&[7, 9], 1), &reporting(&[]), 3);
        let change = silent.update(&mut stats, &held(&[9], 1), &reporting(&[]), 5);
        assert_eq!(change, Change { is_silent: true, left_since: Some(2) });
        let change = silent.update(&mut stats, &held(&[9], 0), &reporting(&[9]), 6);
        assert_eq!(change, Change { is_silent: false, left_since: Some(3) }, "those who have no pid here");
    }

    /// In a container a process that reports has the pid that another one has here.
    #[test]
    fn the_pid_of_another_namespace_makes_nobody_report() {
        let (mut silent, mut stats) = (Silent::default(), DriverStats::zeroed());
        let reporters = Reporters { here: vec![(0, 5000)], own: vec![42] };
        assert!(silent.update(&mut stats, &held(&[42], 0), &reporters, 1).is_silent);
        let mut listed_by_an_old_driver = held(&[42], 0);
        listed_by_an_old_driver.processes[0].confidence = Confidence::Unconfirmed;
        assert!(!silent.update(&mut stats, &listed_by_an_old_driver, &reporters, 2).is_silent);
    }
}
