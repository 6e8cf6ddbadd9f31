//! Keeps the host as it is: errno, and no panic and no word of ours gets out.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Set for good if something of ours panicked: then the hooks only forward.
static BROKEN: AtomicBool = AtomicBool::new(false);
/// Counts the forks between the first process and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Does something of ours in the middle of the host's work. `None` if it panicked.
#[inline]
pub(crate) fn shielded<T>(work: impl FnOnce() -> T) -> Option<T> {
    if BROKEN.load(Ordering::Relaxed) {
        return None;
    }
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

/// In which process this is, counted from the one in which the library was loaded.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}
