//! Why what processes report of a chip may not be all that is in use there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use tt_shm_aggregator::{Source, SourceConfig, SourceError};
use tt_shm_reader::{Namespace, device_flags};

use crate::errors;

/// What takes "exact" away from the sum of all processes on a chip.
const DOUBTS: [(u64, &str); 4] = [
    (
        device_flags::UNREPORTED_HOLDER,
        "a process holds the chip and does not report (tt-smi doctor names it)",
    ),
    (device_flags::INCOMPLETE, "a process that cannot be read may hold memory there"),
    (device_flags::CONFLICT, "processes disagree about the chip"),
    (device_flags::OVER_CAPACITY, "processes report more than the chip has"),
];

/// The chips that an aggregator, or else an aggregation here, has doubts about, and what those are: also what the driver and
/// tt-metal's regions tell of processes that do not report. `root` is where /sys, /proc and /dev/shm of those are.
#[pyfunction]
#[pyo3(signature = (namespace=None, root=PathBuf::from("/")))]
pub(crate) fn chip_doubts(
    py: Python<'_>,
    namespace: Option<String>,
    root: PathBuf,
) -> PyResult<BTreeMap<u64, Vec<&'static str>>> {
    let namespace = match namespace {
        Some(name) => Namespace::new(&name),
        None => Namespace::from_env(),
    };
    let namespace = namespace.map_err(|error| errors::Error::new_err(error.to_string()))?;
    let config = SourceConfig {
        namespace,
        driver: Some(tt_shm_driver::Roots::below(&root)),
        regions: Some(tt_shm_region::Roots::below(&root)),
    };
    let reading = py.detach(|| Source::with(config)?.read());
    let failed = |error: SourceError| {
        errors::with_code(errors::ReadError::new_err(error.to_string()), error.code(), error.errno())
    };
    let devices = reading.map_err(failed)?.snapshot.devices;
    Ok(devices
        .into_iter()
        .map(|(_, device)| {
            let doubts = DOUBTS.iter().filter(|(flag, _)| device.flags & flag != 0);
            (device.entry.chip_id, doubts.map(|(_, text)| *text).collect::<Vec<_>>())
        })
        .filter(|(_, doubts)| !doubts.is_empty())
        .collect())
}
