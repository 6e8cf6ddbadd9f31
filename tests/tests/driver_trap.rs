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
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$dev/pts"
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
        fs::create_dir(folder.path().join("pts")).unwrap();
        std::os::unix::fs::symlink("pts/ptmx", folder.path().join("ptmx")).unwrap();
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
        let output = command.env("TT_SMI_ROOT", root).output().ok()?;
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
    let host = host(&space, [5]);
    let pid = host.pid().to_string();
    let help = String::from_utf8(space.command(SMI).arg("-h").output().unwrap().stdout).unwrap();
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for command in commands.filter_map(|line| line.split_whitespace().next()) {
        for arguments in invocations(command, &pid) {
            let script = format!("{SMI} {arguments}");
            let program = ["sh", "-c", &script];
            assert_eq!(trap.opens(&space, machine.path(), &program), Some(false), "{arguments}");
        }
    }
}

/// How a command is tried. What runs until it is ended gets two seconds: the driver is asked once a second.
fn invocations(command: &str, pid: &str) -> Vec<String> {
    let for_a_while = |what: &str| format!("{what} & pid=$!; sleep 2; kill -TERM $pid; wait $pid; exit 0");
    match command {
        // A terminal of its own. Whether it was drawn is checked: a screen that does not start opens nothing either.
        "top" => vec![format!(
            "--version; TERM=xterm script -qfec 'stty cols 100 rows 30; {SMI} top' /dev/typescript < /dev/null > /dev/null & \
             pid=$!; sleep 2; kill -TERM $pid; grep -aq 'all devices' /dev/typescript || exit 3"
        )],
        "list" => vec!["list".to_owned(), "list --json".to_owned()],
        "watch" => vec!["watch --samples 2 --interval 1s".to_owned()],
        "run" => vec!["run -- sh -c 'exit 0'".to_owned()],
        "env" => vec!["env".to_owned()],
        "record" => vec![format!(
            "record -o /dev/trap.ttrec --force --duration 2s && {SMI} replay /dev/trap.ttrec && \
             {SMI} diff /dev/trap.ttrec --at-a +0s --at-b +1s && {SMI} report /dev/trap.ttrec --force -o /dev/trap.html"
        )],
        // With a record: see above.
        "replay" | "diff" | "report" => vec![format!("{command} /nonexistent || exit 1")],
        "serve" => vec![for_a_while("serve --listen 127.0.0.1:0")],
        // It is no tt-metal job, and is refused.
        "attach" => vec![format!("attach --yes {pid} || exit 1")],
        "detach" => vec![format!("detach {pid} || exit 1")],
        "aggregate" => vec![for_a_while("aggregate")],
        "bridge" => vec![for_a_while("bridge --socket /dev/shm/tt-smi-trap-$$.sock")],
        "demo" => vec!["demo --seconds 1 < /dev/null || exit 1".to_owned()],
        "bench" => vec!["bench --seconds 1".to_owned()],
        "config" => vec!["config path".to_owned(), "config print".to_owned()],
        "completions" => vec!["completions bash".to_owned()],
        other => vec![other.to_owned()],
    }
}
