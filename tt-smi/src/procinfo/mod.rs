//! What procfs knows about a process: command line, container, state and parent. What it does not show, such as other
//! users' processes under hidepid, is `None`.

mod cache;
pub(crate) mod container;
mod recorded;

pub use cache::Cache;
pub(crate) use recorded::{recorded_people, replay_as};
pub use tt_shm_driver::{Container, Groups};

use tt_shm_os::{Procfs, Stat};

use crate::escape::Foreign;

/// Most bytes of a command line that are read; it may have megabytes.
const MAX_BYTES: u64 = 4096;

/// Whether a process can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It runs, or waits for something.
    Running,
    /// Stopped by a signal or a debugger: alive, and doing nothing.
    Stopped,
    /// It ended, and its parent has not reaped it.
    Zombie,
}

/// A process as the system sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcInfo {
    /// Its arguments, separated by blanks; `None` if it has none or they are not visible.
    pub command: Option<Foreign>,
    /// The container, the pod and the job that it runs in.
    pub groups: Groups,
    /// Whether it can run.
    pub state: RunState,
    /// Pid of its parent; `None` if there is none in this PID namespace.
    pub parent: Option<u32>,
    /// When it started, in clock ticks since boot: a reused pid has another.
    pub start_ticks: u64,
    /// Its real and its saved user id.
    pub owners: Option<[u32; 2]>,
}

impl ProcInfo {
    /// Whether it is the process that a segment of `owner` describes; see [`tt_shm_os::is_process_of`].
    pub fn is_process_of(&self, start_ticks: u64, owner: u32) -> bool {
        let is_owner = self.owners.is_some_and(|owners| owners.contains(&owner));
        start_ticks != 0 && self.start_ticks == start_ticks && is_owner
    }
}

/// Reads it; `None` if there is no such process, or it is not visible.
pub fn read(procfs: &Procfs, pid: u32) -> Option<ProcInfo> {
    let before = procfs.stat(pid)?;
    let command = command(&procfs.start_of(pid, "cmdline", MAX_BYTES));
    let cgroup = procfs.start_of(pid, "cgroup", MAX_BYTES);
    let groups = Groups::parse(&String::from_utf8_lossy(&cgroup));
    let owners = procfs.status(pid).and_then(|status| status.owners());
    // All from one process: the pid may have been reused between two reads.
    let after = procfs.stat(pid).filter(|after| after.start_ticks == before.start_ticks)?;
    Some(ProcInfo {
        command,
        groups,
        state: RunState::of(&after),
        parent: parent(&after),
        start_ticks: after.start_ticks,
        owners,
    })
}

impl RunState {
    fn of(stat: &Stat) -> RunState {
        match stat.state {
            'T' | 't' => RunState::Stopped,
            'Z' | 'X' | 'x' => RunState::Zombie,
            _ => RunState::Running,
        }
    }
}

fn parent(stat: &Stat) -> Option<u32> {
    Some(stat.parent).filter(|parent| *parent != 0)
}

/// Arguments, each terminated by NUL, separated by blanks.
fn command(cmdline: &[u8]) -> Option<Foreign> {
    let text = String::from_utf8_lossy(cmdline).trim_end_matches('\0').replace('\0', " ");
    (!text.is_empty()).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_blanks_between() {
        assert_eq!(command(b"run\0--seed\x007\0\0").unwrap().raw(), "run --seed 7");
        assert_eq!(command(b"\xff\0").unwrap().raw(), "\u{fffd}");
        assert_eq!(command(b""), None);
    }

    #[test]
    fn this_process_is_found_and_nobody_is_not() {
        let pid = std::process::id();
        let own = read(&Procfs::default(), pid).unwrap();
        assert_eq!(own.state, RunState::Running);
        assert_eq!(own.start_ticks, tt_shm_os::start_time_of(pid).unwrap());
        assert_eq!(own.parent, rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get() as u32));
        let (start, uid) = (own.start_ticks, rustix::process::getuid().as_raw());
        assert!(own.is_process_of(start, uid) && !own.is_process_of(start, uid + 1));
        assert!(!own.is_process_of(start + 1, uid));
        let unknown = ProcInfo { start_ticks: 0, ..own.clone() };
        assert!(!unknown.is_process_of(0, uid), "an unknown start is nobody's");
        let first = std::env::args().next().unwrap();
        assert!(own.command.unwrap().raw().starts_with(&first));
        assert_eq!(read(&Procfs::default(), u32::MAX), None);
    }
}
