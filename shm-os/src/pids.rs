//! Translation of pids of other PID namespaces.
//!
//! A process in a container may have pid 1 there and pid 4711 on the host. A pid and the inode of its
//! namespace identify one living process, and procfs has both for every process that is visible here.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::process::pid_namespace;
use crate::procfs::Procfs;

/// Translates pids of other PID namespaces into those of this one. Reads procfs once, when first asked for a
/// pid of another namespace: create a new one for a new look.
#[derive(Debug, Default)]
pub struct PidMap {
    own: Option<u64>,
    others: OnceCell<HashMap<(u64, u32), u32>>,
}

impl PidMap {
    /// A map of the current processes.
    #[must_use]
    pub fn now() -> PidMap {
        PidMap { own: pid_namespace(), others: OnceCell::new() }
    }

    /// The pid here of a living process that has pid `pid` in the namespace with that inode. `None` if it is
    /// not visible from here, or its namespace is not known (0).
    #[must_use]
    pub fn pid_here(&self, namespace: u64, pid: u32) -> Option<u32> {
        if self.is_own(namespace) {
            return Some(pid);
        }
        self.others.get_or_init(|| scan(self.own)).get(&(namespace, pid)).copied()
    }

    /// Whether this process is in that namespace.
    #[must_use]
    pub fn is_own(&self, namespace: u64) -> bool {
        namespace != 0 && self.own == Some(namespace)
    }
}

/// Every visible process of another namespace.
fn scan(own: Option<u64>) -> HashMap<(u64, u32), u32> {
    let procfs = Procfs::default();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| {
        let inner = procfs.status(pid)?.innermost_pid()?;
        // Only its owner and root may read it.
        let namespace = fs::metadata(procfs.path(pid, "ns/pid")).ok()?.ino();
        (Some(namespace) != own).then_some(((namespace, inner), pid))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_pids_stay_and_unknown_ones_are_unknown() {
        let map = PidMap::now();
        let own = pid_namespace().unwrap();
        assert_eq!(map.pid_here(own, 42), Some(42));
        assert_eq!(map.pid_here(0, 42), None);
        assert_eq!(map.pid_here(own + 1_000_000, 42), None);
    }
}
