//! Whether the host reports by itself, through the C library: then nothing is reported here, so that nothing counts twice.
//!
//! The C library has a function that says so. Where tt-metal itself was built with it, its calls are those of the allocator,
//! and it reports as soon as it is told to by the environment, perhaps later than this library would. Elsewhere in the process
//! only a tracker that is open counts: a host may have the library just to read. A tracker that is opened later ends what is
//! reported here (`tt_shm_tap_detach`).

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::AtomicPtr;

use crate::metal;

/// What the C library says, if it is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Said {
    /// Whether it is a part of tt-metal.
    is_in_metal: bool,
    /// Whether a tracker is open that reports what tt-metal allocates.
    is_reporting: bool,
}

/// Whether the host reports by itself, or is about to.
pub(crate) fn reports_by_itself() -> bool {
    let is_wanted = || std::env::var_os(tt_shm_writer::ENABLED_ENV).is_some_and(|value| value == "1");
    said().is_some_and(|said| decide(said, is_wanted()))
}

fn decide(said: Said, is_wanted: bool) -> bool {
    said.is_reporting || (said.is_in_metal && is_wanted)
}

fn said() -> Option<Said> {
    let ask = |library: *mut c_void| {
        // SAFETY: a handle that is never closed, or the one for all libraries, and a string with its end.
        let address = unsafe { libc::dlsym(library, c"tt_shm_is_reporting".as_ptr()) };
        if address.is_null() {
            return None;
        }
        // SAFETY: the C library's function of that name takes nothing and returns an int, in all its versions.
        let is_reporting = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(address) };
        Some(is_reporting() != 0)
    };
    // Finds it in libtt_metal.so and in what that is linked with.
    let in_metal = metal::library().and_then(ask);
    // Python loads libraries for itself alone, so that only their names find them.
    static LIBRARY: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    let by_name = || metal::loaded(c"libtt_shm.so.1", &LIBRARY).and_then(ask);
    let is_reporting = in_metal.or_else(|| ask(libc::RTLD_DEFAULT)).or_else(by_name)?;
    Some(Said { is_in_metal: in_metal.is_some(), is_reporting })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_reports_by_itself_is_not_reported_twice() {
        let [metal, reading, reporting] = [(true, false), (false, false), (false, true)]
            .map(|(is_in_metal, is_reporting)| Said { is_in_metal, is_reporting });
        // tt-metal was built with the calls: the environment decides, before and after its tracker is open.
        assert!(decide(metal, true) && !decide(metal, false));
        assert!(decide(Said { is_reporting: true, ..metal }, false));
        // A host that reads what others report has no calls.
        assert!(!decide(reading, true) && !decide(reading, false));
        // One that reports what tt-metal allocates.
        assert!(decide(reporting, true) && decide(reporting, false));
    }

    #[test]
    fn without_the_c_library_nobody_reports_by_itself() {
        assert_eq!(said(), None);
        assert!(!reports_by_itself());
    }
}
