//! The figures of a device, or of a process on one, as JSON: the keys are the columns of the table of figures.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::{Basis, CLASSES, COLUMNS, Cell, Column, Device, Held, Memory, Moment, process_columns};

/// Every figure of a device. A class has its figures in `classes`; beside the others stands only what is live of it.
#[derive(Debug)]
pub struct DeviceFigures<'a>(pub &'a Device);

impl Serialize for DeviceFigures<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cells = COLUMNS.iter().map(|column| (column, column.of_device(self.0)));
        figures(cells, &self.0.held, serializer)
    }
}

/// Every figure of a process on a device, likewise.
impl Serialize for Held {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        figures(process_columns().map(|column| (column, column.of_held(self))), self, serializer)
    }
}

fn figures<S: Serializer>(
    cells: impl Iterator<Item = (&'static Column, Cell)>,
    held: &Held,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (column, cell) in cells.filter(|(column, _)| column.is_flat) {
        map.serialize_entry(&column.name, &cell)?;
    }
    map.serialize_entry("basis", &held.basis())?;
    map.serialize_entry("classes", &Classes(held))?;
    map.end()
}

/// The classes by name.
struct Classes<'a>(&'a Held);

impl Serialize for Classes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let class =
            |info: &super::ClassInfo| (info.class.name(), ClassFigures::from(self.0.class(info.class)));
        serializer.collect_map(CLASSES.iter().map(class))
    }
}

/// A memory class.
///
/// Not a [`Memory`]: flat, without what only whole memories have, and with what follows from the rest.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ClassFigures {
    /// Bytes occupied.
    live_bytes: u64,
    /// Whether live bytes, requested bytes and counts are exact; if not, they are at least that.
    live_exact: bool,
    /// Bytes that were asked for.
    requested_bytes: u64,
    /// Whether live_bytes are what is occupied, or what was requested, where processes report no more.
    basis: Basis,
    /// Allocations live.
    // Of every class they are counted.
    #[cfg_attr(test, schemars(with = "u64"))]
    live_count: Option<u64>,
    /// Most bytes live that were seen.
    peak_bytes: u64,
    /// Most that can have been live; equal to the peak if that is exact; `None` if nobody knows.
    peak_high_bytes: Option<u64>,
    /// Whether the peak is exact.
    peak_exact: bool,
    /// When the certain peak was reached first, by the process that knows it; `None` if nobody knows, or there was
    /// none. Never when somebody looked.
    peak_time: Option<Moment>,
    /// Allocations at the peak; `None` if there was none.
    peak_count: Option<u64>,
}

impl From<&Memory> for ClassFigures {
    fn from(memory: &Memory) -> ClassFigures {
        ClassFigures {
            live_bytes: memory.used,
            live_exact: memory.used_range().is_exact(),
            requested_bytes: memory.requested,
            basis: memory.basis(),
            live_count: memory.count,
            peak_bytes: memory.peak.range.low,
            peak_high_bytes: memory.peak.range.high,
            peak_exact: memory.peak.is_exact(),
            peak_time: memory.peak.time,
            peak_count: memory.peak.count,
        }
    }
}

#[cfg(test)]
mod schema {
    use schemars::{JsonSchema, Schema, SchemaGenerator};

    use super::*;
    use crate::schema::{by_class, column_of, named, object};

    fn figures(columns: impl Iterator<Item = &'static Column>, generator: &mut SchemaGenerator) -> Schema {
        let flat =
            columns.filter(|column| column.is_flat).map(|column| (column.name.clone(), column_of(column)));
        let basis = "Whether the bytes of buffers are what they occupy, or what was requested, where processes report no more.";
        let basis = named(Basis::json_schema(generator), basis);
        let class = generator.subschema_for::<ClassFigures>();
        let classes = named(by_class(&class), "By memory class.");
        object(flat.chain([("basis".to_owned(), basis), ("classes".to_owned(), classes)]))
    }

    impl JsonSchema for DeviceFigures<'_> {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "DeviceFigures".into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            figures(COLUMNS.iter(), generator)
        }
    }

    impl JsonSchema for Held {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Held".into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            figures(process_columns(), generator)
        }
    }
}
