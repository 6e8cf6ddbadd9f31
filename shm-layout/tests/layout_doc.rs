//! The tables of `docs/layout.md` are those of the code: `UPDATE_EXPECTED=1 cargo test -p shm-layout` writes
//! them between their markers, and without it this test fails if the document differs.

use shm_layout::control::{self as segment_control, Anomaly};
use shm_layout::describe::{Codes, Constant, Field, Fields, LIMITS};
use shm_layout::table::{self, control as table_control};
use shm_layout::{Class, EventKind, RowKind, flags, known};
use std::path::Path;

const DOCUMENT: &str = include_str!("../../docs/layout.md");

/// A generated part of the document: from the line `<!-- marker -->` to the line `<!-- end -->`.
struct Table {
    marker: String,
    text: String,
}

/// A struct and its fields.
#[derive(Clone, Copy)]
struct Struct {
    name: &'static str,
    size: usize,
    fields: &'static [Field],
}

fn of<T: Fields>() -> Struct {
    Struct { name: T::NAME, size: size_of::<T>(), fields: T::FIELDS }
}

fn structs() -> [Struct; 27] {
    [
        of::<shm_layout::SegmentHeader>(),
        of::<shm_layout::Block>(),
        of::<shm_layout::DeviceEntry>(),
        of::<shm_layout::Pool>(),
        of::<shm_layout::Counters>(),
        of::<shm_layout::Lane>(),
        of::<shm_layout::ClassCounters>(),
        of::<shm_layout::Event>(),
        of::<shm_layout::Row>(),
        of::<table::TableHeader>(),
        of::<table::DeviceStats>(),
        of::<table::Peak>(),
        of::<table::Composition>(),
        of::<table::Holder>(),
        of::<table::ClassStats>(),
        of::<table::Failure>(),
        of::<table::ProcessStats>(),
        of::<table::UsageStats>(),
        of::<table::Bucket>(),
        of::<table::Notice>(),
        of::<table::FailureRecord>(),
        of::<table::FailureHolder>(),
        of::<table::PastEvent>(),
        of::<table::DriverStats>(),
        of::<table::Trend>(),
        of::<table::TelemetryBucket>(),
        of::<table::RegionStats>(),
    ]
}

/// The modules of flags: heading of the first column, and the constants.
const FLAGS: [(&str, &[Constant]); 10] = [
    ("known", known::ALL),
    ("flag", flags::ALL),
    ("state bit", segment_control::state::ALL),
    ("device flag", table::device_flags::ALL),
    ("process flag", table::process_flags::ALL),
    ("usage flag", table::usage_flags::ALL),
    ("bucket flag", table::bucket_flags::ALL),
    ("failure flag", table::failure_flags::ALL),
    ("driver flag", table::driver_flags::ALL),
    ("region flag", table::region_flags::ALL),
];

/// The other modules of constants, and codes that have no other name than that of the variant.
const VALUES: [(&str, &[Constant]); 9] = [
    ("segment word", segment_control::ALL),
    ("table word", table_control::ALL),
    ("row kind", RowKind::CODES),
    ("process state", table::process_state::ALL),
    ("notice kind", table::notice_kind::ALL),
    ("told", table::Told::CODES),
    ("region kind", table::region_kind::ALL),
    ("region state", table::region_state::ALL),
    ("absent", table::Absent::CODES),
];

fn tables() -> Vec<Table> {
    let structs = structs();
    let fields = structs.iter().map(|one| {
        let rows = one.fields.iter().map(|field| (field_cells(field, &structs), field.doc));
        let grid = grid("offset | size | type | field", rows);
        let text = format!("### {} ({} bytes)\n\n{grid}", one.name, one.size);
        Table { marker: format!("fields: {}", one.name), text }
    });
    let named = |(heading, constants): (&str, &[Constant]), number: fn(u64) -> String| {
        let row = |one: &Constant| (format!("{} | {}", number(one.value), one.name), one.doc);
        values(heading, "name", constants.iter().map(row))
    };
    let limits = LIMITS.into_iter().flatten().map(|one| (format!("{} | {}", one.name, one.value), one.doc));
    fields
        .chain(FLAGS.map(|module| named(module, |value| format!("{value:#x}"))))
        .chain(VALUES.map(|module| named(module, |value| value.to_string())))
        .chain([
            codes::<Class>("class", &Class::ALL.map(Class::name)),
            codes::<EventKind>("kind", &EventKind::ALL.map(EventKind::label)),
            codes::<Anomaly>("anomaly", &Anomaly::ALL.map(Anomaly::name)),
            values("constant", "value", limits),
        ])
        .collect()
}

/// The codes of an enum with these names.
fn codes<T: Codes>(heading: &str, names: &[&str]) -> Table {
    assert_eq!(T::CODES.len(), names.len(), "{heading}");
    let rows = T::CODES.iter().zip(names);
    values(heading, "name", rows.map(|(code, name)| (format!("{} | {name}", code.value), code.doc)))
}

fn values(heading: &str, second: &str, rows: impl Iterator<Item = (String, &'static str)>) -> Table {
    Table { marker: format!("values: {heading}"), text: grid(&format!("{heading} | {second}"), rows) }
}

/// A table with a heading and rows of (cells, doc comment).
fn grid(heading: &str, rows: impl Iterator<Item = (String, &'static str)>) -> String {
    let rule = "|---".repeat(heading.split('|').count() + 1);
    let head = format!("| {heading} | meaning |\n{rule}|\n");
    rows.fold(head, |text, (cells, doc)| text + &format!("| {cells} | {} |\n", description(doc)))
}

/// The first paragraph of a doc comment on one line, links replaced by their text.
fn description(doc: &str) -> String {
    let lines: Vec<&str> = doc.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let mut text = lines.join(" ");
    while let Some((before, rest)) = text.split_once('[') {
        let (name, after) = rest.split_once(']').expect("the end of a link");
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        text = format!("{before}{name}{}", target.map_or(after, |(_, after)| after));
    }
    text.trim_end_matches('.').replace('|', "\\|")
}

fn field_cells(field: &Field, structs: &[Struct]) -> String {
    let Field { name, offset, size, ty, .. } = field;
    let element = ty.trim_start_matches('[').split(';').next().expect("a type");
    let (shown, bytes) = match element {
        "u8" => (element.to_owned(), 1),
        "u16" => (element.to_owned(), 2),
        "u32" => (element.to_owned(), 4),
        "u64" => (element.to_owned(), 8),
        _ => {
            let one = structs.iter().find(|one| one.name == element);
            let one = one.unwrap_or_else(|| panic!("{element} of {name} is not documented"));
            (format!("`{element}`"), one.size)
        }
    };
    let shown = if element == *ty { shown } else { format!("{} x {shown}", size / bytes) };
    format!("{offset} | {size} | {shown} | {name}")
}

/// The document with these tables between their markers.
fn with_tables(document: &str, tables: &[Table]) -> String {
    tables.iter().fold(document.to_owned(), |document, Table { marker, text }| {
        let start = format!("<!-- {marker} -->\n");
        let (before, rest) = document.split_once(&start).unwrap_or_else(|| panic!("no {start:?}"));
        let (_, after) = rest.split_once("<!-- end -->").unwrap_or_else(|| panic!("no end of {start:?}"));
        format!("{before}{start}{text}<!-- end -->{after}")
    })
}

#[test]
fn the_tables_are_those_of_the_code() {
    let tables = tables();
    let (_, below_the_title) = DOCUMENT.split_once('\n').expect("a title");
    let expected = with_tables(&format!("{}\n{below_the_title}", title()), &tables);
    assert_eq!(expected.matches("<!-- end -->").count(), tables.len(), "a table of the document is unknown");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/layout.md");
        std::fs::write(path, expected).expect("docs/layout.md is written");
    } else {
        let differs = DOCUMENT.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
        let hint = "write it anew with UPDATE_EXPECTED=1 cargo test -p shm-layout";
        assert!(DOCUMENT == expected, "docs/layout.md differs ({hint}): {differs:#?}");
    }
}

/// Whatever is declared for the document is in a table of it.
#[test]
fn nothing_that_is_declared_is_left_out() {
    let declarations = ["constants! {\n", "codes! {\n", "shared_struct! {\n", "viewed_struct! {\n"];
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = [source.clone(), source.join("table")].into_iter().flat_map(|folder| {
        let entries =
            std::fs::read_dir(folder).expect("the sources").map(|entry| entry.expect("an entry").path());
        entries.filter(|path| path.is_file()).collect::<Vec<_>>()
    });
    let count = |text: &str| declarations.iter().map(|start| text.matches(start).count()).sum::<usize>();
    let declared: usize = files.map(|path| count(&std::fs::read_to_string(path).expect("a source"))).sum();
    // All limits are in one table, and `viewed_struct!` uses `shared_struct!` once.
    assert_eq!(declared, tables().len() - 1 + LIMITS.len() + 1);
}

/// The document is for readers in any language: no path and no name of a source file or module.
#[test]
fn the_document_names_nothing_that_it_does_not_define() {
    for name in [".rs`", "::", "_flags`", "SEGMENT_MAGIC", "TABLE_MAGIC", "process_state", "notice_kind"] {
        assert!(!DOCUMENT.contains(name), "{name}");
    }
}

fn title() -> String {
    let (major, minor) = (shm_layout::MAJOR, shm_layout::MINOR);
    format!("# Layout of the shared memory, version {major}.{minor}")
}
