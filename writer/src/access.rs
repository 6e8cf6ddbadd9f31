//! How a call on a handle reaches the emitter behind it: with or without a lock, on one device or several.

use crate::config::Config;
use crate::device::Device;
use crate::emitter::Emitter;
use crate::error::{BatchError, OpenError, RecordError};
use crate::registry::Registry;
use sealed::{Access, Unavailable};
use shm_layout::{Event, EventKind};
use tt_shm_os::ForkMutex;

type Recorded<T = ()> = Result<T, RecordError>;

pub(crate) mod sealed {
    use crate::emitter::Emitter;
    use crate::registry::Registry;

    /// Why a handle has no emitter.
    pub enum Unavailable {
        /// Tracking is disabled.
        Disabled,
        /// This is a forked child that could not create a segment of its own.
        Forked,
        /// The tracker was closed.
        Closed,
        /// The emitter is in use, and the handle does not wait.
        Busy,
    }

    /// How a handle reaches its emitter.
    pub trait Access {
        fn access<R>(&self, work: impl FnOnce(&mut Emitter, &Registry) -> R) -> Result<R, Unavailable>;

        fn wants_backtrace(&self) -> bool;
    }
}

/// What both handles own.
pub(crate) struct Inner {
    pub(crate) config: Config,
    pub(crate) registry: Registry,
    /// Empty in a forked child that could not create a segment of its own.
    pub(crate) emitter: ForkMutex<Emitter>,
}

impl Inner {
    pub(crate) fn open(config: Config) -> Result<Inner, OpenError> {
        let registry = Registry::new();
        let emitter = Emitter::open(&config, &registry)?;
        let emitter = ForkMutex::new(emitter)
            .map_err(|cause| OpenError::Create { step: "make a page that forks wipe", cause })?;
        Ok(Inner { config, registry, emitter })
    }
}

/// Creates the emitter of a forked child.
#[cold]
#[inline(never)]
pub(crate) fn reopen(config: &Config, registry: &Registry) -> Option<Emitter> {
    Emitter::open(config, registry).ok()
}

/// Emits an event that only describes each device.
pub(crate) fn note(
    handle: &impl Access,
    devices: &[Device],
    kind: EventKind,
    tell: impl Fn(&mut Event),
) -> Recorded {
    let check = |emitter: &Emitter, device| emitter.counters(device).map(drop);
    each(handle, devices, check, |emitter, device| emitter.note(kind, device, &tell))
}

impl Unavailable {
    /// Why there is no emitter, given whether the tracker was closed.
    pub(crate) fn of(closed: bool) -> Unavailable {
        if closed { Unavailable::Closed } else { Unavailable::Forked }
    }

    /// Returns `nothing` for a disabled or closed handle; a child without a segment returns an error.
    #[cold]
    pub(crate) fn or_nothing<T>(self, nothing: T) -> Recorded<T> {
        match self {
            Unavailable::Disabled | Unavailable::Closed => Ok(nothing),
            Unavailable::Forked => Err(RecordError::ForkedWithoutSegment),
            Unavailable::Busy => Err(RecordError::Busy),
        }
    }
}

/// Runs `work` on each device while holding the lock once. On a mesh, `check` runs on all devices first: a
/// call that one of them refuses changes none.
///
/// The devices are those of a `Target`, which was asked before: a host's own may itself make a report, for which it needs
/// the lock.
#[inline(always)]
pub(crate) fn each(
    handle: &impl Access,
    devices: &[Device],
    check: impl Fn(&Emitter, u8) -> Recorded,
    mut work: impl FnMut(&mut Emitter, u8) -> Recorded,
) -> Recorded {
    each_sought(handle, devices, check, |_, _| (), |emitter, device, ()| work(emitter, device))
}

/// The same for a call that looks something up. On one device `seek` runs before the clock is read, see
/// [`Emitter::read_clock`]; nothing changes between it and `work`.
#[inline(always)]
pub(crate) fn each_sought<S>(
    handle: &impl Access,
    devices: &[Device],
    check: impl Fn(&Emitter, u8) -> Recorded,
    seek: impl Fn(&Emitter, u8) -> S,
    work: impl FnMut(&mut Emitter, u8, S) -> Recorded,
) -> Recorded {
    // Kept outside the result: an error has many words, which success need not touch.
    let mut refused = None;
    let done = handle.access(|emitter, _| {
        if let Err(error) = on_devices(emitter, devices, check, seek, work) {
            refused = Some(error);
        }
    });
    match (done, refused) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(error)) => failed(error),
        (Err(why), _) => why.or_nothing(()),
    }
}

/// Records one item after the other on the devices, while holding the lock once, until one is refused.
pub(crate) fn batch<I>(
    handle: &impl Access,
    items: &[I],
    mut record: impl FnMut(&mut Emitter, &I) -> Recorded,
) -> Result<(), BatchError> {
    let mut refused = Ok(());
    let run = handle.access(|emitter, _| {
        for (done, item) in items.iter().enumerate() {
            if let Err(error) = record(emitter, item) {
                refused = Err(BatchError { done, error });
                break;
            }
        }
    });
    match run {
        Ok(()) => refused,
        Err(why) => why.or_nothing(()).map_err(|error| BatchError { done: 0, error }),
    }
}

/// What [`each_sought`] does with the lock.
#[inline(always)]
pub(crate) fn on_devices<S>(
    emitter: &mut Emitter,
    devices: &[Device],
    check: impl Fn(&Emitter, u8) -> Recorded,
    seek: impl Fn(&Emitter, u8) -> S,
    mut work: impl FnMut(&mut Emitter, u8, S) -> Recorded,
) -> Recorded {
    match devices {
        // On one device `work` does all checks itself.
        [device] => {
            let sought = seek(emitter, device.0);
            emitter.read_clock();
            work(emitter, device.0, sought)
        }
        _ => on_mesh(emitter, devices, check, |emitter, device| {
            let sought = seek(emitter, device);
            work(emitter, device, sought)
        }),
    }
}

#[inline(never)]
fn on_mesh(
    emitter: &mut Emitter,
    devices: &[Device],
    check: impl Fn(&Emitter, u8) -> Recorded,
    mut work: impl FnMut(&mut Emitter, u8) -> Recorded,
) -> Recorded {
    emitter.read_clock();
    for device in distinct(devices) {
        check(emitter, device)?;
    }
    let mut first_error = Ok(());
    for device in distinct(devices) {
        // After the checks, only a size mismatch is left: the allocation is freed nonetheless.
        first_error = first_error.and(work(emitter, device));
    }
    first_error
}

/// The numbers of these devices. One that is named twice counts once, as in a [`Mesh`](crate::Mesh).
fn distinct(devices: &[Device]) -> impl Iterator<Item = u8> {
    const BITS: u8 = u64::BITS as u8;
    let mut seen = [0_u64; (1 + u8::MAX as usize) / BITS as usize];
    devices.iter().map(|device| device.0).filter(move |number| {
        let (word, bit) = (&mut seen[usize::from(number / BITS)], 1 << (number % BITS));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    })
}

/// Kept out of line so that the path of success does not touch the room for an error.
#[cold]
fn failed(error: RecordError) -> Recorded {
    Err(error)
}
