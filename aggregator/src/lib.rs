//! Follows every process's segment and publishes what they use, per device and process, in one table.
//!
//! Used in two ways: as a daemon ([`run_daemon`]) that publishes the table, and embedded ([`Aggregator`]) in
//! a tool that finds no daemon. Both show the same rows.
//!
//! What happens when
//!
//! - **a process starts or ends**, before or after the aggregator, in whatever way: its exact figures are
//!   counted while it lives, and what it held is reported when its end is noticed, within a second;
//! - **a ring goes round** before it was read: totals stay exact, what was missed is counted, and peaks of
//!   the device become a range that holds the true one;
//! - **a process comes and goes** between two looks: its events are replayed from its file, which it leaves to a daemon;
//!   if the file is gone, that is counted, and nothing bounds the peaks of that time;
//! - **a segment is hostile or broken**: it is refused with a reason, or its figures leave all totals. It
//!   affects only its own rows; a poll takes a bounded time and memory whatever it holds;
//! - **the aggregator is killed**: every row of its table stays whole, and the next one takes over history and
//!   peaks, marks the gap, and takes everything else from the segments;
//! - **/dev/shm is full**: an error that says so, never SIGBUS.
//!
//! Peaks across processes come from the events of all rings, merged by time: each event waits for half a
//! millisecond, in which earlier ones of other processes arrive. The first window reaches back to what the
//! processes that were found had reached by themselves, and nothing bounds it, since others may have come and gone;
//! later windows begin with a reset and are exact.
//!
//! # Example
//!
//! ```
//! use tt_shm_aggregator::{Aggregator, Config};
//! use tt_shm_os::Namespace;
//!
//! let mut aggregator = Aggregator::new(Config::new(Namespace::new("nobody-is-here").unwrap()))?;
//! aggregator.poll();
//! for (_, device) in aggregator.snapshot().devices {
//!     println!("{:x}: {} B of DRAM", device.entry.chip_id, device.dram_used_bytes);
//! }
//! aggregator.wait(aggregator.sleep_hint(), None);
//! # Ok::<(), tt_shm_aggregator::StartError>(())
//! ```

#![forbid(unsafe_code)]

mod aggregator;
mod config;
mod daemon;
mod error;
mod log;
mod merge;
mod model;
mod segments;
mod table;

pub use aggregator::{Activity, Aggregator};
pub use config::{Config, Only};
pub use daemon::{DaemonConfig, run_daemon};
pub use error::{DaemonError, PublishError, ResetError, StartError};
pub use log::Log;
pub use table::adopt::Adopted;
pub use table::lockfile::Claim;
pub use table::publish::TablePublisher;
pub use table::reset::request_reset;
