//! What the test binaries share: the helper's path, and comparisons with a host's truth.
#![allow(dead_code, reason = "each test binary uses a part")]

use serde_json::Value;
use std::path::PathBuf;
use tt_shm_reader::Segment;
use tt_shm_tests::monitor::as_truth;
use tt_shm_tests::{Command, Host, Space, Truth};
use tt_shm_writer::Tracker;

pub(crate) const HOST: &str = env!("CARGO_BIN_EXE_host");
pub(crate) const SMI: &str = env!("CARGO_BIN_EXE_smi");

/// An allocation that fails though there is room, only not in one piece.
pub(crate) const FAIL: Command = Command::Fail { request: 4096, free: 9000, largest: 1000 };

pub(crate) fn host(space: &Space, chips: impl IntoIterator<Item = u64>) -> Host {
    Host::start(HOST, space, chips)
}

/// Runs tt-smi, which must succeed, and returns what it printed.
#[track_caller]
pub(crate) fn smi(space: &Space, arguments: &[&str]) -> String {
    let output = space.command(SMI).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?} failed: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Likewise, with `--json`.
#[track_caller]
pub(crate) fn json(space: &Space, arguments: &[&str]) -> Value {
    let text = smi(space, &[arguments, &["--json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

/// A tracker of this very process.
pub(crate) fn tracker(space: &Space) -> Tracker {
    Tracker::builder().enabled(true).namespace(space.namespace().as_str()).open().unwrap()
}

/// The segment of a process.
pub(crate) fn segment_of(space: &Space, pid: u32) -> PathBuf {
    let mark = format!(".{pid}-");
    let found = space.segments().into_iter().find(|path| path.to_string_lossy().contains(&mark));
    found.unwrap_or_else(|| panic!("process {pid} has no segment among {:?}", space.files()))
}

pub(crate) fn open(space: &Space, host: &Host) -> Segment {
    Segment::open(&segment_of(space, host.pid())).unwrap()
}

/// Counters and live list of a segment are exactly what its process believes.
#[track_caller]
pub(crate) fn assert_exact(segment: &Segment, truth: &Truth) {
    let snapshot = segment.counters().unwrap();
    assert_eq!(snapshot.counters.len(), truth.devices.len());
    for (counters, truth) in snapshot.counters.iter().zip(&truth.devices) {
        assert_eq!(&as_truth(counters, truth), truth);
    }
    let list = segment.allocations();
    assert!(list.exact && list.unlisted == 0, "the list is not exact: {} missed", list.missed);
    let mut live: Vec<_> =
        list.list.iter().map(|a| (a.row.device, a.row.class, a.row.id, a.row.size)).collect();
    live.sort_unstable();
    assert_eq!(live.len(), truth.live.len());
    assert!(live == truth.live, "the live list differs from what the process holds");
}
