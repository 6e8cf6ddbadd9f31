//! A comparison as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::Side;
use super::held::{Change, Changes, DeviceKey};
use crate::model::{Clock, class_info, hex, rfc3339};
use crate::output::json::{self, Envelope};
#[cfg(test)]
use crate::schema;
use crate::settings::Settings;

/// The document of `tt-smi diff --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DiffJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    /// The first moment.
    a: SideJson<'a>,
    /// The second moment.
    b: SideJson<'a>,
    /// Classes of devices that hold another amount, from exact counters.
    sums: Vec<SumJson>,
    /// Names of which there is another amount, by device and class.
    names: Vec<NameJson<'a>>,
}

/// A moment of a record.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SideJson<'a> {
    /// The record.
    file: &'a str,
    /// The machine that was recorded.
    host: &'a str,
    /// The moment, RFC 3339, UTC.
    #[cfg_attr(test, schemars(schema_with = "schema::timestamp"))]
    time: String,
    /// Whether everything that was live then is known.
    exact: bool,
}

/// A class of a device that holds another amount.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SumJson {
    #[serde(flatten)]
    on: OnJson,
    #[serde(flatten)]
    amounts: AmountsJson,
}

/// A name of which there is another amount.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NameJson<'a> {
    #[serde(flatten)]
    on: OnJson,
    /// The name; `None` if the memory has none.
    name: Option<&'a str>,
    #[serde(flatten)]
    amounts: AmountsJson,
}

/// Where memory is.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OnJson {
    /// The chip, in hexadecimal.
    #[serde(serialize_with = "hex")]
    #[cfg_attr(test, schemars(schema_with = "schema::hex"))]
    chip_id: u64,
    /// The number that processes have for the device; `None` if unknown.
    logical_id: Option<u64>,
    /// The class of memory.
    class: &'static str,
}

/// Amounts at both moments.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AmountsJson {
    /// Bytes that are occupied at the first moment.
    a_bytes: u64,
    /// Bytes that are occupied at the second moment.
    b_bytes: u64,
    /// The second minus the first.
    difference_bytes: i64,
    /// Allocations at the first moment.
    a_count: u64,
    /// Allocations at the second moment.
    b_count: u64,
}

pub(super) fn write(
    out: &mut dyn Write,
    settings: &Settings,
    [a, b]: [&Side; 2],
    changes: &Changes,
) -> io::Result<()> {
    let on = |device: usize, change: &Change| on(changes.devices[device], change);
    let document = DiffJson {
        envelope: Envelope::new(Clock::now(), &b.host, settings.namespace.as_str()),
        a: SideJson::new(a),
        b: SideJson::new(b),
        sums: changes
            .sums
            .iter()
            .map(|(device, change)| SumJson { on: on(*device, change), amounts: AmountsJson::new(change) })
            .collect(),
        names: changes
            .names
            .iter()
            .map(|(device, change)| NameJson {
                on: on(*device, change),
                name: change.name.as_deref().filter(|name| !name.is_empty()),
                amounts: AmountsJson::new(change),
            })
            .collect(),
    };
    json::write(out, &document)
}

fn on((logical_id, chip_id): DeviceKey, change: &Change) -> OnJson {
    OnJson { chip_id, logical_id, class: class_info(change.class).key }
}

impl SideJson<'_> {
    fn new(side: &Side) -> SideJson<'_> {
        SideJson { file: &side.file, host: &side.host, time: rfc3339(side.time_ns), exact: side.exact }
    }
}

impl AmountsJson {
    fn new(change: &Change) -> AmountsJson {
        let bytes = change.bytes();
        AmountsJson {
            a_bytes: change.before.bytes,
            b_bytes: change.after.bytes,
            difference_bytes: i64::try_from(bytes).unwrap_or(if bytes < 0 { i64::MIN } else { i64::MAX }),
            a_count: change.before.count,
            b_count: change.after.count,
        }
    }
}
