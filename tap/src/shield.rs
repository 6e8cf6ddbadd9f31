//! Keeps the host as it is: errno, and no panic and no word of ours gets out.

use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use tt_shm_os::{ForkGuard, ForkMutex, monotonic_ns};

/// Set for good if something of ours panicked: then the hooks only forward.
static BROKEN: AtomicBool = AtomicBool::new(false);
/// Set while nothing is to be reported: then the hooks only forward.
static DETACHED: AtomicBool = AtomicBool::new(false);
/// Counts the forks between the first process and this one, and how often reports ended. Whatever belongs to an earlier
/// generation is not used any more.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// When reports last began by request; [`ATTACHING`] while that is being done.
static ATTACHED_NS: AtomicU64 = AtomicU64::new(0);
const ATTACHING: u64 = u64::MAX;

/// Does something of ours in the middle of the host's work. `None` if it panicked.
#[inline]
pub(crate) fn shielded<T>(work: impl FnOnce() -> T) -> Option<T> {
    if is_on() { kept(work) } else { None }
}

/// Whether anything is to be reported.
#[inline]
pub(crate) fn is_on() -> bool {
    !BROKEN.load(Ordering::Relaxed) && !DETACHED.load(Ordering::Relaxed)
}

/// The same, whether reports are wanted or not.
fn kept<T>(work: impl FnOnce() -> T) -> Option<T> {
    // SAFETY: the address of this thread's errno, which is always valid.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    // SAFETY: as above.
    unsafe { *errno = before };
    if done.is_err() {
        BROKEN.store(true, Ordering::Relaxed);
    }
    done.ok()
}

/// Lets reports begin, or begin anew.
pub(crate) fn attach<T>(work: impl FnOnce() -> T) -> Option<T> {
    // Release: pairs with the Acquire in `wait_for_earlier_calls`. A hook is called as soon as it is in place, or as
    // reports are wanted; whoever is called then knows that the others may not be.
    ATTACHED_NS.store(ATTACHING, Ordering::Release);
    if DETACHED.swap(false, Ordering::AcqRel) {
        // Whoever was in the middle of something when reports ended has left something half done.
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
    let done = shielded(work);
    ATTACHED_NS.store(monotonic_ns(), Ordering::Release);
    done
}

/// Waits until the hooks are in place, and calls that had begun before have ended: what they free would be looked at while
/// it goes. They take microseconds, and a thread seldom waits this long for a processor.
pub(crate) fn wait_for_earlier_calls() {
    const WAIT: Duration = Duration::from_millis(50);
    const TURN: Duration = Duration::from_millis(1);
    // Acquire: pairs with the AcqRel in `attach`, for whoever came here because reports are wanted.
    fence(Ordering::Acquire);
    // Not for ever: a child that was forked in the middle of it never sees its end.
    for _ in 0..1000 {
        // Acquire: pairs with the Release in `attach`.
        let waited = match ATTACHED_NS.load(Ordering::Acquire) {
            ATTACHING => Duration::ZERO,
            since => Duration::from_nanos(monotonic_ns().saturating_sub(since)),
        };
        if waited >= WAIT {
            return;
        }
        std::thread::sleep(TURN);
    }
}

/// Ends reports: from now on the hooks only forward, and what was known is forgotten. `None` if they had ended before.
pub(crate) fn detach<T>(last: impl FnOnce() -> T) -> Option<T> {
    if DETACHED.swap(true, Ordering::Relaxed) {
        return None;
    }
    let done = kept(last);
    GENERATION.fetch_add(1, Ordering::Relaxed);
    done
}

/// What has to be done once before anything else. Not by [`std::sync::Once`]: a child that is forked while another thread
/// is in it would wait for ever. Who comes second may go on before the first is done, which harms nothing.
pub(crate) fn prepare() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if BEGUN.load(Ordering::Relaxed) || BEGUN.swap(true, Ordering::Relaxed) {
        return;
    }
    // Of this library's own copy of the standard library: the host's is another.
    panic::set_hook(Box::new(|_| ()));
    extern "C" fn forked() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the function only counts, which is allowed in a forked child.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
}

/// Whether nothing is to be reported.
pub(crate) fn is_detached() -> bool {
    DETACHED.load(Ordering::Relaxed)
}

/// In which process this is, counted from the one in which the library was loaded.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Something of which every process has its own: a forked child begins with none, and never waits for a lock that a thread
/// of its parent held.
pub(crate) struct PerProcess<T: 'static> {
    current: AtomicPtr<Owned<T>>,
}

struct Owned<T> {
    generation: u32,
    it: T,
}

impl<T: Send + Sync> PerProcess<T> {
    pub(crate) const fn new() -> PerProcess<T> {
        PerProcess { current: AtomicPtr::new(ptr::null_mut()) }
    }

    fn of_this_process(owned: *mut Owned<T>) -> Option<&'static T> {
        // SAFETY: what was once in there is never freed.
        let owned = unsafe { owned.as_ref() }?;
        (owned.generation == generation()).then_some(&owned.it)
    }

    /// This process's, if it has one.
    pub(crate) fn get(&self) -> Option<&'static T> {
        // Acquire: pairs with the Release in `try_get_or_make`.
        PerProcess::of_this_process(self.current.load(Ordering::Acquire))
    }

    /// This process's, made if it has none; `None` if it cannot be made.
    pub(crate) fn try_get_or_make(&self, make: impl FnOnce() -> Option<T>) -> Option<&'static T> {
        // Acquire: pairs with the Release below.
        let there = self.current.load(Ordering::Acquire);
        if let Some(it) = PerProcess::of_this_process(there) {
            return Some(it);
        }
        let made = Box::into_raw(Box::new(Owned { generation: generation(), it: make()? }));
        match self.current.compare_exchange(there, made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => PerProcess::of_this_process(made),
            Err(first) => {
                // Another thread was faster.
                // SAFETY: nobody else has seen this one.
                drop(unsafe { Box::from_raw(made) });
                PerProcess::of_this_process(first)
            }
        }
    }
}

impl<T: Default + Send + 'static> PerProcess<ForkMutex<T>> {
    /// This process's, locked; made if it has none. `None` if the kernel has no such locks.
    pub(crate) fn lock(&self) -> Option<ForkGuard<'static, T>> {
        // A child's is another one, so none has to be made anew.
        self.try_get_or_make(|| ForkMutex::new(T::default()).ok())?.lock(|| None)
    }
}
