//! No command opens a device. A folder takes the place of /dev, in a mount namespace of the command's own, with files where
//! the devices would be; the kernel tells whoever watches that folder of every open.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tt_shm_tests::machine::{Board, FakeProcess, Kmd};
use tt_shm_tests::{Machine, Space};

use crate::common::{SMI, host};

/// Makes a folder the /dev of what it runs: `sh -c SCRIPT sh FOLDER PROGRAM ARGUMENTS...`.
const SCRIPT: &str = r#"
set -e
dev=$1
shift
mount --bind /dev/null "$dev/null"
mount --rbind /dev/shm "$dev/shm"
mount --rbind "$dev" /dev
exec "$@"
"#;

/// A /dev with two devices, and a watch on them.
struct Trap {
    folder: tempfile::TempDir,
    watch: OwnedFd,
}

impl Trap {
    fn new() -> Trap {
        let folder = tempfile::tempdir().unwrap();
        let devices = folder.path().join("tenstorrent");
        fs::create_dir(&devices).unwrap();
        fs::create_dir(folder.path().join("shm")).unwrap();
        for file in ["null", "tenstorrent/0", "tenstorrent/1"] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&watch, &devices, WatchFlags::OPEN).unwrap();
        Trap { folder, watch }
    }

    /// Runs a program in it; `None` where mount namespaces are not to be had. Returns whether a device was opened.
    fn opens(&self, space: &Space, root: &Path, program: &[&str]) -> Option<bool> {
        let mut command: Command = space.command("unshare");
        command.args(["-rm", "sh", "-c", SCRIPT, "sh"]).arg(self.folder.path()).args(program);
        let output = command.env("TT_SMI_DRIVER_ROOT", root).output().ok()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        if errors.contains("unshare:") || errors.contains("mount:") {
            eprintln!("skipped: this machine lets nobody make mount namespaces: {errors}");
            return None;
        }
        // `doctor` has an exit code of its own for warnings.
        assert!(output.status.code().is_some_and(|code| code <= 2), "{program:?}: {errors}");
        let mut events = [0; 4096];
        Some(rustix::io::read(&self.watch, &mut events).is_ok_and(|length| length > 0))
    }
}

#[test]
fn no_command_opens_a_device() {
    let (space, trap) = (Space::new(), Trap::new());
    let machine = Machine::new(Kmd::V2_0, &[Board::N150, Board::P150a]);
    machine.add_process(&FakeProcess::new(42, "holder"), &[0, 1]);
    let Some(is_caught) = trap.opens(&space, machine.path(), &["cat", "/dev/tenstorrent/0"]) else { return };
    assert!(is_caught, "the trap does not work");
    let _host = host(&space, [5]);
    for arguments in [
        &["list"][..],
        &["list", "--json"],
        &["snapshot"],
        &["ps"],
        &["watch", "--samples", "1"],
        &["allocations"],
        &["programs"],
        &["events"],
        &["peak"],
        &["oom"],
        &["doctor"],
    ] {
        let program = [&[SMI], arguments].concat();
        assert_eq!(trap.opens(&space, machine.path(), &program), Some(false), "{arguments:?}");
    }
}
