//! What the kernel driver (tt-kmd) tells about Tenstorrent devices, read without opening one.
//!
//! Opening `/dev/tenstorrent/N` changes the device's power state, adds the monitor to the list of holders, and may
//! block a process that wants the device for itself. So everything here comes from sysfs and procfs:
//!
//! - [`Monitor`]: devices under `/sys/class/tenstorrent`, their identity, firmware, clocks, sensors and PCIe link;
//! - [`Holders`]: the processes that hold a device, from `/proc/driver/tenstorrent/N/pids` or `/proc/*/fd`;
//! - [`Nominal`]: the memory of a board by its name, for devices that no process reports a capacity of.
//!
//! What happens when things go wrong:
//!
//! - **a value is not there**: it is an [`Absence`] that tells the reason. An attribute exists only if the driver and
//!   the firmware have it, and may appear after the device.
//! - **the device resets**: reads fail with ENODATA ([`Absence::Resetting`]) until it is back.
//! - **the device is detached or renumbered**: reads fail with ENODEV ([`Absence::Gone`]), and the next poll looks for
//!   the devices again.
//! - **the text is not what it should be**: [`Absence::Malformed`] has the file and the text. No content panics, and
//!   no file, list or text is read beyond a fixed size.
//!
//! # Example
//!
//! ```
//! use std::time::Instant;
//! use tt_shm_driver::{Monitor, Quantity, Roots};
//!
//! let mut monitor = Monitor::new(Roots::default());
//! monitor.poll(Instant::now());
//! for device in monitor.devices() {
//!     match &device.sensor(Quantity::Temperature).input {
//!         Ok(millidegrees) => println!("{}: {} °C", device.number, *millidegrees as f64 / 1000.0),
//!         Err(absence) => println!("{}: {absence}", device.number),
//!     }
//! }
//! ```

#![forbid(unsafe_code)]

mod absence;
mod attribute;
mod board;
mod cgroup;
mod device;
mod files;
mod format;
mod heartbeat;
mod holders;
mod monitor;
mod place;
mod roots;
mod version;

pub use absence::{Absence, Malformed, Reading};
pub use board::{Architecture, Nominal};
pub use cgroup::{Container, Groups, RUNTIMES};
pub use device::{Clock, Component, Device, Health, Identity, Link, LinkState, Quantity, Sensor};
pub use files::{Files, KernelFiles};
pub use format::PciAddress;
pub use holders::{Confidence, DeviceHolders, Facts, Holder, Holders, Listing};
pub use monitor::{Monitor, Pace};
pub use roots::Roots;
pub use version::Version;
