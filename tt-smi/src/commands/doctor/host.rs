//! Checks of the kernel, the driver, containers, and systemd's RemoveIPC.

use std::path::Path;

use super::finding::Finding;
use super::roots::{Roots, line};
use crate::output::units::plural;

/// The first kernel with every feature in use; MADV_POPULATE_WRITE came last.
const KERNEL: (u32, u32) = (5, 14);
/// The namespaces of the machine itself.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";
const FIRST_IPC_NAMESPACE: &str = "ipc:[4026531839]";
/// Lower user ids are system users, whose files systemd does not remove.
const FIRST_USER: u32 = 1000;

/// Checks the kernel's version.
pub(super) fn kernel(roots: &Roots) -> Finding {
    const CHECK: &str = "kernel";
    let Some(release) = line(roots.proc.join("sys/kernel/osrelease")) else {
        return Finding::warn(CHECK, "the kernel version cannot be read", "mount /proc");
    };
    match version(&release) {
        Some(version) if version >= KERNEL => Finding::pass(CHECK, release),
        Some(_) => Finding::fail(CHECK, release, "Linux 5.14 or newer is required"),
        None => Finding::warn(CHECK, release, "the version is not understood; 5.14 or newer is required"),
    }
}

/// `6.18.5-foo` as (6, 18).
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Checks the driver and its devices through sysfs. Opens no device.
pub(super) fn driver(roots: &Roots) -> Finding {
    const CHECK: &str = "driver";
    let devices = devices(&roots.sys.join("class/tenstorrent"));
    if !roots.sys.join("module/tenstorrent").exists() {
        return Finding::warn(
            CHECK,
            "the kernel module tenstorrent is not loaded",
            "without it this machine has no usable device; what processes report is still shown",
        );
    }
    let version = line(roots.sys.join("module/tenstorrent/version"));
    let version =
        version.map_or_else(|| "version unknown".to_owned(), |version| format!("version {version}"));
    let count = plural(devices.len() as u64, "device");
    match devices.is_empty() {
        true => Finding::warn(
            CHECK,
            format!("{version}, {count}"),
            "see `dmesg` for why the driver found no device; what processes report is still shown",
        ),
        false => Finding::pass(CHECK, format!("{version}, {count}: {}", devices.join(", "))),
    }
}

/// The numbers of `tenstorrent!0` and so on, in numeric order.
fn devices(class: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(class).into_iter().flatten().flatten();
    let number = |name: &str| name.rsplit_once('!').and_then(|(_, number)| number.parse().ok());
    let mut numbers: Vec<u32> = entries.filter_map(|entry| number(entry.file_name().to_str()?)).collect();
    numbers.sort_unstable();
    numbers.iter().map(u32::to_string).collect()
}

/// Checks whether processes outside a container can be seen.
pub(super) fn container(roots: &Roots) -> Vec<Finding> {
    let namespace = |name: &str| {
        let link = std::fs::read_link(roots.proc.join("self/ns").join(name)).ok()?;
        Some(link.to_string_lossy().into_owned())
    };
    let mut findings = Vec::new();
    if namespace("ipc").is_some_and(|ipc| ipc != FIRST_IPC_NAMESPACE) {
        findings.push(Finding::warn(
            "container",
            "this container has its own IPC namespace, so probably a private /dev/shm",
            "processes outside cannot be seen, and cannot see these; start the container with `--ipc host`",
        ));
    }
    if namespace("pid").is_some_and(|pid| pid != FIRST_PID_NAMESPACE) {
        findings.push(
            Finding::pass(
                "container",
                "this container has its own PID namespace: pids are those inside the container",
            )
            .hint("start the container with `--pid host` to see those of the host"),
        );
    }
    if findings.is_empty() {
        findings.push(Finding::pass("container", "none: all processes of this machine can be seen"));
    }
    findings
}

/// Checks whether systemd removes a user's files from /dev/shm at logout.
pub(super) fn remove_ipc(roots: &Roots) -> Finding {
    const CHECK: &str = "remove_ipc";
    if !roots.run.join("systemd/system").exists() {
        return Finding::pass(CHECK, "systemd is not running");
    }
    if roots.uid < FIRST_USER {
        return Finding::pass(CHECK, "systemd does not remove files of system users");
    }
    match removes(&roots.etc) {
        false => Finding::pass(CHECK, "RemoveIPC=no: files are kept when their user logs out"),
        true => Finding::warn(
            CHECK,
            "systemd removes your files in /dev/shm when you log out (RemoveIPC=yes)",
            "after that, only an aggregator that is already running sees your remaining processes; use `loginctl \
             enable-linger`, or set RemoveIPC=no in /etc/systemd/logind.conf",
        ),
    }
}

/// The effective RemoveIPC setting of logind; yes if it is not set.
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
