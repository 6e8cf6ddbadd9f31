//! The one tracker of a process.
//!
//! Kept outside the lock under which it is opened, so that a forked child finds it. If the child was forked while another
//! thread was opening it, the child finds none and opens its own: that lock is one that a fork frees, and not std's.

use crate::config::Builder;
use crate::error::OpenError;
use crate::tracker::Tracker;
use once_cell::race::OnceBox;
use tt_shm_os::ForkMutex;

static TRACKER: OnceBox<Tracker> = OnceBox::new();
static OPENING: OnceBox<ForkMutex<()>> = OnceBox::new();

/// See [`Tracker::for_process`].
pub(crate) fn tracker() -> Result<Tracker, OpenError> {
    if let Some(tracker) = TRACKER.get() {
        return Ok(tracker.clone());
    }
    let lock = OPENING.get_or_try_init(|| ForkMutex::new(()).map(Box::new));
    let lock = lock.map_err(|cause| OpenError::Create { step: "make a page that forks wipe", cause })?;
    // Never `None`: it never ends, and a child can always make the nothing that is behind it.
    let _guard = lock.lock(|| Some(()));
    // Another thread may have opened it meanwhile.
    if let Some(tracker) = TRACKER.get() {
        return Ok(tracker.clone());
    }
    let tracker = Builder::default().open()?;
    let _ = TRACKER.set(Box::new(tracker.clone()));
    Ok(tracker)
}
