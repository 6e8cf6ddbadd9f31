//! What `tt-smi doctor` finds on this very machine, beside real processes.

use crate::common::{SMI, host};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tt_shm_tests::space::until;
use tt_shm_tests::{Monitor, Space};

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
    assert_eq!(levels, ["pass", "warn", "warn"]);
    assert_eq!(found[0], "1 process reporting");
    assert!(found[1].contains(&dead.pid().to_string()) && found[2].starts_with("refused:"), "{found:?}");
    assert!(code >= 1);
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
    let folder = std::env::temp_dir().join(format!("tt-smi-path-{}", space.namespace()));
    let [this, official] = ["this", "official"].map(|name| folder.join(name));
    for folder in [&this, &official] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::os::unix::fs::symlink(SMI, this.join("tt-smi")).unwrap();
    std::fs::write(official.join("tt-smi"), "#!/usr/bin/python3\n").unwrap();
    std::fs::set_permissions(official.join("tt-smi"), std::fs::Permissions::from_mode(0o755)).unwrap();
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
    std::fs::remove_dir_all(&folder).unwrap();
    let of = |folder: &PathBuf| folder.join("tt-smi").display().to_string();
    assert_eq!(alone, format!("pass: {} is this program", of(&this)));
    assert_eq!(this_first, format!("{alone}; the official tool comes later in PATH"));
    assert_eq!(
        official_first,
        format!("warn: {} is Tenstorrent's official tool, which does not show memory", of(&official))
    );
}
