//! What unmodified tt-metal publishes about its memory: one region for each chip, `/dev/shm/tt_device_<chip id>_memory`.
//!
//! [`Regions`] finds and reads them; a [`Region`] has the figures of a chip and of the processes that use it. They are
//! for processes that report in no other way. **They are never exact**: [`INEXACTNESS`] says why.
//!
//! What happens when things go wrong:
//!
//! - **a region is being created**, and empty, short or not initialised: [`Absence::Starting`], until it is complete.
//! - **it belongs to another user**, or is no region of a known version: [`Absence::Denied`], [`Absence::Refused`].
//! - **processes write while it is read**: it is read until two readings are equal, a few times, and marked otherwise
//!   ([`Content::is_steady`]).
//! - **figures contradict each other**: each contradiction is a [`Fault`], and no figure is corrected.
//! - **a process was killed**: its bytes stay in the region for ever. [`Liveness`] says whether a process lives, or why
//!   that is not certain: pids are those of the process's own container, and are reused.
//!
//! Files are read, never mapped: one that is truncated under a mapping raises SIGBUS. Nothing is written, locked or
//! removed. No content panics, and no file, list or search goes beyond a fixed size.
//!
//! # Example
//!
//! ```
//! use std::time::Instant;
//! use tt_shm_region::{Regions, Roots};
//!
//! let mut regions = Regions::new(Roots::default());
//! regions.poll(Instant::now());
//! for region in regions.regions() {
//!     match &region.content {
//!         Ok(content) => {
//!             let alive = content.sum(|process| process.pid_here().is_some());
//!             println!("{:#x}: {} B of DRAM requested, at least", region.chip_id, alive.dram);
//!         }
//!         Err(absence) => println!("{absence}"),
//!     }
//! }
//! ```

#![forbid(unsafe_code)]

mod absence;
mod accuracy;
mod bytes;
mod content;
mod fault;
mod file;
mod layout;
mod liveness;
mod regions;
mod roots;

pub use absence::{Absence, Reading, Refusal};
pub use accuracy::{
    FIRST_THREAD_ONLY, INEXACTNESS, Inexactness, NO_DATAFLOW_BUFFERS, RACES, REQUESTED_BYTES,
};
pub use bytes::{Bytes, Kind};
pub use content::{ChipStats, Content, Process};
pub use fault::{Fault, Place};
pub use liveness::{Doubt, Liveness};
pub use regions::{Pace, Region, Regions};
pub use roots::Roots;
