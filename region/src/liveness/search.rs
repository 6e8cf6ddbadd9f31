//! Processes in other PID namespaces, and how much of the machine can be seen.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use tt_shm_os::Procfs;

/// Processes that are looked through.
const MAX_PROCESSES: usize = 65_536;
/// Candidates that are kept for a pid: every container has a process 1.
const MAX_CANDIDATES: usize = 16;
/// Time between two searches, since each reads a file of every process, and how long one stays valid.
const PACE: Duration = Duration::from_secs(1);
const VALID: Duration = Duration::from_secs(10);
/// The inode of the machine's first PID namespace (`PROC_PID_INIT_INO` of the kernel).
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;

/// What was found when all processes were looked through.
#[derive(Debug, Default)]
pub(super) struct Search {
    at: Option<Instant>,
    /// Processes of inner PID namespaces by what they call themselves.
    inner: HashMap<u32, Vec<u32>>,
    is_hiding: bool,
    is_cut: bool,
    is_contained: bool,
    boot: Option<(Instant, Option<u64>)>,
}

impl Search {
    /// Whether the last search saw what was there at a time, and is not too old.
    pub(super) fn is_newer_than(&self, since: Instant, now: Instant) -> bool {
        self.at.is_some_and(|at| at >= since && now.saturating_duration_since(at) < VALID)
    }

    /// Looks through all processes, unless that was done just now. Returns whether it did.
    pub(super) fn run(&mut self, procfs: &Procfs, now: Instant) -> bool {
        if self.at.is_some_and(|at| now.saturating_duration_since(at) < PACE) {
            return false;
        }
        self.inner.clear();
        let entries = fs::read_dir(procfs.path("", "")).into_iter().flatten().flatten();
        let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        for pid in pids.by_ref().take(MAX_PROCESSES) {
            let Some(status) = procfs.status(pid).filter(|status| status.is_in_inner_namespace()) else {
                continue;
            };
            let Some(called) = status.innermost_pid() else { continue };
            let candidates = self.inner.entry(called).or_default();
            if candidates.len() < MAX_CANDIDATES {
                candidates.push(pid);
            }
        }
        self.is_cut = pids.next().is_some();
        self.is_hiding = procfs.is_hiding();
        let namespace = fs::metadata(procfs.path("self", "ns/pid")).ok().map(|namespace| namespace.ino());
        self.is_contained = namespace.is_some_and(|inode| inode != FIRST_NAMESPACE);
        self.at = Some(now);
        self.refresh_boot_time(procfs, now);
        true
    }

    /// Processes of inner PID namespaces that call themselves so.
    pub(super) fn called(&self, pid: u32) -> Vec<u32> {
        self.inner.get(&pid).cloned().unwrap_or_default()
    }

    /// Whether a process may be there that was not seen.
    pub(super) fn is_partial(&self) -> bool {
        self.is_hiding || self.is_cut
    }

    /// Reads the boot time again, if it is old: it moves when the clock is set.
    pub(super) fn refresh_boot_time(&mut self, procfs: &Procfs, now: Instant) {
        if self.boot.is_none_or(|(at, _)| now.saturating_duration_since(at) >= VALID) {
            self.boot = Some((now, procfs.boot_time()));
        }
    }

    pub(super) fn boot_time(&self) -> Option<u64> {
        self.boot.and_then(|(_, boot)| boot)
    }

    pub(super) fn gaps(&self) -> Vec<&'static str> {
        let gap = |is_there: bool, what| is_there.then_some(what);
        let gaps = [
            gap(self.is_hiding, "procfs hides processes of other users, by hidepid (run as root)"),
            gap(self.is_cut, "there are more processes than are looked through"),
            gap(
                self.is_contained,
                "this is a PID namespace of its own: a process outside of it is taken for ended (run on the host)",
            ),
        ];
        gaps.into_iter().flatten().collect()
    }
}
