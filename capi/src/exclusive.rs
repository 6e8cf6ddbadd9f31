//! A tracker for one thread at a time, whose calls take no lock.
//!
//! In Rust the compiler keeps other threads away from it. Here it belongs to a thread, and each call compares: another
//! thread is refused. To pass it on, the thread that has it lets go of it, and then another one may take it.

use std::sync::atomic::{AtomicU64, Ordering};

use tt_shm_os::this_thread;
use tt_shm_writer::ExclusiveTracker;

use crate::code::{Done, Failure, TT_SHM_ERR_THREAD, TT_SHM_ERR_VALUE, call};
use crate::handle::{self, Writer, tt_shm_tracker};
use crate::raw::Handle;

/// The owner of a tracker that no thread has.
const NOBODY: u64 = 0;

/// An exclusive tracker, and the thread that it belongs to.
pub(crate) struct Exclusive {
    owner: AtomicU64,
    tracker: ExclusiveTracker,
}

// SAFETY: the tracker is reached only by `get`, which refuses all threads but the owner. A thread becomes the owner after
// the one before it has let go, which it does outside of all calls; Release and Acquire order what both do. A thread that
// has the number of an owner that ended without letting go was made after that end, and is then the owner.
unsafe impl Sync for Exclusive {}

impl Exclusive {
    /// The tracker belongs to this thread.
    pub(crate) fn new(tracker: ExclusiveTracker) -> Exclusive {
        Exclusive { owner: AtomicU64::new(this_thread()), tracker }
    }

    /// The tracker, if it belongs to this thread.
    #[inline(always)]
    pub(crate) fn get(&self) -> Done<&ExclusiveTracker> {
        // Relaxed: a thread finds its own number only where it has stored it itself.
        if self.owner.load(Ordering::Relaxed) == this_thread() { Ok(&self.tracker) } else { Err(refused()) }
    }

    fn release(&self) -> Done {
        self.get()?;
        // Release: pairs with the Acquire in `acquire`. Who takes it sees all that this thread did with it.
        self.owner.store(NOBODY, Ordering::Release);
        Ok(())
    }

    fn acquire(&self) -> Done {
        let taken =
            self.owner.compare_exchange(NOBODY, this_thread(), Ordering::Acquire, Ordering::Relaxed).is_ok();
        if taken { Ok(()) } else { self.get().map(drop) }
    }
}

#[cold]
#[inline(never)]
fn refused() -> Failure {
    Failure::argument(TT_SHM_ERR_THREAD, "the tracker is exclusive, and does not belong to this thread")
}

/// An exclusive tracker by its handle.
fn exclusive(tracker: Handle<tt_shm_tracker>) -> Done<&'static Exclusive> {
    match &handle::tracker(tracker)?.0.writer {
        Writer::Exclusive(exclusive) => Ok(exclusive),
        Writer::Shared(_) => Err(Failure::argument(TT_SHM_ERR_VALUE, "the tracker is not exclusive")),
    }
}

/// Lets go of an exclusive tracker, which belongs to the calling thread: from now on every call with it is refused, until a thread
/// takes it by `tt_shm_tracker_acquire`. `TT_SHM_ERR_VALUE` for a tracker that is not exclusive.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_tracker_release(tracker: Handle<tt_shm_tracker>) -> i32 {
    call(|| exclusive(tracker)?.release())
}

/// Makes an exclusive tracker that no thread has belong to the calling thread. `TT_SHM_ERR_THREAD` if another one has it. Let go of
/// it before a thread ends: what that thread had stays with it.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_tracker_acquire(tracker: Handle<tt_shm_tracker>) -> i32 {
    call(|| exclusive(tracker)?.acquire())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_writer::{Record, Tracker};

    #[test]
    fn it_belongs_to_one_thread_until_that_lets_go() {
        let tracker = Tracker::disabled().into_exclusive().expect("it has no clones");
        let exclusive = Exclusive::new(tracker);
        assert!(exclusive.get().is_ok_and(|tracker| !tracker.is_enabled()));
        assert_eq!(exclusive.acquire(), Ok(()), "it has it already");
        let elsewhere = |work: fn(&Exclusive) -> Done| {
            std::thread::scope(|threads| threads.spawn(|| work(&exclusive)).join().unwrap())
        };
        let code = |done: Done| done.unwrap_err().code();
        assert_eq!(code(elsewhere(|exclusive| exclusive.get().map(drop))), TT_SHM_ERR_THREAD);
        assert_eq!(code(elsewhere(Exclusive::acquire)), TT_SHM_ERR_THREAD);
        assert_eq!(code(elsewhere(Exclusive::release)), TT_SHM_ERR_THREAD);
        assert_eq!(exclusive.release(), Ok(()));
        assert_eq!(code(exclusive.get().map(drop)), TT_SHM_ERR_THREAD);
        assert_eq!(elsewhere(Exclusive::acquire), Ok(()));
        // That thread has ended with it.
        assert_eq!(code(exclusive.acquire()), TT_SHM_ERR_THREAD);
    }
}
