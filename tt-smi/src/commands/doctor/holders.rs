//! Checks of the processes that hold a device: which do not report, or cannot be seen, why, and what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use tt_shm_driver::{Holder, Holders, Monitor};
use tt_shm_os::{PidMap, Procfs, ShmFolder, table_file_name};
use tt_shm_reader::{Segment, Table, process_state};

use super::{Finding, Roots, reports};
use crate::units::plural;

const CHECK: &str = "holders";
/// Most processes named one by one in a finding.
const MAX_TOLD: usize = 8;

/// Why a process that holds a device is not among those that report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// It shares /dev/shm with us: it has no segment.
    Silent,
    /// It has a private /dev/shm, in which it has no segment.
    SilentInPrivate,
    /// It has a private /dev/shm, and only root looks into that.
    Private,
    /// Whether it has one cannot be told.
    Denied,
    /// What it has at /dev/shm is not a folder of a tmpfs.
    Odd,
}

impl Why {
    /// What is the matter with `who`, and what to do.
    fn describe(self, who: &str) -> (String, &'static str) {
        const CONTAINER: &str =
            "start the container with `--ipc host` or a bind mount of /dev/shm (`-v /dev/shm:/dev/shm`)";
        match self {
            Why::Silent => (
                format!("a device is held and its use not reported: {who}"),
                "start it with `tt-smi run`, or with TT_ALLOC_TRACKING_ENABLED=1 if it links the tt-shm-writer crate",
            ),
            Why::SilentInPrivate => (
                format!(
                    "a device is held and its use not reported, in a container with a private /dev/shm: {who}"
                ),
                "start it with `tt-smi run` inside the container, and with the same TT_SHM_NAMESPACE",
            ),
            Why::Private => (
                format!(
                    "a device is held in a container with a private /dev/shm, which only root can see: {who}"
                ),
                "let root run `tt-smi aggregate`, or start the container with `--ipc host` or a bind mount of /dev/shm \
                 (`-v /dev/shm:/dev/shm`)",
            ),
            Why::Denied => (
                format!("a device is held by processes that this user may not look into: {who}"),
                "let root run `tt-smi aggregate`; if they are in a container with a private /dev/shm, root sees them, or start \
                 it with `--ipc host` or a bind mount of /dev/shm (`-v /dev/shm:/dev/shm`)",
            ),
            Why::Odd => (
                format!(
                    "a device is held in a container whose /dev/shm is no tmpfs, or cannot be examined: {who}"
                ),
                CONTAINER,
            ),
        }
    }
}

/// Checks who holds the devices; says nothing on a machine without devices.
pub(super) fn holders(roots: &Roots) -> Vec<Finding> {
    let mut monitor = Monitor::new(roots.driver.clone());
    monitor.poll(Instant::now());
    let numbers: Vec<u32> = monitor.devices().iter().map(|device| device.number).collect();
    if numbers.is_empty() {
        return Vec::new();
    }
    let held = Holders::read(&roots.driver, monitor.version().as_ref().ok(), &numbers);
    let believed = held.devices.iter().flat_map(|device| &device.processes).filter(|h| h.is_believed());
    let holders: BTreeMap<u32, &Holder> = believed.map(|holder| (holder.pid, holder)).collect();
    let reporting = reporting(roots);
    let mut reasons: BTreeMap<Why, Vec<&Holder>> = BTreeMap::new();
    for holder in holders.values().filter(|holder| !reporting.contains(&holder.pid)) {
        if let Some(why) = why(roots, holder.pid) {
            reasons.entry(why).or_default().push(holder);
        }
    }
    let mut findings: Vec<Finding> = reasons
        .into_iter()
        .map(|(why, holders)| {
            let (found, advice) = why.describe(&names(&holders));
            Finding::warn(CHECK, found, advice)
        })
        .collect();
    let invisible: u32 = held.devices.iter().map(|device| device.invisible).sum();
    if invisible > 0 {
        let found =
            format!("devices are opened {} from outside of this container", plural(invisible.into(), "time"));
        findings.push(Finding::warn(
            CHECK,
            found,
            "run tt-smi on the host, or start this container with `--pid host`",
        ));
    }
    if findings.is_empty() {
        findings.push(match holders.len() {
            0 => Finding::pass(CHECK, "no process holds a device"),
            count => {
                Finding::pass(CHECK, format!("{} that hold a device report", plural(count as u64, "process")))
            }
        });
    }
    findings
}

/// `pid 42 (python3 train.py, container docker:0123456789ab)`.
fn names(holders: &[&Holder]) -> String {
    let name = |holder: &&Holder| {
        let facts = holder.facts.as_ref();
        let command = facts.and_then(|facts| facts.command.split(' ').next()).unwrap_or_default();
        let container = facts.and_then(|facts| facts.groups.container.as_ref());
        let container = container.map(|container| {
            let runtime = container.runtime.map(|runtime| format!("{runtime} ")).unwrap_or_default();
            format!("{runtime}container {}", container.short_id())
        });
        let about = [Some(command.to_owned()).filter(|command| !command.is_empty()), container];
        let about: Vec<String> = about.into_iter().flatten().collect();
        match about.is_empty() {
            true => format!("pid {}", holder.pid),
            false => format!("pid {} ({})", holder.pid, about.join(", ")),
        }
    };
    let told: Vec<String> = holders.iter().take(MAX_TOLD).map(name).collect();
    let more = match holders.len().saturating_sub(MAX_TOLD) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", told.join(", "))
}

/// Why a process does not report; `None` if it has ended.
fn why(roots: &Roots, pid: u32) -> Option<Why> {
    let procfs = Procfs::at(&roots.proc);
    let own = roots.shm.metadata().ok().map(|stat| (stat.dev(), stat.ino()));
    match ShmFolder::of(&procfs, pid) {
        Ok(shm) if Some(shm.id()) == own => Some(Why::Silent),
        Ok(_) if roots.uid != 0 => Some(Why::Private),
        Ok(shm) if !shm.is_tmpfs() => Some(Why::Odd),
        Ok(shm) => (!reports_in(roots, &shm, pid)).then_some(Why::SilentInPrivate),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Some(Why::Denied),
        Err(_) => procfs.stat(pid).map(|_| Why::Odd),
    }
}

/// Whether a process has a segment in the private folder that it has.
fn reports_in(roots: &Roots, shm: &ShmFolder, pid: u32) -> bool {
    let found = crate::private::open_in(&roots.namespace, shm, pid).into_iter();
    let mut alive = found.flatten().filter(|segment| segment.is_alive().unwrap_or(true));
    alive.any(|segment| segment.pid_here() == Some(pid))
}

/// The processes that report here, by their pid here: those with a segment in /dev/shm, and those that a table has.
fn reporting(roots: &Roots) -> BTreeSet<u32> {
    let (pids, mut reporting) = (PidMap::now(), BTreeSet::new());
    let mut add = |namespace: u64, pid: u64, on_behalf_of: u64| {
        let pid = if on_behalf_of == 0 { pid } else { on_behalf_of };
        reporting.extend(u32::try_from(pid).ok().and_then(|pid| pids.pid_here(namespace, pid)));
    };
    for file in reports::segment_files(roots).unwrap_or_default() {
        let Ok(segment) = Segment::open(&file) else { continue };
        if segment.is_alive().unwrap_or(true) {
            let header = segment.header();
            add(header.pid_namespace, header.pid, header.on_behalf_of);
        }
    }
    for uid in BTreeSet::from([0, roots.uid]) {
        let path = roots.shm.join(table_file_name(&roots.namespace, uid));
        let Some(table) = Table::open_path(&path, uid).ok().filter(|table| table.freshness().is_fresh())
        else {
            continue;
        };
        for (_, process) in &table.snapshot().processes {
            if process.state == process_state::ALIVE {
                add(process.pid_namespace, process.pid, process.on_behalf_of);
            }
        }
    }
    reporting
}
