//! `list`, `ps`, `watch`, queries, settings, and what the tool tells of itself.

use crate::common::{self, SMI, host, json, smi, tracker};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Output, Stdio};
use tempfile::TempDir;
use tt_shm_tests::space::{Process, until};
use tt_shm_tests::{Command, Space};
use tt_shm_writer::{Alloc, BufferType, DeviceInfo, MarkerPhase, Record};

fn run(space: &Space, arguments: &[&str]) -> Output {
    space.command(SMI).args(arguments).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder of this test's own, removed at the end.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.path().join(file)).unwrap()
    }
}

#[test]
fn queries_choose_in_every_list() {
    let space = Space::new();
    let tracker = tracker(&space);
    let info = |chip_id| DeviceInfo { chip_id, logical_id: Some(chip_id as u32), ..Default::default() };
    let devices = [0, 1].map(|chip| tracker.register_device(&info(chip + 1)).unwrap());
    let name = tracker.intern("kv cache").unwrap();
    tracker.alloc(devices[0], Alloc::new(BufferType::Dram, 1, 1 << 20).name(name).address(0x2000)).unwrap();
    tracker.alloc(devices[0], Alloc::new(BufferType::L1, 2, 4096).address(0x1000)).unwrap();
    tracker.alloc(devices[1], Alloc::new(BufferType::Dram, 3, 100)).unwrap();
    tracker.marker(MarkerPhase::Instant, 9, name).unwrap();
    let ids = |query: &str| -> Vec<u64> {
        let found = json(&space, &["allocations", "--query", query, "--sort", "address"]);
        found["allocations"].as_array().unwrap().iter().map(|item| item["id"].as_u64().unwrap()).collect()
    };
    assert_eq!(ids(""), [2, 1, 3], "by device and address; unknown last");
    assert_eq!(ids("size>=4KiB device=0"), [2, 1]);
    assert_eq!(ids("class=dram size<1KB"), [3]);
    assert_eq!(ids("name=\"kv cache\""), [1]);
    assert_eq!(ids("CACHE age<1h"), [1]);
    assert_eq!(ids("name!~cache"), [2, 3]);
    assert_eq!(ids("address=0x1000,0x2000"), [2, 1]);
    let events = smi(&space, &["events", "--query", "kind=marker,alloc name~kv"]);
    assert_eq!(events.lines().count(), 2, "{events}");
    assert_eq!(
        json(&space, &["ps", "--query", "device=1 dram>1MiB"])["processes"].as_array().unwrap().len(),
        1
    );
    assert_eq!(json(&space, &["ps", "--query", "dram<=1MiB"])["processes"].as_array().unwrap().len(), 0);
    assert_eq!(json(&space, &["programs", "--query", "hits>0"])["programs"], Value::Array(vec![]));
}

#[test]
fn a_wrong_query_says_where_and_lists_the_fields() {
    let space = Space::new();
    for (arguments, message) in [
        (["allocations", "--query", "size>1 sise>2"], "column 8: no field \"sise\"; did you mean size?"),
        (["events", "-q", "site~x"], "column 1: there is no site here; the fields are kind, class"),
        (["ps", "--query", "pid>"], "column 5: a value is missing"),
        (["programs", "-q", "size>1QB"], "column 6: size cannot be \"1QB\"; give a size"),
    ] {
        let output = run(&space, &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_stopped_process_is_alive_and_said_to_be_stopped() {
    let space = Space::new();
    let mut host = host(&space, [1]);
    host.tell(Command::Grow { count: 10 });
    let state = || json(&space, &["ps"])["processes"][0]["state"].clone();
    assert_eq!(state(), "alive");
    host.signal(Signal::STOP);
    until("the state", || (state() == "stopped").then_some(()));
    let stopped = json(&space, &["ps", "--query", "state=stopped"]);
    let process = &stopped["processes"][0];
    assert_eq!((&process["pid"], &process["l1_used_bytes"]), (&host.pid().into(), &640.into()));
    assert_eq!(process["parent_pid"], std::process::id());
    assert_eq!(process["command"], common::HOST);
    assert!(smi(&space, &["ps"]).contains("stopped"));
    assert_eq!(json(&space, &["snapshot"])["processes"][0]["state"], "stopped");
    host.signal(Signal::CONT);
    until("the state", || (state() == "alive").then_some(()));
}

#[test]
fn processes_are_sorted_and_children_stand_below_their_parents() {
    let space = Space::new();
    let (mut small, mut large) = (host(&space, [1]), host(&space, [1]));
    small.tell(Command::Grow { count: 1 });
    large.tell(Command::Grow { count: 5 });
    let pids = |sort: &str| -> Vec<Value> {
        let found = json(&space, &["ps", "--sort", sort]);
        found["processes"].as_array().unwrap().iter().map(|process| process["pid"].clone()).collect()
    };
    assert_eq!(pids("l1"), [large.pid(), small.pid()]);
    assert_eq!(pids("age"), [small.pid(), large.pid()]);
    // This process, the parent of both, reports as well.
    let tracker = tracker(&space);
    tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() }).unwrap();
    let text = smi(&space, &["ps", "--tree", "--sort", "l1"]);
    let lines: Vec<&str> = text.lines().skip(1).collect();
    let place =
        |pid: u32| lines.iter().position(|line| line.trim_start().starts_with(&pid.to_string())).unwrap();
    assert!(!lines[place(std::process::id())].contains('└'), "{text}");
    assert!(lines[place(large.pid())].contains("└ host"), "{text}");
    assert_eq!((place(std::process::id()), place(large.pid()), place(small.pid())), (0, 1, 2), "{text}");
}

#[test]
fn devices_are_listed_with_what_is_known_of_them() {
    let space = Space::new();
    let _host = host(&space, [5]);
    for arguments in [&["list"][..], &["-ls"], &["-l"]] {
        let text = smi(&space, arguments);
        assert!(text.contains("0x0000000000000005") && text.contains("12.0 GiB"), "{text}");
    }
    assert_eq!(json(&space, &["list"])["devices"][0]["l1_total_bytes"], 64 * (1464 << 10));
}

#[test]
fn watch_gives_a_line_each_time_and_ends_well_on_signals() {
    let space = Space::new();
    let mut host = host(&space, [1]);
    for signal in [Signal::INT, Signal::TERM] {
        let mut command = space.command(SMI);
        command.args(["watch", "--interval", "50ms"]).stdout(Stdio::piped());
        let mut watch = Process::spawn(command);
        let mut lines = BufReader::new(watch.0.stdout.take().unwrap()).lines();
        let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
        let before = next()["devices"][0]["l1_used_bytes"].as_u64().unwrap();
        host.tell(Command::Spin { pairs: 1 });
        tt_shm_tests::space::until("the next line", || {
            (next()["aggregator"]["events"].as_u64()? > 0).then_some(())
        });
        assert_eq!(next()["devices"][0]["l1_used_bytes"], before);
        watch.signal(signal);
        let status = watch.0.wait().unwrap();
        assert!(status.success(), "{status}");
    }
    let lines = smi(&space, &["watch", "--samples", "3", "--interval", "20ms"]);
    let times: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["timestamp"].clone()).collect();
    assert!(
        times.len() == 3 && times[0].as_str() < times[1].as_str() && times[1].as_str() < times[2].as_str()
    );
    assert_eq!(run(&space, &["watch", "--interval", "1ms"]).status.code(), Some(2));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let space = Space::new();
    let _host = host(&space, [1]);
    for arguments in [&["watch", "--interval", "20ms"][..], &["completions", "bash"], &["man"]] {
        let mut command = space.command(SMI);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process::spawn(command);
        drop(process.0.stdout.take());
        assert!(process.0.wait().unwrap().success(), "{arguments:?}");
        let mut errors = String::new();
        process.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!(errors, "", "{arguments:?}");
    }
}

#[test]
fn snapshots_for_scripts_go_to_stdout_or_to_a_private_file() {
    let space = Space::new();
    let _host = host(&space, [5]);
    let folder = Folder::new();
    let file = folder.0.path().join("snapshot.json");
    let path = file.to_str().unwrap();
    std::fs::write(&file, "old").unwrap();
    assert_eq!(smi(&space, &["-s", "-f", path]), "");
    let written: Value = serde_json::from_str(&folder.text("snapshot.json")).unwrap();
    let printed: Value = serde_json::from_str(&smi(&space, &["-s"])).unwrap();
    assert_eq!(written["devices"][0]["chip_id"], printed["devices"][0]["chip_id"]);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let link = folder.0.path().join("link");
    symlink(&file, &link).unwrap();
    let before = folder.text("snapshot.json");
    for bad in [link.to_str().unwrap(), "/dev/null", "/nonexistent/x"] {
        assert_eq!(run(&space, &["-s", "-f", bad]).status.code(), Some(1), "{bad}");
    }
    assert_eq!(folder.text("snapshot.json"), before);
    assert_eq!(run(&space, &["-f", path]).status.code(), Some(2), "-f goes with -s");
}

#[test]
fn formats_of_a_snapshot() {
    let space = Space::new();
    let mut host = host(&space, [5]);
    host.tell(Command::Grow { count: 4 });
    let csv = smi(&space, &["snapshot", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 2);
    assert!(csv.starts_with("timestamp,host,namespace,age_ms,index,"));
    let csv = smi(&space, &["snapshot", "--format", "csv", "--processes"]);
    assert!(csv.lines().nth(1).unwrap().contains(&format!(",{},", host.pid())), "{csv}");
    let metrics = smi(&space, &["snapshot", "--format", "prometheus"]);
    let line = "tt_l1_used_bytes{device=\"0\",chip_id=\"0x0000000000000005\"} 256\n";
    assert!(metrics.contains(line), "{metrics}");
    let as_json: Value = serde_json::from_str(&smi(&space, &["snapshot", "--format", "json"])).unwrap();
    assert_eq!(as_json["devices"][0]["l1_used_bytes"], 256);
    assert_eq!(run(&space, &["snapshot", "--json", "--format", "csv"]).status.code(), Some(2));
}

#[test]
fn reset_is_refused_with_what_to_do_instead() {
    let space = Space::new();
    for arguments in [&["-r"][..], &["-r", "0,1"], &["--reset", "0"], &["-s", "-r"]] {
        let output = run(&space, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains("cannot reset a device"), "{}", stderr(&output));
        assert!(stderr(&output).contains("Python package"), "{}", stderr(&output));
    }
    assert_eq!(run(&space, &["-s", "peak"]).status.code(), Some(2));
}

#[test]
fn settings_are_written_once_shown_and_checked() {
    let space = Space::new();
    let home = Folder::new();
    let config = |arguments: &[&str]| {
        let mut command = space.command(SMI);
        command.env("XDG_CONFIG_HOME", home.0.path()).arg("config").args(arguments).output().unwrap()
    };
    let file = home.0.path().join("tt-smi/config.toml");
    let path = String::from_utf8(config(&["path"]).stdout).unwrap();
    assert_eq!(path.trim_end(), file.to_str().unwrap());
    assert!(config(&["init"]).status.success());
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::write(&file, "theme = \"light\"\n").unwrap();
    let refused = config(&["init"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--force"), "{}", stderr(&refused));
    let shown = String::from_utf8(config(&["print", "--color", "never"]).stdout).unwrap();
    for (line, origin) in [("theme = \"light\"", "config.toml:1"), ("color = \"never\"", "# --color")] {
        let found = shown.lines().find(|shown| shown.starts_with(line)).unwrap_or_else(|| panic!("{shown}"));
        assert!(found.ends_with(origin), "{found}");
    }
    std::fs::write(&file, "\ntheme = \"lihgt\"\n").unwrap();
    let bad = space.command(SMI).env("XDG_CONFIG_HOME", home.0.path()).arg("snapshot").output().unwrap();
    assert_eq!(bad.status.code(), Some(0));
    assert!(
        stderr(&bad).contains("config.toml:2:9: theme cannot be \"lihgt\"; it may be default, safe"),
        "{bad:?}"
    );
    assert_eq!(config(&["print"]).status.code(), Some(2));
    assert!(config(&["init", "--force"]).status.success());
    assert!(home.text("tt-smi/config.toml").contains("#theme = \"default\""));
}

/// No TOML, no file, a pipe, no text: it is told, and the command does what it does without.
#[test]
fn a_file_of_settings_that_cannot_be_used_ends_no_command() {
    let space = Space::new();
    let home = Folder::new();
    let file = home.0.path().join("tt-smi/config.toml");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    let snapshot =
        || space.command(SMI).env("XDG_CONFIG_HOME", home.0.path()).arg("snapshot").output().unwrap();
    // The first line has the time of day.
    let body =
        |output: &Output| String::from_utf8_lossy(&output.stdout).split_once('\n').unwrap().1.to_owned();
    let plain = snapshot();
    let breaks: [&dyn Fn(); 4] = [
        &|| std::fs::write(&file, "theme = [").unwrap(),
        &|| std::fs::write(&file, [0xff, 0xfe]).unwrap(),
        &|| std::fs::create_dir(&file).unwrap(),
        &|| assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success()),
    ];
    for spoil in breaks {
        spoil();
        let found = snapshot();
        assert_eq!((found.status.code(), body(&found)), (plain.status.code(), body(&plain)));
        assert!(stderr(&found).contains("settings are ignored") && stderr(&found).contains("config.toml"));
        let _ = std::fs::remove_file(&file).or_else(|_| std::fs::remove_dir(&file));
    }
    assert!(!stderr(&snapshot()).contains("settings"), "there is no file");
}

#[test]
fn an_empty_namespace_is_refused() {
    let space = Space::new();
    let mut by_variable = space.command(SMI);
    by_variable.env("TT_SHM_NAMESPACE", "").args(["clean", "--dry-run"]);
    let mut by_option = space.command(SMI);
    by_option.args(["clean", "--dry-run", "--namespace="]);
    for mut command in [by_variable, by_option] {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains("TT_SHM_NAMESPACE is empty; give 1 to 32 of A-Z"), "{output:?}");
    }
}

#[test]
fn every_command_has_a_page_a_completion_and_a_text() {
    let space = Space::new();
    let folder = Folder::new();
    smi(&space, &["man", "--dir", folder.0.path().to_str().unwrap()]);
    let help = smi(&space, &["--help"]);
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let completions = smi(&space, &["completions", "fish"]);
    assert!(!completions.contains("demo-worker"), "what is hidden is not offered");
    let mut pages = 1;
    for line in commands {
        let (name, about) = line.trim().split_once(' ').unwrap();
        assert!(!about.trim().is_empty(), "{name} has no text");
        if name != "help" {
            assert!(folder.text(&format!("tt-smi-{name}.1")).contains(".SH SYNOPSIS"), "{name}");
            assert!(completions.contains(&format!("-a \"{name}\"")), "{name}");
            pages += 1;
        }
    }
    assert!(pages > 15 && folder.text("tt-smi.1").contains("tt\\-smi"));
    assert!(!folder.0.path().join("tt-smi-demo-worker.1").exists());
    assert!(smi(&space, &["man"]).contains(".TH tt-smi 1"));
}

#[test]
fn where_nothing_is_it_says_why_and_what_to_do() {
    let space = Space::new();
    for (arguments, says) in [
        (
            &["snapshot"][..],
            "No device: no process reports allocations here (run `tt-smi doctor` for advice).",
        ),
        (&["list"], "No device: no process reports"),
        (&["peak"], "No device: no process reports"),
        (&["ps"], "No process reports in this namespace"),
        (
            &["allocations"],
            "No live allocations: no process reports in this namespace (see `tt-smi doctor`).",
        ),
        (&["programs"], "No loaded programs: no process reports in this namespace"),
    ] {
        assert!(smi(&space, arguments).contains(says), "{arguments:?}");
    }
    let _host = host(&space, [5]);
    assert_eq!(smi(&space, &["allocations"]), "No live allocations.\n");
}

#[test]
fn a_mistake_is_told_with_its_place() {
    let space = Space::new();
    let errors = |command: &mut std::process::Command| {
        let output = command.output().unwrap();
        (output.status.code(), stderr(&output))
    };
    let (code, said) = errors(space.command(SMI).arg("list").env("TT_SHM_NAMESPACE", "../x"));
    assert!(
        code == Some(2) && said.contains("--namespace or TT_SHM_NAMESPACE: namespace \"../x\""),
        "{said}"
    );
    let (code, said) = errors(space.command(SMI).args(["--view", "charts"]));
    assert!(code == Some(0) && said.contains("stdout is not a terminal"), "{said}");
    let report = "/nonexistent/report.json";
    let (code, said) =
        errors(space.command(SMI).args(["run", "--json", report, "--", "sh", "-c", "echo began >&2"]));
    let first = said.lines().next().unwrap();
    assert!(code == Some(0) && first.contains(report), "before the command begins: {said}");
}
