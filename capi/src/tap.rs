//! The tap: a library that reports what an unmodified tt-metal allocates. Where a host reports by itself, it stands back, so
//! that nothing counts twice.
//!
//! Whichever comes first, one of the two asks the other. The tap asks [`tt_shm_is_reporting`] before it reports; and when a
//! tracker is opened, a tap that reports already is told to end.

use std::ffi::{CStr, c_int, c_void};

use crate::handle;

/// Whether this process reports by itself: 1 if an enabled tracker is open that was not opened with
/// `TT_SHM_OPEN_BESIDE_TAP`. The tap asks this.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_is_reporting() -> i32 {
    i32::from(handle::trackers().any(|opened| opened.is_enabled && !opened.is_beside_tap))
}

/// The tap's file, which it has as its name whatever the path that it was loaded from.
const TAP: &CStr = c"libtt_shm_tap.so";

/// Ends the reports of a tap in this process, if there is one.
pub(crate) fn stand_back() {
    // SAFETY: a string with its end; nothing is loaded that is not there already.
    let library = unsafe { libc::dlopen(TAP.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    if library.is_null() {
        return;
    }
    // SAFETY: an open library, and a string with its end.
    let detach = unsafe { libc::dlsym(library, c"tt_shm_tap_detach".as_ptr()) };
    if detach.is_null() {
        return;
    }
    // SAFETY: the tap's function of that name takes nothing, returns an int and may be called at any time.
    let detach = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(detach) };
    // SAFETY: as above. The tap is never unloaded.
    unsafe { detach() };
}
