//! The two handles by which a host reports: shared between threads, or exclusive to one.

use crate::config::{Builder, Config};
use crate::error::OpenError;
use crate::lock::ForkMutex;
use crate::record::Record;
use crate::record::sealed::{Access, Stateless};
use crate::registry::Registry;
use crate::state::State;
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

/// What both handles own.
pub(crate) struct Inner {
    pub(crate) config: Config,
    pub(crate) registry: Registry,
    /// A forked child that could not make a segment of its own has none.
    state: ForkMutex<State>,
}

impl Inner {
    fn open(config: Config) -> Result<Inner, OpenError> {
        let registry = Registry::new();
        let state = State::open(&config, &registry)?;
        let state = ForkMutex::new(state)
            .map_err(|cause| OpenError::Create { step: "make a page that forks wipe", cause })?;
        Ok(Inner { config, registry, state })
    }
}

/// The state of a forked child.
#[cold]
#[inline(never)]
fn reopen(config: &Config, registry: &Registry) -> Option<State> {
    State::open(config, registry).ok()
}

/// Reports from any number of threads. Cheap to clone; the segment is closed and removed when the last
/// clone is dropped, or when the process exits.
///
/// Calls are methods of [`Record`]. If tracking is disabled they cost one predictable branch.
#[derive(Clone)]
pub struct Tracker {
    inner: Option<Arc<Inner>>,
}

impl Tracker {
    /// Settings to open a tracker with.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A tracker as the environment says: enabled if `TT_ALLOC_TRACKING_ENABLED` is `1`.
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

    /// Turns the only tracker into an exclusive handle that needs no lock. If there are clones, gives
    /// the tracker back.
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
    fn access<R>(&self, work: impl FnOnce(&mut State, &Registry) -> R) -> Result<R, Stateless> {
        let inner = self.inner.as_deref().ok_or(Stateless::Disabled)?;
        let Inner { config, registry, state } = inner;
        let done = state.with(|| reopen(config, registry), |state| work(state, registry));
        done.ok_or(Stateless::Forked)
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

impl Access for ExclusiveTracker {
    #[inline(always)]
    fn access<R>(&self, work: impl FnOnce(&mut State, &Registry) -> R) -> Result<R, Stateless> {
        // Never borrowed twice: `work` is this crate's and calls nothing of the host's.
        let inner = &mut *self.inner.as_ref().ok_or(Stateless::Disabled)?.borrow_mut();
        let Inner { config, registry, state } = inner;
        let state = state.get_mut(|| reopen(config, registry)).ok_or(Stateless::Forked)?;
        Ok(work(state, registry))
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
