//! Every figure of the table is in every output, and described in the schemas.

use std::collections::BTreeSet;

use crate::common;
use serde_json::Value;
use tt_smi::model::{COLUMNS, Column, FIGURES, Model, process_columns};
use tt_smi::output::paint::Paint;
use tt_smi::output::snapshot_json::SnapshotJson;
use tt_smi::output::table::{self, Parts};
use tt_smi::output::{csv, prometheus};
use tt_smi::query::{PROCESS_FIELDS, Query};

fn model() -> Model {
    common::model(common::snapshot(1))
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn keys_and_metrics_are_unique() {
    for names in [
        COLUMNS.iter().map(|column| &column.name).collect::<Vec<_>>(),
        COLUMNS.iter().map(|column| &column.metrics[0]).collect(),
        COLUMNS.iter().map(|column| &column.metrics[1]).collect(),
        COLUMNS.iter().filter_map(|column| column.sum.as_ref()).collect(),
    ] {
        let unique: BTreeSet<&String> = names.iter().copied().collect();
        assert_eq!(unique.len(), names.len(), "{names:?}");
    }
}

#[test]
fn csv_has_every_column() {
    let model = model();
    let head = |text: String| text.lines().next().unwrap().split(',').map(str::to_owned).collect::<Vec<_>>();
    let devices = head(text(|out| csv::write_devices(out, &model, "default")));
    assert!(COLUMNS.iter().all(|column| devices.contains(&column.name)), "{devices:?}");
    let processes = head(text(|out| csv::write_processes(out, &model, "default")));
    assert!(process_columns().all(|column| processes.contains(&column.name)), "{processes:?}");
}

#[test]
fn json_has_every_column_flat_or_by_class() {
    let snapshot = serde_json::to_value(SnapshotJson::new(&model(), "default")).unwrap();
    let (device, usage) = (&snapshot["devices"][0], &snapshot["processes"][0]["devices"][0]);
    let has = |value: &Value, column: &Column| match column.class {
        Some(class) => value["classes"][class.name()].is_object(),
        None => value.as_object().unwrap().contains_key(&column.name),
    };
    for column in COLUMNS.iter() {
        assert!(has(device, column), "{}", column.name);
        assert!(column.device_only || has(usage, column), "{}", column.name);
    }
}

#[test]
fn metrics_have_every_column_that_is_known() {
    let model = model();
    let metrics = text(|out| prometheus::write(out, &model));
    for column in COLUMNS.iter() {
        let known = column.of_device(&model.devices[0]).number().is_some();
        let name = &column.metrics[0];
        assert_eq!(metrics.contains(&format!("\n{name}{{")), known, "{name}");
        assert!(!known || metrics.contains(&format!("# HELP {name} {}", column.help)), "{name}");
    }
    for column in process_columns().filter(|column| column.sum.is_some()) {
        let known = column.of_sum(&model.processes[0].usages[0].held).is_some();
        assert_eq!(metrics.contains(&format!("\n{}{{", column.metrics[1])), known, "{}", column.metrics[1]);
    }
}

#[test]
fn people_see_every_figure() {
    let model = model();
    let parts = Parts { processes: true, detail: true };
    let text = text(|out| table::write(out, &model, parts, Paint::PLAIN));
    for figure in FIGURES.iter() {
        let is_line = |line: &str| line.trim_start().starts_with(figure.label);
        assert!(text.lines().any(is_line), "{}", figure.label);
        assert!(figure.heading.is_none_or(|heading| text.contains(heading)), "{:?}", figure.heading);
    }
}

#[test]
fn queries_know_every_sum() {
    for sum in process_columns().filter_map(|column| column.sum.as_deref()) {
        let field = sum.trim_end_matches("_bytes");
        Query::about(&format!("{field}>=1"), &PROCESS_FIELDS)
            .unwrap_or_else(|error| panic!("{field}: {error}"));
    }
    let matches = |query: &str| Query::about(query, &PROCESS_FIELDS).unwrap().matches(&model().processes[0]);
    assert!(matches("cb_resident=6MiB trace_used>=64MiB kernel_count=9"));
    assert!(!matches("cb_resident>6MiB") && !matches("cb_resident_device_peaks>0"), "a bound is no value");
}

fn schema(name: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/schema/{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// What the items of an array in a document are.
fn items<'a>(schema: &'a Value, object: &'a Value, array: &str) -> &'a Value {
    let reference = object["properties"][array]["items"]["$ref"].as_str().unwrap();
    schema.pointer(reference.trim_start_matches('#')).unwrap()
}

fn assert_described<'a>(object: &Value, columns: impl Iterator<Item = (&'a String, &'a Column)>) {
    let required: Vec<&str> =
        object["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for (name, column) in columns {
        let description = object["properties"][name]["description"].as_str();
        assert!(description.is_some_and(|text| text.starts_with(&column.help)), "{name}: {description:?}");
        assert!(required.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn schemas_describe_every_column() {
    let flat = |column: &&Column| column.is_flat;
    let snapshot = schema("snapshot");
    let device = items(&snapshot, &snapshot, "devices");
    assert_described(device, COLUMNS.iter().filter(flat).map(|column| (&column.name, column)));
    let usage = items(&snapshot, items(&snapshot, &snapshot, "processes"), "devices");
    assert_described(usage, process_columns().filter(flat).map(|column| (&column.name, column)));
    let list = schema("list");
    let totals = COLUMNS.iter().filter(|column| column.name.ends_with("_total_bytes"));
    assert_described(items(&list, &list, "devices"), totals.map(|column| (&column.name, column)));
    let ps = schema("ps");
    let sums = process_columns().filter(|column| column.class.is_none());
    let sums = sums.filter_map(|column| Some((column.sum.as_ref()?, column)));
    assert_described(items(&ps, &ps, "processes"), sums);
}
