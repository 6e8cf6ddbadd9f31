//! Options that several commands share: which devices and processes, formats, limits, and the width of a terminal.

use crate::common::{FAIL, HOST, SMI, host, json, smi, tracker};
use serde_json::Value;
use std::process::Output;
use tt_shm_tests::terminal::{Terminal, program};
use tt_shm_tests::{Command, Host, Space};
use tt_shm_writer::{Alloc, BufferType, DeviceInfo, Record};

const GIB: u64 = 1 << 30;

fn run(space: &Space, arguments: &[&str]) -> Output {
    space.command(SMI).args(arguments).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Two processes: the first has devices 0 and 1 and 6 GiB of DRAM on device 0, the second has device 1 only.
fn two_hosts(space: &Space) -> (Host, Host) {
    let (mut first, mut second) = (host(space, [5, 6]), host(space, [6]));
    first.tell(Command::Hold { id: 1, bytes: 6 * GIB });
    second.tell(Command::Hold { id: 1, bytes: GIB });
    (first, second)
}

/// The numbers under a key of each entry of a list.
fn numbers(document: &Value, list: &str, key: &str) -> Vec<u64> {
    let list = document[list].as_array().unwrap_or_else(|| panic!("no {list} in {document}"));
    list.iter().filter_map(|entry| entry[key].as_u64()).collect()
}

#[test]
fn every_list_takes_a_device() {
    let space = Space::new();
    let (first, second) = two_hosts(&space);
    let (first, second) = (u64::from(first.pid()), u64::from(second.pid()));
    for device in [0, 1] {
        let only = ["--device", &device.to_string()];
        let with = |command: &str| json(&space, &[&[command], &only[..]].concat());
        let pids = if device == 0 { vec![first] } else { vec![first, second] };
        let sorted = |mut pids: Vec<u64>| {
            pids.sort_unstable();
            pids
        };
        for command in ["snapshot", "list", "peak"] {
            assert_eq!(numbers(&with(command), "devices", "index"), [device], "{command}");
        }
        for command in ["snapshot", "ps"] {
            let found = sorted(numbers(&with(command), "processes", "pid"));
            assert_eq!(found, sorted(pids.clone()), "{command} of device {device}");
        }
        // What a process has elsewhere is not on this device.
        let own = &with("ps")["processes"].as_array().unwrap().clone();
        let of_first = own.iter().find(|process| process["pid"] == first).unwrap();
        assert_eq!(of_first["dram_used_bytes"], if device == 0 { 6 * GIB } else { 0 });
        let watched = smi(&space, &[&["watch", "--samples", "1"], &only[..]].concat());
        let watched: Value = serde_json::from_str(&watched).unwrap();
        assert_eq!(numbers(&watched, "devices", "index"), [device]);
        let events = smi(&space, &[&["events", "--json"], &only[..]].concat());
        let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let devices: Vec<Value> = events.map(|event| event["device"].clone()).collect();
        assert!(!devices.is_empty() && devices.iter().all(|of| *of == device), "{devices:?}");
    }
}

#[test]
fn who_is_not_there_is_an_error_for_every_list() {
    let space = Space::new();
    let _hosts = two_hosts(&space);
    for command in ["snapshot", "list", "peak", "ps", "watch", "events", "allocations", "programs", "oom"] {
        let absent = run(&space, &[command, "--device", "99"]);
        assert_eq!(absent.status.code(), Some(1), "{command}");
        assert!(stderr(&absent).contains("no device 99: they are 0 to 1"), "{command}: {}", stderr(&absent));
        assert!(absent.stdout.is_empty(), "{command}");
        let nonsense = run(&space, &[command, "--device", "none"]);
        assert_eq!(nonsense.status.code(), Some(2), "{command}");
    }
    for command in ["events", "allocations", "programs"] {
        let absent = run(&space, &[command, "--pid", "1"]);
        assert_eq!(absent.status.code(), Some(1), "{command}");
        assert!(stderr(&absent).contains("no process 1 reports here"), "{command}: {}", stderr(&absent));
        assert!(absent.stdout.is_empty(), "{command}");
    }
}

#[test]
fn every_list_takes_a_query() {
    let space = Space::new();
    let (mut first, second) = two_hosts(&space);
    let pid =
        |command: &str, query: &str| numbers(&json(&space, &[command, "-q", query]), "processes", "pid");
    for command in ["snapshot", "ps"] {
        assert_eq!(pid(command, "dram>2GiB"), [u64::from(first.pid())], "{command}");
        assert_eq!(pid(command, &format!("pid={}", second.pid())), [u64::from(second.pid())], "{command}");
    }
    let snapshot = json(&space, &["snapshot", "--query", "dram>2GiB"]);
    assert_eq!(numbers(&snapshot, "devices", "dram_used_bytes"), [6 * GIB, GIB], "sums are those of all");
    for command in ["list", "peak"] {
        let devices = |query: &str| numbers(&json(&space, &[command, "-q", query]), "devices", "index");
        assert_eq!(devices("dram>2GiB"), [0], "{command}");
        assert_eq!(devices("device=1 dram>=1GiB"), [1], "{command}");
        assert_eq!(devices("l1>0"), [0_u64; 0], "{command}");
        assert_eq!(smi(&space, &[command, "--query", "l1>0"]), "No matching devices.\n");
    }
    let watched = smi(&space, &["watch", "--samples", "1", "--query", "dram<2GiB"]);
    let watched: Value = serde_json::from_str(&watched).unwrap();
    assert_eq!(numbers(&watched, "processes", "pid"), [u64::from(second.pid())]);
    first.tell(FAIL);
    let failures =
        |query: &str| json(&space, &["oom", "--query", query])["failures"].as_array().unwrap().len();
    assert_eq!((failures("size=4KiB class=dram device=0 age<1h"), failures("size>4KiB")), (1, 0));
    assert!(smi(&space, &["oom", "-q", "class=l1"]).contains("No matching allocation failures known"));
    for (command, field) in [("snapshot", "address"), ("list", "user"), ("oom", "dram"), ("watch", "id")] {
        let wrong = run(&space, &[command, "--query", &format!("{field}=1")]);
        assert_eq!(wrong.status.code(), Some(2), "{command}");
        assert!(stderr(&wrong).contains(&format!("there is no {field} here; the fields are")), "{command}");
    }
}

#[test]
fn nothing_to_show_is_no_error() {
    let space = Space::new();
    assert!(smi(&space, &["oom"]).starts_with("No allocation failures known"));
    let _host = host(&space, [5]);
    assert!(smi(&space, &["oom", "--device", "0"]).starts_with("No matching allocation failures known"));
    assert_eq!(json(&space, &["oom"])["failures"], Value::Array(Vec::new()));
}

#[test]
fn a_watch_is_a_table_lines_of_csv_or_of_json() {
    let space = Space::new();
    let (first, second) = two_hosts(&space);
    let watch = |arguments: &[&str]| {
        smi(&space, &[&["watch", "--samples", "3", "--interval", "20ms"], arguments].concat())
    };
    let csv = watch(&["--format", "csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 3 * 2, "one heading, then a line for each device each time: {csv}");
    assert!(lines[0].starts_with("timestamp,host,namespace,age_ms,index,"));
    assert_eq!(csv.matches("timestamp").count(), 1);
    let commas = |line: &str| line.matches(',').count();
    assert!(lines.iter().all(|line| commas(line) == commas(lines[0])), "{csv}");
    let processes = watch(&["--format", "csv", "--processes", "--device", "1"]);
    assert_eq!(processes.lines().count(), 1 + 3 * 2, "{processes}");
    for pid in [first.pid(), second.pid()] {
        assert_eq!(processes.matches(&format!(",{pid},false,")).count(), 3, "{processes}");
    }
    let table = watch(&["--format", "table"]);
    let parts: Vec<&str> = table.split("\n\ntt-smi ").collect();
    assert_eq!(parts.len(), 3, "{table}");
    assert!(
        parts.iter().all(|part| part.contains("DEV  BOARD") && part.contains("6.0 / 12.0 GiB")),
        "{table}"
    );
    for lines in [watch(&["--format", "ndjson"]), watch(&[])] {
        let documents =
            lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["schema"].clone());
        assert_eq!(documents.collect::<Vec<_>>(), [1, 1, 1]);
    }
    assert_eq!(run(&space, &["watch", "--format", "prometheus"]).status.code(), Some(2));
}

#[test]
fn a_device_that_is_too_full_is_exit_code_3() {
    let space = Space::new();
    let _hosts = two_hosts(&space);
    // Device 0 has 6 of 12 GiB, device 1 has one.
    for (limits, code) in [
        (&["dram>50%"][..], 0),
        (&["dram>=50%"], 3),
        (&["dram>49.99%"], 3),
        (&["dram>6GiB"], 0),
        (&["dram>6143MiB"], 3),
        (&["l1>0", "dram>=6GiB"], 3),
        (&["l1>0", "eth_l1>=1"], 0),
    ] {
        let options: Vec<&str> = limits.iter().flat_map(|limit| ["--fail-above", limit]).collect();
        for command in [&["snapshot"][..], &["watch", "--samples", "2", "--interval", "20ms"]] {
            let output = run(&space, &[command, &options[..]].concat());
            assert_eq!(output.status.code(), Some(code), "{command:?} {limits:?}: {}", stderr(&output));
            assert!(!output.stdout.is_empty(), "what there is is shown all the same");
            let said = stderr(&output);
            assert_eq!(code == 3, said.contains("device 0: dram 6.0 / 12.0 GiB is above 'dram>"), "{said}");
            let lines = String::from_utf8_lossy(&output.stdout).lines().count();
            assert!(command[0] == "snapshot" || lines == if code == 3 { 1 } else { 2 }, "it ends at once");
        }
    }
    assert_eq!(
        run(&space, &["snapshot", "--device", "1", "--fail-above", "dram>40%"]).status.code(),
        Some(0)
    );
    for (limit, says) in [
        ("dram", "such as 'dram>90%'"),
        ("shoe>1", "no memory \"shoe\"; there are dram, dram_buffer, trace, l1"),
        ("dram>1QB", "\"1QB\" is not a size"),
        ("dram>120%", "\"120%\" is not a share from 0% to 100%"),
    ] {
        let wrong = run(&space, &["snapshot", "--fail-above", limit]);
        assert_eq!(wrong.status.code(), Some(2), "{limit}");
        assert!(stderr(&wrong).contains(says), "{}", stderr(&wrong));
    }
}

#[test]
fn a_share_of_an_unknown_capacity_is_an_error() {
    let space = Space::new();
    let tracker = tracker(&space);
    let device = tracker.register_device(&DeviceInfo { chip_id: 9, ..Default::default() }).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 4096)).unwrap();
    let check = |limit: &str| run(&space, &["snapshot", "--fail-above", limit]);
    let unknown = check("dram>90%");
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("device 0: no capacity is known for dram"), "{}", stderr(&unknown));
    assert_eq!((check("dram>4KiB").status.code(), check("dram>4095").status.code()), (Some(0), Some(3)));
}

#[test]
fn processes_fit_a_terminal_and_are_whole_in_a_pipe() {
    let space = Space::new();
    let long = "argument ".repeat(40);
    let mut command = space.command("sh");
    // A shell that becomes the host keeps none of its arguments; a link with a long name is one.
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join(long.trim().replace(' ', "-").chars().take(200).collect::<String>());
    std::os::unix::fs::symlink(HOST, &link).unwrap();
    command.args(["-c", "exec \"$0\"", link.to_str().unwrap()]);
    let mut host = Host::spawn(command);
    host.tell(Command::Open { ring_slots: 0, chips: vec![5] });
    let whole = link.to_str().unwrap();
    assert!(smi(&space, &["ps"]).lines().any(|line| line.ends_with(whole)), "a pipe gets all of it");
    for columns in [200, 120, 80, 40] {
        let terminal = Terminal::start(program(&space, SMI, &["ps"]), columns, 40);
        let screen = terminal.await_text(&host.pid().to_string());
        // The line that a process takes, and no other: it would be there if the line were broken.
        let lines: Vec<&str> = screen.lines().filter(|line| !line.trim().is_empty()).collect();
        assert_eq!(lines.len(), 2, "{columns}:\n{screen}");
        let has_command = lines[0].ends_with("COMMAND");
        assert_eq!(
            (has_command, lines[1].ends_with('…')),
            (columns >= 80, has_command),
            "{columns}:\n{screen}"
        );
        assert!(terminal.await_end().success());
    }
}
