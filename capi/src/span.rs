//! A span of time in one process: the most that it used of each device, and what that was made of.

use std::ffi::c_char;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use tt_shm_reader::{DeviceSpan, MemorySpan, Span, SpanPart, SpanReport, UsedMemory};

use crate::code::{Done, Failure, TT_SHM_ERR_IN_USE, TT_SHM_ERR_NOT_FOUND, TT_SHM_ERR_STATE, call};
use crate::composition::memory;
use crate::handle;
use crate::objects::{self, Object, tt_shm_segment, tt_shm_span};
use crate::raw::{Handle, Out, OutStruct, OutStructs, versioned};
use crate::types::{TT_SHM_UNKNOWN, fixed};

/// A span that goes on, or what came of it.
pub(crate) enum Measured {
    Running(Span),
    Ended(SpanReport),
    /// Its end panicked.
    Broken,
}

/// Bits of `tt_shm_span_report.flags`: the process says of itself that its figures cannot be relied on, so that no peak has an
/// upper bound.
pub const TT_SHM_SPAN_DOUBTED: u32 = 1 << 0;
/// The process was too fast for its last state to be read, so that no peak has an upper bound.
pub const TT_SHM_SPAN_BEHIND: u32 = 1 << 1;
/// The segment can no longer be believed: there are no devices. `tt_shm_span_report.broken` says why.
pub const TT_SHM_SPAN_BROKEN: u32 = 1 << 2;

/// What happened in a span.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_span_report {
    /// `sizeof(tt_shm_span_report)`.
    pub size: u32,
    /// `TT_SHM_SPAN_...` bits.
    pub flags: u32,
    /// When it began, CLOCK_MONOTONIC.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// The position that it began with: its first event is the one after that.
    pub begin_position: u64,
    /// The position of its last event.
    pub end_position: u64,
    /// Events that were taken in.
    pub events: u64,
    /// Events that were not: they were overwritten, or passed when the state was read anew.
    pub missed: u64,
    /// Devices.
    pub devices: u64,
    /// `TT_SHM_ERR_...` of `TT_SHM_SPAN_BROKEN`; otherwise 0.
    pub broken: u64,
}

/// What a span did to one memory of a device.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct tt_shm_span_memory {
    /// Bytes used when it began.
    pub begin_bytes: u64,
    /// Bytes used when it ended; `TT_SHM_UNKNOWN` if the process was too fast to be read then.
    pub end_bytes: u64,
    /// The most that the process reported at one moment. Exact if it equals `peak_high`.
    pub peak_low: u64,
    /// The most that is possible; `TT_SHM_UNKNOWN` if nothing bounds it.
    pub peak_high: u64,
    /// When `peak_low` was reached, CLOCK_MONOTONIC; 0 if before the span, or if that is not known.
    pub peak_time_ns: u64,
    /// Parts of the peak, for `tt_shm_span_parts`; `TT_SHM_UNKNOWN` if it is not known what it was made of.
    pub parts: u64,
}

/// What a span did to a device.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_span_device {
    /// `sizeof(tt_shm_span_device)`.
    pub size: u32,
    /// Index of the device.
    pub device: u32,
    /// The chip; `TT_SHM_UNKNOWN` if its entry can no longer be read.
    pub chip_id: u64,
    /// DRAM used: buffers and traces.
    pub dram: tt_shm_span_memory,
    /// L1 used: buffers and circular buffers of resident programs.
    pub l1: tt_shm_span_memory,
}

/// A part of a peak: buffers with one name, or circular buffers of programs with one name.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_span_part {
    /// `sizeof(tt_shm_span_part)`.
    pub size: u32,
    /// `TT_SHM_CLASS_...`.
    pub class_: u32,
    /// Bytes that they occupy.
    pub bytes: u64,
    /// Buffers; of circular buffers, programs.
    pub count: u64,
    /// Number of the name, for `tt_shm_segment_name`; 0 for none.
    pub name_number: u64,
    /// The name, cut if it is longer; empty if there is none. Not trusted.
    pub name: [c_char; 128],
}

versioned!(tt_shm_span_report, tt_shm_span_device, tt_shm_span_part);

const _: () = {
    // The sizes of the first version, which callers may have been compiled with.
    assert!(size_of::<tt_shm_span_report>() == 72);
    assert!(size_of::<tt_shm_span_device>() == 112);
    assert!(size_of::<tt_shm_span_part>() == 160);
};

/// Begins a span of time in a process, which changes nothing there: spans may overlap, and several observers may measure at the
/// same time. Takes time in proportion to what is live. `TT_SHM_ERR_READ_BUSY` if the process was too fast: try again. Close the
/// span; it does not need the segment's handle.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_span_begin(segment: Handle<tt_shm_segment>, span: Out<*mut tt_shm_span>) -> i32 {
    call(|| {
        span.check()?;
        let running = Measured::Running(Span::begin(objects::get(segment)?)?);
        span.set(handle::pointer(objects::open(Object::Span(Arc::new(Mutex::new(running))))?))
    })
}

/// Closes a span, whether or not it has ended.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_span_close(span: Handle<tt_shm_span>) -> i32 {
    call(|| objects::close(span))
}

/// Takes in what has happened since the last call. A span that is longer than a quarter of the ring (4096 events with the
/// default) needs this once per quarter, or peaks may become ranges. `events` (may be null) is how many there were, with those missed.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_span_poll(span: Handle<tt_shm_span>, events: Out<u64>) -> i32 {
    call(|| {
        let polled = with(span, |measured| match measured {
            Measured::Running(span) => Ok(span.poll()),
            Measured::Ended(_) | Measured::Broken => Err(ended(true)),
        })?;
        events.set_if_wanted(polled)
    })
}

/// Ends a span; `report` may be null. `TT_SHM_ERR_STATE` if it has ended before.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_span_end(span: Handle<tt_shm_span>, report: OutStruct<tt_shm_span_report>) -> i32 {
    call(|| {
        if !report.is_null() {
            report.room()?;
        }
        let told = with(span, |measured| {
            if !matches!(measured, Measured::Running(_)) {
                return Err(ended(true));
            }
            let Measured::Running(span) = std::mem::replace(measured, Measured::Broken) else {
                return Err(ended(true));
            };
            let report = span.end();
            let told = summary(&report);
            *measured = Measured::Ended(report);
            Ok(told)
        })?;
        report.set_if_wanted(&told)
    })
}

/// What an ended span did to the devices of the process, by their index. `TT_SHM_ERR_STATE` if it has not ended.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_span_devices(
    span: Handle<tt_shm_span>,
    devices: OutStructs<tt_shm_span_device>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        with(span, |measured| {
            let report = report_of(measured)?;
            devices.fill(capacity, report.devices.iter().map(tt_shm_span_device::from))?;
            total.set_if_wanted(report.devices.len())
        })
    })
}

/// What the peak of a memory (`TT_SHM_MEMORY_...`) of a device, by its index, was made of, most bytes first.
/// `TT_SHM_ERR_NOT_FOUND` if there is no such device, or if that is not known; `TT_SHM_ERR_STATE` if the span has not ended.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_span_parts(
    span: Handle<tt_shm_span>,
    device: u32,
    memory: u32,
    parts: OutStructs<tt_shm_span_part>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        let memory = self::memory(memory)?;
        with(span, |measured| {
            let report = report_of(measured)?;
            let found = report.devices.iter().find(|found| u32::from(found.device) == device);
            let none = || {
                let text = format_args!("it is not known what the peak of device {device} was made of");
                Failure::new(TT_SHM_ERR_NOT_FOUND, None, text)
            };
            let found = found.ok_or_else(none)?;
            let memory = match memory {
                UsedMemory::Dram => &found.dram,
                UsedMemory::L1 => &found.l1,
            };
            let made_of = memory.made_of.as_ref().ok_or_else(none)?;
            parts.fill(capacity, made_of.iter().map(tt_shm_span_part::from))?;
            total.set_if_wanted(made_of.len())
        })
    })
}

fn with<T>(span: Handle<tt_shm_span>, work: impl FnOnce(&mut Measured) -> Done<T>) -> Done<T> {
    let span = objects::get(span)?;
    let mut measured: MutexGuard<'_, Measured> = match span.try_lock() {
        Ok(measured) => measured,
        // A span whose end panicked says so itself.
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            return Err(Failure::argument(TT_SHM_ERR_IN_USE, "another thread is using the span"));
        }
    };
    work(&mut measured)
}

fn report_of(measured: &Measured) -> Done<&SpanReport> {
    match measured {
        Measured::Ended(report) => Ok(report),
        Measured::Running(_) => Err(ended(false)),
        Measured::Broken => Err(ended(true)),
    }
}

#[cold]
fn ended(has_ended: bool) -> Failure {
    let text = if has_ended { "the span has ended" } else { "the span has not ended" };
    Failure::argument(TT_SHM_ERR_STATE, text)
}

fn summary(report: &SpanReport) -> tt_shm_span_report {
    let flag = |bit: u32, is_set: bool| if is_set { bit } else { 0 };
    tt_shm_span_report {
        size: size_of::<tt_shm_span_report>() as u32,
        flags: flag(TT_SHM_SPAN_DOUBTED, report.is_doubted)
            | flag(TT_SHM_SPAN_BEHIND, report.is_behind)
            | flag(TT_SHM_SPAN_BROKEN, report.broken.is_some()),
        begin_ns: report.begin_ns,
        end_ns: report.end_ns,
        begin_position: report.begin_position,
        end_position: report.end_position,
        events: report.events,
        missed: report.missed,
        devices: report.devices.len() as u64,
        broken: report.broken.as_ref().map_or(0, |error| error.code().into()),
    }
}

impl From<&DeviceSpan> for tt_shm_span_device {
    fn from(span: &DeviceSpan) -> tt_shm_span_device {
        tt_shm_span_device {
            size: size_of::<tt_shm_span_device>() as u32,
            device: span.device.into(),
            chip_id: span.chip_id.unwrap_or(TT_SHM_UNKNOWN),
            dram: span_memory(&span.dram),
            l1: span_memory(&span.l1),
        }
    }
}

fn span_memory(span: &MemorySpan) -> tt_shm_span_memory {
    tt_shm_span_memory {
        begin_bytes: span.begin_bytes,
        end_bytes: span.end_bytes.unwrap_or(TT_SHM_UNKNOWN),
        peak_low: span.peak.low,
        peak_high: span.peak.high.unwrap_or(TT_SHM_UNKNOWN),
        peak_time_ns: span.peak_time_ns.unwrap_or(0),
        parts: span.made_of.as_ref().map_or(TT_SHM_UNKNOWN, |parts| parts.len() as u64),
    }
}

impl From<&SpanPart> for tt_shm_span_part {
    fn from(part: &SpanPart) -> tt_shm_span_part {
        tt_shm_span_part {
            size: size_of::<tt_shm_span_part>() as u32,
            class_: part.class as u32,
            bytes: part.bytes,
            count: part.count,
            name_number: part.name_id.into(),
            name: fixed(part.name.as_deref().unwrap_or_default().as_bytes()),
        }
    }
}
