//! A process's segment, its devices and its counters.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use shm_layout::Class;
use tt_shm_reader::DeviceEntry;

use crate::errors::{self, ReadError};
use crate::live::Live;
use crate::process::Found;

/// What one process reports about itself, mapped read-only.
#[pyclass(frozen, module = "tt_shm")]
pub(crate) struct Segment {
    pub(crate) it: Arc<tt_shm_reader::Segment>,
    path: PathBuf,
}

impl From<Found> for Segment {
    fn from(found: Found) -> Segment {
        Segment { it: found.segment, path: found.path }
    }
}

#[pymethods]
impl Segment {
    /// Opens a segment by the path of its file.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Segment> {
        let opened = py.detach(|| tt_shm_reader::Segment::open(&path));
        let it = opened.map_err(|error| {
            errors::with_code(ReadError::new_err(error.to_string()), error.code(), error.errno())
        })?;
        Ok(Segment { it: Arc::new(it), path })
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The pid as the process itself sees it.
    #[getter]
    fn pid(&self) -> u32 {
        self.it.pid()
    }

    #[getter]
    fn process_name(&self) -> String {
        self.it.process_name()
    }

    #[getter]
    fn identity(&self) -> u64 {
        self.it.identity()
    }

    /// `ring`, `tap` or `bridge`; `None` if this version does not know it.
    #[getter]
    fn source(&self) -> Option<&'static str> {
        self.it.source().map(|source| source.name())
    }

    fn is_alive(&self) -> PyResult<bool> {
        Ok(self.it.is_alive()?)
    }

    fn is_closed(&self) -> bool {
        self.it.is_closed()
    }

    /// Whether the process holds memory that it cannot report.
    fn is_partial(&self) -> bool {
        self.it.is_partial()
    }

    /// Whether lists are incomplete, while totals are exact.
    fn is_degraded(&self) -> bool {
        self.it.is_degraded()
    }

    /// How often sums were compared with the allocator's, and how often they differed.
    fn self_checks(&self) -> (u64, u64) {
        let [made, different] = self.it.self_checks();
        (made, different)
    }

    fn devices(&self) -> Vec<Device> {
        self.it.devices().iter().enumerate().map(|(index, entry)| Device::new(index, entry)).collect()
    }

    /// The exact counters of all devices at one moment.
    fn counters(&self, py: Python<'_>) -> PyResult<Vec<Counters>> {
        let read = py.detach(|| self.it.counters());
        let snapshot = read.map_err(|error| {
            errors::with_code(ReadError::new_err(error.to_string()), error.code(), error.errno())
        })?;
        Ok(snapshot.counters.into_iter().map(Counters).collect())
    }

    /// Everything that is live.
    fn live(&self, py: Python<'_>) -> Live {
        py.detach(|| Live::read(&self.it))
    }

    /// The position of the last event; 0 if there was none.
    fn head(&self) -> u64 {
        self.it.head()
    }

    /// The name with this number, as events and rows carry it.
    fn name(&self, id: u16) -> Option<String> {
        self.it.name(id)
    }

    /// CLOCK_MONOTONIC nanoseconds of ticks, as `time.monotonic_ns()` has them. One conversion for all: it takes a reading
    /// of the clock.
    fn monotonic_ns(&self, ticks: Vec<u64>) -> Vec<u64> {
        let clock = self.it.calibration();
        ticks.into_iter().map(|ticks| clock.to_monotonic_ns(ticks)).collect()
    }

    fn __repr__(&self) -> String {
        format!("<tt_shm.Segment of pid {} ({})>", self.it.pid(), self.source().unwrap_or("unknown source"))
    }
}

/// One allocator on one chip, as a process describes it.
#[pyclass(frozen, get_all, eq, hash, module = "tt_shm")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Device {
    /// Its place in the segment's list, which events and rows carry.
    index: usize,
    chip_id: u64,
    logical_id: Option<u64>,
    allocator: u64,
    arch: Option<&'static str>,
    board: Option<String>,
    pci: Option<String>,
    dram_bytes: Option<u64>,
    l1_bytes: Option<u64>,
}

impl Device {
    fn new(index: usize, entry: &DeviceEntry) -> Device {
        Device {
            index,
            chip_id: entry.chip_id,
            logical_id: entry.logical(),
            allocator: entry.allocator,
            arch: entry.architecture().name(),
            board: entry.board_name(),
            pci: entry.pci_address(),
            dram_bytes: entry.dram_total(),
            l1_bytes: entry.l1_total(),
        }
    }
}

#[pymethods]
impl Device {
    fn __repr__(&self) -> String {
        let logical = self.logical_id.map_or_else(|| "None".to_owned(), |id| id.to_string());
        format!("<tt_shm.Device {logical} chip_id={:#x} allocator={}>", self.chip_id, self.allocator)
    }
}

/// The exact counters of a device at one moment. `memory` is `dram` or `l1`.
#[pyclass(frozen, module = "tt_shm")]
pub(crate) struct Counters(pub(crate) tt_shm_reader::Counters);

#[pymethods]
impl Counters {
    /// Bytes in use: occupied bytes of buffers and, in L1, of resident circular buffers.
    fn used(&self, is_l1: bool) -> u64 {
        if is_l1 { self.0.l1_used() } else { self.0.dram_used() }
    }

    /// Bytes that were requested for what is in use.
    fn requested(&self, is_l1: bool) -> u64 {
        if is_l1 { self.0.l1_requested() } else { self.0.dram_requested() }
    }

    /// The most bytes in use since the last reset of peaks.
    fn peak(&self, is_l1: bool) -> u64 {
        if is_l1 { self.0.l1_peak_bytes } else { self.0.dram_peak_bytes }
    }

    /// When peaks were last reset, in ticks; 0 if never.
    #[getter]
    fn peak_reset_time(&self) -> u64 {
        self.0.peak_reset_time
    }

    #[getter]
    fn failed_allocs(&self) -> u64 {
        self.0.failed_allocs
    }

    /// Whether the process reports the device as open.
    #[getter]
    fn is_open(&self) -> bool {
        self.0.open != 0
    }

    /// The classes of a memory and their figures: bytes in use, live bytes and count, bytes and count ever allocated,
    /// peak of live bytes, bytes requested, and live bytes of which only the requested size is known.
    fn classes<'py>(&self, py: Python<'py>, is_l1: bool) -> PyResult<Bound<'py, PyDict>> {
        let classes = PyDict::new(py);
        let belongs =
            |class: Class| if is_l1 { class.is_l1_buffer() || class == Class::Cb } else { class.is_dram() };
        for class in Class::ALL.into_iter().filter(|class| belongs(*class)) {
            let of = self.0.class(class);
            let basis = self.0.requested_basis_bytes[class as usize];
            let figures = (
                self.0.used_by_class()[class as usize],
                of.live_bytes,
                of.live_count,
                of.alloc_bytes,
                of.alloc_count,
                of.peak_bytes,
                of.requested_bytes,
                basis,
            );
            classes.set_item(class.name(), figures)?;
        }
        Ok(classes)
    }
}
