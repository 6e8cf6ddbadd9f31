//! docs/schema, written from the types that are serialized: `UPDATE_EXPECTED=1 cargo test -p tt-smi` writes it anew.
//!
//! A description is the first paragraph of the doc comment of the type or field; `None` in it is null in JSON.

use std::collections::BTreeSet;
use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use shm_layout::Arch;
use tt_shm_reader::{Anomaly, Class, EventKind, Source};

use crate::bench::FindingsJson;
use crate::commands::{allocations, cores, diff, doctor, history, list, oom, peak, programs, ps, run};
use crate::lists::events::Happened;
use crate::model::{CLASSES, Column, PRODUCER, Unit, Word, event_name};
use crate::output::json::SCHEMA;
use crate::output::snapshot_json::SnapshotJson;
use crate::serve::{Following, Lost};

/// A document: its name, its title, and the schema of its type.
type Document = (&'static str, &'static str, fn() -> Schema);

/// Every document. A command with another one adds it here.
const DOCUMENTS: [Document; 15] = [
    ("allocations", "tt-smi allocations --json", of::<allocations::json::ListingJson<'_>>),
    ("bench", "tt-smi bench --json", of::<FindingsJson<'_>>),
    ("cores", "tt-smi cores --json", of::<cores::json::CoresJson<'_>>),
    ("diff", "tt-smi diff --json", of::<diff::json::DiffJson<'_>>),
    ("doctor", "tt-smi doctor --json", of::<doctor::DoctorJson<'_>>),
    ("event", "Each line of tt-smi events --json", of::<Happened>),
    ("history", "tt-smi history --json", of::<history::HistoryJson<'_>>),
    ("list", "tt-smi list --json", of::<list::ListJson<'_>>),
    ("oom", "tt-smi oom --json", of::<oom::json::OomJson<'_>>),
    ("peak", "tt-smi peak --json", of::<peak::PeaksJson<'_>>),
    ("programs", "tt-smi programs --json", of::<programs::json::ListingJson<'_>>),
    ("ps", "tt-smi ps --json", of::<ps::PsJson<'_>>),
    ("run", "The file of tt-smi run --json FILE", of::<run::json::RunJson<'_>>),
    ("stream", "Messages of /api/v1/events that are no events of a process", of::<Notice>),
    (
        "snapshot",
        "tt-smi snapshot --json, tt-smi -s, each line of tt-smi watch, and /api/v1/snapshot",
        of::<SnapshotJson<'_>>,
    ),
];

/// A message of a stream that is no event of a process.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum Notice {
    Following(Following),
    Lost(Lost),
}

#[test]
fn docs_have_the_schemas_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema");
    for (name, title, schema) in DOCUMENTS {
        let path = folder.join(format!("{name}.json"));
        let text = serde_json::to_string_pretty(&document(name, title, schema())).unwrap() + "\n";
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == text, "{name}: write it anew with UPDATE_EXPECTED=1 cargo test -p tt-smi");
    }
    let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name());
    let names = DOCUMENTS.map(|(name, ..)| format!("{name}.json").into());
    assert_eq!(files.collect::<BTreeSet<_>>(), names.into(), "a schema of no document");
}

fn of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(Tidy);
    settings.into_generator().into_root_schema_for::<T>()
}

fn document(name: &str, title: &str, schema: Schema) -> Value {
    let mut document = Map::new();
    let id = format!("urn:tt-smi:schema:{SCHEMA}:{name}");
    document.insert("$schema".to_owned(), json!(SchemaSettings::draft2020_12().meta_schema));
    document.insert("$id".to_owned(), json!(id));
    document.insert("title".to_owned(), json!(title));
    let Value::Object(rest) = schema.to_value() else { panic!("{name} is no object") };
    // The title describes it.
    for (key, value) in rest.into_iter().filter(|(key, _)| key != "description") {
        document.entry(key).or_insert(value);
    }
    document.into()
}

/// Closes objects, and says of numbers and texts only what JSON knows of them.
#[derive(Clone)]
struct Tidy;

impl Transform for Tidy {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if schema.get("properties").is_some() {
            schema.insert("additionalProperties".to_owned(), json!(false));
        }
        // The widths of Rust's numbers. None of those with a point is negative.
        if schema.remove("format") == Some(json!("double")) {
            schema.insert("minimum".to_owned(), json!(0));
        }
        if let Some(Value::String(text)) = schema.get_mut("description") {
            let first = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
            *text = first.replace(". `None`", ". Null").replace("`None`", "null").replace('`', "");
        }
    }
}

/// A schema with a description.
pub(crate) fn named(mut schema: Schema, description: impl Into<String>) -> Schema {
    schema.insert("description".to_owned(), description.into().into());
    schema
}

/// An object with these keys, all of them required.
pub(crate) fn object(properties: impl IntoIterator<Item = (String, Schema)>) -> Schema {
    let properties: Map<String, Value> =
        properties.into_iter().map(|(name, schema)| (name, schema.to_value())).collect();
    let required: Vec<&String> = properties.keys().collect();
    json_schema!({ "type": "object", "required": required, "properties": properties })
}

/// One of these words.
pub(crate) fn enumeration(words: impl IntoIterator<Item = &'static str>, may_be_null: bool) -> Schema {
    let words = words.into_iter().map(Value::from);
    match may_be_null {
        true => {
            json_schema!({ "type": ["string", "null"], "enum": words.chain([Value::Null]).collect::<Vec<_>>() })
        }
        false => json_schema!({ "type": "string", "enum": words.collect::<Vec<_>>() }),
    }
}

fn all<T: Word>() -> impl Iterator<Item = &'static str> {
    T::ALL.iter().map(|value| value.word())
}

pub(crate) fn words<T: Word>(_: &mut SchemaGenerator) -> Schema {
    enumeration(all::<T>(), false)
}

pub(crate) fn words_or_null<T: Word>(_: &mut SchemaGenerator) -> Schema {
    enumeration(all::<T>(), true)
}

pub(crate) fn list_of_words<T: Word>(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": enumeration(all::<T>(), false) })
}

/// Kinds of events, and what those of later versions are called.
pub(crate) fn event(_: &mut SchemaGenerator) -> Schema {
    enumeration(all::<EventKind>().chain([event_name(None)]), false)
}

/// Codes that no table lists: as many as any of them has.
const CODES: std::ops::Range<u64> = 0..64;

pub(crate) fn arch(_: &mut SchemaGenerator) -> Schema {
    enumeration(CODES.filter_map(|code| Arch::from_code(code).name()), true)
}

/// Who writes segments; the last two are reserved.
fn source_words() -> Schema {
    let known = CODES.filter_map(Source::from_code).map(Source::name);
    enumeration(known.chain(["tt-metal", "driver"]), false)
}

pub(crate) fn source(_: &mut SchemaGenerator) -> Schema {
    source_words()
}

pub(crate) fn sources(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": named(source_words(), "Who writes a segment.") })
}

/// Who says how much memory there is; `nominal` is reserved for lists of boards.
pub(crate) fn capacity_source(_: &mut SchemaGenerator) -> Schema {
    enumeration([PRODUCER, "nominal"], true)
}

pub(crate) fn version(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "const": SCHEMA })
}

/// RFC 3339, UTC, to the microsecond.
pub(crate) fn time(may_be_null: bool) -> Schema {
    let kind = if may_be_null { json!(["string", "null"]) } else { json!("string") };
    let pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$";
    json_schema!({ "type": kind, "pattern": pattern })
}

pub(crate) fn timestamp(_: &mut SchemaGenerator) -> Schema {
    time(false)
}

pub(crate) fn hex(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^0x[0-9a-f]{16}$" })
}

pub(crate) fn hex_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "pattern": "^0x[0-9a-f]{16}$" })
}

pub(crate) fn count_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["integer", "null"], "minimum": 0 })
}

pub(crate) fn pci_address(_: &mut SchemaGenerator) -> Schema {
    let pattern = r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$";
    json_schema!({ "type": ["string", "null"], "pattern": pattern })
}

/// A value of a figure.
pub(crate) fn column_of(column: &Column) -> Schema {
    let kind = |name: &str| if column.may_be_unknown() { json!([name, "null"]) } else { json!(name) };
    let schema = match column.unit {
        Unit::Bytes | Unit::Count | Unit::Total => json_schema!({ "type": kind("integer"), "minimum": 0 }),
        Unit::Rate => json_schema!({ "type": kind("number"), "minimum": 0 }),
        // A temperature may be below zero, and a sensor may say anything.
        Unit::Measure => json_schema!({ "type": kind("number") }),
        Unit::Flag => json_schema!({ "type": kind("boolean") }),
        Unit::Time => time(column.may_be_unknown()),
    };
    named(schema, column.help.as_str())
}

/// The same for every class, which the class's own help describes.
pub(crate) fn by_class(schema: &Schema) -> Schema {
    object(CLASSES.iter().map(|info| (info.class.name().to_owned(), named(schema.clone(), info.help))))
}

pub(crate) fn by_class_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    by_class(&generator.subschema_for::<T>())
}

/// What is held of each class. What its help says need not be true of that: some may count only while resident.
pub(crate) fn classes_bytes(_: &mut SchemaGenerator) -> Schema {
    object(all::<Class>().map(|word| (word.to_owned(), number("Bytes."))))
}

pub(crate) fn classes_bytes_or_null(generator: &mut SchemaGenerator) -> Schema {
    by_class_of::<Option<u64>>(generator)
}

fn number(description: &str) -> Schema {
    named(json_schema!({ "type": "integer", "minimum": 0 }), description)
}

/// Numbers by words; what there is nothing of is left out.
fn some<T: Word>(description: &str) -> Schema {
    let mut schema = object(all::<T>().map(|word| (word.to_owned(), number(description))));
    schema.remove("required");
    schema
}

pub(crate) fn some_classes_bytes(_: &mut SchemaGenerator) -> Schema {
    some::<Class>("Bytes.")
}

pub(crate) fn some_classes_counts(_: &mut SchemaGenerator) -> Schema {
    some::<Class>("Allocations.")
}

pub(crate) fn anomalies(_: &mut SchemaGenerator) -> Schema {
    some::<Anomaly>("How often.")
}
