//! The calls by which a host reports, the same for both handles.

use crate::device::{Device, DeviceInfo, Target};
use crate::error::RecordError;
use crate::guard::AllocGuard;
use crate::request::{Alloc, CircularBuffer, Kernel, Loaded, NameId, ProgramBinaryStatus};
use crate::state::State;
use sealed::{Access, Stateless};
use shm_layout::{Class, Counters, EventKind, MarkerPhase};
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
/// [`Mesh`](crate::Mesh); on a mesh it is recorded on each device, and the first error is returned after
/// all were tried.
pub trait Record: Access + Sized {
    /// Whether calls do anything.
    fn is_enabled(&self) -> bool;

    /// The file that this process writes, if tracking is enabled.
    fn segment_path(&self) -> Option<PathBuf> {
        self.access(|state, _| state.segment.path().clone()).ok()
    }

    /// Makes a device known. A chip that is known already keeps its handle.
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

    /// A buffer was freed, and had this size as far as the host knows.
    fn free_sized(&self, target: impl Target, id: u64, size: u64) -> Recorded {
        each(self, target, |state, device| state.free(device, id, Some(size)))
    }

    /// A circular buffer was allocated. It is resident from the next dispatch of its program on.
    fn cb_alloc(&self, target: impl Target, cb: CircularBuffer) -> Recorded {
        each(self, target, |state, device| state.cb_alloc(device, &cb))
    }

    /// A circular buffer was freed; the size, if given, is checked.
    fn cb_free(&self, target: impl Target, program: u64, id: u64, size: Option<u64>) -> Recorded {
        each(self, target, |state, device| state.cb_free(device, program, id, size))
    }

    /// A kernel was loaded; if it was loaded already, that is a cached dispatch of its program.
    fn kernel_load(&self, target: impl Target, kernel: Kernel) -> Recorded<Loaded> {
        let mut loaded = Loaded::New;
        each(self, target, |state, device| {
            loaded = state.kernel_load(device, &kernel, false)?;
            Ok(())
        })?;
        Ok(loaded)
    }

    /// A kernel was unloaded; the size in all, if given, is checked.
    fn kernel_unload(&self, target: impl Target, id: u64, size: Option<u64>) -> Recorded {
        each(self, target, |state, device| state.kernel_unload(device, id, size))
    }

    /// A program was launched: its kernel is loaded if its binary was not sent before, and it is
    /// dispatched. A binary that was sent before tracking began is loaded now and marked late.
    #[inline(always)]
    fn launch(&self, target: impl Target, kernel: Kernel, status: ProgramBinaryStatus) -> Recorded {
        if self.is_enabled() { record_launch(self, target, kernel, status) } else { Ok(()) }
    }

    /// A program whose binary is on the device was dispatched again.
    #[inline(always)]
    fn dispatch(&self, target: impl Target, program: u64) -> Recorded {
        if self.is_enabled() { record_dispatch(self, target, program) } else { Ok(()) }
    }

    /// A program was destroyed: its circular buffers are freed and its kernels unloaded.
    fn program_end(&self, target: impl Target, program: u64) -> Recorded {
        each(self, target, |state, device| state.program_end(device, program))
    }

    /// An allocation failed, with what the allocator said then.
    fn alloc_failed(
        &self,
        target: impl Target,
        class: Class,
        request_bytes: u64,
        free_bytes: u64,
        largest_free_bytes: u64,
    ) -> Recorded {
        each(self, target, |state, device| {
            state.note(EventKind::AllocFailed, device, |event| {
                event.class = class as u8;
                (event.size, event.address, event.aux) = (request_bytes, free_bytes, largest_free_bytes);
            })
        })
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
        each(self, target, |state, device| state.note(EventKind::PeakReset, device, |_| ()))
    }

    /// The device was opened.
    fn device_open(&self, target: impl Target) -> Recorded {
        each(self, target, |state, device| state.note(EventKind::DeviceOpen, device, |_| ()))
    }

    /// The device was closed. What was not freed stays reported as live.
    fn device_close(&self, target: impl Target) -> Recorded {
        each(self, target, |state, device| state.note(EventKind::DeviceClose, device, |_| ()))
    }

    /// How full the kernel ring buffer is.
    fn kernel_ring(&self, target: impl Target, total_bytes: u64, used_bytes: u64, programs: u64) -> Recorded {
        each(self, target, |state, device| {
            state.note(EventKind::Gauge, device, |event| {
                (event.size, event.address, event.aux) = (total_bytes, used_bytes, programs);
            })
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
    each(handle, target, |state, device| state.alloc(device, &alloc))
}

#[inline(never)]
fn record_free(handle: &impl Record, target: impl Target, id: u64) -> Recorded {
    each(handle, target, |state, device| state.free(device, id, None))
}

#[inline(never)]
fn record_dispatch(handle: &impl Record, target: impl Target, program: u64) -> Recorded {
    each(handle, target, |state, device| state.dispatch(device, program, true))
}

#[inline(never)]
fn record_launch(
    handle: &impl Record,
    target: impl Target,
    kernel: Kernel,
    status: ProgramBinaryStatus,
) -> Recorded {
    each(handle, target, |state, device| state.launch(device, &kernel, status))
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

/// Runs `work` on each device under one hold of the lock.
#[inline(always)]
fn each(
    handle: &impl Access,
    target: impl Target,
    mut work: impl FnMut(&mut State, u8) -> Recorded,
) -> Recorded {
    // Asked before the lock is taken: a host's own Target may report something itself.
    let devices = target.devices();
    let mut first_error = None;
    let done = handle.access(|state, _| {
        state.read_clock();
        for device in devices {
            if let Err(error) = work(state, device.0) {
                first_error.get_or_insert(error);
            }
        }
    });
    match (done, first_error) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(error)) => failed(error),
        (Err(why), _) => why.or_nothing(()),
    }
}

/// Apart from the way of success, which need not touch the room for an error.
#[cold]
fn failed(error: RecordError) -> Recorded {
    Err(error)
}
