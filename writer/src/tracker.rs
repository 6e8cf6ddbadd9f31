//! The two handles by which a host reports, one shared between threads and one exclusive, and their calls.

use crate::access::sealed::{Access, Unavailable};
use crate::access::{Inner, batch, each, each_sought, note, on_devices, reopen};
use crate::config::{Builder, Config};
use crate::device::{Device, DeviceInfo, Target};
use crate::emitter::{Emitter, short};
use crate::error::{BatchError, OpenError, RecordError};
use crate::guard::AllocGuard;
use crate::live::Key;
use crate::registry::Registry;
use crate::request::{
    Alloc, Allocation, CircularBuffer, Dispatch, FailedAlloc, Kernel, Launch, Loaded, NameId,
};
use shm_layout::{Counters, EventKind, MarkerPhase, control, flags};
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use tt_shm_os::TryWithError;

type Recorded<T = ()> = Result<T, RecordError>;

/// Reports from any number of threads. Cheap to clone; the segment is closed and removed when the last
/// clone is dropped, or when the process exits.
///
/// Calls are methods of [`Record`]. If tracking is disabled they cost one predictable branch.
#[derive(Clone)]
pub struct Tracker {
    inner: Option<Arc<Inner>>,
}

const _: () = {
    const fn is_shared_between_threads<T: Send + Sync>() {}
    is_shared_between_threads::<Tracker>();
    is_shared_between_threads::<WithoutWaiting<'_>>();
};

impl Tracker {
    /// Settings to open a tracker with.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The tracker of this process, for all of its libraries and threads: what a host uses unless it has a reason not to.
    /// The first call opens it by the environment, as [`Tracker::from_env`] does, and later ones return the same one; an
    /// error is not kept, and the next call tries again. A forked child has it too, with a segment of its own.
    ///
    /// Each other way to open a tracker makes a segment of its own, and monitors add up both: if two parts of a process
    /// report the same buffer to trackers of their own, it counts twice.
    ///
    /// It lasts as long as the process, so that it never becomes [exclusive](Tracker::into_exclusive). If it is
    /// [closed](Tracker::close), it stays closed.
    pub fn for_process() -> Result<Tracker, OpenError> {
        crate::process::tracker()
    }

    /// A tracker configured by the environment: enabled if `TT_ALLOC_TRACKING_ENABLED` is `1`. Each call makes a segment
    /// of its own; see [`Tracker::for_process`].
    pub fn from_env() -> Result<Tracker, OpenError> {
        Tracker::builder().open()
    }

    /// A tracker whose calls do nothing.
    pub fn disabled() -> Tracker {
        Tracker { inner: None }
    }

    pub(crate) fn start(config: Config) -> Result<Tracker, OpenError> {
        crate::reap::reap_own(&config.namespace);
        Ok(Tracker { inner: Some(Arc::new(Inner::open(config)?)) })
    }

    /// Ends all reports of this tracker and its clones, also while other threads are in the middle of one: the segment is
    /// closed and removed, and later calls do nothing. What is still live is held no longer, as far as monitors see.
    pub fn close(&self) {
        if let Some(inner) = &self.inner {
            inner.emitter.end();
        }
    }

    /// A handle whose calls never wait for another thread, for crash handlers.
    pub fn without_waiting(&self) -> WithoutWaiting<'_> {
        WithoutWaiting { tracker: self }
    }

    /// Turns the tracker into an exclusive handle that needs no lock. If there are clones, returns the
    /// tracker as the error.
    pub fn into_exclusive(self) -> Result<ExclusiveTracker, Tracker> {
        let backtrace = self.wants_backtrace();
        let inner = match self.inner.map(Arc::try_unwrap).transpose() {
            Ok(inner) => inner.map(RefCell::new),
            Err(inner) => return Err(Tracker { inner: Some(inner) }),
        };
        Ok(ExclusiveTracker { inner, backtrace })
    }
}

impl Access for Tracker {
    #[inline(always)]
    fn access<R>(&self, work: impl FnOnce(&mut Emitter, &Registry) -> R) -> Result<R, Unavailable> {
        let inner = self.inner.as_deref().ok_or(Unavailable::Disabled)?;
        let Inner { config, registry, emitter } = inner;
        let done = emitter.with(|| reopen(config, registry), |emitter| work(emitter, registry));
        done.ok_or_else(|| Unavailable::of(emitter.has_ended()))
    }

    #[inline]
    fn wants_backtrace(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.config.backtrace)
    }
}

impl Record for Tracker {
    #[inline]
    fn is_enabled(&self) -> bool {
        self.inner.is_some()
    }
}

/// Reports without ever waiting for another thread, for crash handlers. Made by [`Tracker::without_waiting`].
///
/// A call that would have to wait returns [`RecordError::Busy`] and records nothing; one that only asks returns `None`. That
/// is so while another thread is in a call, and in a signal handler that interrupted its own thread in one. A forked child
/// that has made no other call yet is always busy, since a segment of its own is more than a handler may make.
///
/// What a signal handler may call: markers, [`alloc_failed`](Record::alloc_failed), the states and gauges of devices,
/// [`reset_peaks`](Record::reset_peaks), [`partial`](Record::partial), [`self_checks`](Record::self_checks) and
/// [`counters`](Record::counters) use no heap. [`alloc`](Record::alloc) and [`free`](Record::free) do now and then, when a
/// list grows, and everything else does: if the handler interrupted `malloc`, that may wait for ever. Register devices, intern
/// names and open the tracker beforehand. Call sites are not captured.
///
/// An [`AllocGuard`] of this handle whose end finds it busy leaves the buffer live.
#[derive(Clone, Copy)]
pub struct WithoutWaiting<'a> {
    tracker: &'a Tracker,
}

impl Access for WithoutWaiting<'_> {
    fn access<R>(&self, work: impl FnOnce(&mut Emitter, &Registry) -> R) -> Result<R, Unavailable> {
        let Inner { registry, emitter, .. } = self.tracker.inner.as_deref().ok_or(Unavailable::Disabled)?;
        emitter.try_with(|emitter| work(emitter, registry)).map_err(|error| match error {
            TryWithError::Busy => Unavailable::Busy,
            TryWithError::NoValue => Unavailable::of(emitter.has_ended()),
        })
    }

    fn wants_backtrace(&self) -> bool {
        false
    }
}

impl Record for WithoutWaiting<'_> {
    fn is_enabled(&self) -> bool {
        self.tracker.is_enabled()
    }
}

impl std::fmt::Debug for WithoutWaiting<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WithoutWaiting").field("segment", &segment_path(self)).finish()
    }
}

/// Reports from one thread at a time, without a lock. Made by [`Tracker::into_exclusive`].
///
/// It may move to another thread but not be shared:
///
/// ```compile_fail
/// fn shared<T: Sync>() {}
/// shared::<tt_shm_writer::ExclusiveTracker>();
/// ```
///
/// ```
/// fn moved<T: Send>() {}
/// moved::<tt_shm_writer::ExclusiveTracker>();
/// ```
pub struct ExclusiveTracker {
    inner: Option<RefCell<Inner>>,
    backtrace: bool,
}

impl ExclusiveTracker {
    /// Ends all reports: the segment is closed and removed, and later calls do nothing. What is still live is held no
    /// longer, as far as monitors see.
    pub fn close(&self) {
        if let Some(inner) = &self.inner {
            inner.borrow().emitter.end();
        }
    }
}

impl Access for ExclusiveTracker {
    #[inline(always)]
    fn access<R>(&self, work: impl FnOnce(&mut Emitter, &Registry) -> R) -> Result<R, Unavailable> {
        // Never borrowed twice: `work` is code of this crate and calls nothing of the host's.
        let inner = &mut *self.inner.as_ref().ok_or(Unavailable::Disabled)?.borrow_mut();
        let Inner { config, registry, emitter } = inner;
        let has_ended = emitter.has_ended();
        let emitter =
            emitter.get_mut(|| reopen(config, registry)).ok_or_else(|| Unavailable::of(has_ended))?;
        Ok(work(emitter, registry))
    }

    #[inline]
    fn wants_backtrace(&self) -> bool {
        self.backtrace
    }
}

impl Record for ExclusiveTracker {
    #[inline]
    fn is_enabled(&self) -> bool {
        self.inner.is_some()
    }
}

impl std::fmt::Debug for Tracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracker").field("segment", &segment_path(self)).finish()
    }
}

impl std::fmt::Debug for ExclusiveTracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExclusiveTracker").field("segment", &segment_path(self)).finish()
    }
}

fn segment_path(tracker: &impl Record) -> Option<PathBuf> {
    tracker.segment_path()
}

/// The calls by which a host reports.
///
/// A call returns an error if it does not fit what was reported before. The error is also counted where
/// monitors see it, and never makes a total wrong. Every call takes a [`Device`], or a [`Mesh`](crate::Mesh) or
/// slice of them; on several it is recorded on each device or, if one of them refuses it, on none. (A process that is killed
/// in the middle of a call may be seen between two devices.)
pub trait Record: Access + Sized {
    /// Whether calls do anything.
    fn is_enabled(&self) -> bool;

    /// The file that this process writes, if tracking is enabled.
    fn segment_path(&self) -> Option<PathBuf> {
        self.access(|emitter, _| emitter.segment.path().clone()).ok()
    }

    /// Registers a device. A device that is known already, by chip and allocator, keeps its handle, and new
    /// facts about it are added. Facts that contradict an earlier call are ignored, and counted for monitors
    /// to see.
    fn register_device(&self, info: &DeviceInfo) -> Recorded<Device> {
        let register = self.access(|emitter, registry| emitter.register(registry, &info.entry()));
        register.unwrap_or_else(|why| why.or_nothing(0)).map(Device)
    }

    /// Interns a name for use in later calls: bytes, which most readers show as UTF-8 with what is invalid replaced. A
    /// name longer than 1024 bytes is cut, and not within a character if it is UTF-8. An empty one is [`NameId::NONE`].
    fn intern(&self, name: impl AsRef<[u8]>) -> Recorded<NameId> {
        // Before the lock is taken: this is code of the host.
        let name = name.as_ref();
        let intern = self.access(|emitter, registry| emitter.intern(registry, name));
        intern.unwrap_or_else(|why| why.or_nothing(NameId::NONE))
    }

    /// Records that a buffer was allocated.
    #[inline(always)]
    fn alloc(&self, target: impl Target, alloc: Alloc) -> Recorded {
        if self.is_enabled() { record_alloc(self, target, alloc) } else { Ok(()) }
    }

    /// Records that a buffer was allocated, and that it was freed when the guard is dropped.
    fn alloc_guard<T: Target>(&self, target: T, alloc: Alloc) -> Recorded<AllocGuard<'_, Self, T>> {
        self.alloc(&target, alloc)?;
        Ok(AllocGuard::new(self, target, alloc.id))
    }

    /// Records that a buffer was freed.
    #[inline(always)]
    fn free(&self, target: impl Target, id: u64) -> Recorded {
        if self.is_enabled() { record_free(self, target, id) } else { Ok(()) }
    }

    /// Records that these buffers were allocated, as a call of [`alloc`](Self::alloc) for each would, but with the lock
    /// taken once. Each is recorded on all devices or on none. The first that is refused ends the batch: those before it
    /// stay recorded, and those after it are not tried.
    ///
    /// Other threads wait meanwhile.
    fn alloc_many(&self, target: impl Target, allocs: &[Alloc]) -> Result<(), BatchError> {
        if self.is_enabled() { record_allocs(self, target.devices(), allocs) } else { Ok(()) }
    }

    /// Records that the buffers with these ids were freed, as [`alloc_many`](Self::alloc_many) does that they were
    /// allocated.
    fn free_many(&self, target: impl Target, ids: &[u64]) -> Result<(), BatchError> {
        if self.is_enabled() { record_frees(self, target.devices(), ids) } else { Ok(()) }
    }

    /// Records that a buffer was freed, and checks the size that was requested for it.
    fn free_sized(&self, target: impl Target, id: u64, size: u64) -> Recorded {
        let check =
            |emitter: &Emitter, device| emitter.check_live(Key::buffer(device, id), "buffer").map(drop);
        let seek = |emitter: &Emitter, device| emitter.seek(Key::buffer(device, id));
        each_sought(self, target.devices(), check, seek, |emitter, device, sought| {
            emitter.free(device, sought, Some(size))
        })
    }

    /// Records that a buffer was freed because its device was closed, not by the program.
    fn free_dropped(&self, target: impl Target, id: u64) -> Recorded {
        let check =
            |emitter: &Emitter, device| emitter.check_live(Key::buffer(device, id), "buffer").map(drop);
        each(self, target.devices(), check, |emitter, device| emitter.free_dropped(device, id))
    }

    /// Gives something live a name after it was reported, and a site unless that is [`NameId::NONE`].
    fn name(&self, target: impl Target, what: Allocation, name: NameId, site: NameId) -> Recorded {
        let check = |emitter: &Emitter, device| {
            let (key, what) = what.key(device);
            emitter.check_live(key, what).map(drop)
        };
        each(self, target.devices(), check, |emitter, device| {
            let (key, what) = what.key(device);
            emitter.name(key, name, site, what)
        })
    }

    /// The same for something that another thread may have freed meanwhile: then nothing is done.
    fn name_if_live(&self, target: impl Target, what: Allocation, name: NameId) -> Recorded {
        let nothing_to_check = |_: &Emitter, _| Ok(());
        each(self, target.devices(), nothing_to_check, |emitter, device| {
            let (key, _) = what.key(device);
            match emitter.find(&key) {
                Some(live) => emitter.rename(&live, name, NameId::NONE),
                None => emitter.counters(device).map(drop),
            }
        })
    }

    /// Records that a circular buffer was allocated. It is resident from the next dispatch of its program on.
    fn cb_alloc(&self, target: impl Target, cb: CircularBuffer) -> Recorded {
        let check = |emitter: &Emitter, device| emitter.check_cb_alloc(device, &cb);
        each(self, target.devices(), check, |emitter, device| emitter.cb_alloc(device, &cb))
    }

    /// Records that a circular buffer was freed; the size, if given, is checked.
    fn cb_free(&self, target: impl Target, program: u64, id: u64, size: Option<u64>) -> Recorded {
        let check = |emitter: &Emitter, device| {
            emitter.check_live(Key::cb(device, program, id), "circular buffer").map(drop)
        };
        each(self, target.devices(), check, |emitter, device| emitter.cb_free(device, program, id, size))
    }

    /// Records that a kernel was loaded. If it was loaded already, this is a cached dispatch of a program:
    /// the one that the kernel names, which from then on runs it, or otherwise the one that loaded it.
    fn kernel_load(&self, target: impl Target, kernel: Kernel) -> Recorded<Loaded> {
        let mut loaded = Loaded::New;
        let check = |emitter: &Emitter, device| emitter.check_kernel_load(device, &kernel);
        each(self, target.devices(), check, |emitter, device| {
            loaded = emitter.kernel_load(device, &kernel)?;
            Ok(())
        })?;
        Ok(loaded)
    }

    /// Records that a kernel was unloaded, whichever programs ran it; the total size, if given, is checked.
    fn kernel_unload(&self, target: impl Target, id: u64, size: Option<u64>) -> Recorded {
        let check =
            |emitter: &Emitter, device| emitter.check_live(Key::kernel(device, id), "kernel").map(drop);
        each(self, target.devices(), check, |emitter, device| emitter.kernel_unload(device, id, size))
    }

    /// Records that a program was launched: those of its kernels that were not sent before are loaded, and it
    /// is dispatched once. A binary that was sent before tracking began is loaded now and marked late.
    #[inline(always)]
    fn launch(&self, target: impl Target, launch: Launch<'_>) -> Recorded {
        if self.is_enabled() { record_launch(self, target, launch) } else { Ok(()) }
    }

    /// Records that a program whose binary is on the device was dispatched again: a program id, or a
    /// [`Dispatch`] that says how often and where.
    #[inline(always)]
    fn dispatch(&self, target: impl Target, dispatch: impl Into<Dispatch>) -> Recorded {
        if self.is_enabled() { record_dispatch(self, target, dispatch.into()) } else { Ok(()) }
    }

    /// Records that a program was destroyed: its circular buffers are freed and the kernels that it loaded
    /// are unloaded.
    fn program_end(&self, target: impl Target, program: u64) -> Recorded {
        let check = |emitter: &Emitter, device| emitter.check_program(device, program).map(drop);
        each(self, target.devices(), check, |emitter, device| emitter.program_end(device, program))
    }

    /// Records that an allocation failed.
    fn alloc_failed(&self, target: impl Target, failed: FailedAlloc) -> Recorded {
        note(self, target.devices(), EventKind::AllocFailed, |event| {
            event.class = failed.class as u8;
            event.flags = if failed.per_bank { flags::PER_BANK } else { 0 };
            event.size = failed.request_bytes;
            event.id = failed.needed_per_bank_bytes;
            (event.address, event.aux) = (failed.free_bytes, failed.largest_free_bytes);
            event.cores = short(failed.banks);
        })
    }

    /// Records that the sums were compared with those of the device's allocator `made` times, of which
    /// `different` found a difference.
    fn self_checks(&self, made: u64, different: u64) -> Recorded {
        let count = self.access(|emitter, _| emitter.segment.count_self_checks(made, different));
        count.or_else(|why| why.or_nothing(()))
    }

    /// Records that this process holds memory that it cannot report: from now on none of its figures is exact.
    fn partial(&self) -> Recorded {
        let set = self.access(|emitter, _| emitter.segment.set_state(control::state::PARTIAL, true));
        set.or_else(|why| why.or_nothing(()))
    }

    /// Takes [`partial`](Self::partial) back: from now on everything that this process holds is reported. What was used
    /// until then is not known any better, so [peaks](Self::reset_peaks) should begin anew.
    fn complete(&self) -> Recorded {
        let cleared = self.access(|emitter, _| emitter.segment.set_state(control::state::PARTIAL, false));
        cleared.or_else(|why| why.or_nothing(()))
    }

    /// Records the beginning or end of a step, or a named moment.
    fn marker(&self, phase: MarkerPhase, id: u64, name: NameId) -> Recorded {
        let marker = self.access(|emitter, _| {
            emitter.read_clock();
            emitter.marker(phase, id, name)
        });
        marker.unwrap_or_else(|why| why.or_nothing(()))
    }

    /// Resets the peaks to what is used now.
    fn reset_peaks(&self, target: impl Target) -> Recorded {
        note(self, target.devices(), EventKind::PeakReset, |_| ())
    }

    /// Records that the device was opened.
    fn device_open(&self, target: impl Target) -> Recorded {
        note(self, target.devices(), EventKind::DeviceOpen, |_| ())
    }

    /// Records that the device was closed. What was not freed stays reported as live.
    fn device_close(&self, target: impl Target) -> Recorded {
        note(self, target.devices(), EventKind::DeviceClose, |_| ())
    }

    /// Records how full the kernel ring buffer is.
    fn kernel_ring(&self, target: impl Target, total_bytes: u64, used_bytes: u64, programs: u64) -> Recorded {
        note(self, target.devices(), EventKind::Gauge, |event| {
            (event.size, event.address, event.aux) = (total_bytes, used_bytes, programs);
        })
    }

    /// This process's own counters of a device, exact as of the last call; `None` if disabled, or if the device is not
    /// registered.
    fn counters(&self, device: Device) -> Option<Counters> {
        self.access(|emitter, _| emitter.counters(device.0).copied()).ok()?.ok()
    }
}

// The most frequent calls are split in two: the check whether tracking is enabled is inlined into the host's
// code, so that a disabled tracker costs no more than that; the rest is a call.

#[inline(never)]
fn record_alloc(handle: &impl Record, target: impl Target, mut alloc: Alloc) -> Recorded {
    if handle.wants_backtrace() && alloc.names.high() == 0 {
        // Lack of room for the name is counted, and no reason not to report the buffer.
        alloc = alloc.site(handle.intern(crate::site::capture()).unwrap_or(NameId::NONE));
    }
    let check = |emitter: &Emitter, device| emitter.check_alloc(device, &alloc);
    let seek = |emitter: &Emitter, device| emitter.seek(Key::buffer(device, alloc.id));
    each_sought(handle, target.devices(), check, seek, |emitter, device, sought| {
        emitter.alloc(device, sought, &alloc)
    })
}

#[inline(never)]
fn record_allocs(handle: &impl Record, devices: &[Device], allocs: &[Alloc]) -> Result<(), BatchError> {
    let lacks_site = |alloc: &Alloc| alloc.names.high() == 0;
    let site = if handle.wants_backtrace() && allocs.iter().any(lacks_site) {
        handle.intern(crate::site::capture()).unwrap_or(NameId::NONE)
    } else {
        NameId::NONE
    };
    batch(handle, allocs, |emitter, alloc| {
        let alloc = if lacks_site(alloc) { alloc.site(site) } else { *alloc };
        let check = |emitter: &Emitter, device| emitter.check_alloc(device, &alloc);
        let seek = |emitter: &Emitter, device| emitter.seek(Key::buffer(device, alloc.id));
        on_devices(emitter, devices, check, seek, |emitter, device, sought| {
            emitter.alloc(device, sought, &alloc)
        })
    })
}

#[inline(never)]
fn record_frees(handle: &impl Record, devices: &[Device], ids: &[u64]) -> Result<(), BatchError> {
    batch(handle, ids, |emitter, id| {
        let check =
            |emitter: &Emitter, device| emitter.check_live(Key::buffer(device, *id), "buffer").map(drop);
        let seek = |emitter: &Emitter, device| emitter.seek(Key::buffer(device, *id));
        on_devices(emitter, devices, check, seek, |emitter, device, sought| {
            emitter.free(device, sought, None)
        })
    })
}

#[inline(never)]
fn record_free(handle: &impl Record, target: impl Target, id: u64) -> Recorded {
    let check = |emitter: &Emitter, device| emitter.check_live(Key::buffer(device, id), "buffer").map(drop);
    let seek = |emitter: &Emitter, device| emitter.seek(Key::buffer(device, id));
    each_sought(handle, target.devices(), check, seek, |emitter, device, sought| {
        emitter.free(device, sought, None)
    })
}

#[inline(never)]
fn record_dispatch(handle: &impl Record, target: impl Target, dispatch: Dispatch) -> Recorded {
    let check = |emitter: &Emitter, device| emitter.check_dispatch(device, &dispatch);
    let seek = |emitter: &Emitter, device| emitter.seek_program(device, dispatch.program);
    each_sought(handle, target.devices(), check, seek, |emitter, device, home| {
        emitter.dispatch(device, home, &dispatch, true)
    })
}

#[inline(never)]
fn record_launch(handle: &impl Record, target: impl Target, launch: Launch<'_>) -> Recorded {
    let check = |emitter: &Emitter, device| emitter.check_launch(device, &launch);
    each(handle, target.devices(), check, |emitter, device| emitter.launch(device, &launch))
}
