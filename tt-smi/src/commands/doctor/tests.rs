//! Checks of made-up machines.

use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tt_shm_os::Namespace;

use super::{Finding, Level, Roots, examine};

/// A healthy machine in a temporary folder, removed at the end.
struct Machine {
    folder: TempDir,
    roots: Roots,
}

impl Machine {
    fn new() -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let roots = Roots {
            sys: at.join("sys"),
            proc: at.join("proc"),
            driver: tt_shm_driver::Roots::below(at),
            shm: at.join("shm"),
            etc: at.join("etc"),
            run: at.join("run"),
            path: Some(at.join("bin").into()),
            program: Some(at.join("bin/tt-smi")),
            uid: 1000,
            namespace: Namespace::default(),
            namespace_given: false,
        };
        let machine = Machine { folder, roots };
        machine.file("proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");
        machine.file("sys/module/tenstorrent/version", "2.10.0\n");
        for number in [10, 9, 0] {
            machine.file(&format!("sys/class/tenstorrent/tenstorrent!{number}/tt_card_type"), "n300\n");
        }
        machine.file("etc/systemd/logind.conf", "[Login]\n#RemoveIPC=yes\nRemoveIPC=no\n");
        machine.file("run/systemd/system/x", "");
        machine.program("bin/tt-smi", "\x7fELF");
        machine.namespaces("pid:[4026531836]", "ipc:[4026531839]");
        std::fs::create_dir_all(&machine.roots.shm).unwrap();
        std::fs::set_permissions(&machine.roots.shm, std::fs::Permissions::from_mode(0o1777)).unwrap();
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn file(&self, path: &str, text: &str) {
        std::fs::write(self.path(path), text).unwrap();
    }

    fn program(&self, path: &str, text: &str) {
        self.file(path, text);
        std::fs::set_permissions(self.path(path), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn namespaces(&self, pid: &str, ipc: &str) {
        for (name, target) in [("pid", pid), ("ipc", ipc)] {
            let link = self.path(&format!("proc/self/ns/{name}"));
            let _ = std::fs::remove_file(&link);
            symlink(Path::new(target), link).unwrap();
        }
    }

    /// The worst level that a check found, and all of its text.
    fn check(&self, check: &str) -> (Level, String) {
        let all = examine(&self.roots);
        let found: Vec<&Finding> = all.iter().filter(|finding| finding.check == check).collect();
        let level = found.iter().map(|finding| finding.level).max().expect("a check says something");
        (level, found.iter().map(|finding| format!("{} {:?};", finding.found, finding.advice)).collect())
    }
}

#[test]
fn a_healthy_machine_passes() {
    let machine = Machine::new();
    for finding in examine(&machine.roots).iter().filter(|finding| finding.check != "shm_room") {
        assert_eq!(finding.level, Level::Pass, "{finding:?}");
    }
    assert!(machine.check("driver").1.contains("version 2.10.0, 3 devices: 0, 9, 10"));
}

#[test]
fn old_kernels_fail() {
    let machine = Machine::new();
    for (release, level) in [
        ("5.14.0-rc1", Level::Pass),
        ("5.13.19", Level::Fail),
        ("4.18.0-553.el8", Level::Fail),
        ("?", Level::Warn),
    ] {
        machine.file("proc/sys/kernel/osrelease", release);
        assert_eq!(machine.check("kernel").0, level, "{release}");
    }
}

#[test]
fn a_missing_driver_or_device_is_told() {
    let machine = Machine::new();
    std::fs::remove_dir_all(machine.folder.path().join("sys/class")).unwrap();
    assert!(machine.check("driver").1.contains("0 devices") && machine.check("driver").0 == Level::Warn);
    std::fs::remove_dir_all(machine.folder.path().join("sys/module")).unwrap();
    assert!(machine.check("driver").1.contains("not loaded"));
}

#[test]
fn containers_are_recognised() {
    let machine = Machine::new();
    machine.namespaces("pid:[4026532500]", "ipc:[4026532501]");
    let (level, words) = machine.check("container");
    assert!(level == Level::Warn && words.contains("--ipc host") && words.contains("--pid host"), "{words}");
    machine.namespaces("pid:[4026532500]", "ipc:[4026531839]");
    assert_eq!(machine.check("container").0, Level::Pass);
}

#[test]
fn files_that_systemd_will_remove_are_told_to_users() {
    let mut machine = Machine::new();
    machine.file("etc/systemd/logind.conf", "[Login]\n#RemoveIPC=no\n");
    assert_eq!(machine.check("remove_ipc").0, Level::Warn);
    machine.file("etc/systemd/logind.conf.d/10-keep.conf", "[Login]\nRemoveIPC=no\n");
    assert_eq!(machine.check("remove_ipc").0, Level::Pass);
    std::fs::remove_dir_all(machine.folder.path().join("etc")).unwrap();
    assert_eq!(machine.check("remove_ipc").0, Level::Warn, "yes is the default");
    machine.roots.uid = 0;
    assert_eq!(machine.check("remove_ipc").0, Level::Pass);
}

#[test]
fn the_official_tool_is_told_apart() {
    let mut machine = Machine::new();
    machine.program("venv/tt-smi", "#!/opt/venv/bin/python3\nimport sys\nfrom tt_smi import main\n");
    machine.roots.path = Some(
        std::env::join_paths([machine.folder.path().join("venv"), machine.folder.path().join("bin")])
            .unwrap(),
    );
    let (level, words) = machine.check("path");
    assert!(
        level == Level::Warn && words.contains("official tool") && words.contains("tt-smi-mem"),
        "{words}"
    );
    machine.roots.path = Some(
        std::env::join_paths([machine.folder.path().join("bin"), machine.folder.path().join("venv")])
            .unwrap(),
    );
    assert!(machine.check("path").1.contains("the official tool comes later in PATH"));
    machine.program("sbin/tt-smi", "\x7fELF of another");
    machine.roots.path = Some(machine.folder.path().join("sbin").into());
    assert!(machine.check("path").1.contains("a different program"));
}

#[test]
fn a_missing_folder_fails_and_one_without_sticky_bit_warns() {
    let machine = Machine::new();
    std::fs::set_permissions(&machine.roots.shm, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(machine.check("shm_permissions").0, Level::Warn);
    std::fs::remove_dir(&machine.roots.shm).unwrap();
    for check in ["shm_permissions", "shm_room", "segments"] {
        assert_eq!(machine.check(check).0, Level::Fail, "{check}");
    }
}

#[test]
fn files_that_are_no_segments_and_tables_are_refused_with_a_reason() {
    let machine = Machine::new();
    machine.file("shm/tt-shm.v2.default.7-0123456789abcdef", "too short");
    let (level, words) = machine.check("segments");
    assert!(level == Level::Warn && words.contains("left behind by dead processes: pid 7"), "{words}");
    let file =
        std::fs::File::options().write(true).open(machine.path("shm/tt-shm.v2.default.7-0123456789abcdef"));
    let file = file.unwrap();
    assert!(tt_shm_os::try_lock_exclusive(file.as_fd()).unwrap(), "somebody uses it");
    let (level, words) = machine.check("segments");
    assert!(
        level == Level::Warn && words.contains("refused:") && words.contains("0123456789abcdef"),
        "{words}"
    );
    machine.file(&format!("shm/tt-shm.v2.default.{}.table", machine.roots.uid), "x");
    assert_eq!(machine.check("aggregator").0, Level::Fail);
}

/// A machine whose device 0 is held by process 42, which has /dev/shm of the folder `root`.
fn machine_with_holder(root: &str) -> Machine {
    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let mut machine = Machine::new();
    machine.roots.shm = machine.path("host/dev/shm/x").parent().unwrap().to_owned();
    machine.file("proc/driver/tenstorrent/0/pids", "42\n");
    machine.file("proc/42/stat", &format!("42 (python3) S 1 {} 5000 0 0\n", "0 ".repeat(17)));
    machine.file("proc/42/status", "Name:\tpython3\nUid:\t0\t0\t0\t0\nNSpid:\t42\n");
    machine.file("proc/42/cmdline", "python3\0train.py\0");
    machine.file("proc/42/cgroup", &format!("0::/system.slice/docker-{ID}.scope\n"));
    let target = machine.path(&format!("{root}/dev/shm/x")).ancestors().nth(3).unwrap().to_owned();
    symlink(target, machine.path("proc/42/root")).unwrap();
    std::fs::set_permissions(machine.folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    machine
}

#[test]
fn holders_that_do_not_report_are_told_with_a_reason() {
    let machine = machine_with_holder("host");
    let (level, words) = machine.check("holders");
    assert!(level == Level::Warn && words.contains("tt-smi run"), "{words}");
    assert!(words.contains("pid 42 (python3, docker container 0123456789ab)"), "{words}");
    assert!(!words.contains("--ipc host"), "{words}");
    // A container with its own, for a user and for root.
    let mut machine = machine_with_holder("container");
    let (level, words) = machine.check("holders");
    assert!(level == Level::Warn && words.contains("only root can see: pid 42"), "{words}");
    assert!(
        words.contains("--ipc host") && words.contains("bind mount") && words.contains("root"),
        "{words}"
    );
    machine.roots.uid = 0;
    assert!(machine.check("holders").1.contains("no tmpfs"), "it is never looked into");
    let mounts = mount_id(&machine.folder.path().join("container/dev/shm"));
    machine.file("proc/42/mountinfo", &format!("{mounts} 1 0:9 / /dev/shm rw - tmpfs shm rw\n"));
    let words = machine.check("holders").1;
    assert!(words.contains("private /dev/shm: pid 42") && words.contains("inside the container"), "{words}");
}

/// The number of the mount that a path is on.
fn mount_id(path: &Path) -> u64 {
    let flags = rustix::fs::StatxFlags::MNT_ID;
    rustix::fs::statx(rustix::fs::CWD, path, rustix::fs::AtFlags::empty(), flags).unwrap().stx_mnt_id
}

#[test]
fn holders_that_may_not_be_looked_into_are_told() {
    let machine = machine_with_holder("closed/container");
    let closed = machine.path("closed");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    // Root may look at everything, so look as somebody else; only this thread becomes that.
    let look = || {
        if rustix::process::geteuid().is_root() {
            let nobody = rustix::process::Uid::from_raw(65_534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        machine.check("holders")
    };
    let (level, words) = std::thread::scope(|scope| scope.spawn(look).join().unwrap());
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(level == Level::Warn && words.contains("may not look into: pid 42"), "{words}");
    assert!(words.contains("--ipc host") && words.contains("root"), "{words}");
}

#[test]
fn holders_that_end_meanwhile_or_have_no_pid_here_are_told_apart() {
    let machine = Machine::new();
    machine.file("proc/driver/tenstorrent/0/pids", "4711\n");
    assert_eq!(machine.check("holders").0, Level::Pass, "it has ended");
    machine.file("proc/driver/tenstorrent/0/pids", "0\n");
    let (level, words) = machine.check("holders");
    assert!(level == Level::Warn && words.contains("--pid host"), "{words}");
    machine.file("proc/driver/tenstorrent/0/pids", "");
    assert!(machine.check("holders").1.contains("no process holds a device"));
}
