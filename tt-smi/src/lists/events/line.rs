//! One event with its numbers resolved: what a line of JSON has.

use serde::Serialize;
use tt_shm_reader::{Class, CoreType, Event, EventKind, MarkerPhase, NO_DEVICE, UNKNOWN as NO_VALUE, flags};

use crate::escape::Foreign;
use crate::model::{Moment, Shortage, event, event_name, word_or_null};
#[cfg(test)]
use crate::schema;

/// An event with its numbers resolved. Fields that its kind does not have are `None`.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Happened {
    /// When, RFC 3339, UTC, to the microsecond; `None` if that was before the machine was suspended, when nobody knows
    /// what the wall clock showed.
    pub time: Moment,
    /// Its process, as it is called here.
    pub pid: u32,
    /// Whether pid is only what the segment claims: /proc has no process of that pid, owner and start time.
    pub claimed: bool,
    /// What happened; UNKNOWN is of a later version.
    #[serde(rename = "event", serialize_with = "event")]
    #[cfg_attr(test, schemars(schema_with = "schema::event"))]
    pub kind: Option<EventKind>,
    /// Index; `None` if it is about none.
    pub device: Option<usize>,
    /// Memory class; `None` if it is about none.
    #[serde(serialize_with = "word_or_null")]
    #[cfg_attr(test, schemars(schema_with = "schema::words_or_null::<Class>"))]
    pub class: Option<Class>,
    /// Buffer, circular buffer, kernel, program or step.
    pub id: u64,
    /// Of an allocation or a kernel; asked for, if it failed; of a dispatch, the kernels that it makes resident; of a
    /// gauge, all that there is; `None` for other kinds.
    pub size_bytes: Option<u64>,
    /// Live bytes of its class after it (of all kernels for a kernel), of this process on this device; `None` if not
    /// known.
    pub total_bytes: Option<u64>,
    /// Number of cores; `None` if not known, or not repeated.
    pub cores: Option<u32>,
    /// Of a kernel that is loaded; `None` for other kinds.
    #[serde(serialize_with = "word_or_null")]
    #[cfg_attr(test, schemars(schema_with = "schema::words_or_null::<CoreType>"))]
    pub core_type: Option<CoreType>,
    /// Of a kernel, on one core; `None` for other kinds.
    pub binary_bytes: Option<u64>,
    /// Program that it belongs to, or is; `None` for other kinds.
    pub program: Option<u64>,
    /// Where it lies; `None` if not known.
    pub address: Option<u64>,
    /// What the process calls it, exactly; `None` if it has no name.
    pub name: Option<Foreign>,
    /// Of a kernel: it was loaded before tracking began; `None` for other kinds.
    pub late: Option<bool>,
    /// Of a circular buffer: it is inside an L1 buffer, without bytes of its own; `None` for other kinds.
    pub globally_allocated: Option<bool>,
    /// Of a buffer that was freed: because its device was closed, not by the program; `None` for other kinds.
    pub dropped: Option<bool>,
    /// Of a dispatch: the binary was on the device already; `None` for other kinds.
    pub cached: Option<bool>,
    /// Of a dispatch: the circular buffers that it makes resident; `None` for other kinds.
    pub cb_resident_bytes: Option<u64>,
    /// Of a dispatch: how many dispatches it stands for; `None` for other kinds.
    pub times: Option<u64>,
    /// Of a dispatch: its lane, which is a sub-device; `None` for other kinds.
    pub lane: Option<u8>,
    /// Of a dispatch: the command queue; `None` for other kinds.
    pub queue: Option<u8>,
    /// Of a failed allocation: free then; `None` if not known, and for other kinds.
    pub free_bytes: Option<u64>,
    /// Of a failed allocation: the largest free block then; `None` if not known, and for other kinds.
    pub largest_free_bytes: Option<u64>,
    /// Of a failed allocation: bytes needed in each bank (of circular buffers: on each core); `None` if not known, and for other kinds.
    pub needed_per_bank_bytes: Option<u64>,
    /// Of a failed allocation: banks (of circular buffers: cores); `None` if not known, and for other kinds.
    pub banks: Option<u64>,
    /// Of a failed allocation: whether what was free is of one bank (of circular buffers: of one core), not of all; `None` for other kinds.
    pub per_bank: Option<bool>,
    /// Of a gauge; `None` for other kinds.
    pub used_bytes: Option<u64>,
    /// Of a gauge; `None` for other kinds.
    pub programs: Option<u64>,
    /// Of a marker; `None` for other kinds.
    #[serde(serialize_with = "word_or_null")]
    #[cfg_attr(test, schemars(schema_with = "schema::words_or_null::<MarkerPhase>"))]
    pub phase: Option<MarkerPhase>,
}

impl Happened {
    /// What happened: `KERNEL_LOAD` and so on.
    pub fn event(&self) -> &'static str {
        event_name(self.kind)
    }

    /// Resolves an event.
    pub fn new(
        pid: u32,
        device: Option<usize>,
        time: Moment,
        total: Option<u64>,
        name: Option<Foreign>,
        event: &Event,
    ) -> Happened {
        let kind = event.kind();
        let happened = Happened {
            time,
            pid,
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
            Marker => Happened { phase: MarkerPhase::from_code(event.class), ..self },
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
            core_type: is_load.then(|| event.core_type()),
            binary_bytes: cores.filter(|_| is_load).map(|cores| event.size / u64::from(cores)),
            program: (!is(&[Alloc, Free])).then_some(event.program()),
            address: Some(event.address).filter(|address| is(&[Alloc, CbAlloc]) && *address != NO_VALUE),
            late: is_load.then(|| event.has(flags::LATE)),
            globally_allocated: (kind == CbAlloc).then(|| event.has(flags::GLOBAL)),
            dropped: (kind == Free).then(|| event.has(flags::DROPPED)),
            ..self.with_class(event)
        }
    }

    fn with_shortage(self, shortage: Shortage) -> Happened {
        Happened {
            size_bytes: Some(shortage.request_bytes),
            id: 0,
            free_bytes: shortage.free_bytes,
            largest_free_bytes: shortage.largest_free_bytes,
            needed_per_bank_bytes: shortage.needed_per_bank_bytes,
            banks: shortage.banks,
            per_bank: Some(shortage.per_bank),
            ..self
        }
    }

    fn with_class(self, event: &Event) -> Happened {
        Happened { class: event.class(), ..self }
    }
}
