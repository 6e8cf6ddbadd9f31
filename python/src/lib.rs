//! The writer and the reader for Python, as the module `tt_shm._tt_shm`.
//!
//! It has what needs Rust: segments, events, trackers, and the polling of a step. What a user sees, and what the figures
//! mean, is in the package `tt_shm` beside it (`python/tt_shm`). Whatever takes time is done without the interpreter's
//! lock, and no lock of ours is held while that one is awaited, so a child that is forked at any moment can go on.

mod chips;
mod errors;
mod events;
mod live;
mod process;
mod segment;
mod step;
mod tracker;

use std::collections::BTreeMap;

use pyo3::prelude::*;
use shm_layout::{Class, EventKind};

/// The compiled part of tt_shm.
#[pymodule]
mod _tt_shm {
    use super::*;
    #[pymodule_export]
    use crate::chips::chip_doubts;
    #[pymodule_export]
    use crate::errors::{Error, OpenError, ReadError, RecordError};
    #[pymodule_export]
    use crate::events::{Event, Follower};
    #[pymodule_export]
    use crate::live::{Allocation, Live};
    #[pymodule_export]
    use crate::process::{Process, all_segments};
    #[pymodule_export]
    use crate::segment::{Counters, Device, Segment};
    #[pymodule_export]
    use crate::step::{StepDevice, StepLevel, StepSegment, Watch};
    #[pymodule_export]
    use crate::tracker::{Tracker, TrackerDevice};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Of those that Python code raises.
        let error = module.getattr("Error")?;
        error.setattr("code", 0)?;
        error.setattr("errno", module.py().None())?;
        let kinds = EventKind::ALL.map(|kind| (kind as u8, kind.label()));
        module.add("EVENT_KINDS", BTreeMap::from(kinds))?;
        let classes = Class::ALL.map(|class| (class as u8, class.name()));
        module.add("MEMORY_CLASSES", BTreeMap::from(classes))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
