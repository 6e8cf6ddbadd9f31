//! One event with its numbers resolved: what a line of JSON has.

use serde::Serialize;
use tt_shm_reader::{Class, Event, EventKind, MarkerPhase, NO_DEVICE, UNKNOWN as NO_VALUE, flags};

use crate::escape::Foreign;
use crate::model::{Shortage, core_type_name, rfc3339};

/// An event with its numbers resolved. Fields that its kind does not have are `None`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Happened {
    /// RFC 3339, UTC; `None` if the machine was suspended since its process started.
    pub time: Option<String>,
    /// CLOCK_MONOTONIC.
    #[serde(skip)]
    pub monotonic_ns: u64,
    /// Pid of its process in this namespace.
    pub pid: u32,
    /// Whether that pid is only claimed.
    pub claimed: bool,
    /// `KERNEL_LOAD` and so on.
    pub event: &'static str,
    /// Index of the device.
    pub device: Option<usize>,
    /// The memory class it concerns.
    pub class: Option<&'static str>,
    /// Buffer, circular buffer, kernel, program or step.
    pub id: u64,
    /// Bytes of an allocation or a kernel; requested bytes of a failed allocation; kernels that a dispatch makes
    /// resident; the total of a gauge.
    pub size_bytes: Option<u64>,
    /// Live bytes of its class (of all kernels for a kernel) in this process on this device, after the event.
    pub total_bytes: Option<u64>,
    pub cores: Option<u32>,
    /// Kind of these cores.
    pub core_type: Option<&'static str>,
    /// Of a kernel, on one core.
    pub binary_bytes: Option<u64>,
    /// The program it belongs to, or is.
    pub program: Option<u64>,
    pub address: Option<u64>,
    /// The name the process gave it.
    pub name: Option<Foreign>,
    /// A kernel that was loaded before tracking began.
    pub late: Option<bool>,
    /// A circular buffer inside an L1 buffer, without bytes of its own.
    pub globally_allocated: Option<bool>,
    /// Of a dispatch: the binary was on the device already.
    pub cached: Option<bool>,
    /// Of a dispatch: the circular buffers that it makes resident.
    pub cb_resident_bytes: Option<u64>,
    /// Of a dispatch: the number of dispatches it stands for.
    pub times: Option<u64>,
    /// Of a dispatch: the lane, which is a sub-device.
    pub lane: Option<u8>,
    /// Of a dispatch: the command queue.
    pub queue: Option<u8>,
    /// Of a failed allocation.
    pub free_bytes: Option<u64>,
    /// Of a failed allocation.
    pub largest_free_bytes: Option<u64>,
    /// Of a failed allocation: needed in each bank.
    pub needed_per_bank_bytes: Option<u64>,
    /// Of a failed allocation.
    pub banks: Option<u64>,
    /// Of a failed allocation: whether the free bytes are those of one bank.
    pub per_bank: Option<bool>,
    /// Of a gauge.
    pub used_bytes: Option<u64>,
    /// Of a gauge.
    pub programs: Option<u64>,
    /// Of a marker: `begin`, `end` or `instant`.
    pub phase: Option<&'static str>,
    #[serde(skip)]
    pub(crate) kind: Option<EventKind>,
    #[serde(skip)]
    pub(crate) class_code: Option<Class>,
}

/// A moment on both clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct When {
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME, if it is known.
    pub realtime_ns: Option<u64>,
}

impl Happened {
    /// Resolves an event.
    pub fn new(
        pid: u32,
        device: Option<usize>,
        when: When,
        total: Option<u64>,
        name: Option<Foreign>,
        event: &Event,
    ) -> Happened {
        let kind = event.kind();
        let happened = Happened {
            time: when.realtime_ns.map(rfc3339),
            monotonic_ns: when.monotonic_ns,
            pid,
            event: kind.map_or("UNKNOWN", EventKind::label),
            device: device.filter(|_| event.device != NO_DEVICE),
            id: event.id,
            name,
            kind,
            ..Happened::default()
        };
        match kind {
            Some(kind) => happened.with_figures(kind, event, total),
            None => happened,
        }
    }

    /// Fields that only this kind of event has.
    fn with_figures(self, kind: EventKind, event: &Event, total: Option<u64>) -> Happened {
        use EventKind::*;
        let size_bytes = Some(event.size);
        match kind {
            Alloc | Free | CbAlloc | CbFree | KernelLoad | KernelUnload => {
                Happened { size_bytes, total_bytes: total, ..self.with_place(kind, event) }
            }
            KernelDispatch => Happened {
                size_bytes: Some(event.dispatched_kernels()[0]),
                program: Some(event.id),
                cached: Some(event.has(flags::CACHED)),
                cb_resident_bytes: Some(event.size),
                times: Some(event.times()),
                lane: Some(event.lane()),
                queue: Some(event.queue()),
                ..self
            },
            AllocFailed => self.with_class(event).with_shortage(event.into()),
            Gauge => Happened {
                size_bytes,
                used_bytes: Some(event.address),
                programs: Some(event.ring_programs()),
                ..self
            },
            Marker => Happened { phase: MarkerPhase::from_code(event.class).map(phase_name), ..self },
            ProgramEnd => Happened { program: Some(event.id), ..self },
            Name => self.with_class(event),
            PeakReset | DeviceOpen | DeviceClose => self,
        }
    }

    /// Details of an allocation or a free. What a free does not repeat is `None`.
    fn with_place(self, kind: EventKind, event: &Event) -> Happened {
        use EventKind::*;
        let is = |kinds: &[EventKind]| kinds.contains(&kind);
        let cores =
            Some(u32::from(event.cores)).filter(|cores| *cores != 0 && is(&[Alloc, CbAlloc, KernelLoad]));
        let is_load = kind == KernelLoad;
        Happened {
            cores,
            core_type: is_load.then(|| core_type_name(event.core_type())),
            binary_bytes: cores.filter(|_| is_load).map(|cores| event.size / u64::from(cores)),
            program: (!is(&[Alloc, Free])).then_some(event.program()),
            address: Some(event.address).filter(|address| is(&[Alloc, CbAlloc]) && *address != NO_VALUE),
            late: is_load.then(|| event.has(flags::LATE)),
            globally_allocated: (kind == CbAlloc).then(|| event.has(flags::GLOBAL)),
            ..self.with_class(event)
        }
    }

    fn with_shortage(self, shortage: Shortage) -> Happened {
        Happened {
            size_bytes: Some(shortage.request),
            id: 0,
            free_bytes: shortage.free,
            largest_free_bytes: shortage.largest_free,
            needed_per_bank_bytes: shortage.needed_per_bank,
            banks: shortage.banks,
            per_bank: Some(shortage.per_bank),
            ..self
        }
    }

    fn with_class(self, event: &Event) -> Happened {
        Happened { class: event.class().map(Class::name), class_code: event.class(), ..self }
    }
}

fn phase_name(phase: MarkerPhase) -> &'static str {
    match phase {
        MarkerPhase::Begin => "begin",
        MarkerPhase::End => "end",
        MarkerPhase::Instant => "instant",
    }
}
