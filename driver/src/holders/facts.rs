//! What procfs tells of a process that holds a device.

use std::time::Duration;

use tt_shm_os::Procfs;

use crate::cgroup::Groups;
use crate::roots::Roots;

/// Bytes of a command line or a list of control groups.
const MAX_BYTES: u64 = 4096;

/// What procfs tells of a process. What it hides is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its real user.
    pub uid: Option<u32>,
    /// Its arguments, separated by blanks, else the name of its program. Chosen by the process: escape it.
    pub command: String,
    /// When it was started, in clock ticks since boot: a reused pid has another.
    pub start_ticks: u64,
    /// When it was started, in seconds since 1970.
    pub started: Option<u64>,
    /// Memory of the host that it has in RAM.
    pub resident_bytes: Option<u64>,
    /// Time on a processor, of all its threads.
    pub cpu_time: Duration,
    /// Its container, pod and job.
    pub groups: Groups,
}

impl Facts {
    /// Reads them; `None` if there is no such process, or none to be seen from here.
    #[must_use]
    pub fn of(roots: &Roots, pid: u32) -> Option<Facts> {
        let procfs = roots.procfs();
        Facts::read(&procfs, pid, procfs.boot_time())
    }

    /// Reads them; `None` if there is no such process, or none to be seen from here. `boot` is the
    /// [`Procfs::boot_time`].
    pub(super) fn read(procfs: &Procfs, pid: u32, boot: Option<u64>) -> Option<Facts> {
        let before = procfs.stat(pid)?;
        let status = procfs.status(pid);
        let command = arguments(&procfs.start_of(pid, "cmdline", MAX_BYTES));
        let groups = procfs.start_of(pid, "cgroup", MAX_BYTES);
        // All from one process: the pid may have been reused between two reads.
        let stat = procfs.stat(pid).filter(|after| after.start_ticks == before.start_ticks)?;
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        Some(Facts {
            uid: status.as_ref().and_then(|status| status.owners()).map(|[real, _]| real),
            command: if command.is_empty() { stat.comm } else { command },
            start_ticks: stat.start_ticks,
            started: boot.and_then(|boot| boot.checked_add(stat.start_ticks / ticks)),
            resident_bytes: status.as_ref().and_then(|status| status.bytes("VmRSS")),
            cpu_time: of_ticks(stat.cpu_ticks, ticks),
            groups: Groups::parse(&String::from_utf8_lossy(&groups)),
        })
    }
}

fn of_ticks(count: u64, per_second: u64) -> Duration {
    let rest = Duration::from_nanos((count % per_second) * (1_000_000_000 / per_second));
    Duration::from_secs(count / per_second).saturating_add(rest)
}

fn arguments(cmdline: &[u8]) -> String {
    String::from_utf8_lossy(cmdline).trim_end_matches('\0').replace('\0', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_described() {
        let procfs = Procfs::default();
        let facts = Facts::read(&procfs, std::process::id(), procfs.boot_time()).unwrap();
        assert_eq!(facts.uid, Some(rustix::process::getuid().as_raw()));
        assert!(facts.resident_bytes.is_some_and(|bytes| bytes > 0));
        assert!(facts.started.is_some_and(|seconds| seconds > 1_500_000_000));
        assert!(facts.command.starts_with(&std::env::args().next().unwrap()));
        assert_eq!(Facts::read(&procfs, u32::MAX, None), None);
    }

    #[test]
    fn ticks_are_a_time() {
        assert_eq!(of_ticks(250, 100), Duration::from_millis(2500));
        assert_eq!(of_ticks(u64::MAX, 1).as_secs(), u64::MAX);
    }
}
