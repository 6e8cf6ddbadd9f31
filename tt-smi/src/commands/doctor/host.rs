//! The kernel, the driver, containers, and who removes whose files.

use std::path::Path;

use super::finding::Finding;
use super::roots::{Roots, line};
use crate::output::units::plural;

/// The first kernel that has all that is used: MADV_POPULATE_WRITE came last.
const KERNEL: (u32, u32) = (5, 14);
/// What the namespaces of a machine itself are called.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";
const FIRST_IPC_NAMESPACE: &str = "ipc:[4026531839]";
/// Users below this are the system's; systemd leaves their files alone.
const FIRST_USER: u32 = 1000;

/// The kernel's version.
pub(super) fn kernel(roots: &Roots) -> Finding {
    const CHECK: &str = "kernel";
    let Some(release) = line(roots.proc.join("sys/kernel/osrelease")) else {
        return Finding::warn(CHECK, "its version cannot be read", "mount /proc");
    };
    match version(&release) {
        Some(version) if version >= KERNEL => Finding::pass(CHECK, release),
        Some(_) => Finding::fail(CHECK, release, "Linux 5.14 or newer is needed"),
        None => Finding::warn(CHECK, release, "its version cannot be understood; 5.14 or newer is needed"),
    }
}

/// `6.18.5-foo` as (6, 18).
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The driver and its devices, by what sysfs says: nothing is opened.
pub(super) fn driver(roots: &Roots) -> Finding {
    const CHECK: &str = "driver";
    let devices = devices(&roots.sys.join("class/tenstorrent"));
    if !roots.sys.join("module/tenstorrent").exists() {
        return Finding::warn(
            CHECK,
            "the module tenstorrent is not loaded",
            "without it there is no device here; what processes report is shown all the same",
        );
    }
    let version = line(roots.sys.join("module/tenstorrent/version"));
    let version =
        version.map_or_else(|| "of unknown version".to_owned(), |version| format!("version {version}"));
    let count = plural(devices.len() as u64, "device");
    match devices.is_empty() {
        true => Finding::warn(
            CHECK,
            format!("{version}, {count}"),
            "see `dmesg` for why it took no device; without one, only what processes report is shown",
        ),
        false => Finding::pass(CHECK, format!("{version}, {count}: {}", devices.join(", "))),
    }
}

/// `tenstorrent!0` and so on as their numbers, in order: 10 after 9.
fn devices(class: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(class).into_iter().flatten().flatten();
    let number = |name: &str| name.rsplit_once('!').and_then(|(_, number)| number.parse().ok());
    let mut numbers: Vec<u32> = entries.filter_map(|entry| number(entry.file_name().to_str()?)).collect();
    numbers.sort_unstable();
    numbers.iter().map(u32::to_string).collect()
}

/// Whether others can be seen from here.
pub(super) fn container(roots: &Roots) -> Vec<Finding> {
    let namespace = |name: &str| {
        let link = std::fs::read_link(roots.proc.join("self/ns").join(name)).ok()?;
        Some(link.to_string_lossy().into_owned())
    };
    let mut findings = Vec::new();
    if namespace("ipc").is_some_and(|ipc| ipc != FIRST_IPC_NAMESPACE) {
        findings.push(Finding::warn(
            "container",
            "this is a container with an IPC namespace of its own, so probably with a private /dev/shm",
            "processes outside are not seen, and do not see these; start it with `--ipc host`",
        ));
    }
    if namespace("pid").is_some_and(|pid| pid != FIRST_PID_NAMESPACE) {
        findings.push(
            Finding::pass("container", "this is a PID namespace of its own: pids are those of the container")
                .hint("`--pid host` shows those of the machine"),
        );
    }
    if findings.is_empty() {
        findings.push(Finding::pass("container", "none: processes of the whole machine can be seen"));
    }
    findings
}

/// systemd removes what users leave in /dev/shm when they log out.
pub(super) fn remove_ipc(roots: &Roots) -> Finding {
    const CHECK: &str = "remove_ipc";
    if !roots.run.join("systemd/system").exists() {
        return Finding::pass(CHECK, "systemd does not run here");
    }
    if roots.uid < FIRST_USER {
        return Finding::pass(CHECK, "systemd leaves the files of system users alone");
    }
    match removes(&roots.etc) {
        false => Finding::pass(CHECK, "RemoveIPC=no: files stay when their user logs out"),
        true => Finding::warn(
            CHECK,
            "systemd removes your files in /dev/shm when you log out (RemoveIPC=yes)",
            "processes that run on are then seen only by an aggregator that runs already; `loginctl enable-linger`, or \
             RemoveIPC=no in /etc/systemd/logind.conf",
        ),
    }
}

/// The last word of logind's settings; yes if there is none.
fn removes(etc: &Path) -> bool {
    let drop_ins = std::fs::read_dir(etc.join("systemd/logind.conf.d")).into_iter().flatten().flatten();
    let mut files: Vec<_> = drop_ins.map(|entry| entry.path()).collect();
    files.sort_unstable();
    files.insert(0, etc.join("systemd/logind.conf"));
    let texts = files.into_iter().filter_map(|file| std::fs::read_to_string(file).ok());
    let said = |text: String| {
        let value = text.lines().rev().find_map(|line| line.trim().strip_prefix("RemoveIPC="));
        value.map(|value| !matches!(value.trim(), "no" | "false" | "0" | "off"))
    };
    texts.rev().find_map(said).unwrap_or(true)
}
