//! What the host may ask of this library besides to begin and to end: its peaks to begin anew, and markers around a step.

use std::ffi::{c_int, c_void};
use std::slice;

use tt_shm_writer::{Device, MarkerPhase, NameId, Record};

use crate::segment;
use crate::shield::shielded;

/// What is asked for makes no sense.
const INVALID: c_int = -1;
/// A name is cut there anyway.
const MAX_NAME_LEN: usize = 1024;

/// Lets the peaks of a device begin anew with what it uses now: the one with this index in the segment's list, or with -1
/// all of them. Returns 1; 0 if nothing is reported, so that there are no peaks; -1 if there is no such device.
///
/// # Safety
///
/// Safe to call at any time; unsafe only as everything that C calls is.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn tt_shm_tap_reset_peaks(device: c_int) -> c_int {
    let reset = || match (segment::existing(), u8::try_from(device)) {
        (None, _) => 0,
        (Some(segment), Ok(index)) => {
            segment.tracker().reset_peaks(Device::from_raw(index)).map_or(INVALID, |()| 1)
        }
        (Some(segment), Err(_)) if device == -1 => {
            // In the order of the list, of which only the end is unknown.
            let devices = (0..u8::MAX).map(Device::from_raw);
            devices.map_while(|device| segment.tracker().reset_peaks(device).ok()).for_each(drop);
            1
        }
        _ => INVALID,
    };
    shielded(reset).unwrap_or(0)
}

/// Records the beginning (0) or end (1) of a step, or a moment (2), with a number and a name of the host's choice. Returns
/// 1; 0 if nothing is reported yet; -1 if there is no such phase.
///
/// # Safety
///
/// `name` is null, or the address of `len` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn tt_shm_tap_marker(
    phase: c_int,
    id: u64,
    name: *const c_void,
    len: usize,
) -> c_int {
    let Some(phase) = u8::try_from(phase).ok().and_then(MarkerPhase::from_code) else { return INVALID };
    let name = match name.is_null() {
        true => &[],
        // SAFETY: the caller vouches for as many bytes.
        false => unsafe { slice::from_raw_parts(name.cast::<u8>(), len.min(MAX_NAME_LEN)) },
    };
    let mark = || {
        let Some(segment) = segment::existing() else { return 0 };
        let tracker = segment.tracker();
        // Without room for its name it is a marker nevertheless.
        let name = tracker.intern(name).unwrap_or(NameId::NONE);
        tracker.marker(phase, id, name).map_or(0, |()| 1)
    };
    shielded(mark).unwrap_or(0)
}
