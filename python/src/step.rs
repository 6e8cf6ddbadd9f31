//! Measures a step: the peak of a process in a span of time. A thread that knows nothing of Python follows the events.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use pyo3::prelude::*;
use tt_shm_reader::{Counters, MemorySpan, ReadError, Segment, Span, SpanReport};

use crate::process::{Finder, Found};

/// How long the thread sleeps between two looks while nothing happens, at first and at most: far less than it takes a host
/// in Python to fill a ring.
const NAP: Duration = Duration::from_micros(500);
const LONG_NAP: Duration = Duration::from_millis(4);
/// How often a process that is too busy is asked to be read.
const ATTEMPTS: usize = 50;

/// A step that is being measured.
#[pyclass(frozen, module = "tt_shm")]
pub(crate) struct Watch {
    /// The process in which it began. A forked child has no such thread.
    pid: u32,
    has_ended: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<Vec<Measured>>>>,
}

/// A segment within a step.
struct Watched {
    span: Span,
    since: Since,
}

/// Since when a segment is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    /// The beginning of the step.
    Begin,
    /// A moment after it, since it was too busy to be read.
    Later,
    /// It was made in the step, so that all of its life is in there.
    Birth,
}

/// What was found.
struct Measured {
    report: SpanReport,
    segment: Arc<Segment>,
    since: Since,
    /// The last counters.
    counters: Option<Vec<Counters>>,
}

#[pymethods]
impl Watch {
    /// Begins a step in a process; without a pid, in this one.
    #[new]
    #[pyo3(signature = (pid=None))]
    fn new(py: Python<'_>, pid: Option<u32>) -> PyResult<Watch> {
        py.detach(|| {
            let mut finder = Finder::new(pid);
            // What cannot be read now is measured as soon as it can be, and not exact.
            let found = finder.segments()?;
            let before: Vec<u64> = found.iter().map(|found| found.segment.identity()).collect();
            let watched = found.into_iter().filter_map(|found| watch(found, Since::Begin).ok()).collect();
            let has_ended = Arc::new(AtomicBool::new(false));
            let ended = has_ended.clone();
            let measure = move || measure(finder, watched, &before, &ended);
            let thread = std::thread::Builder::new().name("tt_shm step".into()).spawn(measure)?;
            Ok(Watch { pid: std::process::id(), has_ended, thread: Mutex::new(Some(thread)) })
        })
    }

    /// Ends it. `None` if it has ended before, or began in the process that this one was forked from.
    fn end(&self, py: Python<'_>) -> Option<Vec<StepSegment>> {
        let thread = self.thread.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()?;
        if std::process::id() != self.pid {
            // There is no thread to wait for.
            std::mem::forget(thread);
            return None;
        }
        self.has_ended.store(true, Ordering::Relaxed);
        thread.thread().unpark();
        let measured = py.detach(|| thread.join().ok())?;
        Some(measured.into_iter().map(StepSegment::new).collect())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        let thread = self.thread.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        if std::process::id() != self.pid {
            std::mem::forget(thread);
        }
    }
}

fn watch(found: Found, since: Since) -> Result<Watched, ReadError> {
    let mut attempt = 1;
    loop {
        match Span::begin(found.segment.clone()) {
            Ok(span) => return Ok(Watched { span, since }),
            Err(ReadError::Busy { .. }) if attempt < ATTEMPTS => std::thread::sleep(NAP),
            Err(error) => return Err(error),
        }
        attempt += 1;
    }
}

fn measure(
    mut finder: Finder,
    mut watched: Vec<Watched>,
    before: &[u64],
    has_ended: &AtomicBool,
) -> Vec<Measured> {
    let mut nap = NAP;
    loop {
        // Read first: what happened before the end is in the last look.
        let is_last = has_ended.load(Ordering::Relaxed);
        for found in finder.segments().unwrap_or_default() {
            let identity = found.segment.identity();
            if !watched.iter().any(|one| one.span.segment().identity() == identity) {
                let since = if before.contains(&identity) { Since::Later } else { Since::Birth };
                watched.extend(watch(found, since));
            }
        }
        let events: u64 = watched.iter_mut().map(|one| one.span.poll()).sum();
        if is_last {
            return watched.into_iter().map(Measured::new).collect();
        }
        nap = if events > 0 { NAP } else { (nap * 2).min(LONG_NAP) };
        std::thread::park_timeout(nap);
    }
}

impl Measured {
    fn new(watched: Watched) -> Measured {
        let segment = watched.span.segment().clone();
        // Before the end of the span, which has all that comes after this.
        let counters = segment.counters().ok().map(|snapshot| snapshot.counters);
        Measured { report: watched.span.end(), segment, since: watched.since, counters }
    }
}

/// What a step did in one segment.
#[pyclass(frozen, get_all, module = "tt_shm")]
pub(crate) struct StepSegment {
    identity: u64,
    devices: Vec<Py<StepDevice>>,
    events: u64,
    missed: u64,
    /// Why the segment cannot be believed, if so.
    broken: Option<String>,
    begin_ns: u64,
    end_ns: u64,
}

/// What a step did to one device.
#[pyclass(frozen, get_all, module = "tt_shm")]
pub(crate) struct StepDevice {
    index: u8,
    chip_id: Option<u64>,
    logical_id: Option<u64>,
    dram: Py<StepLevel>,
    l1: Py<StepLevel>,
}

/// Class, name, bytes and count.
type Part = (&'static str, Option<String>, u64, u64);

/// What a step did to one memory of a device.
#[pyclass(frozen, get_all, module = "tt_shm")]
pub(crate) struct StepLevel {
    begin: u64,
    end: Option<u64>,
    /// The most that is certain, and the most that is possible.
    low: u64,
    high: Option<u64>,
    /// When `low` was reached, in nanoseconds of CLOCK_MONOTONIC.
    peak_time_ns: Option<u64>,
    /// What `low` was made of: class, name, bytes and count of each part.
    parts: Option<Vec<Part>>,
}

impl StepSegment {
    fn new(measured: Measured) -> StepSegment {
        let Measured { report, segment, since, counters } = measured;
        let devices = report.devices.iter().map(|span| {
            let own = counters.as_ref().and_then(|all| all.get(usize::from(span.device)));
            let level = |memory: &MemorySpan, peak: fn(&Counters) -> u64| {
                let peak = own.filter(|own| own.peak_reset_time == 0).map(peak);
                StepLevel::new(memory, since, peak)
            };
            let (dram, l1) =
                (level(&span.dram, |own| own.dram_peak_bytes), level(&span.l1, |own| own.l1_peak_bytes));
            let logical_id = segment.device(usize::from(span.device)).and_then(|entry| entry.logical());
            Python::attach(|py| {
                let (dram, l1) = (Py::new(py, dram)?, Py::new(py, l1)?);
                Py::new(py, StepDevice { index: span.device, chip_id: span.chip_id, logical_id, dram, l1 })
            })
        });
        StepSegment {
            identity: segment.identity(),
            devices: devices.filter_map(PyResult::ok).collect(),
            events: report.events,
            missed: report.missed,
            broken: report.broken.map(|error| error.to_string()),
            begin_ns: report.begin_ns,
            end_ns: report.end_ns,
        }
    }
}

impl StepLevel {
    /// `peak` is that of the whole life of the segment, if it is known.
    fn new(span: &MemorySpan, since: Since, peak: Option<u64>) -> StepLevel {
        let mut level = StepLevel {
            begin: span.begin_bytes,
            end: span.end_bytes,
            low: span.peak.low,
            high: span.peak.high,
            peak_time_ns: span.peak_time_ns,
            parts: span.made_of.as_ref().map(|parts| {
                let part = |part: &tt_shm_reader::SpanPart| {
                    (part.class.name(), part.name.as_deref().map(str::to_owned), part.bytes, part.count)
                };
                parts.iter().map(part).collect()
            }),
        };
        match (since, peak) {
            (Since::Begin, _) => (),
            (Since::Later, _) => level.high = None,
            (Since::Birth, None) => (level.begin, level.high) = (0, None),
            (Since::Birth, Some(peak)) => {
                level.begin = 0;
                if peak > level.low {
                    // It was before the thread came.
                    (level.low, level.peak_time_ns, level.parts) = (peak, None, None);
                    level.high = level.high.map(|high| high.max(peak));
                }
            }
        }
        level
    }
}
