//! The snapshot as JSON: its shape, and that unknown is null.

mod common;

use serde_json::Value;
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
    assert_eq!(device["source"], "ring");
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
