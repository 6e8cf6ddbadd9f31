//! Segments in the private /dev/shm of containers whose processes hold a device. Only root looks there.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

use tt_shm_driver::{Holders, Monitor};
use tt_shm_os::{Namespace, Procfs, ShmFolder, parse_segment_name};
use tt_shm_reader::{OpenError, Segment, is_held_in};

/// Most folders that are looked at, entries read of each, and segments opened in each: as an aggregator does.
const MAX_FOLDERS: usize = 64;
const MAX_ENTRIES: usize = 16 * 1024;
const MAX_SEGMENTS: usize = 512;

/// A file that was refused. Its path is for messages: what is there is for the container to say.
pub(crate) struct Refused {
    pub(crate) path: PathBuf,
    pub(crate) uid: u32,
    pub(crate) error: OpenError,
    /// Whether a process may be alive behind it.
    pub(crate) may_live: bool,
}

/// Opens all segments of a namespace in private folders; none unless root asks.
pub(crate) fn open_all(namespace: &Namespace) -> Vec<Result<Segment, Refused>> {
    let (mut seen, mut found) = (BTreeSet::from_iter(ShmFolder::own_id()), Vec::new());
    if !rustix::process::geteuid().is_root() {
        return found;
    }
    let procfs = Procfs::default();
    for pid in holders() {
        let Ok(shm) = ShmFolder::of(&procfs, pid) else { continue };
        if seen.len() <= MAX_FOLDERS && !seen.contains(&shm.id()) && shm.is_tmpfs() {
            seen.insert(shm.id());
            found.extend(open_in(namespace, &shm, pid));
        }
    }
    found
}

/// Opens the segments of a namespace in a private folder, which was reached through this process.
pub(crate) fn open_in(namespace: &Namespace, shm: &ShmFolder, pid: u32) -> Vec<Result<Segment, Refused>> {
    let mut names = shm.names(MAX_ENTRIES).map(|(names, _)| names).unwrap_or_default();
    names.retain(|name| parse_segment_name(name).is_some_and(|name| name.namespace == *namespace));
    names.sort_unstable();
    let open = |name: &String| {
        Segment::open_in(shm, pid, name).map_err(|error| Refused {
            path: shm.path_of(name),
            uid: shm.stat(name).map_or(0, |stat| stat.st_uid),
            may_live: is_held_in(shm, name),
            error,
        })
    };
    names.iter().take(MAX_SEGMENTS).map(open).collect()
}

/// The processes that hold a device.
fn holders() -> BTreeSet<u32> {
    let mut monitor = Monitor::new(crate::driver::roots());
    monitor.poll(Instant::now());
    let numbers: Vec<u32> = monitor.devices().iter().map(|device| device.number).collect();
    let held = Holders::without_facts(monitor.roots(), monitor.version().as_ref().ok(), &numbers);
    let holders = held.devices.iter().flat_map(|device| &device.processes);
    holders.filter(|holder| holder.is_believed()).map(|holder| holder.pid).collect()
}
