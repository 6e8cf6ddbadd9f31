//! Checks of the machine: kernel, driver, containers, /dev/shm, systemd's RemoveIPC, and which `tt-smi` a shell would start.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, statvfs};

use super::{Finding, Roots, first_line};
use crate::units::{bytes, plural};

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
    let Some(release) = first_line(roots.proc.join("sys/kernel/osrelease")) else {
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
    let version = first_line(roots.sys.join("module/tenstorrent/version"));
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

/// Docker's default size of /dev/shm.
const DOCKER_SHM: u64 = 64 << 20;
/// Room for a few segments.
const LITTLE_ROOM: u64 = 32 << 20;
/// Not enough for a single segment.
const NO_ROOM: u64 = 2 << 20;

/// Checks /dev/shm and its permissions.
pub(super) fn shm_permissions(roots: &Roots) -> Finding {
    const CHECK: &str = "shm_permissions";
    let shown = roots.shm.display();
    let Ok(stat) = roots.shm.metadata() else {
        return Finding::fail(CHECK, format!("{shown} does not exist"), "mount a tmpfs there");
    };
    let mode = stat.mode() & 0o7777;
    if access(&roots.shm, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let advice = "processes of this user cannot report; set mode 1777";
        return Finding::fail(
            CHECK,
            format!("{shown} is not writable for this user (mode {mode:o})"),
            advice,
        );
    }
    if mode & 0o1002 == 0o0002 {
        let advice = "users can remove each other's files; set mode 1777";
        return Finding::warn(CHECK, format!("{shown} has mode {mode:o}, without the sticky bit"), advice);
    }
    Finding::pass(CHECK, format!("{shown} has mode {mode:o}"))
}

/// Checks the size of /dev/shm and what is free.
pub(super) fn shm_room(roots: &Roots) -> Finding {
    const CHECK: &str = "shm_room";
    let Ok(stat) = statvfs(&roots.shm) else {
        return Finding::fail(CHECK, "cannot read the size of /dev/shm", "mount a tmpfs at /dev/shm");
    };
    let (size, free) = (stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize);
    judge_room(CHECK, size, free)
}

fn judge_room(check: &'static str, size: u64, free: u64) -> Finding {
    let found = format!("{} free of {}", bytes(free), bytes(size));
    let larger = "make it larger: `mount -o remount,size=2G /dev/shm`, or `--shm-size` of a container";
    match (free, size) {
        (..NO_ROOM, _) => Finding::fail(check, found, format!("no further process can report; {larger}")),
        (..LITTLE_ROOM, _) => {
            Finding::warn(check, found, format!("a segment takes 1.5 MiB and can grow; {larger}"))
        }
        (_, DOCKER_SHM) => Finding::warn(
            check,
            format!("{found}, which is Docker's default"),
            "start the container with `--ipc host` or `--shm-size=2g`",
        ),
        _ => Finding::pass(check, found),
    }
}

/// What a file called `tt-smi` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    This,
    /// A Python script: the official tool.
    Official,
    Other,
}

/// Checks the first `tt-smi` in PATH: Tenstorrent's official tool, written in Python, has the same name.
pub(super) fn path(roots: &Roots) -> Finding {
    const CHECK: &str = "path";
    let folders = roots.path.iter().flat_map(std::env::split_paths);
    let found: Vec<PathBuf> =
        folders.map(|folder| folder.join("tt-smi")).filter(|file| is_program(file)).collect();
    let Some(first) = found.first() else {
        return Finding::pass(CHECK, "no tt-smi in PATH").hint("this program was started by its path");
    };
    let shown = first.display();
    let behind = |kind| found.iter().skip(1).any(|file| kind_of(file, roots.program.as_deref()) == kind);
    match kind_of(first, roots.program.as_deref()) {
        Program::This if behind(Program::Official) => {
            Finding::pass(CHECK, format!("{shown} is this program; the official tool comes later in PATH"))
        }
        Program::This => Finding::pass(CHECK, format!("{shown} is this program")),
        Program::Official => Finding::warn(
            CHECK,
            format!("{shown} is Tenstorrent's official tool, which does not show memory"),
            "run this program as `tt-smi-mem` (Debian package) or by its full path",
        ),
        Program::Other => Finding::warn(CHECK, format!("{shown} is a different program"), "check your PATH"),
    }
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

fn kind_of(file: &Path, program: Option<&Path>) -> Program {
    let real = file.canonicalize().ok();
    if real.is_some() && real == program.and_then(|program| program.canonicalize().ok()) {
        return Program::This;
    }
    let mut start = Vec::new();
    let read = File::open(file).and_then(|file| file.take(4096).read_to_end(&mut start));
    let text = String::from_utf8_lossy(&start);
    let first_line = text.lines().next().unwrap_or_default();
    match read.is_ok() && first_line.starts_with("#!") && text.contains("python") {
        true => Program::Official,
        false => Program::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn too_little_room_is_told_in_time() {
        let level = |size, free| judge_room("shm_room", size, free).level;
        assert_eq!(level(8 << 30, 4 << 30), Level::Pass);
        assert_eq!(level(8 << 30, 16 << 20), Level::Warn);
        assert_eq!(level(8 << 30, 1 << 20), Level::Fail);
        assert_eq!(level(DOCKER_SHM, DOCKER_SHM), Level::Warn);
        assert!(judge_room("shm_room", DOCKER_SHM, DOCKER_SHM).found.contains("Docker"));
    }
}
