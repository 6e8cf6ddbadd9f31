//! How a call on a handle reaches the emitter behind it: with or without a lock, on one device or several.

use crate::config::Config;
use crate::device::{Device, Target};
use crate::emitter::Emitter;
use crate::error::{OpenError, RecordError};
use crate::lock::ForkMutex;
use crate::registry::Registry;
use sealed::{Access, Unavailable};
use shm_layout::{Event, EventKind};

type Recorded<T = ()> = Result<T, RecordError>;

pub(crate) mod sealed {
    use crate::emitter::Emitter;
    use crate::registry::Registry;

    /// Why a handle has no emitter.
    pub enum Unavailable {
        /// Tracking is disabled.
        Disabled,
        /// In a forked child that could not make a segment of its own.
        Forked,
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
    /// A forked child that could not make a segment of its own has none.
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

/// The emitter of a forked child.
#[cold]
#[inline(never)]
pub(crate) fn reopen(config: &Config, registry: &Registry) -> Option<Emitter> {
    Emitter::open(config, registry).ok()
}

/// Emits an event that only tells something about each device.
pub(crate) fn note(
    handle: &impl Access,
    target: impl Target,
    kind: EventKind,
    tell: impl Fn(&mut Event),
) -> Recorded {
    let check = |emitter: &Emitter, device| emitter.counters(device).map(drop);
    each(handle, target, check, |emitter, device| emitter.note(kind, device, &tell))
}

impl Unavailable {
    /// Nothing is what a disabled handle does; a child without a segment says that it cannot.
    #[cold]
    pub(crate) fn or_nothing<T>(self, nothing: T) -> Recorded<T> {
        match self {
            Unavailable::Disabled => Ok(nothing),
            Unavailable::Forked => Err(RecordError::ForkedWithoutSegment),
        }
    }
}

/// Runs `work` on each device under one hold of the lock. On a mesh all devices are asked first by `check`: a call
/// that one of them refuses changes none.
#[inline(always)]
pub(crate) fn each(
    handle: &impl Access,
    target: impl Target,
    check: impl Fn(&Emitter, u8) -> Recorded,
    mut work: impl FnMut(&mut Emitter, u8) -> Recorded,
) -> Recorded {
    // Asked before the lock is taken: a host's own Target may report something itself.
    let devices = target.devices();
    // Beside the result: an error has many words, which success need not touch.
    let mut refused = None;
    let done = handle.access(|emitter, _| {
        emitter.read_clock();
        let result = match devices {
            // It refuses what it has to by itself.
            [device] => work(emitter, device.0),
            _ => on_mesh(emitter, devices, check, work),
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
    emitter: &mut Emitter,
    devices: &[Device],
    check: impl Fn(&Emitter, u8) -> Recorded,
    mut work: impl FnMut(&mut Emitter, u8) -> Recorded,
) -> Recorded {
    // One that a host's own Target names twice is meant once, as in a Mesh.
    let each = || devices.iter().enumerate().filter(|(place, device)| !devices[..*place].contains(device));
    for (_, device) in each() {
        check(emitter, device.0)?;
    }
    let mut first_error = Ok(());
    for (_, device) in each() {
        // Only a size that is not the one asked for: what was allocated is freed all the same.
        first_error = first_error.and(work(emitter, device.0));
    }
    first_error
}

/// Apart from the way of success, which need not touch the room for an error.
#[cold]
fn failed(error: RecordError) -> Recorded {
    Err(error)
}
