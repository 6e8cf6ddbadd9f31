//! What the system knows of a process: its command line, container, state and parent. From procfs; what that does
//! not tell, as of other users' processes under hidepid, is `None`.

mod cache;
mod container;

pub use cache::Cache;
pub use container::Container;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::escape::Foreign;

/// A command line may have megabytes; nobody reads more than this.
const MAX_BYTES: u64 = 4096;

/// Whether a process can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It runs, or waits for something.
    Running,
    /// Stopped by a signal or a debugger: alive, and doing nothing.
    Stopped,
    /// It ended, and its parent has not noticed.
    Zombie,
}

/// A process as the system sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcInfo {
    /// Its arguments with blanks between; `None` for those that have none, or that are not to be seen.
    pub command: Option<Foreign>,
    /// The container that it is in, if it is in one.
    pub container: Option<Container>,
    /// Whether it can run.
    pub state: RunState,
    /// Its parent, as it is called here; `None` for one without, or outside of this PID namespace.
    pub parent: Option<u32>,
    /// When it started, in clock ticks since boot: a reused pid has another.
    pub start_ticks: u64,
    /// Its real and its saved user id.
    pub owners: Option<[u32; 2]>,
}

impl ProcInfo {
    /// Whether it is the process that a segment of `owner` tells of, as [`tt_shm_os::is_process_of`] has it.
    pub fn is_process_of(&self, start_ticks: u64, owner: u32) -> bool {
        let is_owner = self.owners.is_some_and(|owners| owners.contains(&owner));
        start_ticks != 0 && self.start_ticks == start_ticks && is_owner
    }
}

/// A procfs.
#[derive(Clone, Debug)]
pub struct Procfs {
    root: PathBuf,
}

impl Default for Procfs {
    fn default() -> Procfs {
        Procfs::at("/proc")
    }
}

impl Procfs {
    /// One that is mounted elsewhere.
    pub fn at(root: impl Into<PathBuf>) -> Procfs {
        Procfs { root: root.into() }
    }

    /// What there is to know; `None` if there is no such process, or none to be seen from here.
    pub fn read(&self, pid: u32) -> Option<ProcInfo> {
        let before = self.stat(pid)?;
        let command = command(&read_start(&self.path(pid, "cmdline")));
        let cgroup = read_start(&self.path(pid, "cgroup"));
        let container = container::find(&String::from_utf8_lossy(&cgroup));
        let owners =
            tt_shm_os::parse_owners(&String::from_utf8_lossy(&read_start(&self.path(pid, "status"))));
        // All of one process: another may have got the pid between two files.
        let after = self.stat(pid).filter(|after| after.start_ticks == before.start_ticks)?;
        Some(ProcInfo {
            command,
            container,
            state: after.state,
            parent: after.parent,
            start_ticks: after.start_ticks,
            owners,
        })
    }

    /// The part that changes: cheaper than all.
    fn stat(&self, pid: u32) -> Option<Stat> {
        Stat::parse(&String::from_utf8_lossy(&read_start(&self.path(pid, "stat"))))
    }

    fn path(&self, pid: u32, file: &str) -> PathBuf {
        self.root.join(pid.to_string()).join(file)
    }
}

/// A line of `/proc/PID/stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stat {
    /// Name of the program: changes when another is executed.
    comm: String,
    state: RunState,
    parent: Option<u32>,
    start_ticks: u64,
}

impl Stat {
    /// The name in it may have blanks and parentheses: what counts is behind the last one.
    fn parse(line: &str) -> Option<Stat> {
        let (head, rest) = line.rsplit_once(") ")?;
        let mut fields = rest.split_ascii_whitespace();
        let state = match fields.next()? {
            "T" | "t" => RunState::Stopped,
            "Z" | "X" | "x" => RunState::Zombie,
            _ => RunState::Running,
        };
        let parent = fields.next()?.parse().ok().filter(|parent| *parent != 0);
        // The 22nd field; the state is the third.
        let start_ticks = fields.nth(17)?.parse().ok()?;
        let comm = head.split_once('(')?.1.to_owned();
        Some(Stat { comm, state, parent, start_ticks })
    }
}

/// The first part of a file, or nothing.
fn read_start(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // A process that ends meanwhile leaves what was read before, and the next look finds it gone.
        let _ = file.take(MAX_BYTES).read_to_end(&mut bytes);
    }
    bytes
}

/// Arguments, each ended by a zero, with blanks between.
fn command(cmdline: &[u8]) -> Option<Foreign> {
    let text = String::from_utf8_lossy(cmdline).trim_end_matches('\0').replace('\0', " ");
    (!text.is_empty()).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "42 (a) b (c)) T 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 1000 10 184";

    #[test]
    fn a_name_cannot_pretend_to_be_other_fields() {
        let stat = Stat::parse(STAT).unwrap();
        assert_eq!((stat.state, stat.parent, stat.start_ticks), (RunState::Stopped, Some(7), 98_765));
        assert_eq!(stat.comm, "a) b (c)");
        for broken in ["", "42", "42 (a)", "42 (a) S", "42 (a) S 1 2 3", &STAT[..STAT.len() - 20]] {
            assert_eq!(Stat::parse(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn arguments_have_blanks_between() {
        assert_eq!(command(b"run\0--seed\x007\0\0").unwrap().raw(), "run --seed 7");
        assert_eq!(command(b"\xff\0").unwrap().raw(), "\u{fffd}");
        assert_eq!(command(b""), None);
    }

    #[test]
    fn this_process_is_found_and_nobody_is_not() {
        let pid = std::process::id();
        let own = Procfs::default().read(pid).unwrap();
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
        assert_eq!(Procfs::default().read(u32::MAX), None);
    }
}
