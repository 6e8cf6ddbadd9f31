//! Every figure of the table is in every output, and described in the schemas.

use std::collections::BTreeSet;

use crate::common;
use serde_json::{Map, Value, json};
use tt_smi::model::{COLUMNS, Column, FIGURES, Model, Unit, process_columns};
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

/// How a column is described in a schema.
fn described(column: &Column) -> Value {
    let nullable = column.may_be_unknown();
    let kind = |name: &str| if nullable { json!([name, "null"]) } else { json!(name) };
    let mut schema = match column.unit {
        Unit::Bytes | Unit::Count | Unit::Total => json!({ "type": kind("integer"), "minimum": 0 }),
        Unit::Rate => json!({ "type": kind("number"), "minimum": 0 }),
        Unit::Flag => json!({ "type": kind("boolean") }),
        Unit::Time => json!({
            "type": kind("string"),
            "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z$",
        }),
    };
    schema["description"] = json!(column.help);
    schema
}

/// Puts the descriptions of the columns into an object's; they come after the others.
fn describe(object: &mut Value, columns: impl Iterator<Item = (String, Value)>) {
    for (name, schema) in columns {
        let required = object["required"].as_array_mut().unwrap();
        if !required.contains(&json!(name)) {
            required.push(json!(name));
        }
        object["properties"].as_object_mut().unwrap().insert(name, schema);
    }
}

fn check_schema(name: &str, change: impl FnOnce(&mut Value)) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/schema/{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap();
    let before: Value = serde_json::from_str(&text).unwrap();
    let mut after = before.clone();
    change(&mut after);
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        std::fs::write(&path, serde_json::to_string_pretty(&after).unwrap() + "\n").unwrap();
    } else {
        assert_eq!(before, after, "{name}: rewrite it with INSTA_UPDATE=always cargo test -p tt-smi");
    }
}

#[test]
fn schemas_describe_every_column() {
    let columns = |columns: Vec<&'static Column>| -> Map<String, Value> {
        columns.into_iter().map(|column| (column.name.clone(), described(column))).collect()
    };
    check_schema("snapshot", |schema| {
        let all = columns(COLUMNS.iter().filter(|column| column.is_flat).collect());
        describe(&mut schema["$defs"]["device"], all.into_iter());
        let own = columns(process_columns().filter(|column| column.is_flat).collect());
        describe(&mut schema["$defs"]["usage"], own.into_iter());
    });
    check_schema("list", |schema| {
        let totals = columns(COLUMNS.iter().filter(|column| column.name.ends_with("_total_bytes")).collect());
        describe(&mut schema["properties"]["devices"]["items"], totals.into_iter());
    });
    check_schema("ps", |schema| {
        let sums = process_columns().filter(|column| column.class.is_none());
        let sums = sums.filter_map(|column| {
            let help = format!("{} Summed over all devices; null if that is not known.", column.help);
            let schema = json!({ "type": ["integer", "null"], "minimum": 0, "description": help });
            Some((column.sum.clone()?, schema))
        });
        describe(&mut schema["properties"]["processes"]["items"], sums);
    });
}
