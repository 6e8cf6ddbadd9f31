//! Reports a process's accelerator allocations into shared memory in tens of nanoseconds.
//!
//! Each process writes a segment of its own in /dev/shm: exact counters, a list of what is live, and a ring
//! of its latest events. It never waits for a monitor, and nothing is lost without one: a monitor that starts
//! later finds every live allocation, exact totals and peaks. If the process is killed, its segment says what
//! it held. If /dev/shm is full, opening fails with an error that says so, and growing marks the lists as
//! incomplete while totals stay exact. A forked child gets a segment of its own at its first call.
//!
//! ```
//! use tt_shm_writer::{Alloc, BufferType, DeviceInfo, Record, Tracker};
//!
//! # let namespace = format!("doc-writer-{}", std::process::id());
//! let tracker = Tracker::builder().enabled(true).namespace(namespace).open()?;
//! let device = tracker.register_device(&DeviceInfo { chip_id: 7, ..Default::default() })?;
//! let name = tracker.intern("weights")?;
//!
//! tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 4096).name(name))?;
//! {
//!     let _scratch = tracker.alloc_guard(device, Alloc::new(BufferType::L1, 2, 1024))?;
//! }
//! let counters = tracker.counters(device).unwrap();
//! assert_eq!((counters.dram_used(), counters.l1_used(), counters.l1_peak_bytes), (4096, 0, 1024));
//!
//! // A mistake is reported, and makes no total wrong.
//! assert!(tracker.free(device, 99).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Tracking is on if `TT_ALLOC_TRACKING_ENABLED` is `1`, or if [`Builder::enabled`] says so; when disabled,
//! each call costs one predictable branch.
//!
//! # Which tracker
//!
//! One per process: [`Tracker::for_process`] opens it at the first call and returns the same one later, to every library
//! and thread. Two trackers are two segments, which monitors add up.
//!
//! # Signal handlers and threads that must not wait
//!
//! Calls on a [`Tracker`] may wait for another thread, and must not be made from a signal handler, which would wait for the
//! thread that it interrupted. [`Tracker::without_waiting`] is for those: its calls return [`RecordError::Busy`] instead.
//!
//! # Unloading
//!
//! A library that contains this crate must not be unloaded (`dlclose`) while a thread is in a call, nor while a tracker is
//! open: close every tracker first ([`Tracker::close`], [`ExclusiveTracker::close`]). What is left then is a function that runs
//! at exit, which the C library calls when it unloads the library, and some memory. A library that cannot know when its
//! callers are done is linked with `-z nodelete`, and stays.

mod access;
pub mod codes;
mod config;
mod device;
mod emitter;
mod error;
mod exit;
mod followed;
mod guard;
mod index;
mod live;
mod names;
mod process;
mod programs;
mod reap;
mod registry;
mod request;
mod rows;
mod segment;
mod site;
mod tags;
mod tracker;

pub use config::{
    BACKTRACE_ENV, Builder, DEFAULT_LIVE_CAPACITY, DEFAULT_RING_SLOTS, ENABLED_ENV, LIVE_CAPACITY_ENV,
    RING_SLOTS_ENV, RUN_ENV,
};
pub use device::{CoreGrid, CoreMemory, Device, DeviceInfo, Mesh, PciAddress, Pool, Pools, Target};
pub use error::{BatchError, OpenError, RecordError};
pub use guard::AllocGuard;
pub use request::{
    Alloc, Allocation, BufferType, CircularBuffer, Dispatch, FailedAlloc, Kernel, Launch, Loaded, NameId,
    ProgramBinaryStatus,
};
pub use shm_layout::{Arch, Class, CoreType, Counters, KernelType, MarkerPhase, Source};
pub use tracker::{ExclusiveTracker, Record, Tracker, WithoutWaiting};
