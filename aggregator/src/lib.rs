//! Follows the segment of every process and publishes what they use, per device and process, in one table.
//!
//! It is used in two ways: as a daemon ([`run_daemon`]) that publishes the table, and embedded
//! ([`Aggregator`]) in a tool that finds no daemon. Both show the same rows, and [`Source`] reads whichever there
//! is.
//!
//! What happens when
//!
//! - **a process starts or ends**, before or after the aggregator and in any way: its exact figures are
//!   counted while it is alive, and what it held is reported when its end is noticed, within a second;
//! - **a ring wraps around** before it was read: totals stay exact, missed events are counted, and device
//!   peaks become a range that contains the true one;
//! - **a process starts and ends** between two polls: its events are replayed from its file, which it leaves
//!   behind when a daemon is running. If the file is gone, that is counted, and peaks of that time have no
//!   upper bound;
//! - **a segment is hostile or broken**: it is refused with a reason, or its figures are removed from all
//!   totals. It affects only its own rows; a poll takes bounded time and memory whatever the segment holds;
//! - **the aggregator is killed**: every row of its table stays intact. The next aggregator takes over
//!   history and peaks, marks the gap, and takes everything else from the segments;
//! - **/dev/shm is full**: an error says so. There is never a SIGBUS.
//!
//! Peaks across processes come from the events of all rings, merged by time: each event waits half a
//! millisecond for earlier events of other processes. The first window reaches back to what the processes
//! that were found had reached by themselves. It has no upper bound, because other processes may have come
//! and gone; later windows begin with a reset and are exact.
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
mod driver;
mod error;
mod log;
mod merge;
mod model;
mod observe;
mod past;
mod regions;
mod segments;
mod source;
mod table;

pub use aggregator::{Activity, Aggregator};
pub use config::{Config, Only};
pub use daemon::{DaemonConfig, run_daemon};
pub use driver::driver_stats;
pub use error::{DaemonError, PublishError, ResetError, SourceError, StartError};
pub use log::Log;
pub use observe::Observe;
pub use source::{Origin, Reading, Source, SourceConfig};
pub use table::adopt::Adopted;
pub use table::lockfile::Claim;
pub use table::publish::TablePublisher;
pub use table::reset::request_reset;
