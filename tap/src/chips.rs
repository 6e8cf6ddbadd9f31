//! Which chip a `Device*` is: tt-metal does not export the function that tells it, but a mesh names its devices and
//! their numbers in the same order.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::metal::{Device, mesh_members};

/// As many as one process can have; later ones stay unknown.
const MOST: usize = 256;

static DEVICES: [AtomicPtr<c_void>; MOST] = [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST];
static NUMBERS: [AtomicU32; MOST] = [const { AtomicU32::new(u32::MAX) }; MOST];

/// Remembers the number of a device.
pub(crate) fn learn(device: *mut c_void, number: u32) {
    for (place, known) in DEVICES.iter().zip(&NUMBERS) {
        let is_mine = |there: *mut c_void| there == device || there.is_null();
        let taken = is_mine(place.load(Ordering::Acquire))
            && match place.compare_exchange(
                std::ptr::null_mut(),
                device,
                // AcqRel: pairs with the Acquire of whoever finds the place taken.
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => true,
                Err(there) => there == device,
            };
        if taken {
            // Release: pairs with the Acquire in `number_of`. A device that was made anew where another had been has
            // its new number.
            known.store(number, Ordering::Release);
            return;
        }
    }
}

/// The number of a device that is not a mesh.
pub(crate) fn number_of(device: Device) -> Option<u32> {
    let place = DEVICES.iter().position(|place| place.load(Ordering::Acquire) == device.0)?;
    Some(NUMBERS[place].load(Ordering::Acquire)).filter(|number| *number != u32::MAX)
}

/// Remembers the devices of a mesh.
pub(crate) fn learn_mesh(mesh: Device) {
    for (device, number) in mesh_members(mesh) {
        learn(device, number);
    }
}
