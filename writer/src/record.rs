//! The calls by which a host reports, the same for both handles.

use crate::device::{Device, DeviceInfo, Target};
use crate::error::RecordError;
use crate::guard::AllocGuard;
use crate::live::Key;
use crate::request::{
    Alloc, Allocation, CircularBuffer, Dispatch, FailedAlloc, Kernel, Launch, Loaded, NameId,
};
use crate::state::{State, short};
use sealed::{Access, Stateless};
use shm_layout::{Counters, Event, EventKind, MarkerPhase, flags};
use std::path::PathBuf;

type Recorded<T = ()> = Result<T, RecordError>;

pub(crate) mod sealed {
    use crate::registry::Registry;
    use crate::state::State;

    /// Why a handle has no state.
    pub enum Stateless {
        /// Tracking is disabled.
        Disabled,
        /// In a forked child that could not make a segment of its own.
        Forked,
    }

    /// How a handle reaches its state.
    pub trait Access {
        fn access<R>(&self, work: impl FnOnce(&mut State, &Registry) -> R) -> Result<R, Stateless>;

        fn wants_backtrace(&self) -> bool;
    }
}

/// What a host can report.
///
/// Calls return an error if they do not fit what was reported before; the error is also counted where
/// monitors see it, and no total becomes wrong by it. Every call takes a [`Device`] or a
/// [`Mesh`](crate::Mesh); on a mesh it is recorded on each device, or, if one of them refuses it, on none. (A
/// process that is killed in the middle of a call may be seen between two devices.)
pub trait Record: Access + Sized {
    /// Whether calls do anything.
    fn is_enabled(&self) -> bool;

    /// The file that this process writes, if tracking is enabled.
    fn segment_path(&self) -> Option<PathBuf> {
        self.access(|state, _| state.segment.path().clone()).ok()
    }

    /// Makes a device known. One that is known already, by chip and allocator, keeps its handle; what is new
    /// about it is added. What contradicts an earlier call is left out, and counted for monitors to see.
    fn register_device(&self, info: &DeviceInfo) -> Recorded<Device> {
        let register = self.access(|state, registry| state.register(registry, &info.entry()));
        register.unwrap_or_else(|why| why.or_nothing(0)).map(Device)
    }

    /// Makes a name known, to be carried by later calls. Longer than 1024 bytes, it is cut.
    fn intern(&self, name: &str) -> Recorded<NameId> {
        let intern = self.access(|state, registry| state.intern(registry, name));
        intern.unwrap_or_else(|why| why.or_nothing(NameId::NONE))
    }

    /// A buffer was allocated.
    #[inline(always)]
    fn alloc(&self, target: impl Target, alloc: Alloc) -> Recorded {
        if self.is_enabled() { record_alloc(self, target, alloc) } else { Ok(()) }
    }

    /// A buffer was allocated; it is reported freed when the guard is dropped.
    fn alloc_guard<T: Target>(&self, target: T, alloc: Alloc) -> Recorded<AllocGuard<'_, Self, T>> {
        self.alloc(&target, alloc)?;
        Ok(AllocGuard::new(self, target, alloc.id))
    }

    /// A buffer was freed.
    #[inline(always)]
    fn free(&self, target: impl Target, id: u64) -> Recorded {
        if self.is_enabled() { record_free(self, target, id) } else { Ok(()) }
    }

    /// A buffer was freed, and this many bytes had been asked for as far as the host knows.
    fn free_sized(&self, target: impl Target, id: u64, size: u64) -> Recorded {
        let check = |state: &State, device| state.check_live(Key::buffer(device, id), "buffer").map(drop);
        each(self, target, check, |state, device| state.free(device, id, Some(size)))
    }

    /// Something live gets its name after it was reported, and its site unless that is [`NameId::NONE`].
    fn name(&self, target: impl Target, what: Allocation, name: NameId, site: NameId) -> Recorded {
        let key = move |device| match what {
            Allocation::Buffer(id) => (Key::buffer(device, id), "buffer"),
            Allocation::CircularBuffer { program, id } => (Key::cb(device, program, id), "circular buffer"),
            Allocation::Kernel(id) => (Key::kernel(device, id), "kernel"),
        };
        let check = |state: &State, device| {
            let (key, what) = key(device);
            state.check_live(key, what).map(drop)
        };
        each(self, target, check, |state, device| {
            let (key, what) = key(device);
            state.name(key, name, site, what)
        })
    }

    /// A circular buffer was allocated. It is resident from the next dispatch of its program on.
    fn cb_alloc(&self, target: impl Target, cb: CircularBuffer) -> Recorded {
        let check = |state: &State, device| state.check_cb_alloc(device, &cb);
        each(self, target, check, |state, device| state.cb_alloc(device, &cb))
    }

    /// A circular buffer was freed; the size, if given, is checked.
    fn cb_free(&self, target: impl Target, program: u64, id: u64, size: Option<u64>) -> Recorded {
        let check = |state: &State, device| {
            state.check_live(Key::cb(device, program, id), "circular buffer").map(drop)
        };
        each(self, target, check, |state, device| state.cb_free(device, program, id, size))
    }

    /// A kernel was loaded. If it was loaded already, that is a cached dispatch of the program that runs it: the
    /// one that the kernel names, which from then on runs it, or else the one that loaded it.
    fn kernel_load(&self, target: impl Target, kernel: Kernel) -> Recorded<Loaded> {
        let mut loaded = Loaded::New;
        let check = |state: &State, device| state.check_kernel_load(device, &kernel);
        each(self, target, check, |state, device| {
            loaded = state.kernel_load(device, &kernel)?;
            Ok(())
        })?;
        Ok(loaded)
    }

    /// A kernel was unloaded, whichever programs ran it; the size in all, if given, is checked.
    fn kernel_unload(&self, target: impl Target, id: u64, size: Option<u64>) -> Recorded {
        let check = |state: &State, device| state.check_live(Key::kernel(device, id), "kernel").map(drop);
        each(self, target, check, |state, device| state.kernel_unload(device, id, size))
    }

    /// A program was launched: those of its kernels are loaded that were not sent before, and it is
    /// dispatched once. A binary that was sent before tracking began is loaded now and marked late.
    #[inline(always)]
    fn launch(&self, target: impl Target, launch: Launch<'_>) -> Recorded {
        if self.is_enabled() { record_launch(self, target, launch) } else { Ok(()) }
    }

    /// A program whose binary is on the device was dispatched again: a program id, or a [`Dispatch`] that says
    /// how often and where.
    #[inline(always)]
    fn dispatch(&self, target: impl Target, dispatch: impl Into<Dispatch>) -> Recorded {
        if self.is_enabled() { record_dispatch(self, target, dispatch.into()) } else { Ok(()) }
    }

    /// A program was destroyed: its circular buffers are freed and the kernels that it loaded are unloaded.
    fn program_end(&self, target: impl Target, program: u64) -> Recorded {
        let check = |state: &State, device| state.check_program(device, program).map(drop);
        each(self, target, check, |state, device| state.program_end(device, program))
    }

    /// An allocation failed.
    fn alloc_failed(&self, target: impl Target, failed: FailedAlloc) -> Recorded {
        note(self, target, EventKind::AllocFailed, |event| {
            event.class = failed.class as u8;
            event.flags = if failed.per_bank { flags::PER_BANK } else { 0 };
            event.size = failed.request_bytes;
            event.id = failed.needed_per_bank_bytes;
            (event.address, event.aux) = (failed.free_bytes, failed.largest_free_bytes);
            event.cores = short(failed.banks);
        })
    }

    /// The sums were compared with those of the device's allocator: so often, with a difference so often.
    fn self_checks(&self, made: u64, different: u64) -> Recorded {
        let count = self.access(|state, _| state.segment.count_self_checks(made, different));
        count.or_else(|why| why.or_nothing(()))
    }

    /// A step begins, ends, or a moment has a name.
    fn marker(&self, phase: MarkerPhase, id: u64, name: NameId) -> Recorded {
        let marker = self.access(|state, _| {
            state.read_clock();
            state.marker(phase, id, name)
        });
        marker.unwrap_or_else(|why| why.or_nothing(()))
    }

    /// From now on, peaks are counted anew.
    fn reset_peaks(&self, target: impl Target) -> Recorded {
        note(self, target, EventKind::PeakReset, |_| ())
    }

    /// The device was opened.
    fn device_open(&self, target: impl Target) -> Recorded {
        note(self, target, EventKind::DeviceOpen, |_| ())
    }

    /// The device was closed. What was not freed stays reported as live.
    fn device_close(&self, target: impl Target) -> Recorded {
        note(self, target, EventKind::DeviceClose, |_| ())
    }

    /// How full the kernel ring buffer is.
    fn kernel_ring(&self, target: impl Target, total_bytes: u64, used_bytes: u64, programs: u64) -> Recorded {
        note(self, target, EventKind::Gauge, |event| {
            (event.size, event.address, event.aux) = (total_bytes, used_bytes, programs);
        })
    }

    /// This process's own counters of a device, exact as of the last call; `None` if disabled.
    fn counters(&self, device: Device) -> Option<Counters> {
        self.access(|state, _| state.counters(device.0).copied()).ok()?.ok()
    }
}

// What a host calls most often is split in two: whether tracking is enabled is asked in the host's own code,
// so that a disabled tracker costs no more than that; the rest is a call.

#[inline(never)]
fn record_alloc(handle: &impl Record, target: impl Target, mut alloc: Alloc) -> Recorded {
    if handle.wants_backtrace() && alloc.site == NameId::NONE {
        // No room for the name is counted, and no reason not to report the buffer.
        alloc.site = handle.intern(&crate::site::capture()).unwrap_or(NameId::NONE);
    }
    let check = |state: &State, device| state.check_alloc(device, &alloc);
    each(handle, target, check, |state, device| state.alloc(device, &alloc))
}

#[inline(never)]
fn record_free(handle: &impl Record, target: impl Target, id: u64) -> Recorded {
    let check = |state: &State, device| state.check_live(Key::buffer(device, id), "buffer").map(drop);
    each(handle, target, check, |state, device| state.free(device, id, None))
}

#[inline(never)]
fn record_dispatch(handle: &impl Record, target: impl Target, dispatch: Dispatch) -> Recorded {
    let check = |state: &State, device| state.check_dispatch(device, &dispatch);
    each(handle, target, check, |state, device| state.dispatch(device, &dispatch, true))
}

#[inline(never)]
fn record_launch(handle: &impl Record, target: impl Target, launch: Launch<'_>) -> Recorded {
    let check = |state: &State, device| state.check_launch(device, &launch);
    each(handle, target, check, |state, device| state.launch(device, &launch))
}

/// Emits an event that only tells something about each device.
fn note(handle: &impl Access, target: impl Target, kind: EventKind, tell: impl Fn(&mut Event)) -> Recorded {
    let check = |state: &State, device| state.counters(device).map(drop);
    each(handle, target, check, |state, device| state.note(kind, device, &tell))
}

impl Stateless {
    /// Nothing is what a disabled handle does; a child without a segment says that it cannot.
    #[cold]
    fn or_nothing<T>(self, nothing: T) -> Recorded<T> {
        match self {
            Stateless::Disabled => Ok(nothing),
            Stateless::Forked => Err(RecordError::ForkedWithoutSegment),
        }
    }
}

/// Runs `work` on each device under one hold of the lock. On a mesh all devices are asked first by `check`: a call
/// that one of them refuses changes none.
#[inline(always)]
fn each(
    handle: &impl Access,
    target: impl Target,
    check: impl Fn(&State, u8) -> Recorded,
    mut work: impl FnMut(&mut State, u8) -> Recorded,
) -> Recorded {
    // Asked before the lock is taken: a host's own Target may report something itself.
    let devices = target.devices();
    // Beside the result: an error has many words, which success need not touch.
    let mut refused = None;
    let done = handle.access(|state, _| {
        state.read_clock();
        let result = match devices {
            // It refuses what it has to by itself.
            [device] => work(state, device.0),
            _ => on_mesh(state, devices, check, work),
        };
        if let Err(error) = result {
            refused = Some(error);
        }
    });
    match (done, refused) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(error)) => failed(error),
        (Err(why), _) => why.or_nothing(()),
    }
}

#[inline(never)]
fn on_mesh(
    state: &mut State,
    devices: &[Device],
    check: impl Fn(&State, u8) -> Recorded,
    mut work: impl FnMut(&mut State, u8) -> Recorded,
) -> Recorded {
    // One that a host's own Target names twice is meant once, as in a Mesh.
    let each = || devices.iter().enumerate().filter(|(place, device)| !devices[..*place].contains(device));
    for (_, device) in each() {
        check(state, device.0)?;
    }
    let mut first_error = Ok(());
    for (_, device) in each() {
        // Only a size that is not the one asked for: what was allocated is freed all the same.
        first_error = first_error.and(work(state, device.0));
    }
    first_error
}

/// Apart from the way of success, which need not touch the room for an error.
#[cold]
fn failed(error: RecordError) -> Recorded {
    Err(error)
}
