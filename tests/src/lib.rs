//! Cross-process tests of the memory monitor, and their helper binaries.
//!
//! A test owns a [`Space`]: a namespace in /dev/shm that is removed with everything in it, and processes
//! that are ended, when the test ends or fails. In it run real [`Host`]s: processes that report through
//! the writer what they are told to, and keep their own [`Truth`] by a model that shares no code with it.

pub mod executable;
pub mod fuzz;
pub mod host;
pub mod hostile;
pub mod machine;
pub mod metal;
pub mod model;
pub mod monitor;
pub mod picture;
#[cfg(feature = "test-points")]
pub mod points;
pub mod region;
pub mod script;
pub mod soak;
pub mod space;
pub mod terminal;
pub mod workload;

pub use host::Host;
pub use machine::Machine;
pub use metal::Metal;
pub use monitor::Monitor;
pub use region::{RegionImage, RegionTree};
pub use script::{Command, DeviceTruth, Truth};
pub use space::Space;
