//! The figures of a device, or of a process on one, as JSON: the keys are the columns of the table of figures.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::model::{CLASSES, COLUMNS, Cell, Clock, Column, Device, Held, Memory, process_columns};

/// Every figure of a device, or of a process on one. A class has its figures in `classes`; beside the others stands
/// only what is live of it.
#[derive(Debug)]
pub(crate) struct FiguresJson {
    values: Vec<(&'static Column, Cell)>,
    held: Box<Held>,
    clock: Clock,
}

impl FiguresJson {
    pub(crate) fn of_device(device: &Device, clock: Clock) -> FiguresJson {
        let values = COLUMNS.iter().filter(|column| column.is_flat);
        let values = values.map(|column| (column, column.of_device(device))).collect();
        FiguresJson { values, held: Box::new(device.held), clock }
    }

    pub(crate) fn of_process(held: &Held, clock: Clock) -> FiguresJson {
        let values = process_columns().filter(|column| column.is_flat);
        let values = values.map(|column| (column, column.of_held(held))).collect();
        FiguresJson { values, held: Box::new(*held), clock }
    }
}

impl Serialize for FiguresJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (column, cell) in &self.values {
            map.serialize_entry(&column.name, &cell.json(self.clock))?;
        }
        map.serialize_entry("basis", self.held.basis())?;
        map.serialize_entry("classes", &Classes(self))?;
        map.end()
    }
}

struct Classes<'a>(&'a FiguresJson);

impl Serialize for Classes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let FiguresJson { held, clock, .. } = self.0;
        let class = |info: &crate::model::ClassInfo| {
            (info.class.name(), ClassJson::new(held.class(info.class), *clock))
        };
        serializer.collect_map(CLASSES.iter().map(class))
    }
}

#[derive(Debug, serde::Serialize)]
pub(crate) struct ClassJson {
    live_bytes: u64,
    live_exact: bool,
    requested_bytes: u64,
    basis: &'static str,
    live_count: Option<u64>,
    peak_bytes: u64,
    peak_high_bytes: Option<u64>,
    peak_exact: bool,
    peak_time: Option<String>,
    peak_count: Option<u64>,
}

impl ClassJson {
    fn new(memory: &Memory, clock: Clock) -> ClassJson {
        ClassJson {
            live_bytes: memory.used,
            live_exact: memory.used_range().is_exact(),
            requested_bytes: memory.requested,
            basis: memory.basis(),
            live_count: memory.count,
            peak_bytes: memory.peak.range.low,
            peak_high_bytes: memory.peak.range.high,
            peak_exact: memory.peak.is_exact(),
            peak_time: memory.peak.time.and_then(|time| clock.rfc3339(time)),
            peak_count: memory.peak.count,
        }
    }
}
