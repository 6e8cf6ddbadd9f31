//! Processes with a /dev/shm of their own, as containers have: root sees them if they hold a device, and nothing that
//! they put there leads anywhere else.

use std::fs::Permissions;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tt_shm_os::Procfs;
use tt_shm_reader::process_state;
use tt_shm_tests::executable::copy_program;
use tt_shm_tests::machine::{Board, Kmd};
use tt_shm_tests::monitor::{await_exact, snapshot};
use tt_shm_tests::script::Command;
use tt_shm_tests::space::{Process, until};
use tt_shm_tests::{Host, Machine, Monitor, Space};

use crate::common::{HOST, SMI, host};

/// Has no rights.
const STRANGER: u32 = 65534;
/// A /dev/shm that nobody else has.
const PRIVATE: &str = "mount -t tmpfs -o mode=1777 shm /dev/shm";

/// Whether namespaces are to be had. Everything here needs root.
fn is_allowed() -> bool {
    let mut command = std::process::Command::new("unshare");
    let made = command.args(["-mpf", "--mount-proc", "sh", "-c", PRIVATE]).output();
    let allowed = rustix::process::geteuid().is_root() && made.is_ok_and(|made| made.status.success());
    if !allowed {
        eprintln!("skipped: needs root and `unshare -mpf --mount-proc`");
    }
    allowed
}

/// A shell in mount and PID namespaces of its own, ended with everything in it.
fn contained(space: &Space, lines: &str) -> std::process::Command {
    let mut command = space.command("unshare");
    command.args(["-mpf", "--propagation", "private", "--mount-proc", "--kill-child", "sh", "-ec", lines]);
    command
}

/// The only child of a process, once it has one.
fn child_of(pid: u32) -> u32 {
    until("a child", || {
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?.trim().parse().ok()
    })
}

/// A host in a container.
struct Contained {
    host: Host,
    /// The first process of the container, which outlives the host.
    shell: u32,
    /// The host's pid here, and in the container.
    pid: u32,
    inner: u32,
}

impl Contained {
    /// The shell goes on when the host has ended, so that the container stays.
    fn start(space: &Space, before: &str) -> Contained {
        let mut host = Host::spawn(contained(space, &format!("{before}\n{HOST} || true\nexec sleep 1000")));
        host.tell(Command::Open { ring_slots: 0, chips: vec![1] });
        host.tell(Command::Grow { count: 10 });
        let shell = child_of(host.pid());
        let pid = child_of(shell);
        let inner = Procfs::default().status(pid).unwrap().innermost_pid().unwrap();
        Contained { host, shell, pid, inner }
    }

    fn kill(&self) {
        kill_process(Pid::from_raw(self.pid as i32).unwrap(), Signal::KILL).unwrap();
    }

    /// The files of its folder, as root sees them.
    fn files(&self) -> Vec<(PathBuf, u64)> {
        files_of(self.shell)
    }
}

fn files_of(pid: u32) -> Vec<(PathBuf, u64)> {
    let files = std::fs::read_dir(format!("/proc/{pid}/root/dev/shm")).unwrap().flatten();
    let mut files: Vec<_> =
        files.map(|file| (file.path(), file.path().symlink_metadata().unwrap().ino())).collect();
    files.sort();
    files
}

fn machine(pids: &[u32]) -> Machine {
    let machine = Machine::new(Kmd::V2_9, &[Board::N150]);
    machine.list_pids(0, pids);
    std::fs::set_permissions(machine.path(), Permissions::from_mode(0o755)).unwrap();
    machine
}

/// A tt-smi whose driver is that of a made-up machine. Processes are those of this one.
fn smi(space: &Space, machine: &Machine) -> std::process::Command {
    let mut command = space.command(SMI);
    command.env("TT_SMI_ROOT", machine.path());
    command
}

fn json(mut command: std::process::Command, arguments: &[&str]) -> Value {
    let output = command.args(arguments).arg("--json").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

fn messages(shown: &Value) -> Vec<String> {
    let errors = shown["errors"].as_array().unwrap().iter();
    errors.map(|error| error["message"].as_str().unwrap().to_owned()).collect()
}

/// What `doctor` says about who holds devices.
fn doctor(command: std::process::Command) -> String {
    let report = json(command, &["doctor"]);
    let findings = report["findings"].as_array().unwrap().iter();
    let holders = findings.filter(|finding| finding["check"] == "holders");
    holders
        .map(|finding| format!("{} {} {}\n", finding["level"], finding["found"], finding["advice"]))
        .collect()
}

/// Notices whoever opens a file or folder.
struct Canary(OwnedFd);

impl Canary {
    fn new(paths: &[&Path]) -> Canary {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        for path in paths {
            let flags = WatchFlags::OPEN | WatchFlags::ACCESS | WatchFlags::MODIFY | WatchFlags::DELETE;
            inotify::add_watch(&inotify, *path, flags | WatchFlags::DELETE_SELF).unwrap();
        }
        Canary(inotify)
    }

    #[track_caller]
    fn assert_untouched(&self) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        if let Ok(event) = reader.next() {
            panic!("touched: {:?} {:?}", event.events(), event.file_name());
        }
    }
}

#[test]
fn root_sees_the_processes_of_a_private_folder() {
    if !is_allowed() {
        return;
    }
    let space = Space::new();
    let mut there = Contained::start(&space, PRIVATE);
    assert!(space.segments().is_empty(), "it is not in /dev/shm here");
    let machine = machine(&[there.pid]);
    let truth = there.host.truth();
    // Embedded.
    let shown = json(smi(&space, &machine), &["snapshot"]);
    let process = &shown["processes"][0];
    assert_eq!(
        (&process["pid"], &process["namespace_pid"]),
        (&there.pid.into(), &there.inner.into()),
        "{shown}"
    );
    assert_eq!(process["devices"][0]["l1_used_bytes"], 640, "{shown}");
    assert!(messages(&shown).is_empty(), "{shown}");
    let list = json(smi(&space, &machine), &["allocations", "--pid", &there.pid.to_string()]);
    assert_eq!(list["allocations"].as_array().unwrap().len(), 10, "{list}");
    // The daemon; and it follows what happens.
    let monitor = Monitor::start_by(smi(&space, &machine), &space);
    await_exact(&space, &[(there.inner, truth)]);
    there.host.tell(Command::Figures);
    let table = await_exact(&space, &[(there.inner, there.host.truth())]);
    assert_eq!(table.processes.len(), 1);
    assert!(doctor(smi(&space, &machine)).starts_with("\"pass\""), "{}", doctor(smi(&space, &machine)));
    // Its end is noticed, and its file is left alone.
    let files = there.files();
    there.kill();
    until("its end", || snapshot(&space).filter(|table| table.processes[0].1.state == process_state::ENDED));
    // Another process of the container holds the device: the file of the dead is seen, and said nothing of.
    machine.list_pids(0, &[there.shell]);
    std::thread::sleep(Duration::from_millis(1500));
    let shown = json(smi(&space, &machine), &["snapshot"]);
    assert_eq!(shown["devices"][0]["l1_used_bytes"], 0, "{shown}");
    assert_eq!(shown["processes"].as_array().unwrap().len(), 1, "{shown}");
    let reclaimed = snapshot(&space).unwrap().notices;
    assert_eq!(reclaimed.len(), 1, "reported once: {reclaimed:?}");
    assert_eq!(there.files(), files, "nothing is removed there");
    assert!(monitor.terminate().success());
    // One that never saw it alive.
    let shown = json(smi(&space, &machine), &["snapshot"]);
    assert_eq!(shown["processes"].as_array().unwrap().len(), 0, "{shown}");
    assert_eq!(there.files(), files, "nothing is removed there");
}

/// It holds no device: its container is known by one that does.
#[test]
fn a_process_that_comes_later_is_seen_too() {
    if !is_allowed() {
        return;
    }
    let space = Space::new();
    let mut first = Contained::start(&space, PRIVATE);
    let machine = machine(&[first.pid]);
    let _monitor = Monitor::start_by(smi(&space, &machine), &space);
    await_exact(&space, &[(first.inner, first.host.truth())]);
    let mut command = space.command("nsenter");
    command.args(["-m", "-p", "-t", &first.shell.to_string(), HOST]);
    let mut second = Host::spawn(command);
    second.tell(Command::Open { ring_slots: 0, chips: vec![1] });
    second.tell(Command::Grow { count: 5 });
    let inner = Procfs::default().status(child_of(second.pid())).unwrap().innermost_pid().unwrap();
    await_exact(&space, &[(first.inner, first.host.truth()), (inner, second.truth())]);
    assert_eq!(first.files().len(), 2);
    // An orderly end, after which its file is gone.
    assert!(second.finish().success());
    await_exact(&space, &[(first.inner, first.host.truth())]);
    assert_eq!(first.files().len(), 1);
}

#[test]
fn events_of_a_process_that_comes_later_are_followed() {
    if !is_allowed() {
        return;
    }
    let (space, machine) = (Space::new(), machine(&[]));
    let printed = tempfile::NamedTempFile::new().unwrap();
    let mut command = smi(&space, &machine);
    command.args(["events", "--follow", "--json"]).stdout(printed.reopen().unwrap());
    let _follower = Process::spawn(command);
    let contained = Contained::start(&space, PRIVATE);
    machine.list_pids(0, &[contained.pid]);
    let allocations = || {
        let text = std::fs::read_to_string(printed.path()).unwrap();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of_it = |event: &Value| event["pid"] == contained.pid && event["event"] == "ALLOC";
        let count = events.filter(of_it).count();
        (count == 10).then_some(())
    };
    until("its ten allocations", allocations);
}

#[test]
fn every_process_is_seen_once_however_it_is_reached() {
    if !is_allowed() {
        return;
    }
    let space = Space::new();
    let mut shared = host(&space, [1]);
    shared.tell(Command::Grow { count: 3 });
    let mut first = Contained::start(&space, PRIVATE);
    // A container with the folder of the host.
    let mut bound = Contained::start(&space, "true");
    let machine = machine(&[shared.pid(), first.pid, first.shell, bound.pid]);
    let monitor = Monitor::start_by(smi(&space, &machine), &space);
    let pids = [shared.pid(), first.inner, bound.inner];
    let truths = [shared.truth(), first.host.truth(), bound.host.truth()];
    let table = until("all three", || snapshot(&space).filter(|table| table.processes.len() == 3));
    let mut seen: Vec<u64> = table.processes.iter().map(|(_, process)| process.pid).collect();
    let mut expected = pids.map(u64::from).to_vec();
    seen.sort_unstable();
    expected.sort_unstable();
    assert_eq!(seen, expected);
    let dram: u64 = truths.iter().map(|truth| truth.devices[0].l1_used).sum();
    until("the sum", || snapshot(&space).filter(|table| table.devices[0].1.l1_used_bytes == dram));
    // An aggregator that takes over has them, and none is called unlinked.
    drop(monitor);
    let _monitor = Monitor::start_by(smi(&space, &machine), &space);
    let table = until("the sum again", || {
        snapshot(&space).filter(|table| table.devices.first().is_some_and(|d| d.1.l1_used_bytes == dram))
    });
    let alive = table.processes.iter().filter(|(_, process)| process.state == process_state::ALIVE);
    let flags: Vec<u64> = alive.map(|(_, process)| process.flags).collect();
    assert_eq!(flags, [0, 0, 0]);
    first.kill();
    bound.kill();
    until("their end", || {
        let table = snapshot(&space)?;
        (table.devices[0].1.l1_used_bytes == truths[0].devices[0].l1_used).then_some(())
    });
    assert_eq!(first.files().len(), 1, "nothing is removed there");
    until("what is in our own folder to be removed", || (space.segments().len() == 1).then_some(()));
}

#[test]
fn others_than_root_do_not_look_and_are_told_why() {
    if !is_allowed() {
        return;
    }
    let space = Space::new();
    let there = Contained::start(&space, PRIVATE);
    let silent = Process::spawn({
        let mut command = space.command("sleep");
        command.arg("1000");
        command
    });
    let machine = machine(&[there.pid, silent.0.id()]);
    let program = space.folder_name("smi");
    copy_program(SMI, &program);
    let stranger = || {
        let mut command = space.command(program.to_str().unwrap());
        command.env("TT_SMI_ROOT", machine.path()).uid(STRANGER).gid(STRANGER).current_dir("/");
        command
    };
    let shown = json(stranger(), &["snapshot"]);
    assert_eq!(shown["processes"], Value::Array(vec![]), "{shown}");
    let told = doctor(stranger());
    assert!(told.contains(&there.pid.to_string()) && told.contains("root"), "{told}");
    assert!(told.contains("--ipc host") && told.contains("bind mount"), "{told}");
    // Root sees the one, and what to do about the other.
    let told = doctor(smi(&space, &machine));
    assert!(told.contains(&silent.0.id().to_string()) && told.contains("tt-smi run"), "{told}");
    assert!(!told.contains(&there.pid.to_string()), "{told}");
}

/// A control group as Docker makes them, removed when dropped.
struct ControlGroup(PathBuf);

impl ControlGroup {
    fn new(id: &str) -> Option<ControlGroup> {
        let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
        let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mount = mounts.find(|fields| fields.get(2) == Some(&"cgroup2"))?;
        let path = Path::new(mount[1]).join(format!("docker-{id}.scope"));
        std::fs::create_dir(&path).ok().map(|()| ControlGroup(path))
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Not before its processes are gone.
        for _ in 0..1000 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        eprintln!("{} is left", self.0.display());
    }
}

#[test]
fn the_container_is_named() {
    if !is_allowed() {
        return;
    }
    let space = Space::new();
    let id = format!("{:064x}", std::process::id());
    let Some(group) = ControlGroup::new(&id) else {
        eprintln!("skipped: this machine lets nobody make control groups (cgroup2)");
        return;
    };
    let there = Contained::start(&space, &format!("echo 0 > {}/cgroup.procs; {PRIVATE}", group.0.display()));
    let machine = machine(&[there.pid]);
    for command in ["snapshot", "ps"] {
        let shown = json(smi(&space, &machine), &[command]);
        let process = &shown["processes"][0];
        let container = (&process["container_runtime"], &process["container_id"]);
        assert_eq!(container, (&"docker".into(), &id.as_str().into()), "{command}: {shown}");
    }
    drop(there);
}

/// Folders and files that are not what they should be.
#[test]
fn nothing_outside_is_touched_whatever_is_there() {
    if !is_allowed() {
        return;
    }
    let space = Space::new();
    let name = |number: u32| format!("tt-shm.v2.{}.{number}-0123456789abcdef", space.namespace());
    // What must not be touched: a folder with a segment, by the names that are looked for.
    // On a tmpfs: nothing else would be looked into anyway.
    let outside = tempfile::tempdir_in(tt_shm_os::SHM_DIR).unwrap();
    let disk = tempfile::tempdir().unwrap();
    let mut victim = host(&space, [1]);
    victim.tell(Command::Grow { count: 1 });
    let secret = outside.path().join(name(1));
    std::fs::copy(&space.segments()[0], &secret).unwrap();
    drop(victim);
    space.segments().iter().for_each(|path| std::fs::remove_file(path).unwrap());
    // The container has the folder of the host at another place.
    let bound = |path: &Path| Path::new("/mnt").join(path.strip_prefix(tt_shm_os::SHM_DIR).unwrap());
    let (out, secret_name) = (bound(outside.path()), bound(&secret));
    let (out, secret_name, on_disk) = (out.display(), secret_name.display(), disk.path().display());
    let depth = "../".repeat(10);
    // The kernel need not note that a link was followed if that was noted since it was made; what is in its cache is
    // all that is looked at.
    let follow = "sleep 0.05; cd /dev/shm; cd /";
    let covered = "mount --bind /dev/shm /mnt; mount -t tmpfs dev /dev";
    let file = |number: u32| format!("/dev/shm/{}", name(number));
    let folders = [
        format!("{covered}; ln -s {out} /dev/shm; {follow}"),
        format!("{covered}; ln -s {depth}{out} /dev/shm; {follow}"),
        format!("{covered}; ln -s /proc/1/root{out} /dev/shm; {follow}"),
        format!("{covered}; mount -t tmpfs dev /srv; ln -s {out} /srv/shm; mount --bind /srv /dev; {follow}"),
        "mount -t tmpfs dev /dev".to_owned(),
        "mount -t tmpfs dev /dev; : > /dev/shm".to_owned(),
        // Not a tmpfs: it might never answer.
        format!("mount --bind {on_disk} /dev/shm"),
    ];
    let files = format!(
        "mount --bind /dev/shm /mnt; {PRIVATE}; umask 077; \
         ln -s {secret_name} {}; mkfifo {}; mkdir {}; truncate -s 16G {}; echo x > {}; \
         echo x > {}; mount --bind {secret_name} {}; mknod {} c 1 5; touch {}; ln {} {}",
        file(1),
        file(2),
        file(3),
        file(4),
        file(5),
        file(6),
        file(6),
        file(7),
        file(8),
        file(8),
        file(9),
    );
    for lines in folders.iter().chain([&files]) {
        let mut outer = Process::spawn(contained(&space, &format!("{lines}; exec sleep 1000")));
        let inner = child_of(outer.0.id());
        until("the container to be made", || {
            let comm = std::fs::read_to_string(format!("/proc/{inner}/comm")).ok()?;
            (comm.trim() == "sleep").then_some(())
        });
        let before = (lines == &files).then(|| files_of(inner));
        let canary = Canary::new(&[outside.path(), &secret, disk.path()]);
        let machine = machine(&[inner]);
        let shown = json(smi(&space, &machine), &["snapshot"]);
        assert_eq!(shown["processes"], Value::Array(vec![]), "{lines}: {shown}");
        let mut monitor = Monitor::start_by(smi(&space, &machine), &space);
        std::thread::sleep(Duration::from_millis(1300));
        let told = doctor(smi(&space, &machine));
        assert!(told.contains(&inner.to_string()), "{lines}: {told}");
        if let Some(before) = before {
            let mut refused = messages(&json(smi(&space, &machine), &["snapshot"]));
            refused.retain(|refused| !refused.contains("does not report"));
            assert_eq!(refused.len(), 9, "{refused:?}");
            for why in
                ["symbolic link", "a FIFO", "a directory", "a device", "17179869184 bytes", "2 hard links"]
            {
                assert!(refused.iter().any(|refused| refused.contains(why)), "{why}: {refused:?}");
            }
            let list = smi(&space, &machine).args(["allocations"]).output().unwrap();
            let said = String::from_utf8_lossy(&list.stderr);
            assert!(said.contains("a FIFO") && said.contains("symbolic link"), "{said}");
            assert_eq!(files_of(inner), before, "nothing is removed there");
        }
        canary.assert_untouched();
        assert!(snapshot(&space).unwrap().freshness.is_fresh(), "{lines}");
        monitor.kill();
        outer.kill();
    }
}

/// A folder that is replaced all the time, beside an honest container.
#[test]
fn a_folder_that_is_replaced_all_the_time_harms_nobody() {
    if !is_allowed() {
        return;
    }
    let space = Space::new();
    let mut honest = Contained::start(&space, PRIVATE);
    let file = format!("/dev/shm/tt-shm.v2.{}.7-0123456789abcdef", space.namespace());
    let replace = format!("while :; do {PRIVATE}; : > {file}; umount /dev/shm; done");
    let outer = Process::spawn(contained(&space, &replace));
    let inner = child_of(outer.0.id());
    let machine = machine(&[inner, honest.pid]);
    let monitor = Monitor::start_by(smi(&space, &machine), &space);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(4) {
        honest.host.tell(Command::Spin { pairs: 100 });
        await_exact(&space, &[(honest.inner, honest.host.truth())]);
        let shown = json(smi(&space, &machine), &["snapshot"]);
        assert_eq!(shown["processes"].as_array().unwrap().len(), 1, "{shown}");
    }
    assert!(monitor.terminate().success());
}
