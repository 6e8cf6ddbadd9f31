//! Files that no honest process makes, and how they must be met.

mod cases;
mod forge;
mod watchdog;

pub use cases::{CASES, Case, Expect, Made};
pub use forge::{DEVICE_CHIP, Forged, MAX_SEGMENT, place, put};
pub use watchdog::{Finished, finish, peak_memory};
