//! Which processes belong to a run: those with its number, and those whose chain of parents leads to this process.
//!
//! As a subreaper (see [`super::child`]) this process inherits their orphans, so the chain never ends at init.

use std::io;

use tt_shm_os::{Namespace, Procfs};
use tt_shm_reader::Segment;

/// A random number that processes of the run find in their environment and copy into their segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) struct RunId(u64);

impl RunId {
    pub(in crate::commands) fn random() -> io::Result<RunId> {
        // 0 means none.
        Ok(RunId(tt_shm_os::random_u64()?.max(1)))
    }

    /// As written to the environment. Includes the namespace, since the run looks at no other.
    pub(super) fn text(self, namespace: &Namespace) -> String {
        format!("{}.{:016x}", namespace.as_str(), self.0)
    }

    pub(in crate::commands) fn is_of(self, segment: &Segment) -> bool {
        segment.header().run == self.0
    }
}

/// Most generations to look at; no real tree is deeper.
const MAX_DEPTH: usize = 256;
/// Attempts at reading a tree that changes meanwhile.
const ATTEMPTS: usize = 8;

/// Whether a process belongs to the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kin {
    /// It is a descendant.
    Ours,
    /// It is not.
    Foreign,
    /// It ended before its parents could be looked up.
    Unknown,
}

/// Whether a process descends from `ancestor`.
pub(super) fn kin(procfs: &Procfs, pid: u32, ancestor: u32) -> Kin {
    for _ in 0..ATTEMPTS {
        match walk(procfs, pid, ancestor) {
            // An ancestor ended meanwhile: its children have another parent now.
            Kin::Unknown => {}
            known => return known,
        }
    }
    Kin::Unknown
}

fn walk(procfs: &Procfs, mut pid: u32, ancestor: u32) -> Kin {
    for _ in 0..MAX_DEPTH {
        if pid == ancestor {
            return Kin::Ours;
        }
        if pid <= 1 {
            return Kin::Foreign;
        }
        let Some(stat) = procfs.stat(pid) else { return Kin::Unknown };
        pid = stat.parent;
    }
    Kin::Foreign
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_up_tells() {
        let proc = tempfile::tempdir().unwrap();
        let process = |pid: u32, parent: u32| {
            let folder = proc.path().join(pid.to_string());
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("stat"), format!("{pid} (a) R 9 (b) S {parent} {}", "1 ".repeat(20)))
                .unwrap();
        };
        for (pid, parent) in [(10, 1), (20, 10), (30, 20), (40, 1), (50, 99), (60, 70), (70, 60)] {
            process(pid, parent);
        }
        let found = [30, 20, 10, 40, 1, 50, 60].map(|pid| kin(&Procfs::at(proc.path()), pid, 10));
        use Kin::{Foreign, Ours, Unknown};
        assert_eq!(found, [Ours, Ours, Ours, Foreign, Foreign, Unknown, Foreign]);
    }

    #[test]
    fn this_process_descends_from_its_parent() {
        let parent = std::os::unix::process::parent_id();
        assert_eq!(kin(&Procfs::default(), std::process::id(), parent), Kin::Ours);
    }
}
