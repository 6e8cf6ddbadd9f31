//! What another user may and may not do. Needs root, to become another user; says so where it is not.

mod common;

use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use common::{SMI, host, json, segment_of, smi};
use serde_json::Value;
use tt_shm_os::{path_of, table_file_name, table_lock_file_name};
use tt_shm_tests::executable::copy_program;
use tt_shm_tests::hostile::{Finished, Forged, finish, peak_memory};
use tt_shm_tests::monitor::snapshot;
use tt_shm_tests::space::{Process, until};
use tt_shm_tests::terminal::{Terminal, program};
use tt_shm_tests::{Command, Monitor, Space, Truth};

/// Usually `nobody`: has no files and no rights.
const STRANGER: u32 = 65534;
/// Somebody else who has no rights.
const OTHER: u32 = 65533;

/// Whether this test can become other users.
fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped, needs root to become another user: {test}");
    }
    root
}

/// A program that everybody may run: the one of the test may lie where others may not go.
fn program_for_all(space: &Space) -> PathBuf {
    let copy = space.folder_name("smi");
    copy_program(SMI, &copy);
    copy
}

fn run_as(space: &Space, uid: u32, program: &Path, arguments: &[&str]) -> Finished {
    let mut command = space.command(program.to_str().unwrap());
    // No groups: those of root might be let in.
    command.args(arguments).uid(uid).gid(uid).current_dir("/");
    finish(command)
}

fn snapshot_as(space: &Space, uid: u32, program: &Path) -> Value {
    let finished = run_as(space, uid, program, &["snapshot", "--json"]);
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

/// The owner of a file is made another user.
fn give(path: &Path, uid: u32) {
    chown(path, Some(uid), Some(uid)).unwrap();
}

fn errors(snapshot: &Value) -> Vec<String> {
    let errors = snapshot["errors"].as_array().unwrap();
    errors.iter().map(|error| error["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_segment_is_read_by_its_owner_and_root_alone() {
    if !is_root("segments of others") {
        return;
    }
    let space = Space::new();
    let smi = program_for_all(&space);
    let mut host = host(&space, [1]);
    host.tell(Command::Grow { count: 3 });
    let segment = segment_of(&space, host.pid());
    assert_eq!(segment.metadata().unwrap().mode() & 0o7777, 0o600);
    let cat = |path: &Path| run_as(&space, STRANGER, Path::new("/bin/cat"), &[path.to_str().unwrap()]);
    assert!(cat(&segment).stderr.contains("Permission denied"));
    // Without an aggregator of root's, a stranger learns that there is a process, and no more.
    let alone = snapshot_as(&space, STRANGER, &smi);
    assert_eq!((&alone["devices"], &alone["processes"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    assert_eq!(alone["aggregator"]["hidden_files"], 1);
    // With it, the figures, and still not the list.
    let _monitor = Monitor::start(SMI, &space);
    until("the figures", || {
        let shown = snapshot_as(&space, STRANGER, &smi);
        (shown["processes"][0]["devices"][0]["l1_used_bytes"] == 192).then_some(())
    });
    let list = run_as(&space, STRANGER, &smi, &["allocations"]);
    assert!(!list.status.success() && list.stderr.contains("Permission denied"), "{list:?}");
}

#[test]
fn the_table_is_read_by_all_and_written_by_nobody_else() {
    if !is_root("writing root's table") {
        return;
    }
    let space = Space::new();
    let _monitor = Monitor::start(SMI, &space);
    let table = path_of(&table_file_name(space.namespace(), 0));
    let lock = path_of(&table_lock_file_name(space.namespace(), 0));
    assert_eq!(table.metadata().unwrap().mode() & 0o7777, 0o644);
    assert_eq!(lock.metadata().unwrap().mode() & 0o7777, 0o600);
    let shell = |line: &str| run_as(&space, STRANGER, Path::new("/bin/sh"), &["-c", line]);
    let table = table.display();
    assert!(shell(&format!("head -c 8 {table}")).stdout.contains("TTSHM"));
    for line in [
        format!("echo x >> {table}"),
        format!(": > {table}"),
        format!("rm -f {table}"),
        format!("mv {table} {table}.x"),
        format!("chmod 666 {table}"),
        format!("cat {}", lock.display()),
        format!("rm -f {}", lock.display()),
    ] {
        let tried = shell(&line);
        let refused = ["Permission denied", "not permitted"].iter().any(|why| tried.stderr.contains(why));
        assert!(!tried.status.success() && refused, "{line}: {tried:?}");
    }
}

#[test]
fn a_table_is_refused_that_neither_root_nor_the_user_owns() {
    if !is_root("tables of others") {
        return;
    }
    let space = Space::new();
    let smi = program_for_all(&space);
    let mut monitor = Monitor::start(SMI, &space);
    let table = path_of(&table_file_name(space.namespace(), 0));
    let own = path_of(&table_file_name(space.namespace(), STRANGER));
    let content = std::fs::read(&table).unwrap();
    monitor.kill();
    // In root's place, and in that of the user who looks: a table of somebody else.
    for place in [&table, &own] {
        let _ = std::fs::remove_file(&table);
        std::fs::write(place, &content).unwrap();
        std::fs::set_permissions(place, Permissions::from_mode(0o644)).unwrap();
        give(place, OTHER);
        let shown = snapshot_as(&space, STRANGER, &smi);
        assert_eq!(shown["aggregator"]["pid"], Value::Null, "nobody's table is believed");
        let told = format!("belongs to uid {OTHER}, not to uid");
        assert!(errors(&shown).iter().any(|error| error.contains(&told)), "{shown}");
        std::fs::remove_file(place).unwrap();
    }
}

/// What somebody may put at a name.
const SQUATTERS: [&str; 5] =
    ["echo mine > NAME", "mkdir NAME", "mkdir NAME && touch NAME/x", "mkfifo NAME", "ln -s /etc/passwd NAME"];

fn squat(space: &Space, name: &Path, how: &str) {
    let line = how.replace("NAME", name.to_str().unwrap());
    let made = run_as(space, OTHER, Path::new("/bin/sh"), &["-c", &line]);
    assert!(made.status.success(), "{line}: {made:?}");
}

/// Removes what was put aside, which has a name that ends in `.aside`.
fn remove_aside(space: &Space) {
    for path in space.files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "aside")) {
        std::fs::remove_dir_all(path).unwrap();
    }
}

/// A segment of a stranger claims to be that of root's process: nothing of that process is shown beside it, and it
/// gets no signal.
#[test]
fn a_claimed_pid_borrows_nothing_and_gets_no_signal() {
    if !is_root("claiming root's process") {
        return;
    }
    let space = Space::new();
    let mut command = space.command("sleep");
    command.arg("1000");
    let victim = Process::spawn(command);
    let pid = victim.0.id();
    let forged = Forged::claiming(&space, pid);
    forged.devices(1);
    give(&forged.path, STRANGER);
    let mut honest = host(&space, [1]);
    honest.tell(Command::Grow { count: 3 });
    let listed = json(&space, &["allocations"]);
    let listed = listed["allocations"].as_array().unwrap();
    assert!(listed.len() == 3 && listed.iter().all(|one| one["claimed"] == false), "{listed:?}");
    assert_claims(&space, pid, honest.pid());
    assert_no_signal(&space, pid);
    // Also as the table tells of it.
    let _monitor = Monitor::start(SMI, &space);
    until("both in the table", || snapshot(&space).filter(|table| table.processes.len() == 2));
    assert_claims(&space, pid, honest.pid());
    assert_no_signal(&space, pid);
    assert!(rustix::process::test_kill_process(rustix::process::Pid::from_child(&victim.0)).is_ok());
}

/// The first pid is only claimed, the second one is not.
fn assert_claims(space: &Space, claimed: u32, honest: u32) {
    for command in ["ps", "snapshot"] {
        let shown = json(space, &[command]);
        let find = |pid: u32| shown["processes"].as_array()?.iter().find(|process| process["pid"] == pid);
        let process = find(claimed).unwrap();
        assert_eq!((&process["claimed"], &process["uid"]), (&true.into(), &STRANGER.into()), "{process}");
        for key in ["command", "container_id", "container_runtime", "parent_pid"] {
            assert_eq!(process[key], Value::Null, "{key} of {command}");
        }
        let process = find(honest).unwrap();
        assert_eq!(process["claimed"], false);
        assert!(process["command"].as_str().unwrap().ends_with("host"), "{process}");
    }
    for arguments in [&["ps"][..], &["ps", "--tree"], &["snapshot", "--processes"]] {
        let text = smi(space, arguments);
        let line = text.lines().find(|line| line.contains(&format!("{claimed}?"))).unwrap();
        assert!(line.contains(" claimed ") && !text.contains("sleep"), "{text}");
    }
    assert!(
        smi(space, &["snapshot", "--format", "csv", "--processes"]).contains(&format!("{claimed},true,"))
    );
}

/// F9 on the claimed process, as root, says why not.
fn assert_no_signal(space: &Space, claimed: u32) {
    let mut terminal = Terminal::start(program(space, SMI, &["top", "--view", "processes"]), 160, 30);
    terminal.await_text("claimed");
    terminal.press(&format!("/pid={claimed}\r"));
    terminal.await_text("1 of 2");
    terminal.press("\x1b[20~");
    let screen = terminal.await_text("no signal sent");
    assert!(screen.contains(&format!("{claimed}? is only claimed by a segment of ")), "{screen}");
    assert!(!screen.contains("sleep"), "{screen}");
    terminal.press("q");
    assert!(terminal.await_end().success());
}

/// Somebody takes the names that root's daemon needs, before it starts.
#[test]
fn root_takes_back_the_names_that_its_daemon_needs() {
    if !is_root("squatting") {
        return;
    }
    for how in SQUATTERS {
        let space = Space::new();
        let table = path_of(&table_file_name(space.namespace(), 0));
        let lock = path_of(&table_lock_file_name(space.namespace(), 0));
        squat(&space, &table, how);
        squat(&space, &lock, how);
        let monitor = Monitor::start(SMI, &space);
        for place in [&table, &lock] {
            let stat = place.symlink_metadata().unwrap();
            assert!(stat.uid() == 0 && stat.is_file(), "{how}");
        }
        assert!(monitor.terminate().success());
        remove_aside(&space);
    }
}

/// An ordinary user may not remove what is in the way, and is told at once what that is.
#[test]
fn an_ordinary_user_is_told_what_is_in_the_way() {
    if !is_root("squatting") {
        return;
    }
    for (how, what) in
        SQUATTERS.into_iter().zip(["a file", "a directory", "a directory", "a FIFO", "a symbolic"])
    {
        let space = Space::new();
        let smi = program_for_all(&space);
        let lock = table_lock_file_name(space.namespace(), STRANGER);
        for name in [lock, table_file_name(space.namespace(), STRANGER)] {
            let path = path_of(&name);
            squat(&space, &path, how);
            let refused = run_as(&space, STRANGER, &smi, &["aggregate"]);
            let told = format!("is {what}");
            let whose = format!("of uid {OTHER}");
            let message = &refused.stderr;
            let all = [name.as_str(), &told, &whose, "remove it"];
            assert!(all.iter().all(|part| message.contains(part)), "{how}: {refused:?}");
            if std::fs::remove_file(&path).is_err() {
                std::fs::remove_dir_all(&path).unwrap();
            }
        }
    }
}

/// The name that requests used to have, and all that look like requests, are of no use to those in the way.
#[test]
fn nobody_keeps_a_new_window_from_being_opened() {
    if !is_root("squatting") {
        return;
    }
    for how in SQUATTERS {
        let space = Space::new();
        let _monitor = Monitor::start(SMI, &space);
        let base = table_lock_file_name(space.namespace(), 0).replace(".lock", ".reset");
        for name in [base.clone(), format!("{base}-"), format!("{base}-0123456789abcdef")] {
            squat(&space, &path_of(&name), how);
        }
        let mut command = space.command(SMI);
        command.args(["peak", "--reset"]);
        let asked = finish(command);
        assert!(asked.status.success(), "{how}: {asked:?}");
        let windows = tt_shm_reader::Table::open(space.namespace()).unwrap().snapshot().windows;
        assert_eq!(windows, 1, "{how}: only root's own request counts");
        for path in space.files().into_iter().filter(|path| path.is_dir()) {
            std::fs::remove_dir_all(path).unwrap();
        }
    }
}

/// Without root's rights a file that lost its name cannot be opened again; that its process lives can be told.
#[test]
fn a_restarted_daemon_says_which_process_it_cannot_see() {
    use std::io::{BufRead, BufReader, Write};
    if !is_root("a daemon of an ordinary user") {
        return;
    }
    let space = Space::new();
    let (smi, program) = (program_for_all(&space), space.folder_name("host"));
    copy_program(common::HOST, &program);
    let start = |program: &Path, arguments: &[&str]| {
        let mut command = space.command(program.to_str().unwrap());
        command.args(arguments).uid(STRANGER).gid(STRANGER).current_dir("/");
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        Process::spawn(command)
    };
    let mut host = start(&program, &[]);
    let command = Command::Open { ring_slots: 0, chips: vec![1] };
    writeln!(host.0.stdin.as_ref().unwrap(), "{}", serde_json::to_string(&command).unwrap()).unwrap();
    BufReader::new(host.0.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
    let mut first = start(&smi, &["aggregate"]);
    let table = || tt_shm_reader::Table::open_for(space.namespace(), STRANGER).ok();
    until("the process in the table", || (table()?.snapshot().processes.len() == 1).then_some(()));
    std::fs::remove_file(segment_of(&space, host.0.id())).unwrap();
    first.kill();
    let _next = start(&smi, &["aggregate"]);
    until("the process that cannot be seen", || (table()?.snapshot().unseen == 1).then_some(()));
    let shown = snapshot_as(&space, STRANGER, &smi);
    assert_eq!(
        (&shown["errors"][0]["kind"], &shown["errors"][0]["pid"]),
        (&"unseen".into(), &host.0.id().into())
    );
    let row = table().unwrap().snapshot().processes[0].1;
    assert!(row.flags & tt_shm_reader::process_flags::UNSEEN != 0 && row.ended == 0);
    host.kill();
    until("its end", || {
        let snapshot = table()?.snapshot();
        (snapshot.unseen == 0 && snapshot.processes[0].1.ended != 0).then_some(())
    });
    assert_eq!(errors(&snapshot_as(&space, STRANGER, &smi)), Vec::<String>::new());
}

/// More living segments of a stranger than a monitor of root's may open files. Root's own are there all the same, and
/// nothing that may lack the stranger's is called exact.
#[test]
fn many_segments_of_another_user_hide_none_of_ones_own() {
    if !is_root("segments of others") {
        return;
    }
    let space = Space::new();
    let _many = many(&space, 1500);
    let mut host = host(&space, [1]);
    host.tell(Command::Grow { count: 3 });
    for command in ["allocations", "programs", "oom", "ps", "peak", "snapshot"] {
        let mut limited = space.command("sh");
        limited.args(["-c", &format!("ulimit -n 1024; exec {SMI} {command} --json")]);
        let finished = finish(limited);
        let shown: Value = serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}"));
        assert!(finished.status.success(), "{command}");
        let errors = shown["errors"].as_array().unwrap();
        assert!((1..=100).contains(&errors.len()), "{command} has {} errors", errors.len());
        let is_own = |list: &str| shown[list].as_array().unwrap().iter().any(|one| one["pid"] == host.pid());
        match command {
            "allocations" => {
                assert!(is_own("allocations"));
                let said = errors.iter().filter_map(Value::as_str);
                let folded =
                    said.filter(|error| error.contains("segments of ") && error.contains("ulimit -n"));
                assert_eq!(folded.count(), 1, "{errors:?}");
                assert_eq!(shown["exact"], false);
            }
            "programs" => assert_eq!(shown["exact"], false),
            "ps" => assert!(is_own("processes")),
            "snapshot" => {
                assert!(is_own("processes"));
                assert_eq!(shown["devices"][0]["l1_used_exact"], false);
            }
            _ => {}
        }
    }
}

/// A living process whose segment this version refuses may hold anything.
#[test]
fn nothing_is_exact_while_a_living_segment_is_refused() {
    let space = Space::new();
    let mut host = host(&space, [1]);
    host.tell(Command::Grow { count: 3 });
    host.tell(common::FAIL);
    let exact = |held: &str| {
        let own = [
            json(&space, &["allocations"])["exact"].clone(),
            json(&space, &["programs"])["exact"].clone(),
            json(&space, &["snapshot"])["devices"][0]["l1_used_exact"].clone(),
        ];
        assert!(own.iter().all(|exact| exact == &own[0]), "{held}: {own:?}");
        own[0] == true
    };
    assert!(exact("nobody else"));
    let forged = Forged::new(&space, (64, 64, 4096), |header| header.major = 99);
    let name = forged.path.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(!exact("a living one"));
    for command in ["allocations", "programs", "oom", "peak", "ps", "snapshot"] {
        let shown = json(&space, &[command]);
        assert!(shown["errors"].to_string().contains(&name), "{command}: {}", shown["errors"]);
    }
    let held = &json(&space, &["oom"])["failures"][0]["held"];
    assert_ne!(held["exact"], true);
    // The same file, and nobody lives there: a leftover takes nothing away.
    let content = std::fs::read(&forged.path).unwrap();
    drop(forged);
    std::fs::write(path_of(&name), content).unwrap();
    std::fs::set_permissions(path_of(&name), Permissions::from_mode(0o600)).unwrap();
    assert!(exact("a leftover"));
    assert!(json(&space, &["allocations"])["errors"].to_string().contains(&name));
}

/// Ten thousand living segments of one user, whose names come before all others. Those of others are found.
#[test]
fn ten_thousand_segments_of_one_user_hide_nobody() {
    let space = Space::new();
    let many = many(&space, 10_000);
    let mut command = space.command(SMI);
    let log = space.folder_name("log");
    command.arg("aggregate").stderr(std::fs::File::create(&log).unwrap());
    // One is found in the listing, the other by its appearance.
    let mut early = host(&space, [1]);
    let mut daemon = Process::spawn(command);
    let mut late = host(&space, [2]);
    for host in [&mut early, &mut late] {
        host.tell(Command::Work { seed: 1, calls: 500, threads: 1, pause_us: 0 });
    }
    let truths = [(early.pid(), early.truth()), (late.pid(), late.truth())];
    let (pid, truth) = &truths[1];
    let shows = |snapshot: &Value| {
        let processes = snapshot["processes"].as_array()?;
        let exact = |(pid, truth): &(u32, Truth)| {
            let process = processes.iter().find(|process| process["pid"] == *pid);
            process.is_some_and(|p| p["devices"][0]["dram_used_bytes"] == truth.devices[0].dram_used)
        };
        truths.iter().all(exact).then_some(())
    };
    let look = || -> Value {
        let mut command = space.command(SMI);
        command.args(["snapshot", "--json"]);
        serde_json::from_str(&finish(command).stdout).unwrap()
    };
    if rustix::process::geteuid().is_root() {
        until("the honest processes in the daemon's table", || {
            let shown = look();
            shown["aggregator"]["pid"].as_u64().and_then(|_| shows(&shown))
        });
        let capped = std::fs::read_to_string(&log).unwrap();
        assert!(capped.contains(&format!("uid {STRANGER} has 2048 segments")), "{capped}");
    } else {
        eprintln!("skipped, needs root to make files of another user: whether the cap keeps room for others");
    }
    assert_eq!(daemon.0.try_wait().unwrap(), None, "the daemon ended");
    assert!(peak_memory(daemon.0.id()) < 192 << 20, "{} bytes", peak_memory(daemon.0.id()));
    daemon.kill();
    // Who lists them himself is not kept from the honest one either.
    let mut command = space.command(SMI);
    command.args(["allocations", "--json", "--pid", &pid.to_string()]);
    let listed = finish(command);
    let list: Value = serde_json::from_str(&listed.stdout).unwrap_or_else(|_| panic!("{listed:?}"));
    assert_eq!(list["allocations"].as_array().unwrap().len(), truth.live.len());
    drop(many);
}

/// Living segments of a stranger: one honest file, and copies of it under names that sort first.
fn many(space: &Space, count: usize) -> Vec<std::fs::File> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let template = Forged::honest(space);
    let mut held = Vec::new();
    for pid in (1_000_000_000..).take(count) {
        let mut header = template.header;
        (header.pid, header.identity) = (u64::from(pid), u64::from(pid));
        let path = path_of(&tt_shm_os::segment_file_name(space.namespace(), pid, header.identity));
        let mut options = std::fs::OpenOptions::new();
        let file = match options.read(true).write(true).create_new(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                eprintln!("only {} segments: {error}", held.len());
                break;
            }
            Err(error) => panic!("{}: {error}", path.display()),
        };
        file.set_permissions(Permissions::from_mode(0o600)).unwrap();
        tt_shm_os::lock_exclusive(file.as_fd()).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, bytemuck::bytes_of(&header), 0).unwrap();
        file.set_len(header.total_len).unwrap();
        // What is published was written, as in an honest file.
        let header_end = std::mem::size_of_val(&header) as u64;
        for (from, to) in [(header_end, header.devices.offset), (header.ring.offset, header.rows.offset)] {
            let zeros = vec![0; (to - from) as usize];
            std::os::unix::fs::FileExt::write_all_at(&file, &zeros, from).unwrap();
        }
        if rustix::process::geteuid().is_root() {
            give(&path, STRANGER);
        }
        held.push(file);
    }
    held
}
