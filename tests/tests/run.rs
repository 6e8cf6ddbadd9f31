//! What `tt-smi run` reports of real processes, and that it stands in nobody's way.

use crate::common::{self, HOST, SMI, host};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tt_shm_tests::space::{Process, until};
use tt_shm_tests::{Command, Monitor, Space};

/// A folder for scripts and reports, removed at the end.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    /// A file that tells a host what to do.
    fn script(&self, name: &str, commands: &[Command]) -> String {
        self.script_on(&[5], 0, name, commands)
    }

    /// The same with these chips, and a ring of that many slots.
    fn script_on(&self, chips: &[u64], ring_slots: u64, name: &str, commands: &[Command]) -> String {
        let path = self.0.path().join(name);
        let mut file = std::fs::File::create(&path).unwrap();
        let open = Command::Open { ring_slots, chips: chips.to_vec() };
        for command in [&[open], commands].concat() {
            writeln!(file, "{}", serde_json::to_string(&command).unwrap()).unwrap();
        }
        path.to_str().unwrap().to_owned()
    }

    fn report(&self) -> PathBuf {
        self.0.path().join("report.json")
    }
}

/// Runs a shell script under `tt-smi run`; gives what it printed and the report.
fn run(space: &Space, folder: &Folder, script: &str) -> (Output, Value) {
    let mut command = space.command(SMI);
    command.env_remove("TT_ALLOC_TRACKING_ENABLED").args(["run", "--json"]).arg(folder.report());
    let output = command.args(["--", "sh", "-c", script]).output().unwrap();
    let text = std::fs::read_to_string(folder.report()).unwrap_or_else(|_| panic!("{output:?}"));
    (output, serde_json::from_str(&text).unwrap())
}

/// A host that lives for long enough to be followed, also on a busy machine: else peaks of several are a range.
fn followed(script: &str) -> String {
    format!("{{ cat {script}; sleep 1.5; }} | {HOST}")
}

#[test]
fn peaks_and_what_was_never_freed_are_exact() {
    let space = Space::new();
    let folder = Folder::new();
    let mut other = host(&space, [5]);
    other.tell(Command::Grow { count: 1000 });
    let script =
        folder.script("a", &[Command::Grow { count: 7 }, Command::Spin { pairs: 3 }, Command::Figures]);
    let (output, report) = run(&space, &folder, &followed(&script));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "\"Done\"\n".repeat(4), "only what the command says");
    let [process] = &report["processes"].as_array().unwrap()[..] else { panic!("{report}") };
    let peaks = &report["devices"][0]["peaks"];
    for (what, bytes) in [("dram_used", 1000), ("l1", 448), ("eth_l1_used", 112 << 10)] {
        assert_eq!(peaks[what]["low_bytes"], bytes, "{what}");
        assert_eq!(peaks[what]["exact"], true, "{what}");
    }
    let leaks = process["never_freed"].as_array().unwrap();
    let l1 = leaks.iter().find(|leak| leak["class"] == "l1").unwrap();
    assert_eq!((&l1["bytes"], &l1["count"], &l1["device"]), (&448.into(), &7.into(), &0.into()));
    assert!(!leaks.iter().any(|leak| leak["class"] == "dram"), "what was freed is no leak");
    assert_eq!(process["never_freed_exact"], true);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("never freed: ") && said.contains("1 process reported memory"), "{said}");
    let mode = folder.report().symlink_metadata().unwrap().mode();
    assert_eq!(mode & 0o7777, 0o600);
    drop(other);
}

/// The names come after the peak, and one buffer lives when the mesh is closed.
#[test]
fn peaks_are_taken_apart_by_name_and_a_mesh_is_told_once() {
    let space = Space::new();
    let folder = Folder::new();
    let script = folder.script_on(&[5, 6, 7, 8], 0, "a", &[Command::Operations]);
    let (output, report) = run(&space, &folder, &followed(&script));
    let pid = &report["processes"][0]["pid"];
    let part = |name: Value, class: &str, bytes: u64| serde_json::json!({ "name": name, "class": class, "bytes": bytes, "count": 1, "pid": pid });
    let devices = report["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 4);
    for device in devices {
        let made_of = &device["peak_composition"];
        let dram = [
            part("ttnn.matmul".into(), "dram", 5000),
            part("weights".into(), "dram", 3000),
            part(Value::Null, "dram", 1000),
        ];
        assert_eq!(made_of["dram_used"], serde_json::json!({ "exact": true, "parts": dram }), "{report}");
        let l1 = [part("ttnn.softmax".into(), "cb", 6400)];
        assert_eq!(made_of["l1_used"], serde_json::json!({ "exact": true, "parts": l1 }), "{report}");
        assert_eq!(device["failed_by_class"], serde_json::json!({ "l1": 1 }));
    }
    let groups = |key: &str| {
        let groups = report["processes"][0][key].as_array().unwrap().iter();
        groups.map(|group| (group["name"].clone(), group["bytes"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(groups("never_freed"), vec![("weights".into(), 3000.into()); 4]);
    assert_eq!(groups("dropped_at_close"), vec![("ttnn.matmul".into(), 5000.into()); 4]);
    assert_eq!(report["processes"][0]["dropped_at_close_exact"], true);
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    for line in [
        "0-3 x4 DRAM 8.8 KiB 0% of cap yes",
        "ttnn.matmul 4.9 KiB 56% of peak x1 yes",
        "no name 1000 B 11% of peak x1 yes",
        "CBs of ttnn.softmax 6.2 KiB 100% of peak yes",
        "1 allocation failed on device 0-3 x4 (1 l1): see `tt-smi oom`",
        "never freed: 11.7 KiB in 4 allocations",
        "0-3 x4 dram 2.9 KiB 1 weights",
        "dropped when the device was closed: 19.5 KiB in 4 allocations",
        "0-3 x4 dram 4.9 KiB 1 ttnn.matmul",
    ] {
        assert!(lines.contains(&line.split_whitespace().collect()), "{line}\n{said}");
    }
}

#[test]
fn a_composition_of_which_events_were_missed_is_not_exact() {
    let space = Space::new();
    let folder = Folder::new();
    // More than its ring holds, at once.
    let commands = [Command::Grow { count: 5000 }, Command::Spin { pairs: 200_000 }];
    let script = folder.script_on(&[5], 64, "a", &commands);
    let (output, report) = run(&space, &folder, &followed(&script));
    let l1 = &report["devices"][0]["peak_composition"]["l1_used"];
    assert_eq!(l1["exact"], false, "{report} {output:?}");
    assert_eq!(report["processes"][0]["dropped_at_close_exact"], false);
}

#[test]
fn a_difference_from_the_allocator_takes_away_exact() {
    let space = Space::new();
    let folder = Folder::new();
    let commands =
        [Command::Grow { count: 7 }, Command::Operations, Command::SelfChecks { made: 9, different: 1 }];
    let script = folder.script("a", &commands);
    let (output, report) = run(&space, &folder, &followed(&script));
    let device = &report["devices"][0];
    for peak in device["peaks"].as_object().unwrap().values() {
        assert_eq!((&peak["exact"], &peak["high_bytes"]), (&false.into(), &Value::Null), "{report}");
    }
    assert_eq!(device["peak_composition"]["dram_used"]["exact"], false);
    assert_eq!(report["processes"][0]["never_freed_exact"], false);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("9 checks, 1 different: what includes pid "), "{said}");
}

#[test]
fn processes_one_after_the_other_do_not_add_up() {
    let space = Space::new();
    let folder = Folder::new();
    let (a, b) = (
        folder.script("a", &[Command::Grow { count: 7 }]),
        folder.script("b", &[Command::Grow { count: 3 }]),
    );
    let script = format!("{}; {}", followed(&a), followed(&b));
    let (_, report) = run(&space, &folder, &script);
    assert_eq!(report["processes"].as_array().unwrap().len(), 2);
    let l1 = &report["devices"][0]["peaks"]["l1"];
    // If the end of the first is noticed only when the second has begun, both is possible, and that is said.
    let both = if l1["exact"] == true { 448 } else { 640 };
    assert_eq!((&l1["low_bytes"], &l1["high_bytes"]), (&448.into(), &both.into()));
}

/// While the run itself is stopped, and an aggregator and later trackers remove what the dead leave.
#[test]
fn processes_that_live_for_a_moment_are_counted() {
    let space = Space::new();
    let folder = Folder::new();
    let _monitor = Monitor::start(SMI, &space);
    let commands = [Command::Grow { count: 7 }, Command::Exit];
    // The one drops its tracker, the other one exits without.
    let (drops, exits) = (folder.script("a", &commands[..1]), folder.script("b", &commands));
    let hosts = format!("for i in $(seq 20); do {HOST} < {drops}; {HOST} < {exits}; done");
    let script = format!("kill -STOP $PPID; {hosts}; kill -CONT $PPID");
    let (output, report) = run(&space, &folder, &script);
    assert_eq!(report["processes"].as_array().unwrap().len(), 40, "{output:?}");
    assert_eq!(report["unknown_pids"], serde_json::json!([]));
    assert_eq!(report["devices"][0]["peaks"]["l1"]["low_bytes"], 448);
    let leaked = |process: &Value| process["never_freed"][0]["bytes"] == 448;
    assert!(report["processes"].as_array().unwrap().iter().all(leaked), "{report}");
    assert_eq!(space.segments(), Vec::<PathBuf>::new(), "nothing is left behind");
}

/// The memory of those that have ended is free for those that come: 200 processes need over 250 MiB together.
#[test]
fn a_small_dev_shm_is_enough_for_many_processes_in_a_row() {
    let space = Space::new();
    let mount = "mount -t tmpfs -o size=16m,mode=1777 tmpfs /dev/shm";
    let allowed = space.command("unshare").args(["-m", "sh", "-c", mount]).output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped, needs a mount namespace of its own (unshare -m, mount -t tmpfs)");
        return;
    }
    let folder = Folder::new();
    let script = folder.script("a", &[Command::Grow { count: 7 }]);
    // Each waits for room, and not for ever: on a busy machine a process may begin before those before it were seen to end.
    let is_full = "[ $(df -k --output=avail /dev/shm | tail -n 1) -lt 4096 ]";
    let wait = format!("n=0; while {is_full} && [ $n -lt 500 ]; do n=$((n+1)); sleep 0.01; done");
    let row = format!("for i in $(seq 200); do {wait}; {HOST} < {script}; done");
    let report = folder.report();
    let inside = format!("{mount} && exec {SMI} run --json {} -- sh -c '{row}'", report.display());
    let output = space.command("unshare").args(["-m", "sh", "-c", &inside]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!said.contains("Failed"), "{said}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!(report["processes"].as_array().unwrap().len(), 200, "{output:?}");
    assert_eq!(report["devices"][0]["peaks"]["l1"]["low_bytes"], 448);
    let leaked = |process: &Value| process["never_freed"][0]["bytes"] == 448;
    assert!(report["processes"].as_array().unwrap().iter().all(leaked), "{report}");
}

/// Nobody could notice in time that the first is dead: that both held memory at once must not be called exact. The first
/// dies between two looks at its lock, which are a quarter of a second apart.
#[test]
fn who_was_killed_is_not_added_to_who_came_next() {
    let space = Space::new();
    let folder = Folder::new();
    let (a, b) = (
        folder.script("a", &[Command::Grow { count: 7 }]),
        folder.script("b", &[Command::Grow { count: 3 }]),
    );
    let at = folder.0.path().display();
    let first = format!("{{ cat {a}; sleep 2; }} | sh -c 'echo $$ > {at}/pid; exec {HOST}' > {at}/out &");
    let done = format!("while [ \"$(grep -c Done {at}/out)\" != 2 ]; do sleep 0.01; done; sleep 0.3");
    let (_, report) =
        run(&space, &folder, &format!("{first} {done}; kill -9 $(cat {at}/pid); {}", followed(&b)));
    let l1 = &report["devices"][0]["peaks"]["l1"];
    assert_eq!(l1["low_bytes"], 448, "{report}");
    assert!(l1["high_bytes"] == 448 || l1["exact"] == false, "{report}");
}

#[test]
fn a_process_without_the_number_of_the_run_is_known_by_its_parents() {
    let space = Space::new();
    let folder = Folder::new();
    let script = folder.script("a", &[Command::Grow { count: 7 }]);
    for number in
        ["env -u TT_SHM_RUN", "env TT_SHM_RUN=nonsense", "env TT_SHM_RUN=elsewhere.0123456789abcdef"]
    {
        let (_, report) = run(&space, &folder, &followed(&script).replace(HOST, &format!("{number} {HOST}")));
        assert_eq!(report["processes"].as_array().unwrap().len(), 1, "{number}");
        assert_eq!(space.segments(), Vec::<PathBuf>::new(), "{number}");
    }
}

#[test]
fn a_process_without_it_that_is_gone_is_named() {
    let space = Space::new();
    let folder = Folder::new();
    let script = folder.script("a", &[Command::Grow { count: 7 }]);
    let host = format!("env -u TT_SHM_RUN {HOST} < {script}");
    let (output, report) = run(&space, &folder, &format!("kill -STOP $PPID; {host}; kill -CONT $PPID"));
    assert_eq!(report["unknown_pids"].as_array().unwrap().len(), 1, "{report}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("not counted, may belong to others: pid "));
}

/// What a run that was killed leaves behind: at first it is left to the run, then anybody removes it.
#[test]
fn nothing_is_left_to_a_run_for_ever() {
    let spaces = [(); 3].map(|()| Space::new());
    let by_tracker = |space: &Space| drop(common::tracker(space));
    let by_clean = |space: &Space| drop(common::smi(space, &["clean"]));
    let [tracker, clean, daemon] = &spaces;
    let _monitor = Monitor::start(SMI, daemon);
    for space in &spaces {
        let folder = Folder::new();
        let script = std::fs::File::open(folder.script("a", &[Command::Exit])).unwrap();
        let mut host = space.command(HOST);
        host.env("TT_SHM_RUN", format!("{}.0123456789abcdef", space.namespace()));
        assert!(host.stdin(script).stdout(Stdio::null()).status().unwrap().success());
    }
    by_tracker(tracker);
    by_clean(clean);
    let left = |space: &Space| space.segments().len();
    assert_eq!([left(tracker), left(clean), left(daemon)], [1; 3], "it may be that the run is slow");
    until("the aggregator removes it", || (left(daemon) == 0).then_some(()));
    std::thread::sleep(Duration::from_millis(100));
    by_tracker(tracker);
    by_clean(clean);
    assert_eq!([left(tracker), left(clean)], [0; 2]);
}

#[test]
fn orphans_belong_to_the_run_and_may_outlive_it() {
    let space = Space::new();
    let folder = Folder::new();
    let script = folder.script("a", &[Command::Grow { count: 7 }]);
    let at = folder.0.path().display();
    // Its parent is gone before it opens its segment; the command ends as soon as it has answered twice.
    let orphan = format!("({{ sleep 0.1; cat {script}; sleep 2; }} | {HOST} > {at}/f &)");
    let (output, report) =
        run(&space, &folder, &format!("mkfifo {at}/f; {orphan}; {{ read x; read y; }} < {at}/f"));
    let [process] = &report["processes"].as_array().unwrap()[..] else { panic!("{report} {output:?}") };
    assert_eq!(process["running"], true);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is still running"));
}

#[test]
fn a_killed_process_tells_what_it_held() {
    let space = Space::new();
    let folder = Folder::new();
    let script = folder.script("a", &[Command::Grow { count: 7 }]);
    let at = folder.0.path().display();
    let start =
        format!("{{ cat {script}; sleep 1; }} | sh -c 'echo $$ > {at}/pid; exec {HOST}' > {at}/out &");
    let done = format!("while [ \"$(grep -c Done {at}/out)\" != 2 ]; do sleep 0.01; done");
    let (output, report) =
        run(&space, &folder, &format!("{start} {done}; kill -9 $(cat {at}/pid); wait; kill -9 $$"));
    assert_eq!(
        (output.status.code(), &report["signal"], &report["exit_code"]),
        (Some(137), &9.into(), &Value::Null)
    );
    assert_eq!(report["processes"][0]["never_freed"][0]["bytes"], 448);
    assert_eq!(space.files(), Vec::<PathBuf>::new(), "nothing of it is left");
}

/// Also of one that has lost the number of the run, and of the command itself; a run within the run keeps its own.
#[test]
fn a_killed_process_leaves_no_file_behind() {
    let space = Space::new();
    let folder = Folder::new();
    let script = folder.script("a", &[Command::Grow { count: 7 }]);
    let at = folder.0.path().display();
    for number in ["env", "env -u TT_SHM_RUN"] {
        let done = format!("while [ \"$(grep -c Done {at}/out)\" != 2 ]; do sleep 0.01; done");
        // The host is the command; who kills it is told which one it is.
        let killer = format!("( {done}; kill -9 $$ ) & exec {number} {HOST} < {at}/f > {at}/out");
        let feed = format!("rm -f {at}/f; mkfifo {at}/f; {{ cat {script}; sleep 1; }} > {at}/f &");
        let (output, report) =
            run(&space, &folder, &format!("rm -f {at}/out; touch {at}/out; {feed} {killer}"));
        assert_eq!((output.status.code(), &report["signal"]), (Some(137), &9.into()), "{number}: {output:?}");
        assert_eq!(report["processes"][0]["never_freed"][0]["bytes"], 448, "{number}: {report}");
        assert_eq!(space.files(), Vec::<PathBuf>::new(), "{number}");
    }
}

#[test]
fn exit_codes_pass_through() {
    let space = Space::new();
    let code = |command: &[&str]| {
        space.command(SMI).arg("run").arg("--").args(command).output().unwrap().status.code()
    };
    assert_eq!(code(&["true"]), Some(0));
    assert_eq!(code(&["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["sh", "-c", "kill -TERM $$"]), Some(143));
    assert_eq!(code(&["/nonexistent/program"]), Some(127));
    assert_eq!(code(&["/"]), Some(126));
    let nothing = space.command(SMI).arg("run").output().unwrap();
    assert_eq!(nothing.status.code(), Some(2));
}

#[test]
fn signals_reach_the_command() {
    let space = Space::new();
    for (signal, name, code) in
        [(Signal::TERM, "TERM", 42), (Signal::INT, "INT", 43), (Signal::USR1, "USR1", 44)]
    {
        // Without a terminal: a SIGINT can only be meant for the command.
        let mut command = space.command("setsid");
        let script = format!("trap 'exit {code}' {name}; echo ready; while :; do sleep 0.01; done");
        // A test that was started in the background of a script has inherited that SIGINT is ignored.
        command.args(["env", "--default-signal", SMI, "run", "--", "sh", "-c", &script]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Process::spawn(command);
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        process.signal(signal);
        assert_eq!(process.0.wait().unwrap().code(), Some(code), "{name}");
    }
}

/// By `nohup`, by a shell that began a job in the background, by a parent that does not want to wait.
#[test]
fn ignored_signals_stay_ignored_and_the_exit_code_is_known() {
    let space = Space::new();
    for name in ["HUP", "INT", "TERM", "CHLD"] {
        let mut command = space.command("env");
        let script = format!("kill -{name} $$; exit 7");
        command.arg(format!("--ignore-signal={name}")).args([SMI, "run", "--", "sh", "-c", &script]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{name}: {output:?}");
    }
}

#[test]
fn the_command_finds_its_surroundings_as_they_were() {
    let space = Space::new();
    let script = "echo $TT_ALLOC_TRACKING_ENABLED $TT_SHM_NAMESPACE; ulimit -Sn; cat";
    let mut command = std::process::Command::new("sh");
    let smi = format!("ulimit -Sn 77; exec {SMI} run --namespace elsewhere -- sh -c '{script}'");
    command.args(["-c", &smi]).env_remove("TT_ALLOC_TRACKING_ENABLED").env_remove("TT_SHM_NAMESPACE");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = Process::spawn(command);
    process.0.stdin.take().unwrap().write_all(b"through").unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut process.0.stdout.take().unwrap(), &mut said).unwrap();
    assert_eq!(said, "1 elsewhere\n77\nthrough");
    drop(space);
}

#[test]
fn a_report_that_cannot_be_written_does_not_change_the_exit_code() {
    let space = Space::new();
    let folder = Folder::new();
    let target = folder.0.path().join("no/such/folder.json");
    let output =
        space.command(SMI).args(["run", "--json"]).arg(target).args(["--", "sh", "-c", "exit 3"]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write"));
}

/// What a program that is run sees of LD_PRELOAD, and what was said on stderr.
fn preloaded(space: &Space, arguments: &[&str]) -> (String, String) {
    let mut command = space.command(SMI);
    // Something that is loaded in any case.
    command.env("LD_PRELOAD", "libc.so.6").args(arguments);
    let output = command
        .args(["--", "sh", "-c", "echo $LD_PRELOAD $TT_METAL_SHM_TRACKING_DISABLED"])
        .output()
        .unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn the_tap_is_preloaded_before_what_was_there() {
    let space = Space::new();
    let (stdout, stderr) = preloaded(&space, &["run"]);
    let (tap, rest) = stdout.trim().split_once(':').unwrap();
    assert!(tap.contains("/libtt_shm_tap-") && rest == "libc.so.6", "{stdout}");
    assert!(!stderr.contains("ld.so"), "the dynamic linker finds nothing wrong with it: {stderr}");
    assert!(std::fs::metadata(tap).unwrap().len() > 0);
    assert_eq!(preloaded(&space, &["run", "--no-tap"]).0.trim(), "libc.so.6");
    assert!(preloaded(&space, &["run", "--no-region"]).0.trim().ends_with(" 1"));
    assert_eq!(space.files(), Vec::<PathBuf>::new(), "a program without tt-metal has no segment");
}

/// The tap writes into the file that it is told; here the command does.
#[test]
fn what_the_tap_could_not_observe_is_said_at_the_end() {
    let space = Space::new();
    let script = "for text in 'note two ways' 'unobserved no room' 'unobserved no room' rubbish; do \
                  echo \"$$ $text\" >>\"$TT_SHM_TAP_NOTES\" || exit 1; done";
    let output = space.command(SMI).args(["run", "--json", "-", "--", "sh", "-c", script]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let pid = report["notices"][0]["pids"][0].as_u64().unwrap();
    let said: Vec<&str> = stderr.lines().skip(1).collect();
    assert_eq!(said, [format!("not observed: pid {pid}: no room"), format!("note: pid {pid}: two ways")]);
    assert_eq!(report["notices"][0]["unobserved"], true);
    assert_eq!(report["notices"].as_array().unwrap().len(), 2, "{report}");
}

#[test]
fn the_environment_can_be_evaluated_by_a_shell() {
    let space = Space::new();
    let mut command = space.command("sh");
    let script =
        format!("eval \"$({SMI} env)\"; echo $LD_PRELOAD $TT_ALLOC_TRACKING_ENABLED $TT_SHM_NAMESPACE");
    let output = command.env_remove("TT_ALLOC_TRACKING_ENABLED").args(["-c", &script]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = said.split_whitespace().collect();
    assert!(words[0].ends_with(".so") && words[1] == "1" && words[2] == space.namespace().as_str(), "{said}");
    let docker = space.command(SMI).args(["env", "--format", "docker"]).output().unwrap();
    let docker = String::from_utf8(docker.stdout).unwrap();
    let mount = format!("--ipc=host -v '{0}:{0}:ro' \\\n-e 'LD_PRELOAD={0}'", words[0]);
    assert!(docker.starts_with(&mount), "{docker}");
    let systemd = space.command(SMI).args(["env", "--format", "systemd"]).output().unwrap();
    assert!(systemd.stdout.starts_with(b"Environment=\"LD_PRELOAD=/"), "{systemd:?}");
}
