//! The snapshot as JSON: its shape, and that unknown is null.

use crate::common;
use serde_json::Value;
use tt_smi::model::Model;
use tt_smi::output::snapshot_json::SnapshotJson;

fn json(devices: u64) -> Value {
    let model = common::model(common::snapshot(devices));
    serde_json::to_value(SnapshotJson::new(&model, "default")).unwrap()
}

#[test]
fn the_whole_document() {
    let text = serde_json::to_string_pretty(&json(1)).unwrap() + "\n";
    common::assert_expected("snapshot.json", &text);
}

#[test]
fn conventions() {
    let json = json(2);
    assert_eq!(json["schema"], 1);
    assert_eq!(json["timestamp"], "2026-09-21T14:13:20.000000Z");
    assert_eq!(json["host"], "ttbox");
    assert_eq!(json["devices"].as_array().unwrap().len(), 3);
    assert_eq!(json["errors"][0]["kind"], "refused");
    assert_eq!(json["processes"][0]["anomalies"]["unmatched_free"], 2);
}

#[test]
fn figures_are_exact_and_add_up() {
    let json = json(1);
    let device = &json["devices"][0];
    let bytes = |key: &str| device[key].as_u64().unwrap_or_else(|| panic!("{key}"));
    assert_eq!(bytes("dram_used_bytes"), bytes("dram_buffer_bytes") + bytes("trace_used_bytes"));
    // Kernels lie in reserved memory.
    let l1 = ["l1_buffer_bytes", "l1_small_used_bytes", "cb_resident_bytes"];
    assert_eq!(bytes("l1_used_bytes"), l1.into_iter().map(bytes).sum::<u64>());
    assert_eq!(bytes("dram_requested_bytes"), bytes("dram_used_bytes") - bytes("dram_buffer_bytes") / 8);
    assert_eq!(
        (&device["basis"], &device["classes"]["trace"]["basis"]),
        (&"mixed".into(), &"requested".into())
    );
    assert_eq!(bytes("kernel_loaded_bytes"), 324 * 1024);
    assert_eq!(bytes("l1_total_bytes"), 64 * 1464 * 1024);
    assert_eq!(device["source"], serde_json::json!(["ring", "driver"]));
    assert_eq!(device["capacity_source"], "producer");
    let process = &json["processes"][0];
    assert_eq!(process["devices"][0]["dram_used_bytes"], device["dram_used_bytes"]);
}

#[test]
fn unknown_is_null() {
    let json = json(1);
    let strange = &json["devices"][1];
    for key in [
        "dram_total_bytes",
        "l1_total_bytes",
        "eth_l1_total_bytes",
        "arch",
        "board",
        "pci_address",
        "logical_id",
        "capacity_source",
        "kernel_ring_total_bytes",
        "last_failure",
    ] {
        assert_eq!(strange[key], Value::Null, "{key}");
    }
    assert_eq!((&strange["conflict"], &strange["over_capacity"]), (&Value::Bool(true), &Value::Bool(true)));
    assert_eq!(strange["dram_peak_exact"], false);
    assert_eq!(strange["dram_peak_high_bytes"], 9 << 20);
}

#[test]
fn what_is_not_exact_is_said() {
    let model = common::model(common::doubtful_snapshot());
    let json = serde_json::to_value(SnapshotJson::new(&model, "default")).unwrap();
    let device = &json["devices"][0];
    assert_eq!((&device["incomplete"], &device["dram_used_exact"]), (&true.into(), &false.into()));
    assert_eq!((&device["dram_used_high_bytes"], &device["l1_used_exact"]), (&Value::Null, &false.into()));
    assert_eq!((&device["dram_peak_exact"], &device["dram_peak_high_bytes"]), (&false.into(), &Value::Null));
    assert_eq!(device["dram_peak_time"], Value::Null, "nobody knows when");
    assert_eq!(device["l1_peak_time"], "2026-09-21T14:13:10.000000Z");
    assert_eq!(device["classes"]["l1"]["live_exact"], false);
    assert_eq!(json["processes"][0]["listed_in_part"], true);
    assert_eq!(model.processes[0].total(|held| held.dram.used), None, "a part is no total");
    // What a process counts itself is exact, whoever else could not be read.
    let usage = &json["processes"][0]["devices"][0];
    assert_eq!((&usage["dram_used_exact"], &usage["dram_peak_exact"]), (&true.into(), &true.into()));
    assert_eq!(usage["dram_peak_time"], "2026-09-21T14:13:19.000000Z");
}

#[test]
fn a_conflicting_claim_is_shown_at_its_process() {
    let model = common::model(common::doubtful_snapshot());
    let json = serde_json::to_value(SnapshotJson::new(&model, "default")).unwrap();
    let claim = &json["processes"][0]["devices"][0]["claims_conflict"];
    let expected = serde_json::json!({
        "dram_total_bytes": 4_u64 << 30, "l1_total_bytes": 64 * 1464 * 1024,
        "pci_address": "0000:12:00.0", "board": "fake",
    });
    assert_eq!(claim, &expected);
    assert_eq!(json["devices"][0]["conflict"], true);
    assert_eq!(json["devices"][0]["board"], "n300", "it alters nothing that others see");
}

#[test]
fn everything_that_is_missing_is_an_error() {
    let model = common::model(common::doubtful_snapshot());
    let json = serde_json::to_value(SnapshotJson::new(&model, "default")).unwrap();
    let kinds: Vec<&str> =
        json["errors"].as_array().unwrap().iter().filter_map(|e| e["kind"].as_str()).collect();
    assert_eq!(kinds, ["refused", "unseen", "lost", "clock", "overflow", "no_room"]);
    let overflow = json["errors"][4]["message"].as_str().unwrap();
    assert!(overflow.starts_with("4 rows") && overflow.contains("totals include them"), "{overflow}");
}

/// A heartbeat says that the aggregator lives, not that it has read what there is.
#[test]
fn the_age_is_that_of_the_figures() {
    let mut snapshot = common::snapshot(1);
    snapshot.as_of = common::NOW - 750_000_000;
    let alone = Model { origin: tt_smi::model::Origin::Embedded, ..common::model(snapshot.clone()) };
    for model in [common::model(snapshot.clone()), alone] {
        let json = serde_json::to_value(SnapshotJson::new(&model, "default")).unwrap();
        for part in [&json["aggregator"], &json["devices"][0], &json["processes"][0]] {
            assert_eq!(part["age_ms"], 750);
        }
        let mut out = Vec::new();
        tt_smi::output::csv::write_devices(&mut out, &model, "default").unwrap();
        assert!(String::from_utf8(out).unwrap().contains(",ttbox,default,750,"));
        let mut out = Vec::new();
        tt_smi::output::prometheus::write(&mut out, &model).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("tt_smi_age_seconds 0.75"));
    }
    snapshot.as_of = 0;
    let json = serde_json::to_value(SnapshotJson::new(&common::model(snapshot), "default")).unwrap();
    assert_eq!(json["aggregator"]["age_ms"], Value::Null, "nothing was folded yet");
}

#[test]
fn sources_and_self_checks_are_those_of_the_processes() {
    let mut snapshot = common::snapshot(1);
    let tap = &mut snapshot.processes[1].1;
    tap.source = tt_shm_reader::Source::Tap as u64;
    (tap.on_behalf_of, tap.self_checks, tap.self_checks_different) = (4711, 9, 2);
    let model = common::model(snapshot);
    let json = serde_json::to_value(SnapshotJson::new(&model, "default")).unwrap();
    assert_eq!(json["devices"][0]["source"], serde_json::json!(["tap", "driver"]));
    assert_eq!(json["devices"][1]["source"], serde_json::json!([]), "no process is on it");
    let process = &json["processes"][0];
    assert_eq!((&process["source"], &process["on_behalf_of"]), (&"tap".into(), &4711.into()));
    assert_eq!((&process["self_checks"], &process["self_checks_different"]), (&9.into(), &2.into()));
    assert_eq!(json["processes"][1]["on_behalf_of"], Value::Null);
}
