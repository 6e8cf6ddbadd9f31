//! Events of a process, as objects and as the bytes of an array.

use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use shm_layout::{Class, EventKind, MarkerPhase, NO_DEVICE, UNKNOWN};
use tt_shm_reader::Calibration;

use crate::segment::Segment;

/// The events that are copied out of the ring at once.
const BATCH: usize = 1024;
/// How long nothing is looked at while nothing happens, at first and at most.
const NAP: Duration = Duration::from_micros(200);
const LONG_NAP: Duration = Duration::from_millis(10);
/// How long a signal may have to wait until Python handles it.
const TURN: Duration = Duration::from_millis(100);

/// Follows the events of a process: an iterator that waits for the next one, without the interpreter's lock, until the
/// process has ended or closed its segment, or nothing has happened for `timeout` seconds.
#[pyclass(module = "tt_shm")]
pub(crate) struct Follower {
    it: tt_shm_reader::Follower,
    timeout: Option<Duration>,
    batch: Vec<tt_shm_reader::Event>,
    /// The next of the batch.
    next: usize,
    clock: Calibration,
}

#[pymethods]
impl Follower {
    /// Follows from now on, or from a position; 0 is the oldest event that the ring has.
    #[new]
    #[pyo3(signature = (segment, position=None, timeout=None))]
    fn new(segment: &Segment, position: Option<u64>, timeout: Option<f64>) -> PyResult<Follower> {
        let it = tt_shm_reader::Follower::new(segment.it.clone());
        let it = match position {
            Some(position) => it.from(position),
            None => it,
        };
        let timeout = timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout.map_err(|error| PyValueError::new_err(format!("timeout: {error}")))?;
        Ok(Follower { it, timeout, batch: Vec::new(), next: 0, clock: segment.it.calibration() })
    }

    /// How many events were overwritten before they were read.
    #[getter]
    fn missed(&self) -> u64 {
        self.it.missed()
    }

    /// The position of the last event that was returned or missed.
    #[getter]
    fn position(&self) -> u64 {
        self.it.position() - (self.batch.len() - self.next) as u64
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Event>> {
        if self.next == self.batch.len() && !self.wait(py)? {
            return Ok(None);
        }
        let event = self.batch[self.next];
        self.next += 1;
        Ok(Some(Event::new(&event, self.it.segment(), &self.clock)))
    }

    /// What has happened by now, at most `limit` events, as 64 bytes each. Does not wait. They are copied once, out of the
    /// ring into the array.
    fn read<'py>(&mut self, py: Python<'py>, limit: usize) -> PyResult<Bound<'py, PyByteArray>> {
        const SIZE: usize = size_of::<tt_shm_reader::Event>();
        // What was taken for the iterator comes first.
        let taken = (self.batch.len() - self.next).min(limit);
        let before = &self.batch[self.next..self.next + taken];
        self.next += taken;
        // No more than can be there.
        let pending = self.it.segment().head().saturating_sub(self.it.position());
        let slots = self.it.segment().header().ring.capacity;
        let room = usize::try_from(pending.min(slots)).unwrap_or(0).min(limit - taken);
        let mut read = 0;
        let it = &mut self.it;
        let events = PyByteArray::new_with(py, (taken + room) * SIZE, |bytes| {
            let (first, rest) = bytes.split_at_mut(taken * SIZE);
            first.copy_from_slice(bytemuck::must_cast_slice(before));
            match bytemuck::try_cast_slice_mut(rest) {
                Ok(rest) => read = py.detach(|| it.read(rest)),
                // Never, with the allocators that Python has: then they are copied twice.
                Err(_) => {
                    let mut own = vec![tt_shm_reader::Event::NONE; room];
                    read = it.read(&mut own);
                    rest.copy_from_slice(bytemuck::must_cast_slice(&own));
                }
            }
            Ok(())
        })?;
        events.resize((taken + read) * SIZE)?;
        Ok(events)
    }
}

impl Follower {
    /// Waits for events; whether there are any.
    fn wait(&mut self, py: Python<'_>) -> PyResult<bool> {
        let begun = Instant::now();
        self.batch.resize(BATCH, tt_shm_reader::Event::NONE);
        self.next = 0;
        let read = loop {
            let turn = self.timeout.map_or(TURN, |timeout| timeout.saturating_sub(begun.elapsed()).min(TURN));
            let read = py.detach(|| self.wait_for(turn));
            let is_over = self.timeout.is_some_and(|timeout| begun.elapsed() >= timeout);
            match read {
                Some(0) if is_over => break 0,
                Some(0) => py.check_signals()?,
                Some(read) => break read,
                None => break 0,
            }
        };
        self.batch.truncate(read);
        Ok(read > 0)
    }

    /// The number of events that came; `None` if there will be no more.
    fn wait_for(&mut self, time: Duration) -> Option<usize> {
        let (begun, mut nap) = (Instant::now(), NAP);
        loop {
            // Looked at before the events: who has ended writes no more.
            let segment = self.it.segment();
            let has_ended = segment.is_closed() || !segment.is_alive().unwrap_or(false);
            let read = self.it.read(&mut self.batch);
            if read > 0 {
                self.clock = self.it.segment().calibration();
                return Some(read);
            }
            if has_ended {
                return None;
            }
            let left = time.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Some(0);
            }
            std::thread::sleep(nap.min(left));
            nap = (nap * 2).min(LONG_NAP);
        }
    }
}

/// Something that happened.
#[pyclass(frozen, get_all, module = "tt_shm")]
pub(crate) struct Event {
    position: u64,
    /// CLOCK_MONOTONIC nanoseconds, as `time.monotonic_ns()` has them.
    time_ns: u64,
    /// `ALLOC`, `FREE`, `MARKER` ...; `None` if this version does not know it.
    kind: Option<&'static str>,
    /// The class of memory, of events that have one.
    memory: Option<&'static str>,
    /// `begin`, `end` or `instant`, of a marker.
    phase: Option<&'static str>,
    /// The index in the segment's list.
    device: Option<u8>,
    id: u64,
    size: u64,
    requested: u64,
    address: Option<u64>,
    name: Option<String>,
    site: Option<String>,
}

impl Event {
    fn new(event: &tt_shm_reader::Event, segment: &tt_shm_reader::Segment, clock: &Calibration) -> Event {
        let kind = event.kind();
        let is_marker = kind == Some(EventKind::Marker);
        let has_class = !is_marker && !matches!(kind, None | Some(EventKind::Gauge | EventKind::PeakReset));
        let has_address = matches!(kind, Some(EventKind::Alloc | EventKind::CbAlloc));
        let phase = |code| match MarkerPhase::from_code(code)? {
            MarkerPhase::Begin => Some("begin"),
            MarkerPhase::End => Some("end"),
            MarkerPhase::Instant => Some("instant"),
        };
        Event {
            position: event.stamp,
            time_ns: clock.to_monotonic_ns(event.time),
            kind: kind.map(EventKind::label),
            memory: event.class().filter(|_| has_class).map(Class::name),
            phase: if is_marker { phase(event.class) } else { None },
            device: Some(event.device).filter(|device| *device != NO_DEVICE),
            id: event.id,
            size: event.size,
            requested: event.requested(),
            address: Some(event.address).filter(|address| has_address && *address != UNKNOWN),
            name: segment.name(event.name),
            site: segment.name(event.site),
        }
    }
}

#[pymethods]
impl Event {
    fn __repr__(&self) -> String {
        let (kind, name) = (self.kind.unwrap_or("unknown"), self.name.as_deref().unwrap_or("-"));
        format!("<tt_shm.Event {} {kind} {:#x} {} bytes {name:?}>", self.position, self.id, self.size)
    }
}
