//! What the kernel driver tells: its devices, their telemetry, and who holds them.

pub(crate) mod holders;
pub(crate) mod telemetry;
mod told;
mod watch;

pub use told::driver_stats;
pub(crate) use watch::{DriverWatch, reporters};
