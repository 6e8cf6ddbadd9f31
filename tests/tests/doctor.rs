//! What `tt-smi doctor` finds on this very machine, beside real processes.

use crate::common::{HOST, SMI, host, smi};
use serde_json::Value;
use std::path::PathBuf;
use tt_shm_tests::executable::write_script;
use tt_shm_tests::space::until;
use tt_shm_tests::{Command, Host, Monitor, Space};

/// Level and words of a check, and the exit code of the whole.
fn doctor(space: &Space, check: &str) -> (Vec<String>, Vec<String>, i32) {
    let output = space.command(SMI).args(["doctor", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], 1);
    let findings = report["findings"].as_array().unwrap().clone();
    let code = output.status.code().unwrap();
    let worst = ["pass", "warn", "fail"].iter().position(|level| report["level"] == *level);
    assert_eq!(worst, Some(code as usize), "the exit code is the worst level");
    let of = |key: &str| {
        let own = findings.iter().filter(|finding| finding["check"] == check);
        own.map(|finding| finding[key].as_str().unwrap().to_owned()).collect()
    };
    (of("level"), of("found"), code)
}

#[test]
fn segments_are_told_by_what_became_of_them() {
    let space = Space::new();
    assert_eq!(doctor(&space, "segments").1, ["0 processes reporting"]);
    let (_alive, mut dead) = (host(&space, [1]), host(&space, [2]));
    dead.kill();
    std::fs::write(space.folder_name("77-0123456789abcdef"), "no segment").unwrap();
    let (levels, found, code) = doctor(&space, "segments");
    assert_eq!(levels, ["pass", "warn"]);
    assert_eq!(found[0], "1 process reporting");
    assert!(code >= 1);
    // What `clean` would remove is what is stale, and nothing else.
    let mut pids = [77, dead.pid()].map(|pid| format!("pid {pid}"));
    pids.sort();
    assert_eq!(found[1], format!("2 files left behind by dead processes: {}", pids.join(", ")));
    assert!(smi(&space, &["clean", "--dry-run"]).ends_with("\n2 files to remove\n"));
    smi(&space, &["clean"]);
    assert_eq!(doctor(&space, "segments").1, ["1 process reporting"]);
}

/// What is left to a run that may be slow is not stale: neither `clean` nor `doctor` takes it for that. Nor is a table
/// that a running aggregator is making.
#[test]
fn doctor_and_clean_agree_about_what_is_stale() {
    let space = Space::new();
    let agree = |files: &[&str]| {
        let stale: Vec<String> =
            doctor(&space, "segments").1.into_iter().filter(|found| found.contains("left behind")).collect();
        let removed = smi(&space, &["clean", "--dry-run"]);
        assert_eq!(stale.is_empty(), files.is_empty(), "{stale:?}");
        assert_eq!(removed.lines().count() - 1, files.len(), "{removed}");
        for file in files {
            assert!(removed.contains(file) && stale[0].contains(file), "{file}: {removed} {stale:?}");
        }
    };
    let mut command = space.command(HOST);
    command.env("TT_SHM_RUN", format!("{}.0123456789abcdef", space.namespace()));
    let mut host = Host::spawn(command);
    host.tell(Command::Open { ring_slots: 0, chips: vec![1] });
    host.kill();
    agree(&[]);
    let uid = rustix::process::getuid().as_raw();
    let table = space.folder_name(&format!("{uid}.table-0123456789abcdef"));
    std::fs::write(&table, "half a table").unwrap();
    agree(&[table.file_name().unwrap().to_str().unwrap()]);
    // It removes what earlier ones left.
    let _monitor = Monitor::start(SMI, &space);
    std::fs::write(&table, "half a table").unwrap();
    agree(&[]);
}

/// A file that somebody holds locked and that is no segment.
#[test]
fn a_file_that_is_in_use_and_no_segment_is_refused() {
    let space = Space::new();
    let path = space.folder_name("77-0123456789abcdef");
    std::fs::write(&path, "no segment").unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    assert!(tt_shm_os::try_lock_exclusive(std::os::fd::AsFd::as_fd(&file)).unwrap());
    let (levels, found, _) = doctor(&space, "segments");
    assert_eq!(levels, ["pass", "warn"]);
    assert!(found[1].starts_with("refused:"), "{found:?}");
}

#[test]
fn an_aggregator_is_told_alive_from_killed() {
    let space = Space::new();
    assert!(doctor(&space, "aggregator").1[0].starts_with("not running"));
    let mut monitor = Monitor::start(SMI, &space);
    let (levels, found, _) = doctor(&space, "aggregator");
    assert_eq!(levels, ["pass"]);
    assert!(found[0].starts_with("running: pid "), "{found:?}");
    monitor.kill();
    let (levels, ..) = until("a stale heartbeat", || {
        Some(doctor(&space, "aggregator")).filter(|(_, found, _)| found[0].starts_with("ended or stopped"))
    });
    assert_eq!(levels, ["warn"]);
}

#[test]
fn people_get_a_line_per_finding() {
    let space = Space::new();
    let output = space.command(SMI).arg("doctor").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for check in
        ["kernel", "shm_permissions", "shm_room", "namespace", "layout", "driver", "container", "path"]
    {
        assert!(
            text.lines().any(|line| line.get(6..).is_some_and(|l| l.starts_with(check))),
            "{check}:\n{text}"
        );
    }
}

/// The official tool has the same name.
#[test]
fn of_two_programs_the_first_in_path_is_told() {
    let space = Space::new();
    let folder = tempfile::tempdir().unwrap();
    let [this, official] = ["this", "official"].map(|name| folder.path().join(name));
    for folder in [&this, &official] {
        std::fs::create_dir(folder).unwrap();
    }
    std::os::unix::fs::symlink(SMI, this.join("tt-smi")).unwrap();
    write_script(official.join("tt-smi"), "#!/usr/bin/python3\n");
    let first = |folders: &[&PathBuf]| {
        let mut command = space.command(SMI);
        command.args(["doctor", "--json"]).env("PATH", std::env::join_paths(folders).unwrap());
        let report: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        let findings = report["findings"].as_array().unwrap();
        let finding = findings.iter().find(|finding| finding["check"] == "path").unwrap();
        format!("{}: {}", finding["level"].as_str().unwrap(), finding["found"].as_str().unwrap())
    };
    let (this_first, official_first) = (first(&[&this, &official]), first(&[&official, &this]));
    let alone = first(&[&this]);
    let of = |folder: &PathBuf| folder.join("tt-smi").display().to_string();
    assert_eq!(alone, format!("pass: {} is this program", of(&this)));
    assert_eq!(this_first, format!("{alone}; the official tool comes later in PATH"));
    assert_eq!(
        official_first,
        format!("warn: {} is Tenstorrent's official tool, which does not show memory", of(&official))
    );
}
