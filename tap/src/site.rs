//! Where a buffer was allocated, on request: the functions of ttnn, or else of tt-metal, that led there, innermost first.
//!
//! It takes some microseconds for each allocation (`TT_ALLOC_TRACKING_BACKTRACE=1`).

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;

use crate::needs;

/// As deep as is looked.
const DEPTH: usize = 48;
/// The functions that are kept.
const KEPT: usize = 3;

/// The call site of what this thread does now; `None` if there is no name for it.
#[cold]
pub(crate) fn here() -> Option<String> {
    let mut frames = [std::ptr::null_mut::<c_void>(); DEPTH];
    // SAFETY: writes as many addresses as there is room for.
    let count = unsafe { libc::backtrace(frames.as_mut_ptr(), DEPTH as i32) };
    let frames = frames.get(..usize::try_from(count).ok()?)?;
    let names: Vec<String> = frames.iter().filter_map(|frame| name_of(*frame)).collect();
    // What every operation goes through tells nothing.
    let tells = |name: &&str| !name.contains("::detail::") && *name != "ttnn::create_device_tensor";
    let of_ttnn = names.iter().map(String::as_str).filter(|name| name.starts_with("ttnn::")).filter(tells);
    let mut kept: Vec<&str> = of_ttnn.take(KEPT).collect();
    if kept.is_empty() {
        kept = names.iter().map(String::as_str).take(KEPT).collect();
    }
    (!kept.is_empty()).then(|| kept.join(" < "))
}

/// The C++ function that an address is in, unless it is one of ours or has no name.
fn name_of(address: *mut c_void) -> Option<String> {
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: looks up an address, whatever it is, and writes what it finds.
    if unsafe { libc::dladdr(address, found.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: it was found, so it was written.
    let found = unsafe { found.assume_init() };
    if found.dli_sname.is_null() || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: names that the linker has of a loaded library, which end with a 0.
    let library = unsafe { CStr::from_ptr(found.dli_fname) };
    // SAFETY: as above.
    let name = unsafe { CStr::from_ptr(found.dli_sname) };
    let is_ours = library.to_bytes().windows(10).any(|part| part == b"tt_shm_tap");
    let is_cxx = name.to_bytes().starts_with(b"_ZN");
    (is_cxx && !is_ours).then(|| needs::readable(name))
}
