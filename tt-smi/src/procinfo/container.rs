//! A container as JSON.

use serde::ser::{SerializeMap, Serializer};
use tt_shm_driver::Container;

/// Serializes both parts as keys of the process, null where there is none.
pub(crate) fn flat<S: Serializer>(container: &Option<Container>, serializer: S) -> Result<S::Ok, S::Error> {
    let container = container.as_ref();
    let mut map = serializer.serialize_map(Some(2))?;
    map.serialize_entry("container_runtime", &container.and_then(|container| container.runtime))?;
    map.serialize_entry("container_id", &container.map(|container| &container.id))?;
    map.end()
}

#[cfg(test)]
pub(crate) fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    use crate::schema::{enumeration, named, object};
    let runtime = enumeration(tt_shm_driver::RUNTIMES.to_vec(), true);
    let id = schemars::json_schema!({ "type": ["string", "null"], "pattern": "^[0-9a-f]{64}$" });
    object([
        (
            "container_runtime".to_owned(),
            named(runtime, "Who made its container; null if it is in none, or not known."),
        ),
        ("container_id".to_owned(), named(id, "Its container; null if it is in none, or not known.")),
    ])
}
