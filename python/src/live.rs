//! The live list of a process, as objects and as the buffer of an array.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;
use shm_layout::{Class, Row, RowKind, UNKNOWN};

/// Everything that was live in a process at one moment.
#[pyclass(frozen, module = "tt_shm")]
pub(crate) struct Live {
    segment: Arc<tt_shm_reader::Segment>,
    rows: Vec<Row>,
    now_ns: u64,
    times_ns: Vec<u64>,
    #[pyo3(get)]
    exact: bool,
    #[pyo3(get)]
    unlisted: u64,
    #[pyo3(get)]
    position: u64,
}

impl Live {
    pub(crate) fn read(segment: &Arc<tt_shm_reader::Segment>) -> Live {
        let mut rows = Vec::new();
        let list = segment.rows_into(&mut rows);
        rows.retain(|row| row.kind != RowKind::Program as u8);
        let clock = segment.calibration();
        let times_ns = rows.iter().map(|row| clock.to_monotonic_ns(row.time)).collect();
        Live {
            segment: segment.clone(),
            rows,
            now_ns: clock.second.monotonic_ns,
            times_ns,
            exact: list.exact && list.unlisted == 0,
            unlisted: list.unlisted,
            position: list.position,
        }
    }

    fn names_of(&self, ids: impl Iterator<Item = u16>) -> BTreeMap<u16, String> {
        let mut names = BTreeMap::new();
        for id in ids.filter(|id| *id != 0) {
            if !names.contains_key(&id)
                && let Some(name) = self.segment.name(id)
            {
                names.insert(id, name);
            }
        }
        names
    }
}

#[pymethods]
impl Live {
    fn __len__(&self) -> usize {
        self.rows.len()
    }

    /// The rows as 64 bytes each, where they are: whoever has the buffer keeps this object.
    ///
    /// # Safety
    ///
    /// Only the interpreter calls this, with a view that it may fill.
    unsafe fn __getbuffer__(this: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let bytes: &[u8] = bytemuck::must_cast_slice(&this.get().rows);
        let (start, length) = (bytes.as_ptr().cast_mut().cast(), bytes.len() as isize);
        // SAFETY: the view is the interpreter's; the bytes never change, and live as long as the object, of which the view gets
        // a reference. It is read-only.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, this.as_ptr(), start, length, 1, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(this.py())) }
    }

    /// The names that rows carry by number.
    fn names(&self) -> BTreeMap<u16, String> {
        self.names_of(self.rows.iter().flat_map(|row| [row.name, row.site, row.place]))
    }

    /// CLOCK_MONOTONIC nanoseconds at which each was allocated.
    fn times_ns(&self) -> Vec<u64> {
        self.times_ns.clone()
    }

    /// The allocations on devices, oldest first.
    fn allocations(&self) -> Vec<Allocation> {
        let (names, devices) = (self.names(), self.segment.devices());
        let name_of = |id: u16| names.get(&id).cloned();
        let one = |(row, time): (&Row, &u64)| Allocation {
            device: row.device,
            chip_id: devices.get(usize::from(row.device)).map(|device| device.chip_id),
            logical_id: devices.get(usize::from(row.device)).and_then(|device| device.logical()),
            kind: row.class().map_or("unknown", Class::name),
            id: row.id,
            size: row.size,
            requested: row.requested(),
            address: Some(row.address)
                .filter(|address| *address != UNKNOWN && row.kind != RowKind::Kernel as u8),
            cores: Some(row.cores).filter(|cores| *cores != 0),
            program: row.program(),
            name: name_of(row.name),
            site: name_of(row.site),
            age_ns: self.now_ns.saturating_sub(*time),
        };
        self.rows.iter().zip(&self.times_ns).map(one).collect()
    }
}

/// A live buffer, circular buffer or kernel.
#[pyclass(frozen, get_all, module = "tt_shm")]
pub(crate) struct Allocation {
    /// The index of its device in the segment's list.
    device: u8,
    chip_id: Option<u64>,
    logical_id: Option<u64>,
    /// Its class: `dram`, `l1`, `cb`, ...
    kind: &'static str,
    id: u64,
    /// Bytes occupied on the device.
    size: u64,
    requested: u64,
    address: Option<u64>,
    cores: Option<u16>,
    program: Option<u64>,
    name: Option<String>,
    site: Option<String>,
    age_ns: u64,
}

#[pymethods]
impl Allocation {
    fn __repr__(&self) -> String {
        let name = self.name.as_deref().unwrap_or("-");
        format!("<tt_shm.Allocation {} {:#x} {} bytes {name:?}>", self.kind, self.id, self.size)
    }
}
