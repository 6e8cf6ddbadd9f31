//! Which processes belong to the run: those whose chain of parents leads to this process.
//!
//! As a subreaper (see [`super::child`]) this process inherits their orphans, so the chain never ends at init.

use std::path::Path;

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

/// Whether a process descends from `ancestor`, according to the procfs at `proc`.
pub(super) fn kin(proc: &Path, pid: u32, ancestor: u32) -> Kin {
    for _ in 0..ATTEMPTS {
        match walk(proc, pid, ancestor) {
            // A process in between ended: by now its children have another parent.
            Kin::Unknown => {}
            known => return known,
        }
    }
    Kin::Unknown
}

fn walk(proc: &Path, mut pid: u32, ancestor: u32) -> Kin {
    for _ in 0..MAX_DEPTH {
        if pid == ancestor {
            return Kin::Ours;
        }
        if pid <= 1 {
            return Kin::Foreign;
        }
        let Ok(stat) = std::fs::read(proc.join(pid.to_string()).join("stat")) else { return Kin::Unknown };
        let Some(parent) = parent(&String::from_utf8_lossy(&stat)) else { return Kin::Unknown };
        pid = parent;
    }
    Kin::Foreign
}

/// Field 4 of a stat line, counted from the end of the name, which may contain anything.
fn parent(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_up_tells() {
        let proc = std::env::temp_dir().join(format!("tt-smi-lineage-{}", std::process::id()));
        let process = |pid: u32, parent: u32| {
            let folder = proc.join(pid.to_string());
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("stat"), format!("{pid} (a) R 9 (b) S {parent} 1 1")).unwrap();
        };
        for (pid, parent) in [(10, 1), (20, 10), (30, 20), (40, 1), (50, 99), (60, 70), (70, 60)] {
            process(pid, parent);
        }
        let found = [30, 20, 10, 40, 1, 50, 60].map(|pid| kin(&proc, pid, 10));
        std::fs::remove_dir_all(&proc).unwrap();
        use Kin::{Foreign, Ours, Unknown};
        assert_eq!(found, [Ours, Ours, Ours, Foreign, Foreign, Unknown, Foreign]);
    }

    #[test]
    fn this_process_descends_from_its_parent() {
        let parent = std::os::unix::process::parent_id();
        assert_eq!(kin(Path::new("/proc"), std::process::id(), parent), Kin::Ours);
    }
}
