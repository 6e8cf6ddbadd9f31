//! A tracker for hosts in Python.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tt_shm_writer::{
    Alloc, Arch, BufferType, CircularBuffer, Class, CoreMemory, CoreType, DeviceInfo, Dispatch, FailedAlloc,
    Kernel, KernelType, Loaded, MarkerPhase, NameId, Pool, Pools, Record,
};

use crate::errors::{self, OpenError, RecordError};
use crate::segment::Counters;

/// Reports what a host in Python allocates, from any thread.
///
/// Calls take less than a microsecond and never wait for a monitor. A forked child gets a segment of its own at its first call,
/// with the same devices and names. The segment is removed when the tracker is closed or dropped, or when the process
/// exits.
#[pyclass(frozen, weakref, subclass, module = "tt_shm")]
pub(crate) struct Tracker(tt_shm_writer::Tracker);

/// A device of a tracker.
#[pyclass(frozen, module = "tt_shm", from_py_object)]
#[derive(Clone, Copy)]
pub(crate) struct TrackerDevice {
    it: tt_shm_writer::Device,
    #[pyo3(get)]
    chip_id: u64,
    #[pyo3(get)]
    logical_id: Option<u32>,
}

/// One device, or several that act as one.
#[derive(FromPyObject)]
enum Target {
    One(TrackerDevice),
    Mesh(Vec<TrackerDevice>),
}

impl Target {
    /// Calls something with the devices.
    fn on<T>(&self, call: impl FnOnce(&[tt_shm_writer::Device]) -> T) -> T {
        match self {
            Target::One(device) => call(&[device.it]),
            Target::Mesh(devices) => call(&devices.iter().map(|device| device.it).collect::<Vec<_>>()),
        }
    }
}

/// A name: text or bytes.
#[derive(FromPyObject)]
enum Name {
    Text(String),
    Bytes(Vec<u8>),
}

fn refused(error: tt_shm_writer::RecordError) -> PyErr {
    errors::with_code(RecordError::new_err(error.to_string()), error.code(), None)
}

/// The exception for a batch also has `done`: how many were recorded.
fn batch_refused(error: tt_shm_writer::BatchError) -> PyErr {
    let raised = errors::with_code(RecordError::new_err(error.to_string()), error.error.code(), None);
    errors::with(raised, "done", error.done)
}

/// Banks, bytes of each that can be allocated, and alignment.
type PoolArgument = Option<(u32, u64, u64)>;

fn pool(argument: PoolArgument) -> Option<Pool> {
    argument.map(|(banks, bank_bytes, alignment)| Pool { banks, bank_bytes, alignment })
}

fn buffer_type(kind: &str) -> PyResult<BufferType> {
    Ok(match kind {
        "dram" => BufferType::Dram,
        "l1" => BufferType::L1,
        "l1_small" => BufferType::L1Small,
        "trace" => BufferType::Trace,
        "system_memory" => BufferType::SystemMemory,
        _ => {
            let expected = "dram, l1, l1_small, trace or system_memory";
            return Err(PyValueError::new_err(format!("{kind:?} is no kind of buffer: {expected}")));
        }
    })
}

fn class(name: &str) -> PyResult<Class> {
    let found = Class::ALL.into_iter().find(|class| class.name() == name);
    found.ok_or_else(|| PyValueError::new_err(format!("{name:?} is no class of memory")))
}

fn arch(name: Option<&str>) -> PyResult<Arch> {
    let all = [Arch::Grayskull, Arch::Wormhole, Arch::Blackhole, Arch::Quasar];
    match name {
        None => Ok(Arch::Unknown),
        Some(name) => all.into_iter().find(|arch| arch.name() == Some(name)).ok_or_else(|| {
            let expected = "grayskull, wormhole_b0, blackhole or quasar";
            PyValueError::new_err(format!("{name:?} is no architecture: {expected}"))
        }),
    }
}

impl Tracker {
    fn name(&self, name: Option<Name>) -> PyResult<NameId> {
        match name {
            None => Ok(NameId::NONE),
            Some(Name::Text(text)) => self.0.intern(text).map_err(refused),
            Some(Name::Bytes(bytes)) => self.0.intern(bytes).map_err(refused),
        }
    }
}

#[pymethods]
impl Tracker {
    /// Opens a tracker. What is not given comes from the environment, except that it is enabled. With `for_process` it is
    /// the one of this process, which all libraries share, and the environment alone decides.
    #[new]
    #[pyo3(signature = (*, for_process=false, enabled=Some(true), namespace=None, ring_slots=None, live_capacity=None,
        process_name=None))]
    fn new(
        for_process: bool,
        enabled: Option<bool>,
        namespace: Option<String>,
        ring_slots: Option<u64>,
        live_capacity: Option<u64>,
        process_name: Option<String>,
    ) -> PyResult<Tracker> {
        let failed = |error: tt_shm_writer::OpenError| {
            errors::with_code(OpenError::new_err(error.to_string()), error.code(), error.errno())
        };
        if for_process {
            return tt_shm_writer::Tracker::for_process().map(Tracker).map_err(failed);
        }
        let mut builder = tt_shm_writer::Tracker::builder();
        if let Some(enabled) = enabled {
            builder = builder.enabled(enabled);
        }
        if let Some(namespace) = namespace {
            builder = builder.namespace(namespace);
        }
        if let Some(slots) = ring_slots {
            builder = builder.ring_slots(slots);
        }
        if let Some(rows) = live_capacity {
            builder = builder.live_capacity(rows);
        }
        if let Some(name) = process_name {
            builder = builder.process_name(name);
        }
        builder.open().map(Tracker).map_err(failed)
    }

    #[getter]
    fn is_enabled(&self) -> bool {
        self.0.is_enabled()
    }

    #[getter]
    fn segment_path(&self) -> Option<PathBuf> {
        self.0.segment_path()
    }

    /// Ends all reports; the segment is removed.
    fn close(&self) {
        self.0.close();
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __exit__(&self, _kind: &Bound<'_, PyAny>, _value: &Bound<'_, PyAny>, _traceback: &Bound<'_, PyAny>) {
        self.0.close();
    }

    /// Registers a device, or adds facts about it. Pools are (banks, bytes per bank, alignment).
    #[pyo3(signature = (chip_id, *, logical_id=None, allocator=0, arch=None, board=None, dram_bytes=None, l1=None, eth=None,
        dram_pool=None, trace_pool=None, l1_pool=None, l1_small_pool=None))]
    #[allow(clippy::too_many_arguments, reason = "all but one are keywords")]
    fn register_device(
        &self,
        chip_id: u64,
        logical_id: Option<u32>,
        allocator: u64,
        arch: Option<&str>,
        board: Option<String>,
        dram_bytes: Option<u64>,
        l1: Option<(u32, u64)>,
        eth: Option<(u32, u64)>,
        dram_pool: PoolArgument,
        trace_pool: PoolArgument,
        l1_pool: PoolArgument,
        l1_small_pool: PoolArgument,
    ) -> PyResult<TrackerDevice> {
        let cores = |cores: Option<(u32, u64)>| {
            cores.map(|(cores, bytes_per_core)| CoreMemory { cores, bytes_per_core })
        };
        let info = DeviceInfo {
            chip_id,
            allocator,
            logical_id,
            arch: self::arch(arch)?,
            board,
            dram_bytes,
            l1: cores(l1),
            eth: cores(eth),
            pools: Pools {
                dram: pool(dram_pool),
                trace: pool(trace_pool),
                l1: pool(l1_pool),
                l1_small: pool(l1_small_pool),
            },
            ..DeviceInfo::default()
        };
        let it = self.0.register_device(&info).map_err(refused)?;
        Ok(TrackerDevice { it, chip_id, logical_id })
    }

    /// Records that a buffer was allocated. `id` identifies one live buffer per device.
    #[pyo3(signature = (device, id, size, kind="dram", *, address=None, bytes_per_bank=None, occupied=None, cores=None,
        name=None, site=None))]
    #[allow(clippy::too_many_arguments, reason = "most are keywords")]
    fn alloc(
        &self,
        device: Target,
        id: u64,
        size: u64,
        kind: &str,
        address: Option<u64>,
        bytes_per_bank: Option<u64>,
        occupied: Option<u64>,
        cores: Option<u32>,
        name: Option<Name>,
        site: Option<Name>,
    ) -> PyResult<()> {
        let mut alloc =
            Alloc::new(buffer_type(kind)?, id, size).name(self.name(name)?).site(self.name(site)?);
        if let Some(address) = address {
            alloc = alloc.address(address);
        }
        if let Some(bytes) = bytes_per_bank {
            alloc = alloc.bytes_per_bank(bytes);
        }
        if let Some(bytes) = occupied {
            alloc = alloc.occupied(bytes);
        }
        if let Some(cores) = cores {
            alloc = alloc.cores(cores);
        }
        device.on(|devices| self.0.alloc(devices, alloc)).map_err(refused)
    }

    /// Records that a buffer was freed; the requested size, if given, is checked.
    #[pyo3(signature = (device, id, size=None))]
    fn free(&self, device: Target, id: u64, size: Option<u64>) -> PyResult<()> {
        let freed = match size {
            None => device.on(|devices| self.0.free(devices, id)),
            Some(size) => device.on(|devices| self.0.free_sized(devices, id, size)),
        };
        freed.map_err(refused)
    }

    /// Records that buffers were allocated: (id, size) of each. The first that is refused ends the batch: the exception's
    /// `done` says how many were recorded.
    #[pyo3(signature = (device, buffers, kind="dram", *, name=None))]
    fn alloc_many(
        &self,
        device: Target,
        buffers: Vec<(u64, u64)>,
        kind: &str,
        name: Option<Name>,
    ) -> PyResult<()> {
        let (kind, name) = (buffer_type(kind)?, self.name(name)?);
        let allocs: Vec<_> =
            buffers.iter().map(|(id, size)| Alloc::new(kind, *id, *size).name(name)).collect();
        device.on(|devices| self.0.alloc_many(devices, &allocs)).map_err(batch_refused)
    }

    /// Records that the buffers with these ids were freed, likewise.
    fn free_many(&self, device: Target, ids: Vec<u64>) -> PyResult<()> {
        device.on(|devices| self.0.free_many(devices, &ids)).map_err(batch_refused)
    }

    /// Records that a circular buffer was allocated. It is resident from the next dispatch of its program on.
    #[pyo3(signature = (device, program, id, bytes_per_core, cores, *, address=None, globally_allocated=false, name=None))]
    #[allow(clippy::too_many_arguments, reason = "most are keywords")]
    fn cb_alloc(
        &self,
        device: Target,
        program: u64,
        id: u64,
        bytes_per_core: u64,
        cores: u32,
        address: Option<u64>,
        globally_allocated: bool,
        name: Option<Name>,
    ) -> PyResult<()> {
        let mut cb = CircularBuffer::new(program, id, bytes_per_core, cores).name(self.name(name)?);
        if let Some(address) = address {
            cb = cb.address(address);
        }
        if globally_allocated {
            cb = cb.globally_allocated();
        }
        device.on(|devices| self.0.cb_alloc(devices, cb)).map_err(refused)
    }

    /// Records that a circular buffer was freed.
    #[pyo3(signature = (device, program, id, size=None))]
    fn cb_free(&self, device: Target, program: u64, id: u64, size: Option<u64>) -> PyResult<()> {
        device.on(|devices| self.0.cb_free(devices, program, id, size)).map_err(refused)
    }

    /// Records that a kernel was loaded; returns whether it was loaded already, which is a cached dispatch.
    #[pyo3(signature = (device, id, binary_bytes, cores, kernel_type="application", *, ethernet=false, program=None,
        name=None))]
    #[allow(clippy::too_many_arguments, reason = "most are keywords")]
    fn kernel_load(
        &self,
        device: Target,
        id: u64,
        binary_bytes: u64,
        cores: u32,
        kernel_type: &str,
        ethernet: bool,
        program: Option<u64>,
        name: Option<Name>,
    ) -> PyResult<bool> {
        let kind = match kernel_type {
            "application" => KernelType::Application,
            "fabric" => KernelType::Fabric,
            "dispatch" => KernelType::Dispatch,
            _ => {
                let expected = "application, fabric or dispatch";
                return Err(PyValueError::new_err(format!(
                    "{kernel_type:?} is no type of kernel: {expected}"
                )));
            }
        };
        let core_type = if ethernet { CoreType::Ethernet } else { CoreType::Tensix };
        let mut kernel = Kernel::new(id, kind, core_type, binary_bytes, cores).name(self.name(name)?);
        if let Some(program) = program {
            kernel = kernel.program(program);
        }
        let loaded = device.on(|devices| self.0.kernel_load(devices, kernel)).map_err(refused)?;
        Ok(loaded == Loaded::Cached)
    }

    /// Records that a kernel was unloaded.
    #[pyo3(signature = (device, id, size=None))]
    fn kernel_unload(&self, device: Target, id: u64, size: Option<u64>) -> PyResult<()> {
        device.on(|devices| self.0.kernel_unload(devices, id, size)).map_err(refused)
    }

    /// Records that a program whose binary is on the device was dispatched.
    #[pyo3(signature = (device, program, *, times=1, lane=0, queue=0, name=None))]
    fn dispatch(
        &self,
        device: Target,
        program: u64,
        times: u32,
        lane: u8,
        queue: u8,
        name: Option<Name>,
    ) -> PyResult<()> {
        let dispatch = Dispatch::new(program).times(times).lane(lane).queue(queue).name(self.name(name)?);
        device.on(|devices| self.0.dispatch(devices, dispatch)).map_err(refused)
    }

    /// Records that a program was destroyed.
    fn program_end(&self, device: Target, program: u64) -> PyResult<()> {
        device.on(|devices| self.0.program_end(devices, program)).map_err(refused)
    }

    /// Records that an allocation failed.
    #[pyo3(signature = (device, size, kind="dram", *, free=None, largest_free=None))]
    fn alloc_failed(
        &self,
        device: Target,
        size: u64,
        kind: &str,
        free: Option<u64>,
        largest_free: Option<u64>,
    ) -> PyResult<()> {
        let mut failed = FailedAlloc::new(class(kind)?, size);
        if free.is_some() || largest_free.is_some() {
            failed =
                failed.free(free.unwrap_or(shm_layout::UNKNOWN), largest_free.unwrap_or(shm_layout::UNKNOWN));
        }
        device.on(|devices| self.0.alloc_failed(devices, failed)).map_err(refused)
    }

    /// Records the beginning (`begin`) or end (`end`) of a step, or a moment (`instant`).
    #[pyo3(signature = (phase, id=0, name=None))]
    fn marker(&self, phase: &str, id: u64, name: Option<Name>) -> PyResult<()> {
        let phase = match phase {
            "begin" => MarkerPhase::Begin,
            "end" => MarkerPhase::End,
            "instant" => MarkerPhase::Instant,
            _ => {
                return Err(PyValueError::new_err(format!("{phase:?} is no phase: begin, end or instant")));
            }
        };
        self.0.marker(phase, id, self.name(name)?).map_err(refused)
    }

    /// Stores a name once; calls with the same name are then faster.
    fn intern(&self, name: Name) -> PyResult<()> {
        self.name(Some(name)).map(drop)
    }

    /// Resets the peaks to what is used now.
    fn reset_peaks(&self, device: Target) -> PyResult<()> {
        device.on(|devices| self.0.reset_peaks(devices)).map_err(refused)
    }

    /// The same for the device with this index in the segment's list.
    fn reset_peaks_of(&self, index: u8) -> PyResult<()> {
        self.0.reset_peaks(tt_shm_writer::Device::from_raw(index)).map_err(refused)
    }

    fn device_open(&self, device: Target) -> PyResult<()> {
        device.on(|devices| self.0.device_open(devices)).map_err(refused)
    }

    fn device_close(&self, device: Target) -> PyResult<()> {
        device.on(|devices| self.0.device_close(devices)).map_err(refused)
    }

    /// Records how full the kernel ring buffer is.
    fn kernel_ring(&self, device: Target, total: u64, used: u64, programs: u64) -> PyResult<()> {
        device.on(|devices| self.0.kernel_ring(devices, total, used, programs)).map_err(refused)
    }

    /// Records that this process holds memory that it cannot report.
    fn partial(&self) -> PyResult<()> {
        self.0.partial().map_err(refused)
    }

    /// Takes `partial` back.
    fn complete(&self) -> PyResult<()> {
        self.0.complete().map_err(refused)
    }

    /// The exact counters of a device; `None` if disabled.
    fn counters(&self, device: TrackerDevice) -> Option<Counters> {
        self.0.counters(device.it).map(Counters)
    }
}
