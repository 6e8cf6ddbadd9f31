//! `tt-smi bench` in its quickest form: what it prints, not how fast anything is.

mod common;

use common::SMI;
use rustix::process::Signal;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;
use tt_shm_tests::Space;
use tt_shm_tests::space::{Process, until};

const CASES: [&str; 16] = [
    "limit",
    "emit_exclusive",
    "emit_shared",
    "emit_exclusive_10000",
    "emit_shared_10000",
    "emit_exclusive_100000",
    "emit_shared_100000",
    "emit_exclusive_2_threads",
    "emit_shared_2_threads",
    "dispatch_cached",
    "dispatch_first",
    "loop_alone",
    "disabled",
    "socket_send",
    "row_read",
    "socket_query",
];

/// What a run with this pid has in /dev/shm.
fn files_of(pid: u32) -> Vec<PathBuf> {
    let prefix = format!("tt-shm.v2.bench-{pid}-");
    let files = std::fs::read_dir(tt_shm_os::SHM_DIR).unwrap().flatten();
    files.filter(|file| file.file_name().to_string_lossy().starts_with(&prefix)).map(|f| f.path()).collect()
}

#[track_caller]
fn number(found: &Value, key: &str) -> f64 {
    found[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {found}"))
}

#[test]
fn every_figure_is_there_and_multiples_agree_with_them() {
    let space = Space::new();
    let mut command = space.command(SMI);
    command.args(["bench", "--json", "--seconds", "1"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "progress is for terminals");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    for case in CASES {
        assert!(number(&found, &format!("{case}_ns")) > 0.0, "{case}");
        let percentiles = ["p50", "p99", "p99_9", "p99_99", "max"];
        let percentiles = percentiles.map(|name| number(&found, &format!("{case}_{name}_ns")));
        assert!(percentiles.is_sorted() && percentiles[4] > 0.0, "{case}: {percentiles:?}");
    }
    let multiples = [
        ("emit_exclusive", "limit"),
        ("emit_shared", "limit"),
        ("emit_shared_10000", "limit"),
        ("emit_exclusive_100000", "limit"),
        ("dispatch_cached", "limit"),
        ("socket_send", "limit"),
        ("socket_send", "emit_shared"),
        ("socket_query", "row_read"),
    ];
    for (one, of) in multiples {
        let expected = number(&found, &format!("{one}_ns")) / number(&found, &format!("{of}_ns"));
        let told = number(&found, &format!("{one}_multiple_of_{of}"));
        assert!((told / expected - 1.0).abs() < 0.01, "{one} is {told} times {of}, not {expected}");
    }
    for launch in ["dispatch_cached", "dispatch_first"] {
        for work in ["2us", "5us", "20us"] {
            assert!(number(&found, &format!("{launch}_percent_of_{work}")) >= 0.0);
            assert!(number(&found, &format!("{launch}_added_to_{work}_ns")) >= 0.0);
        }
    }
    assert_eq!(files_of(pid), Vec::<PathBuf>::new());
    assert_eq!(space.files(), Vec::<PathBuf>::new());
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let space = Space::new();
    let mut command = space.command(SMI);
    command.args(["bench", "--seconds", "600"]).stderr(Stdio::null());
    let mut process = Process::spawn(command);
    let pid = process.0.id();
    until("segments of the run", || (!files_of(pid).is_empty()).then_some(()));
    process.signal(Signal::INT);
    assert_eq!(process.0.wait().unwrap().code(), Some(1));
    assert_eq!(files_of(pid), Vec::<PathBuf>::new());
}
