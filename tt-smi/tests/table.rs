//! The snapshot as text.

use crate::common;
use tt_smi::model::Model;
use tt_smi::output::paint::Paint;
use tt_smi::output::snapshot_json::SnapshotJson;
use tt_smi::output::table::{self, Parts};
use tt_smi::segments::Hidden;

fn text(model: &Model, parts: Parts) -> String {
    let mut out = Vec::new();
    table::write(&mut out, model, parts, Paint::PLAIN).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn everything() {
    let text = text(&common::model(common::snapshot(1)), Parts { processes: true, detail: true });
    common::assert_expected("snapshot-detail", &text);
    let kernels = [("kernels loaded", "9 kernels"), ("Fabric", "2 kernels"), ("Dispatch", "2 kernels")];
    for (name, count) in kernels.into_iter().chain([("Application", "5 kernels")]) {
        let line = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        assert!(line.ends_with(count), "{line}");
    }
}

#[test]
fn the_usual_table_fits_100_columns() {
    let text = text(&common::model(common::snapshot(4)), Parts::default());
    common::assert_expected("snapshot", &text);
    let widths = text.lines().filter(|line| line.contains("n300")).map(|line| line.chars().count());
    assert!(widths.max().unwrap() <= 100);
}

#[test]
fn foreign_names_cannot_speak_to_the_terminal() {
    let text = text(&common::model(common::snapshot(1)), Parts { processes: true, detail: true });
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
    assert!(text.contains("evil\\u{1b}[2J"), "{text}");
}

#[test]
fn no_device_is_said() {
    let mut snapshot = common::snapshot(0);
    snapshot.devices.clear();
    snapshot.processes.clear();
    assert!(text(&common::model(snapshot), Parts::default()).contains("No device"));
}

#[test]
fn what_this_user_may_not_read_is_said_to_be_missing() {
    let file = "tt-shm.v2.default.99-0123456789abcdef".to_owned();
    let hidden = Hidden { pid: Some(99), uid: 54_321, file };
    let model = common::model_beside(common::snapshot(1), vec![hidden]);
    let expected = "pid 99 belongs to uid 54321: what it uses is missing here; root sees all";
    assert!(text(&model, Parts::default()).contains(expected));
    let json = serde_json::to_value(SnapshotJson::new(&model, "default")).unwrap();
    assert_eq!(json["aggregator"]["hidden_files"], 1);
    assert_eq!((&json["errors"][1]["kind"], &json["errors"][1]["uid"]), (&"hidden".into(), &54_321.into()));
}

#[test]
fn text_says_what_is_not_exact() {
    let model = common::model(common::doubtful_snapshot());
    let text = text(&model, Parts { processes: true, detail: true });
    for part in [
        "peak at least 5.0 GiB, time unknown",
        "≥3.1 / 12.0 GiB",
        "conflict, incomplete",
        "a process that could not be read may have more",
        "conflict: pid 4242 says of device 0: DRAM 4.0 GiB, L1 91.5 MiB, PCI 0000:12:00.0, board fake",
        "lost: 3 processes ended before",
        "some devices not listed",
        "overflow: 4 rows",
        "no_room: /dev/shm",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}
